package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
)

// gridCmd does the work of a preset task by task, in any number of processes on
// any number of machines that share a folder of artifacts, or that have one
// each, to be merged.
type gridCmd struct {
	Count  gridCountCmd  `cmd:"" help:"Print the number of tasks."`
	Run    gridRunCmd    `cmd:"" help:"Do one task; at once if it is done. Exit code 0: it is done. 4 or a signal: run it again. Anything else: it failed for good."`
	Status gridStatusCmd `cmd:"" help:"List the tasks with their states. Exit code 0 if all are done, 1 if any failed for good, else 4."`
	Merge  gridMergeCmd  `cmd:"" help:"Put results together into one file of rows a block, those of other folders of artifacts too; refuses results that contradict each other."`
}

func (g *globals) tasks() (*experiment.Store, []experiment.Task, error) {
	store, err := g.open(running)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := store.Tasks()
	return store, tasks, err
}

type gridCountCmd struct {
	Training bool `help:"Count the training runs alone; they come first."`
}

func (c gridCountCmd) Run(g *globals) error {
	_, tasks, err := g.tasks()
	if err != nil {
		return err
	}
	n := 0
	for _, t := range tasks {
		if t.Training != nil || !c.Training {
			n++
		}
	}
	_, err = fmt.Fprintln(g.out, n)
	return err
}

type gridRunCmd struct {
	Index int `arg:"" help:"Number of the task, from 0; see 'policyattention plan'."`
}

// ran is what grid run prints for machines.
type ran struct {
	Index   int    `json:"index"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Skipped bool   `json:"skipped"` // was done before
}

func (r gridRunCmd) Run(ctx context.Context, g *globals) error {
	store, tasks, err := g.tasks()
	if err != nil {
		return err
	}
	if r.Index < 0 || r.Index >= len(tasks) {
		return fmt.Errorf("%w: no task %d, preset %s has tasks 0 to %d", errUsage, r.Index, store.Preset.Name, len(tasks)-1)
	}
	task := tasks[r.Index]
	if task.Training != nil {
		defer g.progress(store, []method.Training{task.Training})()
	}
	made, err := store.Run(ctx, task)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(ran{r.Index, task.Kind(), task.Name(), !made})
	}
	what := "done"
	if !made {
		what = "was done"
	}
	_, err = fmt.Fprintf(g.out, "task %d, %s %s: %s\n", r.Index, task.Kind(), task.Name(), what)
	return err
}

type gridStatusCmd struct{}

// taskStatus is a line of the status.
type taskStatus struct {
	Index   int                 `json:"index"`
	Kind    string              `json:"kind"`
	Name    string              `json:"name"`
	State   experiment.State    `json:"state"`
	Failure *experiment.Failure `json:"failure,omitempty"`
}

var (
	errTasksFailed = errors.New("failed for good")
	errTasksLeft   = errors.New("not yet done")
)

func (gridStatusCmd) Run(g *globals) error {
	store, tasks, err := g.tasks()
	if err != nil {
		return err
	}
	var lines []taskStatus
	counts := map[experiment.State]int{}
	for i, t := range tasks {
		state, failure, err := store.State(t)
		if err != nil {
			return err
		}
		counts[state]++
		lines = append(lines, taskStatus{i, t.Kind(), t.Name(), state, failure})
	}
	if g.JSON {
		err = g.print(lines)
	} else {
		w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
		for _, l := range lines {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s", l.Index, l.Kind, l.Name, l.State)
			if l.Failure != nil {
				fmt.Fprintf(w, "\ton %s: %s", l.Failure.Host, l.Failure.Error)
			}
			fmt.Fprintln(w)
		}
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	if n := counts[experiment.Failed]; n > 0 {
		return fmt.Errorf("%d of %d tasks %w", n, len(tasks), errTasksFailed)
	}
	if n := len(tasks) - counts[experiment.Done]; n > 0 {
		return fmt.Errorf("%d of %d tasks %w", n, len(tasks), errTasksLeft)
	}
	return nil
}

type gridMergeCmd struct {
	Folder []string `arg:"" optional:"" help:"Other folders of artifacts to take results from." type:"existingdir"`
}

func (m gridMergeCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open(running)
	if err != nil {
		return err
	}
	put, err := store.Merge(ctx, m.Folder...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "%d results put into %s\n", put, store.Root())
	return err
}

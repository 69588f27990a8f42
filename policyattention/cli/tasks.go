package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"icrl/policyattention/experiment"
)

// gridCmd does the work of a preset task by task, in any number of processes on any number of machines
// that share a folder of artifacts, or that have one each, to be merged.
type gridCmd struct {
	Run    gridRunCmd    `cmd:"" help:"${run}"`
	Status gridStatusCmd `cmd:"" help:"${status}"`
	Merge  gridMergeCmd  `cmd:"" help:"${merge}"`
}

// listed is a line of plan and of grid status.
type listed struct {
	Index   int                 `json:"index"` // for grid run
	Kind    string              `json:"kind"`  // "train" or "evaluate"
	Name    string              `json:"name"`
	Done    bool                `json:"done"`
	State   experiment.State    `json:"state"`
	Minutes float64             `json:"estimated_core_minutes"`
	Failure *experiment.Failure `json:"failure,omitempty"`
}

// last says what a task will take, or why it failed.
func (l listed) last() string {
	switch {
	case l.Failure != nil:
		return fmt.Sprintf("on %s: %s", l.Failure.Host, l.Failure.Error)
	case l.Minutes > 0:
		return fmt.Sprintf("%.1f core-min", l.Minutes)
	}
	return "seconds"
}

// list prints the tasks of the preset, or as JSON.
func (g *globals) list(store *experiment.Store) (all []listed, err error) {
	tasks, err := store.Tasks()
	if err != nil {
		return nil, err
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	for i, t := range tasks {
		l := listed{Index: i, Kind: t.Kind(), Name: t.Path()}
		if l.State, l.Failure, err = store.State(t); err != nil {
			return nil, err
		}
		l.Done = l.State == experiment.Done
		if t.Training != nil {
			l.Minutes = t.Training.Seconds() / 60
		}
		all = append(all, l)
		if !g.JSON {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", l.Index, l.Kind, l.Name, l.State, l.last())
		}
	}
	if g.JSON {
		return all, g.print(all)
	}
	return all, w.Flush()
}

type planCmd struct{}

func (planCmd) Run(g *globals, store *experiment.Store) error {
	all, err := g.list(store)
	if err != nil || g.JSON {
		return err
	}
	minutes := 0.0
	for _, l := range all {
		if !l.Done {
			minutes += l.Minutes
		}
	}
	_, err = fmt.Fprintf(g.out, "\nabout %.0f core-minutes of training to do\n", minutes)
	return err
}

type gridRunCmd struct {
	Index int `arg:"" help:"Number of the task, from 0; see 'policyattention plan'."`
}

func (r gridRunCmd) Run(ctx context.Context, g *globals, store *experiment.Store) error {
	tasks, err := store.Tasks()
	if err != nil {
		return err
	}
	if r.Index < 0 || r.Index >= len(tasks) {
		return fmt.Errorf("%w: no task %d, preset %s has tasks 0 to %d", errUsage, r.Index, store.Preset.Name,
			len(tasks)-1)
	}
	task := tasks[r.Index]
	store.Progress = g.progress()
	made, err := store.Run(ctx, task)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(map[string]any{"index": r.Index, "kind": task.Kind(), "name": task.Path(), "skipped": !made})
	}
	what := "done"
	if !made {
		what = "was done"
	}
	_, err = fmt.Fprintf(g.out, "task %d, %s %s: %s\n", r.Index, task.Kind(), task.Path(), what)
	return err
}

type gridStatusCmd struct{}

var errTasksLeft = errors.New("not yet done")

func (gridStatusCmd) Run(g *globals, store *experiment.Store) error {
	all, err := g.list(store)
	if err != nil {
		return err
	}
	counts := map[experiment.State]int{}
	for _, l := range all {
		counts[l.State]++
	}
	if n := counts[experiment.Failed]; n > 0 {
		return fmt.Errorf("%d of %d tasks failed for good", n, len(all))
	}
	if n := len(all) - counts[experiment.Done]; n > 0 {
		return fmt.Errorf("%d of %d tasks %w", n, len(all), errTasksLeft)
	}
	return nil
}

type gridMergeCmd struct{}

func (gridMergeCmd) Run(ctx context.Context, g *globals, store *experiment.Store) error {
	put, err := store.Merge(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "%d results put into %s\n", put, store.Root)
	return err
}

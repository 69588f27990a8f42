package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// units returns those called names, or all of the store. A name is a unit's path, the beginning
// of several up to a hyphen, or a block's.
func units(store *experiment.Store, names []string) ([]experiment.Unit, error) {
	all, err := store.Units()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var out []experiment.Unit
	for _, name := range names {
		found := false
		for _, u := range all {
			path := u.Path()
			if path == name || string(u.Block) == name || strings.Contains(name, "/") && strings.HasPrefix(path, name+"-") {
				out, found = append(out, u), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: preset %s has no evaluation or block %q; see 'policyattention --preset %s plan'", errUsage, store.Preset.Name, name, store.Preset.Name)
		}
	}
	return out, nil
}

type planCmd struct{}

// planned is a line of the plan.
type planned struct {
	Index   int     `json:"index"` // for grid run
	Kind    string  `json:"kind"`  // "train" or "evaluate"
	Name    string  `json:"name"`
	Done    bool    `json:"done"`
	Minutes float64 `json:"estimated_core_minutes"`
}

func (planCmd) Run(g *globals) error {
	store, tasks, err := g.tasks()
	if err != nil {
		return err
	}
	var lines []planned
	missing := 0.0
	for i, t := range tasks {
		state, _, err := store.State(t)
		if err != nil {
			return err
		}
		p := planned{Index: i, Kind: t.Kind(), Name: t.Name(), Done: state == experiment.Done}
		if t.Training != nil {
			p.Minutes = t.Training.Seconds() / 60
		}
		if !p.Done {
			missing += p.Minutes
		}
		lines = append(lines, p)
	}
	if g.JSON {
		return g.print(lines)
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	for _, p := range lines {
		state, cost := "to do", "seconds"
		if p.Done {
			state = "done"
		}
		if p.Minutes > 0 {
			cost = fmt.Sprintf("%.1f core-min", p.Minutes)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", p.Index, p.Kind, p.Name, state, cost)
	}
	fmt.Fprintf(w, "\nabout %.0f core-minutes of training to do, on xla:cpu\n", missing)
	return w.Flush()
}

type trainCmd struct {
	Names []string `arg:"" optional:"" name:"run" help:"Names of training runs, from 'plan'; all without any."`
}

func (t trainCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open(running)
	if err != nil {
		return err
	}
	all, err := store.Units()
	if err != nil {
		return err
	}
	configs := experiment.Trainings(all)
	for _, name := range t.Names {
		if !slices.ContainsFunc(configs, func(c method.Training) bool { return c.Name() == name }) {
			return fmt.Errorf("%w: preset %s has no training run %q; see 'policyattention --preset %s plan'",
				errUsage, store.Preset.Name, name, store.Preset.Name)
		}
	}
	return g.train(ctx, store, slices.DeleteFunc(configs, func(c method.Training) bool {
		return len(t.Names) > 0 && !slices.Contains(t.Names, c.Name())
	}))
}

// train trains what is missing, one run after the other. One that fails does not stop the others.
func (g *globals) train(ctx context.Context, store *experiment.Store, configs []method.Training) (failures error) {
	missing, err := store.Missing(configs)
	if err != nil || len(missing) == 0 {
		return err
	}
	if _, err := store.Backend(); err != nil { // before anything waits for it
		return err
	}
	defer g.progress(store, missing)()
	for _, c := range missing {
		if _, err := store.Train(ctx, c); err != nil {
			failures = errors.Join(failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failures
}

type evaluateCmd struct {
	Names   []string `arg:"" optional:"" name:"name" help:"Evaluations from 'plan', or how several begin (benchmark/policyattention-S8); or blocks, all without any, but for those whose training takes a core more than a day."`
	Trained bool     `help:"Only those whose training runs are there: train nothing."`
}

func (e evaluateCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open(running)
	if err != nil {
		return err
	}
	list, err := units(store, e.Names)
	if err != nil {
		return err
	}
	if list, err = g.leave(store, list, e.Names, e.Trained); err != nil {
		return err
	}
	return g.evaluate(ctx, store, list)
}

// leave leaves out the units whose missing training would take a core more than a day, unless they
// are named themselves, and says so; and if only trained ones are wanted, the others.
func (g *globals) leave(store *experiment.Store, list []experiment.Unit, names []string, trained bool) (kept []experiment.Unit, err error) {
	var left []string
	for _, u := range list {
		named := slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(name, "/") && strings.HasPrefix(u.Path(), name)
		})
		long, err := store.Long(u)
		if err != nil {
			return nil, err
		}
		missing, err := store.Missing(u.Trainings())
		switch {
		case err != nil:
			return nil, err
		case trained && len(missing) > 0:
		case long && !named:
			left = append(left, u.Path())
		default:
			kept = append(kept, u)
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(g.errors, "policyattention: left out, since their training would take a core more than a day; name them to have them: %s\n", strings.Join(left, " "))
	}
	return kept, nil
}

// evaluate evaluates units one after the other, prints a line of each, and merges.
func (g *globals) evaluate(ctx context.Context, store *experiment.Store, list []experiment.Unit) error {
	if err := g.train(ctx, store, experiment.Trainings(list)); err != nil {
		return err
	}
	for _, u := range list {
		r, err := store.Evaluate(ctx, u)
		if err != nil {
			return err
		}
		if g.JSON {
			err = g.print(struct {
				Name string `json:"name"`
				Rows int    `json:"rows"`
				Loss any    `json:"median_loss"`
			}{u.Path(), r.Len(), medians(r.Rounds)})
		} else {
			_, err = fmt.Fprintf(g.out, "%s\t%d rows\t%s\n", u.Path(), r.Len(), brief(medians(r.Rounds)))
		}
		if err != nil {
			return err
		}
	}
	_, err := store.Merge(ctx)
	return err
}

// medians returns the median losses of a closed loop at the tables' horizons.
func medians(all []rows.Round) map[int32]float64 {
	at, out := map[int32][]float64{}, map[int32]float64{}
	for _, r := range all {
		if r.Round == 20 || r.Round == 40 {
			at[r.Round] = append(at[r.Round], r.Loss)
		}
	}
	for k, losses := range at {
		out[k] = stats.Median(losses)
	}
	return out
}

func brief(medians map[int32]float64) string {
	if len(medians) == 0 {
		return ""
	}
	return fmt.Sprintf("median loss %.4g at T = 20, %.4g at T = 40", medians[20], medians[40])
}

type reproduceCmd struct{}

func (reproduceCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open(running)
	if err != nil {
		return err
	}
	list, err := store.Units()
	if err != nil {
		return err
	}
	if err := g.evaluate(ctx, store, list); err != nil {
		return err
	}
	return g.tables(store.Root(), nil, "md", true)
}

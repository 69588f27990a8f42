package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/report"
)

// cells returns the cells called names, or all of the preset. A name is a cell's, the
// beginning of several cells' up to a hyphen, or a block's.
func cells(store *experiment.Store, names []string) ([]experiment.Cell, error) {
	plan := store.Preset.Plan()
	if len(names) == 0 {
		return plan, nil
	}
	var out []experiment.Cell
	for _, name := range names {
		found := false
		for _, cell := range plan {
			if cell.Name() == name || string(cell.Block) == name || strings.Contains(name, "/") && strings.HasPrefix(cell.Name(), name+"-") {
				out, found = append(out, cell), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: preset %s has no cell or block %q; see 'policyattention plan', and 'policyattention --preset paper plan' for all", errUsage, store.Preset.Name, name)
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
	store, err := g.open()
	if err != nil {
		return err
	}
	tasks, err := store.Preset.Tasks()
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
	Run_    []string `arg:"" optional:"" name:"run" help:"Names of training runs, from 'plan'; all without any. One run is trained in this process."`
	Workers int      `help:"Processes at a time; by default one a core, or one on a GPU." placeholder:"N"`
}

func (t trainCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	configs, err := store.Preset.Trainings()
	if err != nil {
		return err
	}
	if len(t.Run_) > 0 {
		byName := map[string]method.Training{}
		for _, c := range configs {
			byName[c.Name()] = c
		}
		configs = configs[:0]
		for _, name := range t.Run_ {
			c, ok := byName[name]
			if !ok {
				return fmt.Errorf("%w: preset %s has no training run %q; see 'policyattention plan'", errUsage, g.Preset, name)
			}
			configs = append(configs, c)
		}
	}
	if t.Workers < 0 {
		return fmt.Errorf("%w: --workers=%d, want at least 1, or 0 for one a core", errUsage, t.Workers)
	}
	return g.train(ctx, store, configs, t.Workers)
}

// train trains what is missing: one run, or several together, in this process,
// others in workers.
func (g *globals) train(ctx context.Context, store *experiment.Store, configs []method.Training, workers int) error {
	missing, err := store.Missing(configs)
	if err != nil || len(missing) == 0 {
		return err
	}
	done := g.progress(store, missing)
	defer done()
	if len(missing) == 1 {
		_, err := store.Train(ctx, missing[0])
		return err
	}
	if g.Together > 1 {
		var failures []error
		for _, runs := range experiment.Alike(missing, g.Together) {
			if err := store.TrainTogether(ctx, runs); ctx.Err() != nil || errors.Is(err, backend.ErrNoPlugin) {
				return err
			} else if err != nil {
				failures = append(failures, err)
			}
		}
		return errors.Join(failures...)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if workers == 0 {
		workers = runtime.NumCPU()
		if name := g.Backend + os.Getenv("GOMLX_BACKEND"); strings.HasPrefix(name, "xla:cuda") {
			workers = 1
		}
	}
	return store.TrainAll(ctx, missing, workers, func(ctx context.Context, name string) *exec.Cmd {
		return exec.CommandContext(ctx, self, "--artifacts", g.Artifacts, "--preset", g.Preset, "--backend", g.Backend, "--json",
			"--steps-per-call", fmt.Sprint(g.StepsPerCall), "--devices", fmt.Sprint(g.Devices), "train", name)
	})
}

type evaluateCmd struct {
	Cell    []string `arg:"" optional:"" help:"Names of cells from 'plan', or how several begin (benchmark/policyattention-S8); or blocks, all without any, but for cells whose training takes a core more than a day."`
	Trained bool     `help:"Only cells whose training runs are there: train nothing."`
}

func (e evaluateCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	list, err := cells(store, e.Cell)
	if err != nil {
		return err
	}
	if e.Trained {
		if list, err = trained(store, list); err != nil {
			return err
		}
	}
	if list, err = g.leaveLong(store, list, e.Cell); err != nil {
		return err
	}
	return g.evaluate(ctx, store, list)
}

// leaveLong leaves out the cells whose missing training would take a core more than a
// day, unless they are named themselves, and says so.
func (g *globals) leaveLong(store *experiment.Store, list []experiment.Cell, names []string) ([]experiment.Cell, error) {
	var kept []experiment.Cell
	var left []string
	for _, cell := range list {
		named := slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(name, "/") && strings.HasPrefix(cell.Name(), name)
		})
		long, err := store.Long(cell)
		if err != nil {
			return nil, err
		}
		if named || !long {
			kept = append(kept, cell)
		} else {
			left = append(left, cell.Name())
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(g.errors, "policyattention: left out, since their training would take a core more than a day; name them to have them: %s\n", strings.Join(left, " "))
	}
	return kept, nil
}

// trained returns the cells whose training runs are all there.
func trained(store *experiment.Store, list []experiment.Cell) ([]experiment.Cell, error) {
	var out []experiment.Cell
	for _, cell := range list {
		needed, err := store.Preset.Trainings(cell)
		if err != nil {
			return nil, err
		}
		missing, err := store.Missing(needed)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			out = append(out, cell)
		}
	}
	return out, nil
}

// evaluate evaluates cells one after the other and prints their summaries.
func (g *globals) evaluate(ctx context.Context, store *experiment.Store, list []experiment.Cell) error {
	var configs []method.Training
	for _, cell := range list {
		needed, err := store.Preset.Trainings(cell)
		if err != nil {
			return err
		}
		configs = append(configs, needed...)
	}
	if err := g.train(ctx, store, configs, 0); err != nil {
		return err
	}
	for _, cell := range list {
		e, err := store.Evaluate(ctx, cell)
		if err != nil {
			return err
		}
		if g.JSON {
			err = g.print(e.Manifest)
		} else {
			_, err = fmt.Fprintf(g.out, "%s\t%s\n", cell.Name(), summary(e.Manifest))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// summary prints a manifest's numbers, which have one name or two, in the order of
// their names.
func summary(m *artifact.Manifest) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.Summary)) {
		part := name + ":"
		for _, quantity := range slices.Sorted(maps.Keys(m.Summary[name])) {
			part += fmt.Sprintf(" %s %.4g", quantity, m.Summary[name][quantity])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

type reproduceCmd struct{}

func (reproduceCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	if err := g.evaluate(ctx, store, store.Preset.Plan()); err != nil {
		return err
	}
	folder, err := report.Write(store)
	if err != nil {
		return err
	}
	fmt.Fprintln(g.errors, "tables and figures are in", folder)
	tables, err := os.ReadFile(filepath.Join(folder, "tables.md"))
	if err != nil {
		return err
	}
	if _, err = g.out.Write(tables); err != nil {
		return err
	}
	// What the repository says of the paper's budget, where it is there.
	whole := filepath.Join(g.Artifacts, "paper", experiment.ClaimsFile)
	if _, err := os.Stat(whole); err != nil || g.Preset == "paper" {
		return nil
	}
	beside, err := report.VerdictsBeside(store, whole)
	if err != nil {
		return err
	}
	return g.tables(beside)
}

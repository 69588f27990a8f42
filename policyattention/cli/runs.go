package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/report"
	"icrl/policyattention/results"
)

// named returns those of the units of a kind that are called names, or all without any. A name is a unit's path, the
// beginning of several up to a hyphen, or a block's.
func named(all []experiment.Unit, kind, preset string, names []string) (out []experiment.Unit, err error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		found := len(out)
		for _, u := range all {
			begins := strings.Contains(name, "/") && strings.HasPrefix(u.Path(), name+"-")
			if begins || u.Path() == name || u.Training == nil && string(u.Block) == name {
				out = append(out, u)
			}
		}
		if found == len(out) {
			const format = "%w: preset %[2]s has no %[3]s %[4]q; see 'policyattention --preset %[2]s plan'"
			return nil, fmt.Errorf(format, errUsage, preset, kind, name)
		}
	}
	return out, nil
}

type trainCmd struct {
	Names []string `arg:"" optional:"" name:"run" help:"Names of training runs, from 'plan'; all without any."`
}

func (t trainCmd) Run(ctx context.Context, g *globals, store *experiment.Store) error {
	all, err := store.Units()
	runs, unknown := named(experiment.Trainings(all), "training run", store.Preset.Name, t.Names)
	if err := cmp.Or(err, unknown); err != nil {
		return err
	}
	return g.train(ctx, store, runs)
}

// train says how long what is missing will take, and trains it, one run after the other, whichever of them fail.
func (g *globals) train(ctx context.Context, store *experiment.Store, runs []experiment.Unit) (failures error) {
	seconds, missing := 0.0, []experiment.Unit(nil)
	for _, u := range runs {
		if state, _, err := store.State(u); err != nil {
			return err
		} else if state != experiment.Done {
			seconds, missing = seconds+u.Training.Seconds(), append(missing, u)
		}
	}
	if missing == nil {
		return nil
	}
	if _, err := store.Models.Backend(); err != nil { // before anything waits for it
		return err
	}
	store.Progress = g.progress()
	if work := time.Duration(seconds * float64(time.Second)).Round(time.Minute); work > 0 {
		fmt.Fprintf(g.errors, "policyattention: about %v of one core to train; Ctrl-C keeps what is done\n", work)
	}
	for _, u := range missing {
		err := store.Train(ctx, u.Training)
		if failures = errors.Join(failures, err); ctx.Err() != nil {
			break
		}
	}
	return failures
}

type evaluateCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"${evaluations}"`
}

// Run evaluates units one after the other, prints a line of each, and merges: tables say the rest.
func (e evaluateCmd) Run(ctx context.Context, g *globals, store *experiment.Store) error {
	all, err := store.Units()
	list, unknown := named(all, "evaluation or block", store.Preset.Name, e.Names)
	if err := cmp.Or(err, unknown); err != nil {
		return err
	}
	if err := g.train(ctx, store, experiment.Trainings(list)); err != nil {
		return err
	}
	for _, u := range list {
		r, err := store.Evaluate(ctx, u)
		if err != nil {
			return err
		}
		if g.JSON {
			err = g.print(map[string]any{"name": u.Path(), "rows": r.Len()})
		} else {
			_, err = fmt.Fprintf(g.out, "%s\t%d rows\n", u.Path(), r.Len())
		}
		if err != nil {
			return err
		}
	}
	_, err = store.Merge(ctx)
	return err
}

type reproduceCmd struct{}

func (reproduceCmd) Run(ctx context.Context, g *globals, store *experiment.Store) error {
	if err := (evaluateCmd{}).Run(ctx, g, store); err != nil {
		return err
	}
	tables := g.results(store.Preset)
	for _, name := range results.TableNames() {
		if table, err := tables.Table(name); err == nil { // a small preset lacks the rows of some
			if err := g.show(table, "md"); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryCmd trains a variation of one's own.
type tryCmd struct {
	Set    []string `help:"${set}" placeholder:"NAME=VALUE,…"`
	Method string   `help:"Method with a trained actor." default:"policyattention"`
	Recipe string   `help:"Recipe that it changes: plain or prior." default:"plain"`
	Size   int      `help:"Number of states: 4, 8 or 16." default:"8"`
	Seeds  int      `help:"Training seeds." default:"3"`
	Steps  int      `help:"Optimizer steps." default:"1600"`
}

func (c tryCmd) Run(ctx context.Context, g *globals) error {
	slices.Sort(c.Set)
	var settings []string
	for _, change := range c.Set {
		name, _, _ := strings.Cut(change, "=")
		settings = append(settings, name)
	}
	var methods []string
	for _, m := range paper.Methods {
		methods = append(methods, m.Name)
	}
	if err := cmp.Or(known("setting", paper.Settings(), settings...), known("method", methods, c.Method)); err != nil {
		return err
	}
	p, err := paper.FindPreset("quick")
	if err != nil {
		return err
	}
	p.Name = strings.Join(append([]string{"try", c.Method, c.Recipe}, c.Set...), "-")
	p.Name += fmt.Sprintf("-S%d-steps%d", c.Size, c.Steps)
	p.Steps, p.Snapshots, p.Limits = c.Steps, nil, nil
	row := func(name, recipe string, runs int) experiment.Row {
		return experiment.Row{Block: experiment.Trial, Method: name, Recipe: recipe, Sizes: []int{c.Size}, Runs: runs}
	}
	p.Rows = []experiment.Row{row("exact-pmd", "", 0), row(c.Method, c.Recipe, c.Seeds)}
	if len(c.Set) > 0 {
		p.Rows = append(p.Rows, row(c.Method, strings.Join(append([]string{c.Recipe}, c.Set...), ","), c.Seeds))
	}
	store, err := p.Open(g.Artifacts, g.Backend)
	if err != nil { // what is asked for makes no sense
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := (evaluateCmd{}).Run(ctx, g, store); err != nil {
		return err
	}
	rows := g.results(p).Block(string(experiment.Trial)).At(results.Horizons...)
	exact := rows.Where(results.Method.Is("exact-pmd")).By(results.S)
	table, err := rows.By(results.Method, results.Recipe, results.S, results.T).Median().WithInterval().Runs().
		Against(exact).Ratio().WithInterval().WithTail().Shown()
	if err != nil {
		return err
	}
	table.Name, table.Title = "try", "Losses, and their ratio to exact PMD's"
	return g.show(table, "md")
}

// fieldCmd trains systems that the paper is set beside. They know no presets and store nothing.
type fieldCmd struct {
	System    string `arg:"" help:"The system to train and measure: wang or xie."`
	Variant   string `help:"Which of its forms; a wrong one prints what there is." placeholder:"NAME"`
	Seeds     int    `default:"1" help:"Seeds to train with."`
	Seed      uint64 `default:"1" help:"The first of them."`
	Processes int    `help:"Boyan chains to train on, not as many as in the paper." placeholder:"N"`
}

func (c fieldCmd) Run(ctx context.Context, g *globals) error {
	if err := known("system", slices.Sorted(maps.Keys(paper.Systems)), c.System); err != nil {
		return err
	}
	s := paper.Systems[c.System]
	c.Variant = cmp.Or(c.Variant, s.Variants[0])
	if err := known("variant", s.Variants, c.Variant); err != nil {
		return err
	}
	on, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	numbers, err := s.Train(ctx, on,
		baseline.Training{Variant: c.Variant, Seed: c.Seed, Seeds: c.Seeds, Processes: c.Processes})
	if err != nil {
		return err
	}
	t := report.Table{Name: "field", Title: c.System + ", " + c.Variant,
		Columns: []string{"quantity", "here", "standard error", "published", "read to ±"}}
	for _, x := range numbers {
		row := []any{x.Quantity, x.Here, nil, nil, nil}
		for i, y := range []float64{x.Error, x.Published, x.Read} {
			if y != 0 {
				row[2+i] = y
			}
		}
		t.Add(row...)
	}
	return g.show(t, "md")
}

// progress returns what tells of training: lines of JSON on standard output where the caller is a
// machine, and elsewhere a line a run and interval. Processes of one program can call it at once.
func (g *globals) progress() func(experiment.Progress) {
	var mutex sync.Mutex
	last, encoder := map[string]time.Time{}, json.NewEncoder(g.out)
	return func(p experiment.Progress) {
		mutex.Lock()
		defer mutex.Unlock()
		before, now := last[p.Name], time.Now()
		switch {
		case g.JSON:
			encoder.Encode(p) //nolint:errcheck // nobody may be reading
		case p.Waiting || now.Sub(before) >= g.interval() || p.Step == p.Steps:
			if before.IsZero() {
				p.StepsPerSecond = 0 // of the first steps, compilation and all
			}
			last[p.Name] = now
			fmt.Fprintln(g.errors, line(p))
		}
	}
}

// interval is the time from one line about what takes long to the next.
func (g *globals) interval() time.Duration {
	if file, ok := g.errors.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return 5 * time.Second
	}
	return time.Minute
}

// line says how far a training run is.
func line(p experiment.Progress) string {
	switch {
	case p.Waiting:
		return fmt.Sprintf("another process is at %s, waiting", p.Name)
	case p.StepsPerSecond > 0:
		left := time.Duration(float64(p.Steps-p.Step) / p.StepsPerSecond * float64(time.Second))
		return fmt.Sprintf("%s: %d of %d steps, %.3g steps/s, %v left",
			p.Name, p.Step, p.Steps, p.StepsPerSecond, left.Round(time.Second))
	}
	return fmt.Sprintf("%s: %d of %d steps", p.Name, p.Step, p.Steps)
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
	"icrl/policyattention/results"
)

// units returns those called names, or all of the store. A name is a unit's path, the beginning
// of several up to a hyphen, or a block's.
func units(store *experiment.Store, names []string) (out []experiment.Unit, err error) {
	all, err := store.Units()
	if err != nil || len(names) == 0 {
		return all, err
	}
	for _, name := range names {
		found := len(out)
		for _, u := range all {
			begins := strings.Contains(name, "/") && strings.HasPrefix(u.Path(), name+"-")
			if begins || u.Path() == name || string(u.Block) == name {
				out = append(out, u)
			}
		}
		if found == len(out) {
			return nil, unplanned(store, "evaluation or block", name)
		}
	}
	return out, nil
}

func unplanned(store *experiment.Store, what, name string) error {
	const format = "%w: preset %[2]s has no %[3]s %[4]q; see 'policyattention --preset %[2]s plan'"
	return fmt.Errorf(format, errUsage, store.Preset.Name, what, name)
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
			return unplanned(store, "training run", name)
		}
	}
	return g.train(ctx, store, slices.DeleteFunc(configs, func(c method.Training) bool {
		return len(t.Names) > 0 && !slices.Contains(t.Names, c.Name())
	}))
}

// train says how long it will take to train what is missing, and trains it, one run after the other. One that fails
// does not stop the others.
func (g *globals) train(ctx context.Context, store *experiment.Store, configs []method.Training) (failures error) {
	missing, err := store.Missing(configs)
	if err != nil || len(missing) == 0 {
		return err
	}
	if _, err := store.Backend(); err != nil { // before anything waits for it
		return err
	}
	store.Progress = g.progress()
	seconds := 0.0
	for _, c := range missing {
		seconds += c.Seconds()
	}
	if work := time.Duration(seconds * float64(time.Second)).Round(time.Minute); work > 0 {
		fmt.Fprintf(g.errors, "policyattention: about %v of one core to train, on xla:cpu; Ctrl-C keeps what is done\n",
			work)
	}
	for _, c := range missing {
		err := store.Train(ctx, c)
		if failures = errors.Join(failures, err); ctx.Err() != nil {
			break
		}
	}
	return failures
}

type evaluateCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"${evaluations}"`
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
	return g.evaluate(ctx, store, list)
}

// evaluate evaluates units one after the other, prints a line of each, and merges: tables say the rest.
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
			}{u.Path(), r.Len()})
		} else {
			_, err = fmt.Fprintf(g.out, "%s\t%d rows\n", u.Path(), r.Len())
		}
		if err != nil {
			return err
		}
	}
	_, err := store.Merge(ctx)
	return err
}

// evaluateAll does so with all that a preset plans.
func (g *globals) evaluateAll(ctx context.Context, store *experiment.Store) error {
	list, err := store.Units()
	if err != nil {
		return err
	}
	return g.evaluate(ctx, store, list)
}

type reproduceCmd struct{}

func (reproduceCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open(running)
	if err != nil {
		return err
	}
	if err := g.evaluateAll(ctx, store); err != nil {
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

// preset returns the preset of a variation, whose name says what it changes.
func (c tryCmd) preset() (experiment.Preset, error) {
	p, err := paper.FindPreset("quick")
	if err != nil {
		return p, err
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
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", errUsage, err)
	}
	return p, nil
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
	p, err := c.preset()
	if err != nil {
		return err
	}
	store, err := p.Open(g.Artifacts, g.Backend)
	if err != nil {
		return err
	}
	if err := g.evaluateAll(ctx, store); err != nil {
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

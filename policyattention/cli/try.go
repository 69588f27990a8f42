package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
	"icrl/policyattention/results"
)

// tryCmd trains a variation of one's own.
type tryCmd struct {
	Set    []string `help:"What changes of the recipe, as in width=32,layers=2,lr=1e-3: ${settings}." placeholder:"NAME=VALUE,…"`
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
	recipe := strings.Join(append([]string{c.Recipe}, c.Set...), ",")
	p.Name = strings.Join(append([]string{"try", c.Method, c.Recipe}, c.Set...), "-") + fmt.Sprintf("-S%d-steps%d", c.Size, c.Steps)
	p.Steps, p.Snapshots, p.Limits = c.Steps, nil, map[method.Name]method.Limits{}
	row := func(name, recipe string, runs int) experiment.Row {
		return experiment.Row{Block: experiment.Trial, Method: name, Recipe: recipe, Sizes: []int{c.Size}, Runs: runs}
	}
	p.Rows = []experiment.Row{row("exact-pmd", "", 0), row(c.Method, c.Recipe, c.Seeds)}
	if len(c.Set) > 0 {
		p.Rows = append(p.Rows, row(c.Method, recipe, c.Seeds))
	}
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", errUsage, err)
	}
	return p, nil
}

func (c tryCmd) Run(ctx context.Context, g *globals) error {
	slices.Sort(c.Set)
	p, err := c.preset()
	if err != nil {
		return err
	}
	store, err := p.Open(g.Artifacts, g.Backend)
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
	rows := results.Open(store.Root()).Block(string(experiment.Trial)).At(results.Horizons...)
	exact := rows.Where(results.Method.Is("exact-pmd")).By(results.S)
	table, err := rows.By(results.Method, results.Recipe, results.S, results.T).Median().WithInterval().Runs().
		Against(exact).Ratio().WithInterval().WithTail().Shown()
	if err != nil {
		return err
	}
	table.Name, table.Title = "try", "Losses, and their ratio to exact PMD's"
	return g.show(table, "md")
}

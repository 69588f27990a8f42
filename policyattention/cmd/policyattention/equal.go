package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/report"
)

// equalCmd compares methods at equal information. It knows no presets.
type equalCmd struct {
	Evaluate equalEvaluateCmd `cmd:"" help:"Choose free numbers and measure every method in every condition; what is done is kept."`
	Table    equalTableCmd    `cmd:"" help:"Print every method beside PolicyAttention in its condition, and PolicyAttention's lead taken apart."`
	Ask      equalAskCmd      `cmd:"" help:"Compare methods in a condition of your own: another number of transitions, another family."`
	Verify   equalVerifyCmd   `cmd:"" help:"Run a sample of what is stored again and compare."`
}

type equalEvaluateCmd struct {
	States []int `help:"Only these sizes; the evidence is written when all are done." placeholder:"S"`
}

func (c equalEvaluateCmd) Run(ctx context.Context, g *globals) error {
	networks, err := equal.Open(g.Artifacts, g.Backend)
	if err != nil {
		return err
	}
	folder := equal.Folder(g.Artifacts)
	if _, err := equal.Read(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(c.States) == 0 {
		c.States = equal.Sizes
	}
	work := filepath.Join(filepath.Dir(folder), ".work", "equal")
	return equal.Make(ctx, networks, c.States, folder, work, func(row string) { fmt.Fprintln(g.errors, "equal:", row) })
}

type equalTableCmd struct{}

func (equalTableCmd) Run(g *globals) error {
	e, err := equal.Read(equal.Folder(g.Artifacts))
	if err != nil {
		return err
	}
	tables, err := report.EqualTables(e)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(tables)
	}
	return g.tables(tables...)
}

type equalAskCmd struct {
	Method   []string `arg:"" help:"Names of methods. model: ${model}. generative: ${generative}. window: ${window}."`
	Told     string   `help:"${enum}." enum:"model,generative,window" default:"generative"`
	N        int      `help:"Transitions a round." default:"48"`
	States   int      `help:"Number of states; learned methods have networks for 8 and 16." default:"8"`
	Family   string   `help:"Family of problems: random or one of the shifts." default:"random"`
	Problems int      `help:"Problems to evaluate on." default:"32"`
}

func (c equalAskCmd) Run(g *globals) error {
	condition := equal.Condition{Information: equal.Information(c.Told), N: c.N}
	if condition.Information == equal.Model {
		condition.N = 0
	}
	q := equal.Question{States: c.States, Condition: condition, Family: mdp.Family(c.Family), Problems: c.Problems, Methods: c.Method}
	if err := q.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	networks, err := equal.Open(g.Artifacts, g.Backend)
	if err != nil {
		return err
	}
	rows, err := q.Answer(networks)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(rows)
	}
	return g.tables(report.AnswerTable(rows))
}

type equalVerifyCmd struct{}

func (equalVerifyCmd) Run(g *globals) error {
	wrong, losses, err := g.verifyEqual()
	if err != nil {
		return err
	}
	for _, text := range wrong {
		fmt.Fprintln(g.out, text)
	}
	fmt.Fprintf(g.out, "%d losses at equal information run again, %d discrepancies\n", losses, len(wrong))
	if len(wrong) > 0 {
		return experiment.ErrDiscrepancies
	}
	return nil
}

// verifyEqual runs a sample of what package equal has stored again.
func (g *globals) verifyEqual() (wrong []string, losses int, err error) {
	networks, err := equal.Open(g.Artifacts, g.Backend)
	if err != nil {
		return nil, 0, err
	}
	return equal.Verify(networks, equal.Folder(g.Artifacts))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/report"
)

// equalCmd compares methods that are told the same. It knows no presets.
type equalCmd struct {
	Evaluate equalEvaluateCmd `cmd:"" help:"Choose free numbers and measure every method in every condition; what is done is kept."`
	Table    equalTableCmd    `cmd:"" help:"Print every method beside PolicyAttention in its condition, and PolicyAttention's lead taken apart."`
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
	lead, err := report.LeadTable(e)
	if err != nil {
		return err
	}
	all, err := report.ComparisonTable(e, nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(map[string]report.Table{lead.Name: lead, all.Name: all})
	}
	return g.tables(lead, all)
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
	fmt.Fprintf(g.out, "%d losses of methods told the same run again, %d discrepancies\n", losses, len(wrong))
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

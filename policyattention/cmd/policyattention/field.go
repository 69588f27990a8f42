package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/experiment"
	"icrl/policyattention/field"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/report"
)

// fieldCmd shows the systems that the paper is set beside. They know no presets.
type fieldCmd struct {
	Map    fieldMapCmd    `cmd:"" help:"Print what each system can do; a mark prints only with its evidence."`
	Step   fieldStepCmd   `cmd:"" help:"Make one step of each system's construction on one problem: what it attends to and how far it is from its own algorithm."`
	Wang   fieldWangCmd   `cmd:"" help:"Print what is measured of Wang et al. (arXiv 2405.13861); train and measure what is not there."`
	Xie    fieldXieCmd    `cmd:"" help:"Print what is measured of Xie et al. (arXiv 2605.07333); train and measure what is not there."`
	Verify fieldVerifyCmd `cmd:"" help:"Measure both again from the trained weights and compare."`
}

type fieldMapCmd struct{}

func (fieldMapCmd) Run(g *globals) error {
	table, err := field.MapTable(filepath.Dir(g.Artifacts))
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(table)
	}
	return g.tables(table)
}

type fieldStepCmd struct {
	Seed uint64 `default:"1" help:"Root of the problem and its transitions."`
}

func (c fieldStepCmd) Run(g *globals) error {
	steps, err := field.Steps(c.Seed)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(steps)
	}
	return g.tables(field.StepTable(steps))
}

type fieldWangCmd struct{}

func (fieldWangCmd) Run(ctx context.Context, g *globals) error {
	return show(ctx, g, "wang", wang.ReadEvidence, wang.Make, field.WangTables)
}

type fieldXieCmd struct{}

func (fieldXieCmd) Run(ctx context.Context, g *globals) error {
	return show(ctx, g, "xie", xie.ReadEvidence, xie.Make, field.XieTables)
}

// show prints the evidence of a method, and makes it first if it is missing.
func show[E any](ctx context.Context, g *globals, name string, read func(string) (*E, error),
	makeIt func(context.Context, compute.Backend, string, func(string)) (*E, error), tables func(*E) []report.Table) error {
	folder := field.Folder(g.Artifacts, name)
	e, err := read(folder)
	if errors.Is(err, fs.ErrNotExist) {
		var on compute.Backend
		if on, err = backend.New(g.Backend); err != nil {
			return err
		}
		e, err = makeIt(ctx, on, folder, func(run string) { fmt.Fprintf(g.errors, "%s: training %s\n", name, run) })
	}
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(e)
	}
	return g.tables(tables(e)...)
}

// verifyField checks what is measured of the field, where artifacts have anything of it.
func (g *globals) verifyField() (wrong []string, again int, err error) {
	if _, err := os.Stat(field.Folder(g.Artifacts, "")); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	wrong, err = field.Verify(g.Artifacts)
	return wrong, 0, err
}

type fieldVerifyCmd struct{}

func (fieldVerifyCmd) Run(g *globals) error {
	found, err := field.Verify(g.Artifacts)
	if err != nil {
		return err
	}
	for _, d := range found {
		fmt.Fprintln(g.out, d)
	}
	fmt.Fprintf(g.out, "%d discrepancies in what is measured of Wang et al. and Xie et al.\n", len(found))
	if len(found) > 0 {
		return experiment.ErrDiscrepancies
	}
	return nil
}

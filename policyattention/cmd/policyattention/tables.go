package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"icrl/policyattention/report"
)

type tableCmd struct {
	Table  []string `arg:"" optional:"" help:"Tables: ${tables}; all without any."`
	Format string   `help:"${enum}." enum:"md,html,csv" default:"md"`
}

func (t tableCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	names, err := choose("table", t.Table, report.TableNames())
	if err != nil {
		return err
	}
	g.hint(store)
	for _, name := range names {
		table, err := report.BuildTable(store, name)
		if err != nil {
			return err
		}
		switch {
		case g.JSON:
			err = g.print(table)
		case t.Format == "html":
			err = table.HTML(g.out)
		case t.Format == "csv":
			err = table.CSV(g.out)
		default:
			err = g.tables(table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose returns the names that were asked for, all known ones without any.
func choose(what string, names, known []string) ([]string, error) {
	if len(names) == 0 {
		return known, nil
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: no %s %q, want one of %s", errUsage, what, name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

type figureCmd struct {
	Figure []string `arg:"" optional:"" help:"Figures: ${figures}; all without any."`
	Out    string   `help:"Folder to write to." default:"figures" type:"path"`
}

func (f figureCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	names, err := choose("figure", f.Figure, report.FigureNames())
	if err != nil {
		return err
	}
	g.hint(store)
	for _, name := range names {
		figure, err := report.BuildFigure(store, name)
		if err != nil {
			return err
		}
		paths, err := figure.Save(f.Out)
		if err != nil {
			return err
		}
		fmt.Fprintln(g.out, strings.Join(paths, "\n"))
	}
	return nil
}

// documentCmd writes the tables of documents again.
type documentCmd struct {
	File []string `arg:"" help:"Markdown files with tables between markers." type:"existingfile"`
}

func (d documentCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	for _, name := range d.File {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		filled, err := report.Fill(store, string(text))
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(name, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

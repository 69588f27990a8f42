package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"icrl/policyattention/bench"
	"icrl/policyattention/report"
)

// speedCmd prints what 'make bench' measured.
type speedCmd struct {
	Dir string `help:"Folder of the measurements." placeholder:"ARTIFACTS/bench" type:"path"`
}

func (c speedCmd) Run(g *globals) error {
	dir := cmp.Or(c.Dir, filepath.Join(g.Artifacts, "bench"))
	comparison, err := ifThere(bench.ReadComparison, filepath.Join(dir, "bench.json"))
	if err != nil {
		return err
	}
	profile, err := ifThere(bench.ReadProfile, filepath.Join(dir, "profile.json"))
	if err != nil {
		return err
	}
	if comparison == nil && profile == nil {
		return fmt.Errorf("%s holds no measurements: run make bench", dir)
	}
	if g.JSON {
		return g.print(map[string]any{"comparison": comparison, "profile": profile})
	}
	var tables []report.Table
	if comparison != nil {
		tables = append(tables, report.BenchTable(comparison))
	}
	if profile != nil {
		tables = append(tables, report.ProfileTable(profile))
	}
	return g.tables(tables...)
}

// ifThere reads a file; it returns nil if the file does not exist.
func ifThere[T any](read func(path string) (*T, error), path string) (*T, error) {
	v, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return v, err
}

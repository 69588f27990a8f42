package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"icrl/policyattention/bench"
	"icrl/policyattention/report"
)

// growthCmd prints a growth study that 'go run ./policyattention/bench/cmd/bench growth' measured.
type growthCmd struct {
	File string `help:"Measurements." placeholder:"ARTIFACTS/growth/growth.json" type:"path"`
	Out  string `help:"Folder to write the figure to; none without it." type:"path"`
}

func (c growthCmd) Run(g *globals) error {
	file := cmp.Or(c.File, filepath.Join(g.Artifacts, "growth", "growth.json"))
	study, err := bench.ReadGrowth(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no measurements: run 'go run ./policyattention/bench/cmd/bench growth'", file)
	}
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(study)
	}
	if err := g.tables(report.GrowthTable(study), report.ScaleTable(study)); err != nil {
		return err
	}
	if c.Out == "" {
		return nil
	}
	figure, err := report.GrowthFigure(study)
	if err != nil {
		return err
	}
	paths, err := figure.Save(c.Out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(g.out, strings.Join(paths, "\n"))
	return err
}

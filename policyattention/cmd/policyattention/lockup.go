package main

import (
	"fmt"
	"os"
	"path/filepath"

	"icrl/policyattention/lockup"
)

// lockupCmd measures how actors fare where the best action begins with little mass.
type lockupCmd struct {
	File string `help:"Where to write the losses, of which 'figure lockup' is drawn." default:"artifacts/lockup/lockup.json" type:"path"`
}

func (c lockupCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	actors, err := lockup.Actors(store)
	if err != nil {
		return err
	}
	study := lockup.Paper()
	for _, a := range actors {
		if err := study.Add(a.Label, a.Weights, a.Actor); err != nil {
			return err
		}
		fmt.Fprintf(g.errors, "%s: median losses %.3g\n", a.Label, study.Curves[len(study.Curves)-1].Medians())
	}
	if err := os.MkdirAll(filepath.Dir(c.File), 0o755); err != nil {
		return err
	}
	return study.Write(c.File)
}

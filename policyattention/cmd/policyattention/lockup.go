package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"icrl/policyattention/backend"
	"icrl/policyattention/lockup"
	"icrl/policyattention/train"
)

// lockupCmd measures how actors fare where the best action begins with little mass.
type lockupCmd struct {
	File string `help:"Where to write the losses, of which 'figure lockup' is drawn." placeholder:"ARTIFACTS/lockup/lockup.json" type:"path"`
}

func (c lockupCmd) Run(ctx context.Context, g *globals) error {
	file := cmp.Or(c.File, lockup.Path(g.Artifacts))
	store, err := g.open()
	if err != nil {
		return err
	}
	actors, err := lockup.Actors(store)
	if err != nil {
		return err
	}
	weights, err := c.train(ctx, g)
	if err != nil {
		return err
	}
	ways, err := lockup.Ways(store, weights)
	if err != nil {
		return err
	}
	study := lockup.Paper()
	for i, a := range slices.Concat(actors, ways) {
		curve, err := study.Curve(a)
		if err != nil {
			return err
		}
		if i < len(actors) {
			study.Curves = append(study.Curves, curve)
		} else {
			study.Compared = append(study.Compared, curve)
		}
		fmt.Fprintf(g.errors, "%s: median losses %.3g\n", a.Label, curve.Medians())
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return study.Write(file)
}

// train trains the short runs of the study and returns their files of weights. An
// interrupted run continues where it was.
func (c lockupCmd) train(ctx context.Context, g *globals) (weights []string, err error) {
	b, err := backend.New(g.Backend)
	if err != nil {
		return nil, err
	}
	for _, config := range lockup.Short() {
		folder := filepath.Join(g.presetFolder(), ".work", "lockup", config.Recipe.Name)
		result, err := train.Train(ctx, config, b, folder, nil)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(g.errors, "%s: trained in %.0f s of processor time\n", config.Recipe.Name, result.CPUSeconds)
		weights = append(weights, result.Weights)
	}
	return weights, nil
}

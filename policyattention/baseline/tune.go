package baseline

import (
	"fmt"
	"slices"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
)

// Horizons are the numbers of rounds T at which losses are tabulated and tunings scored.
var Horizons = []int{20, 40}

// Grid is a grid of starts and step sizes, the latter ascending.
type Grid struct {
	Starts []Start   `json:"starts"`
	Alphas []float64 `json:"alphas"`
	Betas  []float64 `json:"betas"`
}

// Extended is the grid of our own tuning. The paper's actor grids end at the
// chosen values, 2 for Liang–Lai and 4 for the source of Algorithm Distillation;
// this one goes on until the loss rises again.
func Extended() Grid {
	return Grid{
		Starts: []Start{Initial, Uniform},
		Alphas: []float64{0.5, 1, 2, 4, 8, 16, 32, 64, 128},
		Betas:  []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4},
	}
}

// Tune returns the losses at [Horizons] of actor–critic at every setting of the grid, in the
// order of its lists, β fastest. The problems must be calibration problems, disjoint
// from those of training and evaluation. Liang–Lai's analytic block makes the
// same updates, so the losses hold for it too; those that start from the uniform
// policy, in one-hot features, are of Algorithm Distillation's source.
func Tune(problems []mdp.Problem, features Features, root uint64, g Grid) (all []rows.Tuned, err error) {
	if len(problems) == 0 || len(g.Starts) == 0 || len(g.Alphas) == 0 || len(g.Betas) == 0 {
		return nil, fmt.Errorf("baseline: tuning on %d problems, %d starts, %d actor and %d critic steps",
			len(problems), len(g.Starts), len(g.Alphas), len(g.Betas))
	}
	scales, err := control.NewScales(problems)
	if err != nil {
		return nil, fmt.Errorf("baseline: tuning: %w", err)
	}
	for _, start := range g.Starts {
		for _, alpha := range g.Alphas {
			for _, beta := range g.Betas {
				t := Teacher{Steps: StepSizes{Alpha: alpha, Beta: beta}, Start: start, Features: features, Root: root}
				some, err := Score(t, t.Steps, start, problems, scales)
				if err != nil {
					return nil, fmt.Errorf("baseline: tuning at α=%v, β=%v: %w", alpha, beta, err)
				}
				all = append(all, some...)
			}
		}
	}
	return all, nil
}

// Score runs a controller that was given step sizes and a start, and returns its losses at
// [Horizons].
func Score(c control.Controller, steps StepSizes, start Start, problems []mdp.Problem,
	scales []*control.Scale) (all []rows.Tuned, err error) {
	trajectories, err := c.Run(problems, slices.Max(Horizons))
	if err != nil {
		return nil, err
	}
	for _, horizon := range Horizons {
		for i, scale := range scales {
			loss, err := scale.Loss(trajectories[i].Policies[horizon])
			if err != nil {
				return nil, fmt.Errorf("problem %d, round %d: %w", i, horizon, err)
			}
			all = append(all, rows.Tuned{Start: string(start), Alpha: steps.Alpha, Beta: steps.Beta,
				Problem: int32(i), Round: int32(horizon), Loss: loss})
		}
	}
	return all, nil
}

package lianglai

import (
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Tuning scores the teacher, which is the source of Algorithm Distillation too, on a grid of step sizes. Its problems
// are calibration problems, disjoint from those of training and evaluation. The analytic block makes the same updates,
// so the losses hold for it too; those that start from the uniform policy, in one-hot features, are the source's.
type Tuning struct {
	Grid     Grid              `json:"grid"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// Grid is a grid of starts and step sizes, the latter ascending.
type Grid struct {
	Starts []baseline.Start `json:"starts"`
	Alphas []float64        `json:"alphas"`
	Betas  []float64        `json:"betas"`
}

// tune is the study of the block "tuning". The paper's actor grids end at the chosen values, 2 for Liang–Lai and 4
// for the source of Algorithm Distillation; this one goes on until the loss rises again.
func tune(s method.Setting) (method.Study, error) {
	t := Tuning{Root: s.Root, Grid: Grid{
		Starts: []baseline.Start{baseline.Initial, baseline.Uniform},
		Alphas: []float64{0.5, 1, 2, 4, 8, 16, 32, 64, 128},
		Betas:  []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4},
	}}
	if n, ok := s.Limits["grid"]; ok {
		t.Grid.Alphas, t.Grid.Betas = t.Grid.Alphas[:min(n, len(t.Grid.Alphas))],
			t.Grid.Betas[:min(n, len(t.Grid.Betas))]
	}
	switch s.Recipe {
	case "":
	case "features":
		steps, err := PaperSteps(s.States)
		if err != nil {
			return nil, err
		}
		t.Grid.Betas, t.Features = []float64{steps.Beta}, baseline.Dense
	default:
		return nil, fmt.Errorf("no recipe %q of Liang–Lai's tuning", s.Recipe)
	}
	return t, nil
}

// Weights implements method.Study: it needs none.
func (t Tuning) Weights() []method.Weights { return nil }

// OwnProblems implements method.Study.
func (t Tuning) OwnProblems() bool { return false }

// Compute implements method.Study: the losses at every setting of the grid, in the order of its lists, β fastest.
func (t Tuning) Compute(_ *method.Models, problems []mdp.Problem) (all rows.Tables, err error) {
	scales, err := control.NewScales(problems)
	if err != nil {
		return all, err
	}
	for _, start := range t.Grid.Starts {
		for _, alpha := range t.Grid.Alphas {
			for _, beta := range t.Grid.Betas {
				steps := baseline.StepSizes{Alpha: alpha, Beta: beta}
				teacher := baseline.Teacher{Steps: steps, Start: start, Features: t.Features, Root: t.Root}
				trajectories, err := teacher.Run(problems, slices.Max(baseline.Horizons))
				var some []rows.Tuned
				if err == nil {
					some, err = baseline.Score(trajectories, steps, start, scales)
				}
				if err != nil {
					return all, fmt.Errorf("lianglai: tuning at α=%v, β=%v: %w", alpha, beta, err)
				}
				all.Tuned = append(all.Tuned, some...)
			}
		}
	}
	return all, nil
}

package lianglai

import (
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Tuning scores the teacher, which is the source of Algorithm Distillation too, on a
// grid of step sizes. Its problems are calibration problems.
type Tuning struct {
	Grid     baseline.Grid     `json:"grid"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// tune is the study of the block "tuning".
func tune(s method.Setting) (method.Study, error) {
	t := Tuning{Grid: baseline.Extended(), Root: s.Root}
	if n, ok := s.Limits["grid"]; ok {
		t.Grid.Alphas, t.Grid.Betas = t.Grid.Alphas[:min(n, len(t.Grid.Alphas))], t.Grid.Betas[:min(n,
			len(t.Grid.Betas))]
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

// Compute implements method.Study: the losses at every setting of the grid.
func (t Tuning) Compute(_ *method.Models, problems []mdp.Problem) (all rows.Tables, err error) {
	all.Tuned, err = baseline.Tune(problems, t.Features, t.Root, t.Grid)
	return all, err
}

package baseline

import (
	"fmt"
	"slices"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/stats"
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

// Score is the result of one cell of a grid.
type Score struct {
	Start Start `json:"start"`
	StepSizes
	// Loss holds, for each of Horizons, the median over problems of the
	// normalized returned-policy loss; Mean, P99 and Worst their mean, 99th percentile and
	// largest, which a median hides.
	Loss  []float64 `json:"loss"`
	Mean  []float64 `json:"mean"`
	P99   []float64 `json:"p99"`
	Worst []float64 `json:"worst"`
}

// Take adds the losses of all problems at the next of Horizons.
func (s *Score) Take(losses []float64) {
	sorted := slices.Sorted(slices.Values(losses))
	s.Loss, s.Mean = append(s.Loss, stats.Median(losses)), append(s.Mean, stats.Mean(losses))
	s.P99, s.Worst = append(s.P99, stats.Quantile(sorted, .99)), append(s.Worst, sorted[len(sorted)-1])
}

// Tune scores actor–critic at every cell of the grid, in the order of
// its lists, β fastest. The problems must be calibration problems, disjoint
// from those of training and evaluation. Liang–Lai's analytic block makes the
// same updates, so the scores hold for it too; those that start from the uniform
// policy, in one-hot features, are of Algorithm Distillation's source.
func Tune(problems []mdp.Problem, features Features, root uint64, g Grid) ([]Score, error) {
	if len(problems) == 0 || len(g.Starts) == 0 || len(g.Alphas) == 0 || len(g.Betas) == 0 {
		return nil, fmt.Errorf("baseline: tuning on %d problems, %d starts, %d actor and %d critic steps", len(problems), len(g.Starts), len(g.Alphas), len(g.Betas))
	}
	scales, err := control.NewScales(problems)
	if err != nil {
		return nil, fmt.Errorf("baseline: tuning: %w", err)
	}
	var scores []Score
	for _, start := range g.Starts {
		for _, alpha := range g.Alphas {
			for _, beta := range g.Betas {
				score := Score{Start: start, StepSizes: StepSizes{Alpha: alpha, Beta: beta}}
				if err := score.run(Teacher{Steps: score.StepSizes, Start: start, Features: features, Root: root}, problems, scales); err != nil {
					return nil, fmt.Errorf("baseline: tuning at α=%v, β=%v: %w", alpha, beta, err)
				}
				scores = append(scores, score)
			}
		}
	}
	return scores, nil
}

// run runs a controller and scores it at Horizons.
func (s *Score) run(c control.Controller, problems []mdp.Problem, scales []*control.Scale) error {
	trajectories, err := c.Run(problems, slices.Max(Horizons))
	if err != nil {
		return err
	}
	for _, horizon := range Horizons {
		losses := make([]float64, len(problems))
		for i, scale := range scales {
			if losses[i], err = scale.Loss(trajectories[i].Policies[horizon]); err != nil {
				return fmt.Errorf("problem %d, round %d: %w", i, horizon, err)
			}
		}
		s.Take(losses)
	}
	return nil
}

// Best returns the cell with the lowest loss at the first horizon, and whether
// its α and its β lie strictly inside the grid, that is, whether the grid has
// been extended past the optimum.
func Best(scores []Score) (best Score, inside bool, err error) {
	if len(scores) == 0 {
		return Score{}, false, fmt.Errorf("baseline: no scores to choose from")
	}
	var alphas, betas []float64
	best = scores[0]
	for _, s := range scores {
		alphas, betas = append(alphas, s.Alpha), append(betas, s.Beta)
		if s.Loss[0] < best.Loss[0] {
			best = s
		}
	}
	strictly := func(x float64, of []float64) bool { return slices.Min(of) < x && x < slices.Max(of) }
	return best, strictly(best.Alpha, alphas) && strictly(best.Beta, betas), nil
}

// BestFrom is Best among the scores with a start.
func BestFrom(scores []Score, start Start) (best Score, inside bool, err error) {
	var of []Score
	for _, s := range scores {
		if s.Start == start {
			of = append(of, s)
		}
	}
	return Best(of)
}

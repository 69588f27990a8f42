package equal

import (
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Tuning says how free numbers were chosen.
type Tuning struct {
	Score       float64 `json:"score"`       // mean loss on calibration problems over T = 20 and 40
	Evaluations int     `json:"evaluations"` // settings that were tried
}

// mostSettings bounds a search: one that tries more is an error, not a result.
const mostSettings = 100

// search minimizes score over parameters by one rule. It tries the grid of an eighth of
// each start, the start, and eight times the start, with every choice 0; then from the
// best setting it goes on to the best of the neighbours, which differ in one number by a
// factor of two or in one choice, until none is better. So the setting it ends with lies
// inside everything that was tried, but where a number has reached the most it can be.
// Settings that fail to run count as infinitely bad.
func search(parameters []Parameter, score func([]float64) float64) (best []float64, t Tuning, err error) {
	type setting = string
	tried := map[setting]float64{}
	values := func(at []int) []float64 {
		out := make([]float64, len(at))
		for i, p := range parameters {
			out[i] = p.Start * math.Pow(2, float64(at[i]))
			if p.Choice {
				out[i] = float64(at[i])
			}
			if p.Most > 0 {
				out[i] = min(out[i], p.Most)
			}
		}
		return out
	}
	try := func(at []int) float64 {
		v := values(at)
		key := fmt.Sprint(v)
		if _, ok := tried[key]; !ok {
			tried[key] = score(v)
		}
		return tried[key]
	}
	at, value := make([]int, len(parameters)), 0.0
	value = try(at)
	grid := [][]int{{}}
	for _, p := range parameters {
		var wider [][]int
		for _, g := range grid {
			for _, e := range []int{-3, 0, 3} {
				if !p.Choice || e == 0 {
					wider = append(wider, append(slices.Clone(g), e))
				}
			}
		}
		grid = wider
	}
	for _, g := range grid {
		if v := try(g); v < value {
			at, value = g, v
		}
	}
	for {
		from, here := at, value
		for i, p := range parameters {
			for _, by := range []int{-1, 1} {
				next := slices.Clone(from)
				next[i] += by
				if p.Choice && (next[i] < 0 || next[i] > 1) {
					continue
				}
				if v := try(next); v < value {
					at, value = next, v
				}
			}
		}
		if len(tried) > mostSettings {
			return nil, Tuning{}, fmt.Errorf("equal: the search has not ended after %d settings, at %v with %v", len(tried), values(at), value)
		}
		if value == here {
			return values(at), Tuning{value, len(tried)}, nil
		}
	}
}

// Tune chooses the free numbers of a method in a condition on calibration problems, with
// its first identity and one stream of samples.
func (m Method) Tune(n *Networks, c Condition, states int, problems []mdp.Problem, scales []*control.Scale) ([]float64, Tuning, error) {
	var failure error
	root := Roots[Sizes[0]].Choosing
	if roots, ok := Roots[states]; ok {
		root = roots.Choosing
	}
	values, t, err := search(m.Parameters, func(v []float64) float64 {
		r, err := m.Run(Case{Networks: n, Condition: c, States: states, Values: v, Root: root}, problems, scales)
		if err != nil {
			failure = err
			return math.Inf(1)
		}
		return r.score()
	})
	if err == nil && math.IsInf(t.Score, 1) {
		err = failure
	}
	if err != nil {
		return nil, t, fmt.Errorf("equal: choosing the numbers of %s, %s, S=%d: %w", m.Name, c, states, err)
	}
	return values, t, nil
}

package paper

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// anyMDP is a task of AnyMDP (Wang et al., arXiv 2502.02869), drawn as by its authors' program without potentials,
// costs of actions and the check of optimal play's entropy: states in a row, actions that lead to some of those
// close by, a reward that grows along the row, pits that end an episode, and a goal at the far end.
func anyMDP(states, actions int, gamma float64) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
		for p == nil {
			p, r = anyTask(rng, states, actions, gamma)
		}
		return p, r
	}
}

// anyTask draws a task, nil where the first reward is not enough for it to be fair.
func anyTask(rng *rand.Rand, states, actions int, gamma float64) (p, r *mat.Dense) {
	const starts = 3
	last := states - 1
	p, r = transitions(states, actions)
	ends, arrival, pits := make([]bool, states), make([]float64, states), max(0, between(rng, -.2, .4))
	for s := starts; s < last; s++ {
		ends[s] = rng.Float64() < pits
	}
	ends[last] = rng.Float64() < .3
	base := .2 * rng.ExpFloat64()
	for s := range states {
		lead(rng, p, s, ends)
		arrival[s] = base * max(0, rng.NormFloat64())
	}
	floats.CumSum(arrival, arrival)
	floats.AddConst(-between(rng, .1, .9)*(arrival[last]+.2*base), arrival)
	for s, end := range ends {
		if end {
			arrival[s] = 0
		}
	}
	arrival[last]++
	for range 5 { // until pits are worse and the goal is better than all else
		for pair := range states * actions {
			if !ends[pair/actions] {
				r.Set(pair/actions, pair%actions, floats.Dot(p.RawRowView(pair), arrival))
			}
		}
		m, err := mdp.New(gamma, p, r)
		if err != nil {
			return nil, nil
		}
		x, err := m.Optimal()
		if err != nil {
			return nil, nil
		}
		goal, share, worst := last, 1-gamma, slices.Max(x.V)
		if ends[last] {
			goal, share = last-1, 1
		}
		for s, end := range ends {
			if !end {
				worst = min(worst, x.V[s])
			}
		}
		fair := true
		for s := range last {
			if ends[s] && arrival[s] > worst-1 {
				arrival[s], fair = worst-between(rng, 2, 11), false
			}
		}
		if rise := slices.Max(x.V[:starts]) - x.V[goal] + between(rng, 2, 5); rise > 0 {
			arrival[last] += share * max(2*rise, between(rng, 1, 10))
			fair = false
		}
		if fair {
			return p, r
		}
	}
	return nil, nil
}

func between(rng *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }

// lead draws where actions lead from a state: to states from 17 before it to 6 beyond, or farther where these are ends,
// most often to one close to the action's own place among these. From an end they lead nowhere else.
func lead(rng *rand.Rand, p *mat.Dense, s int, ends []bool) {
	pairs, states := p.Dims()
	actions := pairs / states
	if ends[s] {
		for a := range actions {
			p.Set(s*actions+a, s, 1)
		}
		return
	}
	from, to := 0, min(states, s+2+rng.IntN(6))
	if lowest := max(0, s-17); s > 2 {
		from = lowest + rng.IntN(s-1-lowest)
	}
	for to < states && !slices.Contains(ends[s+1:to], false) {
		to++
	}
	near, sigma := mat.NewDense(actions, to-from, nil), min(1.6, max(.2, rng.ExpFloat64()))
	for a := range actions {
		place := between(rng, -1, float64(to-from))
		for j := range to - from {
			d := (place - float64(j)) / sigma
			near.Set(a, j, max(1e-12, numeric.Exp(-d*d)))
		}
	}
	for j := range to - from {
		weight := between(rng, .2, 1)
		if from+j == s {
			weight /= 2
		}
		column := mat.Col(nil, j, near)
		floats.Scale(weight/floats.Sum(column), column)
		near.SetCol(j, column)
	}
	for a := range actions {
		row := near.RawRowView(a)
		floats.Scale(1/floats.Sum(row), row)
		copy(p.RawRowView(s*actions + a)[from:], row)
	}
}

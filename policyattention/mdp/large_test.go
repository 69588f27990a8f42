package mdp

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// row adds a row of P: successors and their probabilities in turn.
func (t *Transitions) row(successors ...float64) {
	for k := 0; k < len(successors); k += 2 {
		t.Add(int(successors[k]), successors[k+1])
	}
	t.EndRow()
}

// grid is a grid of side·side states with moves up, right, down and left that slip sideways
// with probability .1 each. Each step costs 1 where there is a goal, the last state, which ends;
// otherwise rewards are drawn.
func grid(t testing.TB, side int, gamma float64, goal bool) *MDP {
	t.Helper()
	s := side * side
	model := Model{Gamma: gamma, R: mat.NewDense(s, 4, nil), Meaning: Meaning{Rows: side, Columns: side}}
	rng := seed.New(5, "grid")
	moves := [4][2]int{{-1, 0}, {0, 1}, {1, 0}, {0, -1}}
	for i := range s {
		for a := range 4 {
			for turn, p := range map[int]float64{0: .8, 1: .1, 3: .1} {
				d := moves[(a+turn)%4]
				y, x := i/side+d[0], i%side+d[1]
				if y < 0 || y >= side || x < 0 || x >= side {
					y, x = i/side, i%side
				}
				model.P.Add(y*side+x, p)
			}
			model.P.EndRow()
			model.R.Set(i, a, -1)
			if !goal {
				model.R.Set(i, a, rng.Float64())
			}
		}
	}
	if goal {
		model.Terminal = []int{s - 1}
	}
	return testkit.Must(model.Build())(t)
}

// forest is the management of a forest that grows through s ages and burns with probability .1
// (Chadès et al., pymdptoolbox): wait or cut.
func forest(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		model.P.row(0, .1, float64(min(i+1, s-1)), .9)
		model.P.row(0, 1)
		if i > 0 {
			model.R.Set(i, 1, 1)
		}
	}
	model.R.Set(s-1, 0, 4)
	model.R.Set(s-1, 1, 2)
	return testkit.Must(model.Build())(t)
}

// scattered has so many successors a state-action pair, drawn uniformly.
func scattered(t testing.TB, s, a, successors int, gamma float64) *MDP {
	t.Helper()
	rng := seed.New(6, "scattered")
	model := Model{Gamma: gamma, R: mat.NewDense(s, a, nil)}
	row := make([]float64, successors)
	for i := range s * a {
		dirichlet(rng, row)
		for k, p := range row {
			to := rng.IntN(s)
			if successors == s {
				to = k
			}
			model.P.Add(to, p)
		}
		model.P.EndRow()
		model.R.Set(i/a, i%a, 2*rng.Float64()-1)
	}
	return testkit.Must(model.Build())(t)
}

// cycle goes through all states in an order that is drawn, or stays for nothing; one step pays.
func cycle(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(s)
	next := make([]int, s)
	for i, x := range order {
		next[x] = order[(i+1)%s]
	}
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		model.P.row(float64(next[i]), 1)
		model.P.row(float64(i), 1)
	}
	model.R.Set(order[0], 0, 1)
	return testkit.Must(model.Build())(t)
}

// swim is RiverSwim (Strehl and Littman, 2008) of s states: optimal play far from the
// right end hangs on values that come from there.
func swim(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		left, right := float64(max(i-1, 0)), float64(min(i+1, s-1))
		model.P.row(left, 1)
		model.P.row(left, .05, float64(i), .6, right, .35)
	}
	model.R.Set(0, 0, .005)
	model.R.Set(s-1, 1, 1)
	return testkit.Must(model.Build())(t)
}

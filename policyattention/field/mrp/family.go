package mrp

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Features draws a feature vector for each state, entries uniform on [−1, 1): [S, d].
func Features(states, d int, rng *rand.Rand) *mat.Dense {
	phi := mat.NewDense(states, d, nil)
	for i := range phi.RawMatrix().Data {
		phi.RawMatrix().Data[i] = 2*rng.Float64() - 1
	}
	return phi
}

// Normal draws a matrix [rows, cols] of independent normal numbers with mean 0.
func Normal(rows, cols int, deviation float64, rng *rand.Rand) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range m.RawMatrix().Data {
		m.RawMatrix().Data[i] = deviation * rng.NormFloat64()
	}
	return m
}

// uniform draws n numbers uniform on [.01, .99), the distribution of all probabilities of
// Wang et al. before normalization.
func uniform(n int, rng *rand.Rand) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = .01 + .98*rng.Float64()
	}
	return out
}

func normalize(row []float64) []float64 {
	floats.Scale(1/floats.Sum(row), row)
	return row
}

// rewards draws rewards uniform on [−1, 1).
func rewards(n int, rng *rand.Rand) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 2*rng.Float64() - 1
	}
	return out
}

// Boyan draws a Boyan chain (Wang et al., Algorithm 2): from state i to i+1 with a
// probability uniform on [.01, .99), else to i+2; from the last but one to the last; from
// the last to any state, with probabilities proportional to uniform numbers, as are those of
// the first state. Rewards are uniform on [−1, 1).
func Boyan(states int, gamma float64, rng *rand.Rand) (*Process, error) {
	if states < 3 {
		return nil, fmt.Errorf("mrp: a Boyan chain of %d states, want at least 3", states)
	}
	p := mat.NewDense(states, states, nil)
	for i, q := range uniform(states-2, rng) {
		p.Set(i, i+1, q)
		p.Set(i, i+2, 1-q)
	}
	p.Set(states-2, states-1, 1)
	p.SetRow(states-1, normalize(uniform(states, rng)))
	mu := normalize(uniform(states, rng))
	return New(gamma, p, rewards(states, rng), mu)
}

// Loop draws a loop (the process of Wang et al.'s demonstration): each state leads to the
// next one round a circle, and to each other but itself with the probability 1 − threshold;
// the probabilities of what it leads to are proportional to numbers uniform on [.01, .99).
// Rewards are uniform on [−1, 1).
func Loop(states int, gamma, threshold float64, rng *rand.Rand) (*Process, error) {
	if states < 2 {
		return nil, fmt.Errorf("mrp: a loop of %d states, want at least 2", states)
	}
	if !(threshold >= 0 && threshold <= 1) {
		return nil, fmt.Errorf("mrp: threshold is %v, want a number from 0 to 1", threshold)
	}
	p := mat.NewDense(states, states, nil)
	for i := range states {
		connected := uniform(states, rng)
		row := uniform(states, rng)
		for j := range row {
			if j == i || connected[j] <= threshold && j != (i+1)%states {
				row[j] = 0
			}
		}
		p.SetRow(i, normalize(row))
	}
	mu := normalize(uniform(states, rng))
	return New(gamma, p, rewards(states, rng), mu)
}

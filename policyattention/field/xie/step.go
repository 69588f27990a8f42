package xie

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Step returns the values v [n+1] of the walk's states after one step of weighted softmax TD.
// It is the sum over transitions as the paper writes it and shares nothing with the layers.
func (s Spec) Step(c *Context, v []float64) ([]float64, error) {
	if err := s.fits(c, v); err != nil {
		return nil, err
	}
	out := append([]float64(nil), v...)
	for j := range out {
		total, moved := 0., 0.
		for k := 1; k <= s.N; k++ {
			weight := math.Exp(s.similarity(c.X, j, k-1))
			total += weight
			moved += weight * (c.R[k-1] + s.Gamma*v[k] - v[k-1])
		}
		out[j] += s.Alpha * moved / total
	}
	return out, nil
}

// similarity returns ⟨x_j, W x_k⟩ of columns of x [d, …].
func (s Spec) similarity(x *mat.Dense, j, k int) float64 {
	sum := 0.
	for a := range s.D {
		if s.W == nil {
			sum += x.At(a, j) * x.At(a, k)
			continue
		}
		for b := range s.D {
			sum += x.At(a, j) * s.W.At(a, b) * x.At(b, k)
		}
	}
	return sum
}

// Counts is a walk of any length, as far as the algorithm depends on it.
type Counts struct {
	N    *mat.Dense // [S, S], transitions from s to s′
	R    []float64  // [S], the reward on leaving a state
	Seen []float64  // [S], transitions from s
}

// Count counts the transitions of a walk [n+1] over states with the rewards r [S].
func Count(walk []int, r []float64) (*Counts, error) {
	if len(walk) < 2 {
		return nil, fmt.Errorf("xie: a walk of %d states, want at least two", len(walk))
	}
	for k, s := range walk {
		if s < 0 || s >= len(r) {
			return nil, fmt.Errorf("xie: state %d of the walk is %d, want one of %d", k, s, len(r))
		}
	}
	c := &Counts{N: mat.NewDense(len(r), len(r), nil), R: r, Seen: make([]float64, len(r))}
	for k, s := range walk[:len(walk)-1] {
		c.N.Set(s, walk[k+1], c.N.At(s, walk[k+1])+1)
		c.Seen[s]++
	}
	return c, nil
}

// Table makes layers steps with α = 1 of the algorithm on a table: features x [S, d], values
// from zero. It returns the values [S] after each of them. Equal states have equal values, so
// a walk of n transitions costs no more than one of S².
func (c *Counts) Table(x *mat.Dense, gamma float64, layers int) ([][]float64, error) {
	states, _ := x.Dims()
	if states != len(c.R) {
		return nil, fmt.Errorf("xie: features of %d states, rewards of %d", states, len(c.R))
	}
	kernel := tableKernel(x, c.Seen)
	v := make([]float64, states)
	var all [][]float64
	for range layers {
		delta := make([]float64, states) // mean error of the transitions from a state
		for s := range delta {
			if c.Seen[s] == 0 {
				continue
			}
			next := 0.
			for t, n := range c.N.RawRowView(s) {
				next += n * v[t]
			}
			delta[s] = c.R[s] + gamma*next/c.Seen[s] - v[s]
		}
		v = advance(kernel, v, delta)
		all = append(all, v)
	}
	return all, nil
}

// tableKernel returns the weight [S, S] that the errors of the transitions from s′ have in the
// step of s: in proportion to weight(s′)·exp⟨x(s), x(s′)⟩, rows summing to one.
func tableKernel(x *mat.Dense, weight []float64) *mat.Dense {
	var m mat.Dense
	m.Mul(x, x.T())
	for s := range weight {
		row := m.RawRowView(s)
		top, sum := math.Inf(-1), 0.
		for t, score := range row {
			if weight[t] > 0 {
				top = max(top, score)
			}
		}
		for t, score := range row {
			if weight[t] == 0 {
				row[t] = 0
				continue
			}
			row[t] = weight[t] * math.Exp(score-top)
			sum += row[t]
		}
		for t := range row {
			row[t] /= sum
		}
	}
	return &m
}

// advance returns v + K δ.
func advance(kernel *mat.Dense, v, delta []float64) []float64 {
	var moved mat.VecDense
	moved.MulVec(kernel, mat.NewVecDense(len(delta), delta))
	out := append([]float64(nil), v...)
	for s := range out {
		out[s] += moved.AtVec(s)
	}
	return out
}

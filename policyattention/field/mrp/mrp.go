// Package mrp holds finite Markov reward processes: what methods for policy
// evaluation are shown in their context, with exact values to score them by.
//
// The processes are those of Wang et al. (arXiv 2405.13861): Boyan chains and
// loops.
package mrp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// Tolerance is how far the sum of a probability row may lie from one.
const Tolerance = 1e-9

// Process is a Markov reward process. Build one with New, which validates it; the
// fields are read-only afterwards.
type Process struct {
	Gamma float64    // discount γ in [0, 1)
	P     *mat.Dense // [S, S], row-stochastic
	R     []float64  // [S], the reward on leaving a state
	Mu    []float64  // [S], distribution of the first state
}

// New returns a process with copies of its arguments. The error names the first
// input that is not what it must be.
func New(gamma float64, p *mat.Dense, r, mu []float64) (*Process, error) {
	if !(gamma >= 0 && gamma < 1) {
		return nil, fmt.Errorf("mrp: discount gamma is %v, want 0 ≤ gamma < 1", gamma)
	}
	if p == nil || p.IsEmpty() {
		return nil, errors.New("mrp: transitions P must not be empty")
	}
	s, cols := p.Dims()
	if cols != s || len(r) != s || len(mu) != s {
		return nil, fmt.Errorf("mrp: transitions P are [%d, %d], rewards [%d], first states [%d], want [S, S], [S], [S]", s, cols, len(r), len(mu))
	}
	for i := range s {
		if err := checkDistribution(p.RawRowView(i)); err != nil {
			return nil, fmt.Errorf("mrp: P(·|s=%d) %w", i, err)
		}
	}
	if err := checkDistribution(mu); err != nil {
		return nil, fmt.Errorf("mrp: the distribution of the first state %w", err)
	}
	for i, v := range r {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("mrp: reward r(s=%d) is %v, want a finite number", i, v)
		}
	}
	return &Process{gamma, mat.DenseCopyOf(p), append([]float64(nil), r...), append([]float64(nil), mu...)}, nil
}

func checkDistribution(row []float64) error {
	for i, v := range row {
		if !(v >= 0 && v <= 1+Tolerance) {
			return fmt.Errorf("has entry %d equal to %v, want a probability", i, v)
		}
	}
	if sum := floats.Sum(row); math.Abs(sum-1) > Tolerance {
		return fmt.Errorf("sums to %.12g, want 1 within %g", sum, Tolerance)
	}
	return nil
}

// States returns S.
func (p *Process) States() int { return len(p.R) }

// Values returns v [S] with v = r + γPv.
func (p *Process) Values() ([]float64, error) {
	s := p.States()
	var v mat.VecDense
	if err := v.SolveVec(p.bellman(), mat.NewVecDense(s, p.R)); err != nil {
		return nil, fmt.Errorf("mrp: values: %w", err)
	}
	return v.RawVector().Data, nil
}

// bellman returns I − γP [S, S].
func (p *Process) bellman() *mat.Dense {
	s := p.States()
	m := mat.NewDense(s, s, nil)
	m.Scale(-p.Gamma, p.P)
	for i := range s {
		m.Set(i, i, 1+m.At(i, i))
	}
	return m
}

// WithValues returns the process with the rewards (I − γP)v, whose values are v [S].
func (p *Process) WithValues(v []float64) (*Process, error) {
	if len(v) != p.States() {
		return nil, fmt.Errorf("mrp: %d values for %d states", len(v), p.States())
	}
	var r mat.VecDense
	r.MulVec(p.bellman(), mat.NewVecDense(len(v), v))
	return New(p.Gamma, p.P, r.RawVector().Data, p.Mu)
}

// Stationary returns the stationary distribution d [S], dᵀP = dᵀ. It returns an error
// if there is more than one.
func (p *Process) Stationary() ([]float64, error) {
	s := p.States()
	// dᵀ(I − P) = 0 with the last equation, which the others imply, replaced by Σd = 1.
	a := mat.NewDense(s, s, nil)
	for i := range s {
		for j := range s - 1 {
			a.Set(j, i, -p.P.At(i, j))
		}
		a.Set(s-1, i, 1)
	}
	for j := range s - 1 {
		a.Set(j, j, 1+a.At(j, j))
	}
	b := mat.NewVecDense(s, nil)
	b.SetVec(s-1, 1)
	var d mat.VecDense
	if err := d.SolveVec(a, b); err != nil {
		return nil, fmt.Errorf("mrp: the stationary distribution: %w", err)
	}
	out := d.RawVector().Data
	for i, v := range out {
		if v < 0 && v > -Tolerance {
			out[i] = 0 // rounding
		}
	}
	if err := checkDistribution(out); err != nil {
		return nil, fmt.Errorf("mrp: the stationary distribution %w", err)
	}
	return out, nil
}

// Walk draws a first state and n transitions: the states [n+1].
func (p *Process) Walk(rng *rand.Rand, n int) []int {
	states := make([]int, n+1)
	states[0] = mdp.Sample(rng, p.Mu)
	for i := range n {
		states[i+1] = mdp.Sample(rng, p.P.RawRowView(states[i]))
	}
	return states
}

// Walked reports the first of features [S, d] and a walk's states [n+1] that are not the
// process's.
func (p *Process) Walked(features *mat.Dense, walk []int) error {
	if features == nil || features.IsEmpty() {
		return errors.New("mrp: no features of states")
	}
	if rows, cols := features.Dims(); rows != p.States() {
		return fmt.Errorf("mrp: features [%d, %d] of %d states", rows, cols, p.States())
	}
	if len(walk) < 2 {
		return fmt.Errorf("mrp: a walk of %d states from first to last, want at least two", len(walk))
	}
	for k, s := range walk {
		if s < 0 || s >= p.States() {
			return fmt.Errorf("mrp: state %d of a walk is %d, want one of %d", k, s, p.States())
		}
	}
	return nil
}

// Square reports that a matrix is not [side, side].
func Square(m *mat.Dense, side int) error {
	if m == nil || m.IsEmpty() {
		return fmt.Errorf("no matrix, want [%d, %d]", side, side)
	}
	if rows, cols := m.Dims(); rows != side || cols != side {
		return fmt.Errorf("[%d, %d], want [%d, %d]", rows, cols, side, side)
	}
	return nil
}

// Expect returns Σ_s weight(s)·(a(s) − b(s))², the squared error of a against b.
// It panics if the lengths differ.
func Expect(weight, a, b []float64) float64 {
	sum := 0.0
	for i, w := range weight {
		d := a[i] - b[i]
		sum += w * d * d
	}
	return sum
}

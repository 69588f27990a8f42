package xie

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Margin returns the C of the contraction condition (Assumption 5.1) that a process with
// features x [S, d] meets: min_s M(s, s) − (1 + γ)/2, where row s of M [S, S] is the kernel's
// softmax weighted by the stationary distribution. The condition asks for C > 0.
func Margin(p *mrp.Process, x *mat.Dense) (float64, error) {
	m, err := stationaryKernel(p, x)
	if err != nil {
		return 0, err
	}
	least := 1.
	for s := range p.R {
		least = min(least, m.At(s, s))
	}
	return least - (1+p.Gamma)/2, nil
}

// stationaryKernel returns M [S, S].
func stationaryKernel(p *mrp.Process, x *mat.Dense) (*mat.Dense, error) {
	if states, _ := x.Dims(); states != p.States() {
		return nil, fmt.Errorf("xie: features of %d states, the process has %d", states, p.States())
	}
	d, err := p.Stationary()
	if err != nil {
		return nil, err
	}
	return tableKernel(x, d), nil
}

// WithMargin returns unit features u [S, d] multiplied by the length with which the process
// has the margin c, found by bisection: M(s, s) grows with the length. It returns an error
// where no length from 0 to 30 has it.
func WithMargin(p *mrp.Process, u *mat.Dense, c float64) (*mat.Dense, error) {
	at := func(length float64) (*mat.Dense, float64, error) {
		var x mat.Dense
		x.Scale(length, u)
		margin, err := Margin(p, &x)
		return &x, margin, err
	}
	lo, hi := 0., 30.
	_, low, err := at(lo)
	if err != nil {
		return nil, err
	}
	x, high, err := at(hi)
	if err != nil {
		return nil, err
	}
	if c < low || c > high {
		return nil, fmt.Errorf("xie: margins go from %.3g to %.3g, want %.3g", low, high, c)
	}
	for hi-lo > 1e-12 {
		mid := (lo + hi) / 2
		var margin float64
		if x, margin, err = at(mid); err != nil {
			return nil, err
		}
		if margin < c {
			lo = mid
		} else {
			hi = mid
		}
	}
	return x, nil
}

// Limit makes steps of the algorithm with α = 1 in the limit of infinite walks,
// v ← v + M(r + γPv − v), from zero: the values [S] after each layer.
func Limit(p *mrp.Process, x *mat.Dense, layers int) ([][]float64, error) {
	m, err := stationaryKernel(p, x)
	if err != nil {
		return nil, err
	}
	v := make([]float64, p.States())
	var all [][]float64
	for range layers {
		var next mat.VecDense
		next.MulVec(p.P, mat.NewVecDense(len(v), v))
		delta := make([]float64, len(v))
		for s := range delta {
			delta[s] = p.R[s] + p.Gamma*next.AtVec(s) - v[s]
		}
		v = advance(m, v, delta)
		all = append(all, v)
	}
	return all, nil
}

// Study is a measurement of Theorem 2,
//
//	‖v_L − v‖∞ ≤ (1 − C)^L ‖v_0 − v‖∞ + O(√(log(1/δ)/n)),
//
// on loops with random unit features, scaled so that each has exactly the margin C. Where C is
// not positive the theorem promises nothing.
type Study struct {
	States    int       `json:"states"`
	D         int       `json:"d"` // of features
	Processes int       `json:"processes"`
	Gamma     float64   `json:"gamma"`
	Margins   []float64 `json:"margins"` // C
	Layers    []int     `json:"layers"`  // L, ascending
	Lengths   []int     `json:"lengths"` // n
	Seed      uint64    `json:"seed"`
}

// Studies are those of the evidence: at γ = .5 the condition leaves room for C up to .25, at
// γ = .9 up to .05.
func Studies(root uint64) []Study {
	base := Study{States: 6, D: 6, Processes: 40, Layers: []int{1, 2, 4, 8, 16, 32, 64, 128}, Lengths: []int{100, 1000, 10_000, 100_000}, Seed: root}
	half, long := base, base
	half.Gamma, half.Margins = .5, []float64{.2, .1, .02, -.1, -.5}
	long.Gamma, long.Margins = .9, []float64{.04, .01, -.1, -.7}
	return []Study{half, long}
}

// Contraction is the error at one margin, length and depth: means over the processes.
type Contraction struct {
	Gamma  float64 `json:"gamma"`
	Margin float64 `json:"margin"` // C
	N      int     `json:"n"`      // length of the walk; 0 is its limit
	Layers int     `json:"layers"` // L
	// Error is ‖v_L − v‖∞, Relative the same over ‖v_0 − v‖∞.
	Error    float64 `json:"error"`
	Relative float64 `json:"relative"`
	// Bound is (1 − C)^L. Rest is what Error exceeds the bound's part of ‖v_0 − v‖∞ by, if
	// it does, and Scaled is Rest·√n: the theorem says that it stays bounded. All are 0
	// where C ≤ 0 promises nothing.
	Bound  float64 `json:"bound"`
	Rest   float64 `json:"rest"`
	Scaled float64 `json:"scaled"`
	// Worst is the largest Relative/Bound of a process: at most 1 in the
	// limit n = 0.
	Worst float64 `json:"worst"`
}

// Run returns a row for each margin, length (the limit first) and depth.
func (s Study) Run() ([]Contraction, error) {
	if s.Processes < 1 || len(s.Layers) == 0 || len(s.Margins) == 0 || s.D < 1 {
		return nil, errors.New("xie: a study needs processes, margins, depths and features")
	}
	for i, l := range s.Layers {
		if l < 1 || i > 0 && l <= s.Layers[i-1] {
			return nil, fmt.Errorf("xie: depths %v, want ascending ones from 1", s.Layers)
		}
	}
	var all []Contraction
	for _, margin := range s.Margins {
		for _, n := range append([]int{0}, s.Lengths...) {
			rows := make([]Contraction, len(s.Layers))
			for i, l := range s.Layers {
				rows[i] = Contraction{Gamma: s.Gamma, Margin: margin, N: n, Layers: l}
				if margin > 0 {
					rows[i].Bound = math.Pow(1-margin, float64(l))
				}
			}
			for k := range s.Processes {
				if err := s.process(k, margin, n, rows); err != nil {
					return nil, fmt.Errorf("xie: process %d: %w", k, err)
				}
			}
			all = append(all, rows...)
		}
	}
	return all, nil
}

// process adds the errors on process k to rows.
func (s Study) process(k int, margin float64, n int, rows []Contraction) error {
	process, x, err := s.draw(k, margin)
	if err != nil {
		return err
	}
	exact, err := process.Values()
	if err != nil {
		return err
	}
	depth := s.Layers[len(s.Layers)-1]
	var all [][]float64
	if n == 0 {
		all, err = Limit(process, x, depth)
	} else {
		walk := process.Walk(seed.New(s.Seed, "xie", "walk", k, n), n)
		counts, wrong := Count(walk, process.R)
		if wrong != nil {
			return wrong
		}
		all, err = counts.Table(x, s.Gamma, depth)
	}
	if err != nil {
		return err
	}
	start := floats.Norm(exact, math.Inf(1))
	share := 1 / float64(s.Processes)
	for i := range rows {
		r := &rows[i]
		e := floats.Distance(all[r.Layers-1], exact, math.Inf(1))
		r.Error += share * e
		r.Relative += share * e / start
		if r.Bound > 0 {
			rest := max(0, e-r.Bound*start)
			r.Rest += share * rest
			r.Scaled += share * rest * math.Sqrt(float64(n))
			r.Worst = max(r.Worst, e/start/r.Bound)
		}
	}
	return nil
}

// draw returns process k and its features [S, d] at a margin.
func (s Study) draw(k int, margin float64) (*mrp.Process, *mat.Dense, error) {
	rng := seed.New(s.Seed, "xie", "process", k)
	process, err := mrp.Loop(s.States, s.Gamma, .5, rng)
	if err != nil {
		return nil, nil, err
	}
	u := mrp.Normal(s.States, s.D, 1, rng)
	for i := range s.States {
		row := u.RawRowView(i)
		floats.Scale(1/floats.Norm(row, 2), row)
	}
	x, err := WithMargin(process, u, margin)
	return process, x, err
}

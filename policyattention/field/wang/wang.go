// Package wang is the method of Wang et al., "Transformers Can Learn Temporal Difference Methods for In-Context
// Reinforcement Learning" (ICLR 2025, arXiv 2405.13861): a Transformer with linear attention whose every layer is one
// step of an algorithm for policy evaluation on the transitions in its prompt.
//
// The prompt of n transitions and a query is one matrix Z, a transition a column [φ; γφ′; r] and the query the
// last one, [φ; 0; 0]. A layer is
//
//	Z ← Z + (1/n) P Z M act(ZᵀQZ),   M = diag(1, …, 1, 0),
//
// so that the query is read but never attended to; after the last layer the value of the query is −Z[−1, −1].
// This file has the weights that make a layer a step of TD(0), TD(λ), residual gradient or average-reward TD, and
// those algorithms written directly; train.go has the same layer with weights that are trained by the paper's recipe.
package wang

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
)

// System trains a network of the paper: with linear attention and one looped layer first.
var System = baseline.Trainer{Train: numbers, Variants: []string{string(Linear), string(OverKeys), string(OverQueries)}}

// Context is what a prompt shows.
type Context struct {
	Phi   *mat.Dense // [d, n], φ(S_k)
	Next  *mat.Dense // [d, n], γφ(S_{k+1})
	R     []float64  // [n]
	Query []float64  // [d]
}

// Prompt returns Z [2d+1+extra, n+1]: rows φ, γφ′ and r, and extra rows of zeros; the last column is the query. It
// returns an error that names the first part of another shape or with a number that is not finite.
func (c *Context) Prompt(extra int) (*mat.Dense, error) {
	if c == nil || c.Phi == nil || c.Phi.IsEmpty() || c.Next == nil || c.Next.IsEmpty() || extra < 0 {
		return nil, errors.New("wang: a context without features of states or of successors, or rows fewer than none")
	}
	d, n := c.Phi.Dims()
	if rows, cols := c.Next.Dims(); rows != d || cols != n || len(c.R) != n || len(c.Query) != d {
		return nil, fmt.Errorf("wang: features [%d, %d], successors [%d, %d], %d rewards, a query of %d: d, n differ",
			d, n, rows, cols, len(c.R), len(c.Query))
	}
	z := mat.NewDense(2*d+1+extra, n+1, nil)
	z.Slice(0, d, 0, n).(*mat.Dense).Copy(c.Phi)
	z.Slice(d, 2*d, 0, n).(*mat.Dense).Copy(c.Next)
	z.SetRow(2*d, append(slices.Clone(c.R), 0))
	z.Slice(0, d, n, n+1).(*mat.Dense).SetCol(0, c.Query)
	return z, baseline.Finite(z)
}

// Algorithm names an algorithm for policy evaluation that a layer can be built for.
type Algorithm string

const (
	TD0              Algorithm = "TD(0)"
	TDLambda         Algorithm = "TD(λ)"
	ResidualGradient Algorithm = "residual gradient"
	AverageReward    Algorithm = "average-reward TD"
)

var algorithms = []Algorithm{TD0, TDLambda, ResidualGradient, AverageReward}

// Spec says which step a layer is to be.
type Spec struct {
	Algorithm Algorithm
	D, N      int     // length of features, transitions of the context
	Alpha     float64 // step size
	// Trace is by what eligibility traces decay, in [0, 1]: of TD(λ) alone. The public code has λ, textbooks γλ.
	Trace float64
	C     *mat.Dense // preconditioner of the increment [d, d]; nil is the identity
}

func (s Spec) validate() error {
	switch {
	case !slices.Contains(algorithms, s.Algorithm):
		return fmt.Errorf("wang: unknown algorithm %q, want one of %q", s.Algorithm, algorithms)
	case s.D < 1 || s.N < 1:
		return fmt.Errorf("wang: features of length %d and %d transitions, want at least one of each", s.D, s.N)
	case math.IsNaN(s.Alpha) || math.IsInf(s.Alpha, 0):
		return fmt.Errorf("wang: step size is %v, want a finite number", s.Alpha)
	case !(s.Trace >= 0 && s.Trace <= 1):
		return fmt.Errorf("wang: decay of traces is %v, want a number from 0 to 1", s.Trace)
	}
	if rows, cols := s.preconditioner().Dims(); rows != s.D || cols != s.D {
		return fmt.Errorf("wang: the preconditioner is [%d, %d], want [%d, %d]", rows, cols, s.D, s.D)
	}
	return nil
}

// preconditioner returns C [d, d].
func (s Spec) preconditioner() *mat.Dense { return cmp.Or(s.C, baseline.Identity(s.D)) }

// form returns the number of prompt rows below r, and the sign of the value in the prompt's last entry:
// average-reward TD keeps its prediction in a row of its own.
func (s Spec) form() (extra int, sign float64) {
	if s.Algorithm == AverageReward {
		return 1, 1
	}
	return 0, -1
}

// Attention says what is made of the scores ZᵀQZ [n+1, n+1]: rows are keys, columns queries.
type Attention string

const (
	Linear   Attention = "linear"  // the scores
	OverKeys Attention = "softmax" // what a query gives to its keys sums to one
	// OverQueries is the public code's Softmax(dim=1), over n: what a key gives to all queries sums to one.
	OverQueries Attention = "softmax-over-queries"
)

// Head is one head of attention: it adds P Z Mix act(ZᵀQZ).
type Head struct {
	P, Q *mat.Dense // [rows, rows] of the prompt
	Mix  *mat.Dense // [n+1, n+1], on columns; that of the query is zero, so it is never a key
}

// Layer is Z ← Z + Scale Σ_heads P Z Mix act(ZᵀQZ).
type Layer struct {
	Attention Attention
	Scale     float64
	Heads     []Head
}

// Layer returns the weights of the step (Theorem 1 and Corollaries 1–3 of the paper).
func (s Spec) Layer() (*Layer, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	extra, _ := s.form()
	rows := 2*s.D + 1 + extra
	// P copies the last row, which carries the errors, onto itself.
	head := Head{P: mat.NewDense(rows, rows, nil), Q: s.query(rows), Mix: baseline.Identity(s.N, 0)}
	head.P.Set(rows-1, rows-1, 1)
	layer := &Layer{Linear, s.Alpha / float64(s.N), []Head{head}}
	switch s.Algorithm {
	case TDLambda:
		// Column k of Z·Mix is Σ_{i ≥ k} traceⁱ⁻ᵏ z_i: an error i reaches φ_k as the trace e_i has it.
		for k := range s.N {
			for i, weight := k, 1.; i < s.N; i, weight = i+1, weight*s.Trace {
				head.Mix.Set(i, k, weight)
			}
		}
	case AverageReward:
		// A second head reads r̄ − r, r̄ being the mean of the rewards so far.
		rewards, means := mat.NewDense(rows, rows, nil), mat.NewDense(s.N+1, s.N+1, nil)
		rewards.Set(rows-1, 2*s.D, 1)
		for k := range s.N {
			for i := range k + 1 {
				means.Set(i, k, 1/float64(k+1))
			}
			means.Set(k, k, means.At(k, k)-1)
		}
		layer.Heads = []Head{{rewards, head.Q, means}, head}
	}
	return layer, nil
}

// query returns Q [rows, rows] with z_kᵀ Q z_i = (C g_k)ᵀ(γφ′_i − φ_i), the sensitivity of the error i to
// the increment of transition k, where g is φ, or φ − γφ′ for residual gradient.
func (s Spec) query(rows int) *mat.Dense {
	q, c := mat.NewDense(rows, rows, nil), s.preconditioner().T()
	put := func(i, j int, sign float64) { q.Slice(i, i+s.D, j, j+s.D).(*mat.Dense).Scale(sign, c) }
	put(0, 0, -1)
	put(0, s.D, 1)
	if s.Algorithm == ResidualGradient {
		put(s.D, 0, 1)
		put(s.D, s.D, -1)
	}
	return q
}

// Apply returns what the layer makes of a prompt z [rows, n+1]; it panics on another shape. Linear attention is taken
// from the left, (P Z Mix Zᵀ) Q Z: where an algorithm has converged the first factor vanishes and so does its
// rounding, whereas the scores ZᵀQZ, taken first, are wrong in the same way in every layer and their error adds up.
func (l *Layer) Apply(z *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(z)
	for _, h := range l.Heads {
		var values, mixed, scores, moments, qz, added mat.Dense
		values.Mul(h.P, z)
		mixed.Mul(&values, h.Mix)
		qz.Mul(h.Q, z)
		if l.Attention == Linear {
			moments.Mul(&mixed, z.T())
			added.Mul(&moments, &qz)
		} else {
			scores.Mul(z.T(), &qz)
			for i := range z.RawMatrix().Cols {
				if l.Attention == OverQueries {
					pmd.Softmax(scores.RawRowView(i))
					continue
				}
				column := mat.Col(nil, i, &scores)
				pmd.Softmax(column)
				scores.SetCol(i, column)
			}
			added.Mul(&mixed, &scores)
		}
		added.Scale(l.Scale, &added)
		out.Add(out, &added)
	}
	return out
}

// Value returns the value of the context's query after so many times the layer.
func (s Spec) Value(c *Context, layer *Layer, depth int) (float64, error) {
	extra, sign := s.form()
	z, err := c.Prompt(extra)
	if err != nil {
		return 0, err
	}
	for range depth {
		z = layer.Apply(z)
	}
	return sign * z.At(z.RawMatrix().Rows-1, s.N), nil
}

// Step returns the weights w [d] after one step of the algorithm on the context's transitions, w + C (α/n) Σ_k δ_k
// g_k. It is the textbook's loop over transitions and shares nothing with the layers.
func (s Spec) Step(c *Context, w []float64) ([]float64, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if _, err := c.Prompt(0); err != nil {
		return nil, err
	}
	if d, n := c.Phi.Dims(); d != s.D || n != s.N || len(w) != d {
		return nil, fmt.Errorf("wang: features [%d, %d] and %d weights, want [%d, %d] and %d",
			d, n, len(w), s.D, s.N, s.D)
	}
	sum, trace, total := make([]float64, s.D), make([]float64, s.D), 0.0
	for k, r := range c.R {
		total += r
		phi, next := mat.Col(nil, k, c.Phi), mat.Col(nil, k, c.Next)
		delta := r + floats.Dot(w, next) - floats.Dot(w, phi)
		g := phi
		switch s.Algorithm {
		case TDLambda:
			floats.Scale(s.Trace, trace)
			floats.Add(trace, phi)
			g = trace
		case ResidualGradient:
			floats.Sub(g, next)
		case AverageReward:
			delta -= total / float64(k+1)
		}
		floats.AddScaled(sum, s.Alpha/float64(s.N)*delta, g)
	}
	var moved mat.VecDense
	moved.MulVec(s.preconditioner(), mat.NewVecDense(s.D, sum))
	return floats.AddTo(moved.RawVector().Data, moved.RawVector().Data, w), nil
}

// Window returns the context of a walk [n+1] of p: its n transitions, with the state after them as the query.
func Window(p *baseline.Process, walk []int) *Context {
	n, phi := len(walk)-1, p.Features.RawRowView
	_, d := p.Features.Dims()
	c := &Context{Phi: mat.NewDense(d, n, nil), Next: mat.NewDense(d, n, nil), Query: phi(walk[n])}
	for k, s := range walk[:n] {
		c.Phi.SetCol(k, phi(s))
		c.Next.SetCol(k, phi(walk[k+1]))
		c.R = append(c.R, p.Reward(s, 0))
	}
	c.Next.Scale(p.Gamma, c.Next)
	return c
}

// Package xie is the method of Xie et al., "Beyond Linear Attention: Softmax Transformers Implement In-Context
// Reinforcement Learning" (arXiv 2605.07333): a Transformer with standard softmax attention whose every layer is one
// step of weighted softmax TD on the walk in its prompt. It evaluates Markov reward processes; it has no actions.
//
// The prompt of a walk S_0, …, S_n is one matrix Z with a column for each state; the last one, S_n, is the query. A
// layer is
//
//	Z ← Z + V Z softmax(ZᵀAZ + M),
//
// with the softmax over each column and M masking the query as a source. Weighted softmax TD with the step size α
// moves the value of every state of the walk by
//
//	v(S_j) += α Σ_k δ_k K(j, k),   δ_k = R_k + γ v(S_k) − v(S_{k−1}),
//
// where K(j, ·) is the softmax over k of ⟨x(S_j), W x(S_{k−1})⟩. This file has the weights that make a layer
// that step, and the step written directly; train.go has the layer with weights that are trained under the paper's
// sparsity masks. No code of the paper is public; the order of rows is ours.
package xie

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
)

// System trains a layer under the paper's sparsity masks.
var System = baseline.Trainer{Train: numbers, Variants: []string{"features", oneHot}}

// oneHot is the variant with one-hot features of states, with which the algorithm can be tabular TD.
const oneHot = "one-hot"

// Context is the walk that a prompt shows.
type Context struct {
	X *mat.Dense // [d, n+1], x(S_0), …, x(S_n); the last is the query
	R []float64  // [n], R_1, …, R_n: R_k is the reward between S_{k−1} and S_k
}

// Form is one of the two constructions.
type Form string

const (
	// TwoHeads moves the values of states and of successors by a head each. A column is [x(S_k); x(S_{k+1}); R_{k+1};
	// v(S_k); v(S_{k+1})].
	TwoHeads Form = "two heads"
	// OneHead moves the values of the states, and a fixed shift without parameters carries what it adds to a column
	// over to the successor's value in the column before (their equations 18, 19). A column is [x(S_k); R_{k+1};
	// v(S_k); v(S_{k+1})], d + 3 numbers.
	OneHead Form = "one head"
)

// Spec says which step a layer is to be.
type Spec struct {
	Form  Form
	D, N  int        // length of features, transitions of the walk
	Gamma float64    // discount
	Alpha float64    // step size
	W     *mat.Dense // weighs features in the kernel [d, d]; nil is the identity
}

func (s Spec) validate() error {
	switch {
	case s.Form != TwoHeads && s.Form != OneHead:
		return fmt.Errorf("xie: unknown form %q, want %q or %q", s.Form, TwoHeads, OneHead)
	case s.D < 1 || s.N < 1:
		return fmt.Errorf("xie: features of length %d and %d transitions, want at least one of each", s.D, s.N)
	case !(s.Gamma >= 0 && s.Gamma < 1):
		return fmt.Errorf("xie: discount is %v, want 0 ≤ γ < 1", s.Gamma)
	case math.IsNaN(s.Alpha) || math.IsInf(s.Alpha, 0):
		return fmt.Errorf("xie: step size is %v, want a finite number", s.Alpha)
	}
	if rows, cols := s.weights().Dims(); rows != s.D || cols != s.D {
		return fmt.Errorf("xie: the kernel's weights are [%d, %d], want [%d, %d]", rows, cols, s.D, s.D)
	}
	return nil
}

// weights returns W [d, d].
func (s Spec) weights() *mat.Dense {
	if s.W != nil {
		return s.W
	}
	return baseline.Identity(s.D)
}

// rows returns the numbers of the rows of the reward, of the state's value and of its successor's.
func (s Spec) rows() (reward, current, successor int) {
	if s.Form == TwoHeads {
		return 2 * s.D, 2*s.D + 1, 2*s.D + 2
	}
	return s.D, s.D + 1, s.D + 2
}

// Prompt returns Z [rows, n+1] of a walk whose states have the values v [n+1]. The query has no reward and no
// successor: zeros. An error names the first input of another shape or with a number that is not finite.
func (s Spec) Prompt(c *Context, v []float64) (*mat.Dense, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if c == nil || c.X == nil || c.X.IsEmpty() {
		return nil, errors.New("xie: a context needs the features of a walk")
	}
	if d, cols := c.X.Dims(); d != s.D || cols != s.N+1 || len(c.R) != s.N || len(v) != cols {
		return nil, fmt.Errorf("xie: features [%d, %d], %d rewards and %d values, want [%d, %d], %d and %d",
			d, cols, len(c.R), len(v), s.D, s.N+1, s.N, s.N+1)
	}
	reward, current, successor := s.rows()
	z := mat.NewDense(successor+1, s.N+1, nil)
	z.Slice(0, s.D, 0, s.N+1).(*mat.Dense).Copy(c.X)
	if s.Form == TwoHeads {
		z.Slice(s.D, 2*s.D, 0, s.N).(*mat.Dense).Copy(c.X.Slice(0, s.D, 1, s.N+1))
	}
	z.SetRow(reward, append(slices.Clone(c.R), 0))
	z.SetRow(current, v)
	z.SetRow(successor, append(slices.Clone(v[1:]), 0))
	return z, baseline.Finite(z)
}

// Head is one head of attention: it adds V Z softmax(ZᵀAZ + M). Column j of the scores holds z_kᵀ A z_j.
type Head struct {
	V, A *mat.Dense // [rows, rows]
}

// Layer is Z ← Z + Y + E Y T, where Y is the sum of what the heads add and T moves each column one to the left; E,
// nil for TwoHeads, keeps the row of values and moves it to the successors'.
type Layer struct {
	Heads []Head
	E     *mat.Dense // [rows, rows] or nil
}

// Layer returns the weights of the step.
func (s Spec) Layer() (*Layer, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	_, current, successor := s.rows()
	first := Head{V: s.values(current), A: s.scores(0)}
	if s.Form == TwoHeads {
		return &Layer{Heads: []Head{first, {V: s.values(successor), A: s.scores(s.D)}}}, nil
	}
	e := mat.NewDense(successor+1, successor+1, nil)
	e.Set(successor, current, 1)
	return &Layer{Heads: []Head{first}, E: e}, nil
}

// values returns V [rows, rows], which makes α δ of a column and puts it into row to.
func (s Spec) values(to int) *mat.Dense {
	reward, current, successor := s.rows()
	v := mat.NewDense(successor+1, successor+1, nil)
	v.Set(to, reward, s.Alpha)
	v.Set(to, successor, s.Alpha*s.Gamma)
	v.Set(to, current, -s.Alpha)
	return v
}

// scores returns A [rows, rows] with z_kᵀ A z_j = ⟨x_j, W x(S_k)⟩, where x_j are the features of column j from
// row at: 0 for its state's, d for the successor's.
func (s Spec) scores(at int) *mat.Dense {
	_, _, last := s.rows()
	a := mat.NewDense(last+1, last+1, nil)
	a.Slice(0, s.D, at, at+s.D).(*mat.Dense).Copy(s.weights().T())
	return a
}

// Apply returns what the layer makes of a prompt z [rows, n+1], n ≥ 1; it panics on another shape.
func (l *Layer) Apply(z *mat.Dense) *mat.Dense {
	rows, cols := z.Dims()
	y := mat.NewDense(rows, cols, nil)
	for _, h := range l.Heads {
		var kernel, values, added mat.Dense
		kernel.Product(z.T(), h.A, z)
		for j := range cols { // softmax(ZᵀAZ + M): columns sum to one, the query's row is zero
			column := mat.Col(nil, j, &kernel)
			pmd.Softmax(column[:cols-1])
			column[cols-1] = 0
			kernel.SetCol(j, column)
		}
		values.Mul(h.V, z)
		added.Mul(&values, &kernel)
		y.Add(y, &added)
	}
	out := mat.DenseCopyOf(z)
	out.Add(out, y)
	if l.E != nil {
		left, moved := mat.NewDense(rows, cols, nil), new(mat.Dense)
		left.Slice(0, rows, 0, cols-1).(*mat.Dense).Copy(y.Slice(0, rows, 1, cols))
		moved.Mul(l.E, left)
		out.Add(out, moved)
	}
	return out
}

// Step returns the values v [n+1] of the walk's states after one step of weighted softmax TD. It is the sum over
// transitions as the paper writes it and shares nothing with the layers.
func (s Spec) Step(c *Context, v []float64) ([]float64, error) {
	if _, err := s.Prompt(c, v); err != nil {
		return nil, err
	}
	out := slices.Clone(v)
	for j := range out {
		total, moved := 0., 0.
		for k := 1; k <= s.N; k++ {
			weight := math.Exp(mat.Inner(c.X.ColView(j), s.weights(), c.X.ColView(k-1)))
			total += weight
			moved += weight * (c.R[k-1] + s.Gamma*v[k] - v[k-1])
		}
		out[j] += s.Alpha * moved / total
	}
	return out, nil
}

// Window returns the context of a walk [n+1] of p.
func Window(p *baseline.Process, walk []int) *Context {
	_, d := p.Features.Dims()
	c := &Context{X: mat.NewDense(d, len(walk), nil)}
	for k, s := range walk {
		c.X.SetCol(k, p.Features.RawRowView(s))
		c.R = append(c.R, p.Reward(s))
	}
	c.R = c.R[:len(walk)-1]
	return c
}

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
// where K(j, ·) is the softmax over k of ⟨x(S_j), W x(S_{k−1})⟩. Here are the weights that make a layer that
// step, the step written directly, and the layer with weights that are trained under the paper's sparsity masks. No
// code of the paper is public; the order of rows is ours.
package xie

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
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
	// TwoHeads has a head for successors' values too: a column is [x(S_k); x(S_{k+1}); R_{k+1}; v(S_k); v(S_{k+1})].
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
func (s Spec) weights() *mat.Dense { return cmp.Or(s.W, baseline.Identity(s.D)) }

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
	out, w := slices.Clone(v), s.weights()
	for j := range out {
		total, moved := 0., 0.
		for k := 1; k <= s.N; k++ {
			weight := math.Exp(mat.Inner(c.X.ColView(j), w, c.X.ColView(k-1)))
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
		c.R = append(c.R, p.Reward(s, 0))
	}
	c.R = c.R[:len(walk)-1]
	return c
}

// Network is a layer of one head, applied several times, under the paper's sparsity masks (their F.2): of A the block
// of features [d, d] is trained and of V the row of values with its columns of reward, successor's value and value;
// all else stays zero. The paper's sizes are not known to us. These are Wang et al.'s, whose loss it is too.
//
// Its parameters are A, the three numbers of V, which the algorithm has as α, αγ, −α, and the step size α and
// temperature τ, W = τI, of the algorithm that is fitted on the same batches, to compare with.
type Network struct{ baseline.Recipe }

// Start implements baseline.Evaluator: N(0, .1²), and α = τ = 1 for the algorithm; [d² + 5].
func (n Network) Start() []float64 {
	return append(baseline.Normal(n.D*n.D+3, .1, seed.New(n.Seed, "xie", "weights")), 1, 1)
}

// spec is the algorithm with W = τI.
func (n Network) spec(alpha, tau float64) Spec {
	s := Spec{Form: OneHead, D: n.D, N: n.N, Gamma: n.Gamma, Alpha: alpha}
	s.W = s.weights()
	s.W.Scale(tau, s.W)
	return s
}

// Prompt implements baseline.Evaluator.
func (n Network) Prompt(p *baseline.Process, walk []int) (*mat.Dense, error) {
	return n.spec(0, 0).Prompt(Window(p, walk[1:]), make([]float64, n.N+1))
}

// Values implements baseline.Evaluator: the network, and the fitted algorithm. The kernel is the same in all layers.
func (n Network) Values(params, prompts *Node) []*Node {
	d := n.D
	number := func(i int) *Node { return Reshape(SliceAxis(params, 0, AxisElem(d*d+i)), 1, 1) }
	x := SliceAxis(prompts, 1, AxisRange(0, d))
	r := Squeeze(Slice(prompts, AxisRange(), AxisElem(d), AxisRange(0, n.N)), 1) // [B, n]
	values := func(a, reward, successor, value *Node) *Node {
		sources := SliceAxis(x, 2, AxisRange(0, n.N))
		kernel := Softmax(Einsum("bki,bkj->bij", sources, Einsum("kl,blj->bkj", a, x)), 1) // [B, n, n+1]
		v := ZerosLike(ReduceSum(x, 1))                                                    // [B, n+1]
		for range n.Layers {
			next, now := SliceAxis(v, 1, AxisRange(1)), SliceAxis(v, 1, AxisRange(0, n.N))
			delta := Add(Mul(r, reward), Add(Mul(next, successor), Mul(now, value)))
			v = Add(v, Einsum("bij,bi->bj", kernel, delta))
		}
		return Squeeze(SliceAxis(v, 1, AxisElem(n.N)), 1)
	}
	a, alpha := Reshape(SliceAxis(params, 0, AxisRange(0, d*d)), d, d), number(3)
	scaled := Mul(DiagonalWithValue(ScalarOne(params.Graph(), params.DType()), d), number(4))
	return []*Node{values(a, number(0), number(1), number(2)),
		values(scaled, alpha, MulScalar(alpha, n.Gamma), Neg(alpha))}
}

// Layer returns the trained layer with all its zeros.
func (n Network) Layer(params []float64) (*Layer, error) {
	s := n.spec(1, 1)
	s.W = mat.DenseCopyOf(mat.NewDense(n.D, n.D, params[:n.D*n.D]).T())
	layer, err := s.Layer()
	if err != nil {
		return nil, err
	}
	reward, current, successor := s.rows()
	for i, column := range []int{reward, successor, current} {
		layer.Heads[0].V.Set(current, column, params[n.D*n.D+i])
	}
	return layer, nil
}

// quantities are what is measured of trained weights, with what the algorithm has (γ = .9).
var quantities = []baseline.Number{
	{Quantity: "V: reward, α"},
	{Quantity: "V: successor's value over α (the algorithm: γ = .9)", Published: .9},
	{Quantity: "V: value over −α (the algorithm: 1)", Published: 1},
	{Quantity: "mean diagonal of A, τ"},
	{Quantity: "cosine of A and I (the algorithm: 1)", Published: 1},
	{Quantity: "α of the fitted algorithm"},
	{Quantity: "τ of the fitted algorithm"},
	{Quantity: "value difference to the fitted algorithm"},
	{Quantity: "squared error of the values"},
	{Quantity: "squared error of the fitted algorithm"},
}

// numbers implements baseline.Trainer.
func numbers(ctx context.Context, on compute.Backend, t baseline.Training) ([]baseline.Number, error) {
	r := baseline.WangRecipe()
	r.Fresh = 64
	if t.Variant == oneHot {
		r.OneHot, r.D = true, r.States
	}
	return r.Numbers(ctx, on, t, quantities, func(r baseline.Recipe) baseline.Evaluator { return Network{r} })
}

// Measure implements baseline.Evaluator, with the quantities, the last three as means over chains and states of a walk.
func (n Network) Measure(params []float64) ([]float64, error) {
	v := params[n.D*n.D:]
	tau, cosine := n.identity(mat.NewDense(n.D, n.D, params[:n.D*n.D]))
	m := []float64{v[0], v[1] / v[0], -v[2] / v[0], tau, cosine, v[3], v[4], 0, 0, 0}
	layer, err := n.Layer(params)
	if err != nil {
		return nil, err
	}
	spec := n.spec(v[3], v[4])
	return m, n.EachFresh("xie", func(p *baseline.Process, exact, _ []float64, walk []int) error {
		c, algorithm := Window(p, walk), make([]float64, n.N+1)
		z, err := spec.Prompt(c, algorithm)
		for l := 0; l < n.Layers && err == nil; l++ {
			z = layer.Apply(z)
			algorithm, err = spec.Step(c, algorithm)
		}
		if err != nil {
			return err
		}
		share := 1 / float64(n.Fresh*len(walk))
		for j, s := range walk {
			got := z.At(n.D+1, j)
			for i, e := range []float64{got - algorithm[j], got - exact[s], algorithm[j] - exact[s]} {
				m[7+i] += share * e * e
			}
		}
		return nil
	})
}

// identity returns what a trained A [d, d] is of τI: τ and the cosine. With one-hot features a number added to a
// column changes nothing, since the softmax is over its rows: there both have the means of columns taken off.
func (n Network) identity(a *mat.Dense) (tau, cosine float64) {
	one := Spec{D: n.D}.weights()
	if n.OneHot {
		a = mat.DenseCopyOf(a)
		for _, m := range []*mat.Dense{a, one} {
			for j := range n.D {
				column := mat.Col(nil, j, m)
				floats.AddConst(-floats.Sum(column)/float64(n.D), column)
				m.SetCol(j, column)
			}
		}
	}
	// one is a projection, or the identity: its trace is its squared norm.
	tau = floats.Dot(a.RawMatrix().Data, one.RawMatrix().Data) / mat.Trace(one)
	return tau, tau * mat.Norm(one, 2) / mat.Norm(a, 2)
}

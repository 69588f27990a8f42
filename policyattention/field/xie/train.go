package xie

import (
	"context"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
)

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
	return []*Node{
		values(a, number(0), number(1), number(2)), values(scaled, alpha, MulScalar(alpha, n.Gamma), Neg(alpha)),
	}
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
	network := func(r baseline.Recipe) baseline.Evaluator { return Network{r} }
	return r.Numbers(ctx, on, t, quantities, network)
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

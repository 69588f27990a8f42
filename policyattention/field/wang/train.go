package wang

import (
	"context"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
)

// Network is a Transformer of one looped layer to be trained. Its parameters are P and Q [2d+1, 2d+1] of the layer and
// the step size of the TD(0) that is fitted on the same batches, to compare with.
type Network struct {
	baseline.Recipe
	Attention Attention
}

// scale is what attention is multiplied by: 1 where it is a mean.
func (n Network) scale(a Attention) float64 {
	if a == OverKeys {
		return 1
	}
	return 1 / float64(n.N)
}

// Start implements baseline.Evaluator: Xavier's normal distribution with gain .1, and 1 for the fitted step size.
func (n Network) Start() []float64 {
	rows := 2*n.D + 1
	deviation := .1 / math.Sqrt(float64(rows))
	return append(baseline.Normal(2*rows*rows, deviation, seed.New(n.Seed, "wang", "weights")), 1)
}

// Prompt implements baseline.Evaluator. The query follows the window's last successor, as in the public code.
func (n Network) Prompt(p *baseline.Process, walk []int) (*mat.Dense, error) {
	c := Window(p, walk[:n.N+1])
	c.Query = p.Features.RawRowView(walk[n.N+1])
	return c.Prompt(0)
}

// Values implements baseline.Evaluator: the network, and TD(0) with the fitted step size.
func (n Network) Values(params, prompts *Node) []*Node {
	r := 2*n.D + 1
	block := func(at int) *Node { return Reshape(SliceAxis(params, 0, AxisRange(at*r*r, (at+1)*r*r)), r, r) }
	step := Reshape(SliceAxis(params, 0, AxisRange(-1)), 1, 1)
	p, q := mat.NewDense(r, r, nil), Spec{D: n.D}.query(r)
	p.Set(r-1, r-1, 1)
	constant := func(m *mat.Dense) *Node { return Reshape(Const(params.Graph(), m.RawMatrix().Data), r, r) }
	z, td := prompts, prompts
	for range n.Layers {
		z = n.layer(n.Attention, z, block(0), block(1))
		td = n.layer(Linear, td, Mul(constant(p), step), constant(q))
	}
	value := func(z *Node) *Node { return Neg(Reshape(Slice(z, AxisRange(), AxisElem(r-1), AxisElem(n.N)), -1)) }
	return []*Node{value(z), value(td)}
}

// layer builds a layer on prompts z [B, 2d+1, n+1], linear attention from the left as [Layer.Apply].
func (n Network) layer(a Attention, z, p, q *Node) *Node {
	keys := SliceAxis(z, 2, AxisRange(0, n.N)) // the query is not a key: M
	values, qz := Einsum("kl,bli->bki", p, keys), Einsum("kl,blj->bkj", q, z)
	if a == Linear {
		return Add(z, MulScalar(Einsum("bkl,blj->bkj", Einsum("bki,bli->bkl", values, keys), qz), n.scale(a)))
	}
	axis := 1
	if a == OverQueries {
		axis = 2
	}
	weights := SliceAxis(Softmax(Einsum("bki,bkj->bij", z, qz), axis), 1, AxisRange(0, n.N))
	return Add(z, MulScalar(Einsum("bki,bij->bkj", values, weights), n.scale(a)))
}

// Weights returns the layer in plain Go.
func (n Network) Weights(params []float64) *Layer {
	r := 2*n.D + 1
	p, q := mat.NewDense(r, r, params[:r*r]), mat.NewDense(r, r, params[r*r:2*r*r])
	return &Layer{n.Attention, n.scale(n.Attention), []Head{{P: p, Q: q, Mix: baseline.Identity(n.N, 0)}}}
}

// quantities are what is measured of trained weights, with the published number, read off the figures of the public
// repository (Sequential-Intelligence-Lab/InContextTD), and how far it may be misread: of a looped layer with linear
// attention and 30 seeds. P and Q have the sign of P[−1, −1]: the function is the same for (−P, −Q), and half
// of all seeds find each. TD(0) has there its step size, 0, −d and d. Of Q's others the public code subtracts the
// traces with their signs from the sum of absolute values. With linear attention, whose value is linear in the query,
// the paper's cosine of sensitivities is that of weights.
var quantities = []baseline.Number{
	{Quantity: "P[−1, −1]", Published: 1.6, Read: .02},
	{Quantity: "mean |·| of P's others", Published: .12, Read: .01},
	{Quantity: "trace of Q[:d, :d]", Published: -4.3, Read: .1},
	{Quantity: "trace of Q[:d, d:2d]", Published: 3.3, Read: .1},
	{Quantity: "mean of Q's others, as the public code has it", Published: .2, Read: .02},
	{Quantity: "cosine of weights with TD(0)'s", Published: .93, Read: .02},
	{Quantity: "value difference to TD(0)", Published: .02, Read: .01},
	{Quantity: "squared error of the values"},
	{Quantity: "squared error of TD(0)"},
}

// numbers implements baseline.Trainer.
func numbers(ctx context.Context, on compute.Backend, t baseline.Training) ([]baseline.Number, error) {
	network := func(r baseline.Recipe) baseline.Evaluator { return Network{r, Attention(t.Variant)} }
	all, err := baseline.WangRecipe().Numbers(ctx, on, t, quantities, network)
	for i := range all {
		if t.Variant != string(Linear) {
			all[i].Published, all[i].Read = 0, 0
		}
	}
	return all, err
}

// Measure implements baseline.Evaluator, with the quantities: of P and Q, and of the values the means over chains of
// averages over states, weighted by the stationary distribution.
func (n Network) Measure(params []float64) ([]float64, error) {
	head := n.Weights(params).Heads[0]
	rows, _ := head.P.Dims()
	corner, size := head.P.At(rows-1, rows-1), float64(rows*rows)
	sum := func(m *mat.Dense) float64 { return floats.Norm(m.RawMatrix().Data, 1) }
	left := math.Copysign(1, corner) * mat.Trace(head.Q.Slice(0, n.D, 0, n.D))
	right := math.Copysign(1, corner) * mat.Trace(head.Q.Slice(0, n.D, n.D, 2*n.D))
	m := append(make([]float64, 0, len(quantities)), math.Abs(corner), (sum(head.P)-math.Abs(corner))/(size-1),
		left, right, (sum(head.Q)-left-right)/(size-float64(2*n.D)), 0, 0, 0, 0)
	return m, n.EachFresh("wang", func(p *baseline.Process, exact, weights []float64, walk []int) error {
		l, err := n.likeness(params, p, walk, exact, weights)
		if err == nil {
			floats.AddScaled(m[5:], 1/float64(n.Fresh), l)
		}
		return err
	})
}

// likeness returns, on a walk of a chain: the cosine between TD(0)'s weights and those of the linear function nearest
// to the network's values; and squared differences, of the two values, and of each from the exact values.
func (n Network) likeness(params []float64, p *baseline.Process, walk []int, exact, weights []float64) (
	_ []float64, err error) {
	spec, w := Spec{Algorithm: TD0, D: n.D, N: n.N, Alpha: params[len(params)-1]}, make([]float64, n.D)
	c, layer := Window(p, walk), n.Weights(params)
	for range n.Layers {
		if w, err = spec.Step(c, w); err != nil {
			return nil, err
		}
	}
	values, td := make([]float64, n.States), make([]float64, n.States)
	// The nearest linear function minimizes Σ_s weight(s)(v(s) − φ(s)ᵀw)².
	a, b := mat.DenseCopyOf(p.Features), mat.NewVecDense(n.States, nil)
	for s := range values {
		c.Query = p.Features.RawRowView(s)
		if values[s], err = spec.Value(c, layer, n.Layers); err != nil {
			return nil, err
		}
		td[s] = floats.Dot(w, c.Query)
		floats.Scale(math.Sqrt(weights[s]), a.RawRowView(s))
		b.SetVec(s, math.Sqrt(weights[s])*values[s])
	}
	var nearest mat.VecDense
	if err := nearest.SolveVec(a, b); err != nil {
		return nil, err
	}
	implicit := nearest.RawVector().Data
	cosine := floats.Dot(implicit, w) / (floats.Norm(implicit, 2) * floats.Norm(w, 2))
	return []float64{cosine, baseline.Expect(weights, values, td), baseline.Expect(weights, values, exact),
		baseline.Expect(weights, td, exact)}, nil
}

package xie

import (
	"context"
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
)

func tiny(oneHot bool) Network {
	n := Network{baseline.WangRecipe()}
	n.D, n.N, n.States, n.Layers, n.Batch, n.Processes, n.OneHot = 2, 6, 5, 2, 16, 150, oneHot
	if oneHot {
		n.D = n.States
	}
	return n
}

// The graph's values are those of the whole layer, all its zeros included, and of the algorithm's own steps.
func TestGraphAgreesWithPlainGo(t *testing.T) {
	for _, oneHot := range []bool{false, true} {
		n := tiny(oneHot)
		params := baseline.Normal(n.D*n.D+5, .7, seed.New(5))
		p, features, err := n.Process(0)
		testkit.Check(t, err)
		walk := p.Walk(seed.New(1), n.N+1)
		z := testkit.Must(n.Prompt(p, features, walk))(t)
		out := testkit.Must(CallOnceN(testkit.Backend(t), func(in []*Node) []*Node { return n.Values(in[0], in[1]) },
			params, tensors.FromFlatDataAndDimensions(z.RawMatrix().Data, 1, n.D+3, n.N+1)))(t)
		layer, spec := testkit.Must(n.Layer(params))(t), n.spec(params[n.D*n.D+3], params[n.D*n.D+4])
		v := make([]float64, n.N+1)
		for range n.Layers {
			z = layer.Apply(z)
			v = testkit.Must(spec.Step(Window(p, features, walk[1:]), v))(t)
		}
		for i, want := range []float64{z.At(n.D+1, n.N), v[n.N]} {
			if got := tensors.MustCopyFlatData[float64](out[i])[0]; !(math.Abs(got-want) < 1e-13*(1+math.Abs(want))) {
				t.Errorf("one-hot %v, value %d: %v, want %v", oneHot, i, got, want)
			}
		}
	}
}

// A layer with the algorithm's numbers is like the algorithm in every measure; with one-hot features a number
// may be added to each column of A. Other numbers are not.
func TestLikenessOfTheAlgorithm(t *testing.T) {
	n := Network{baseline.WangRecipe()}
	params := make([]float64, n.D*n.D, n.D*n.D+5)
	for i := range n.D {
		params[i*n.D+i] = 1.5
	}
	params = append(params, .8, .8*.9, -.8, .8, 1.5)
	got := testkit.Must(n.measure(params, 3))(t)
	for i, want := range []float64{.8, .9, 1, 1.5, 1, .8, 1.5, 0, got[9]} {
		if math.Abs(got[i]-want) > 1e-12 || got[9] == 0 {
			t.Errorf("%s: %v, want %v", quantities[i].Quantity, got[i], want)
		}
	}
	params[0], params[1] = -1, 3
	if got = testkit.Must(n.measure(params, 3))(t); got[7] < 1e-6 || got[4] > .9 {
		t.Errorf("other weights: %v", got)
	}
	hot, a := tiny(true), mat.NewDense(5, 5, nil)
	shift := baseline.Normal(5, 1, seed.New(1))
	for i := range 5 {
		a.SetRow(i, shift)
		a.Set(i, i, a.At(i, i)+1.5)
	}
	if tau, cosine := hot.identity(a); math.Abs(tau-1.5) > 1e-14 || math.Abs(cosine-1) > 1e-14 {
		t.Errorf("one-hot: 1.5·I and a number for each column have τ = %v, cosine %v", tau, cosine)
	}
}

// After 150 chains the layer evaluates no worse than the algorithm fitted beside, and A is near a multiple of
// the identity.
func TestTrainingLearns(t *testing.T) {
	n := tiny(false)
	n.Rate = 1e-2
	got := testkit.Must(n.measure(testkit.Must(n.Train(context.Background(), testkit.Backend(t)))(t), 16))(t)
	if !(got[8] < got[9] && got[4] > .5) {
		t.Errorf("%v", got)
	}
}

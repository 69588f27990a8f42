package wang

import (
	"context"
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
)

func network(d, length int, a Attention) Network {
	n := Network{baseline.WangRecipe(), a}
	n.D, n.N = d, length
	return n
}

// The graph's values are those of the layers in plain Go, for every attention, and TD(0)'s by its own steps.
func TestGraphAgreesWithPlainGo(t *testing.T) {
	for _, a := range []Attention{Linear, OverKeys, OverQueries} {
		n := network(2, 5, a)
		params := baseline.Normal(51, .25, seed.New(3))
		c := normal(n.D, n.N, .9, seed.New(4))
		z := testkit.Must(c.Prompt(0))(t)
		spec, w := Spec{Algorithm: TD0, D: n.D, N: n.N, Alpha: params[len(params)-1]}, make([]float64, n.D)
		for range n.Layers {
			w = testkit.Must(spec.Step(c, w))(t)
		}
		out := testkit.Must(CallOnceN(testkit.Backend(t), func(in []*Node) []*Node { return n.Values(in[0], in[1]) },
			params, tensors.FromFlatDataAndDimensions(z.RawMatrix().Data, 1, 5, 6)))(t)
		layers := []*Layer{n.Weights(params)}
		applied := testkit.Must(spec.Values(c, layers, n.Layers))(t)[n.Layers-1]
		for i, want := range []float64{applied, floats.Dot(w, c.Query)} {
			got := tensors.MustCopyFlatData[float64](out[i])[0]
			if !(math.Abs(got-want) <= 1e-12*(1+math.Abs(want))) { // sums of some ten numbers of order one
				t.Errorf("%s, value %d: %v, in plain Go %v", a, i, got, want)
			}
		}
	}
}

// TD(0) is like TD(0) in every measure, with both signs of P and Q; other weights are not.
func TestLikenessOfTD(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		n := network(4, 30, Linear)
		p, q := mat.NewDense(9, 9, nil), Spec{D: 4}.query(9)
		p.Set(8, 8, .7*sign)
		q.Scale(sign, q)
		params := slices.Concat(p.RawMatrix().Data, q.RawMatrix().Data, []float64{.7})
		got := testkit.Must(n.measure(params, 3))(t)
		want := []float64{.7, 0, -4, 4, (8 - 0) / 73., 1, 0, got[8], got[8]}
		if floats.Distance(got, want, math.Inf(1)) > 1e-12 || got[8] == 0 {
			t.Errorf("%v, want %v", got, want)
		}
		params = baseline.Normal(len(params), .2, seed.New(3))
		if got := testkit.Must(n.measure(params, 3))(t); got[5] > .9 || got[6] < 1e-3 {
			t.Errorf("random weights are like TD(0): %v", got)
		}
	}
}

// After 120 chains the weights evaluate better than zeros do, and than the TD(0) fitted beside, with linear
// attention and with the public code's softmax; their direction is TD(0)'s.
func TestTrainingLearns(t *testing.T) {
	for _, a := range []Attention{Linear, OverQueries} {
		n := network(2, 10, a)
		n.Layers, n.States, n.Processes, n.Batch, n.Rate = 2, 5, 120, 16, 1e-2
		zero := testkit.Must(n.measure(make([]float64, 51), 16))(t)
		got := testkit.Must(n.measure(testkit.Must(n.Train(context.Background(), testkit.Backend(t)))(t), 16))(t)
		if !(got[7] < .95*zero[7] && got[7] < got[8] && got[5] > .5) {
			t.Errorf("%s: %v after training, %v of zeros", a, got, zero)
		}
	}
}

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

// plain returns the value of the query of a prompt z [rows, columns] in plain Go, written out with loops over
// the entries, by the network and by TD(0)'s own steps.
func (n Network) plain(t *testing.T, params []float64, z *mat.Dense) (network, td float64) {
	c := &Context{Phi: mat.DenseCopyOf(z.Slice(0, n.D, 0, n.N)), Next: mat.DenseCopyOf(z.Slice(n.D, 2*n.D, 0, n.N)),
		R: z.RawRowView(2 * n.D)[:n.N], Query: mat.Col(nil, n.N, z)[:n.D]}
	spec, w := Spec{Algorithm: TD0, D: n.D, N: n.N, Alpha: params[len(params)-1]}, make([]float64, n.D)
	z = mat.DenseCopyOf(z)
	for range n.Layers {
		w = testkit.Must(spec.Step(c, w))(t)
		weights := n.Weights(params).Heads[0]
		var scores, values mat.Dense
		scores.Product(z.T(), weights.Q, z)
		values.Mul(weights.P, z)
		sums := func(i, j int) float64 { // what e to the power of the score is divided by
			sum := 0.
			for k := range n.N + 1 {
				if n.Attention == OverKeys {
					sum += math.Exp(scores.At(k, j))
				} else {
					sum += math.Exp(scores.At(i, k))
				}
			}
			return sum
		}
		next := mat.DenseCopyOf(z)
		for j := range n.N + 1 {
			for i := range n.N {
				share := scores.At(i, j) / float64(n.N)
				switch n.Attention {
				case OverKeys:
					share = math.Exp(scores.At(i, j)) / sums(i, j)
				case OverQueries:
					share = math.Exp(scores.At(i, j)) / sums(i, j) / float64(n.N)
				}
				for k := range 2*n.D + 1 {
					next.Set(k, j, next.At(k, j)+share*values.At(k, i))
				}
			}
		}
		z = next
	}
	return -z.At(2*n.D, n.N), floats.Dot(w, c.Query)
}

// The graph's values and those of Layer.Apply are the prompt's written out, for every attention; so is TD(0) by its
// own steps.
func TestGraphAgreesWithPlainGo(t *testing.T) {
	for _, a := range []Attention{Linear, OverKeys, OverQueries} {
		n := network(2, 5, a)
		params := baseline.NormalMatrix(1, 51, .25, seed.New(3)).RawRowView(0)
		c := normal(n.D, n.N, .9, seed.New(4))
		z := testkit.Must(c.Prompt(0))(t)
		want, td := n.plain(t, params, z)
		out := testkit.Must(CallOnceN(testkit.Backend(t), func(in []*Node) []*Node { return n.Values(in[0], in[1]) },
			params, tensors.FromFlatDataAndDimensions(z.RawMatrix().Data, 1, 5, 6)))(t)
		layers := []*Layer{n.Weights(params)}
		applied := testkit.Must(Spec{Algorithm: TD0, N: n.N}.Values(c, layers, n.Layers))(t)[n.Layers-1]
		got := func(i int) float64 { return tensors.MustCopyFlatData[float64](out[i])[0] }
		for name, off := range map[string]float64{
			"graph": got(0) - want, "graph of TD(0)": got(1) - td, "layers": applied - want,
		} {
			if !(math.Abs(off) <= 1e-12*(1+math.Abs(want))) { // sums of some ten numbers of order one
				t.Errorf("%+v: %s differs by %v", n, name, off)
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
		params = baseline.NormalMatrix(1, len(params), .2, seed.New(3)).RawRowView(0)
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

package wang

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
)

// normal draws a context of independent standard normal features and rewards.
func normal(d, n int, gamma float64, rng *rand.Rand) *Context {
	return &Context{
		Phi: baseline.NormalMatrix(d, n, 1, rng), Next: baseline.NormalMatrix(d, n, gamma, rng),
		R: baseline.Normal(n, 1, rng), Query: baseline.Normal(d, 1, rng),
	}
}

// state returns the prompt whose last row is what the algorithm's weights w make it: the error δ_k of each
// transition, for average-reward TD its part that depends on w, and the query's value.
func (s Spec) state(t *testing.T, c *Context, w []float64) *mat.Dense {
	extra, sign := s.form()
	z := testkit.Must(c.Prompt(extra))(t)
	last := z.RawRowView(2*s.D + extra)
	for k, r := range c.R {
		drift := floats.Dot(w, mat.Col(nil, k, c.Next)) - floats.Dot(w, mat.Col(nil, k, c.Phi))
		if last[k] = r + drift; s.Algorithm == AverageReward {
			last[k] = -drift
		}
	}
	last[s.N] = sign * floats.Dot(w, c.Query)
	return z
}

// off returns the largest error of the layer's last row, from the algorithm's weights w, against those
// of its next ones, in units of what rounding explains: the sum of the absolute values of all terms
// of an entry, times the number of operations on the way of a term, n + 4d + 16, of layer and algorithm
// together, units in the last place (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
func (s Spec) off(t *testing.T, layer *Layer, c *Context, w, next []float64) float64 {
	positive := &Layer{layer.Attention, math.Abs(layer.Scale), nil}
	abs := func(m *mat.Dense) *mat.Dense {
		var out mat.Dense
		out.Apply(func(_, _ int, x float64) float64 { return math.Abs(x) }, m)
		return &out
	}
	for _, h := range layer.Heads {
		positive.Heads = append(positive.Heads, Head{abs(h.P), abs(h.Q), abs(h.Mix)})
	}
	from, want := s.state(t, c, w), s.state(t, c, next)
	got, size := layer.Apply(from), positive.Apply(abs(from))
	last, worst := from.RawMatrix().Rows-1, 0.
	for k := range s.N + 1 {
		terms := size.At(last, k) + floats.Norm(w, 1) + math.Abs(want.At(last, k))
		worst = max(worst, math.Abs(got.At(last, k)-want.At(last, k))/terms)
	}
	return worst / (float64(2*(s.N+4*s.D+16)) * 0x1p-53)
}

// Each of forty layers of each construction is the algorithm's step to rounding, with general
// preconditioners too; a step that is a millionth larger, with a trace that decays a millionth more
// or with the preconditioner transposed, is not.
func TestEachLayerIsAStep(t *testing.T) {
	for _, a := range algorithms {
		rng := seed.New(1, string(a))
		for _, preconditioned := range []bool{false, true} {
			c, w := normal(3, 100, .9, rng), make([]float64, 3)
			right := Spec{Algorithm: a, D: 3, N: 100, Alpha: 1, Trace: .5}
			for l := range 40 {
				if preconditioned {
					right.C = baseline.NormalMatrix(3, 3, 1, rng)
				}
				layer, next := testkit.Must(right.Layer())(t), testkit.Must(right.Step(c, w))(t)
				if e := right.off(t, layer, c, w, next); !(e <= 1) {
					t.Errorf("%s, layer %d: off by %.3g times its rounding", a, l, e)
				}
				faster, decaying, transposed := right, right, right
				faster.Alpha, decaying.Trace = 1+1e-6, .5-1e-6
				list := []Spec{faster}
				if a == TDLambda {
					list = append(list, decaying)
				}
				if preconditioned {
					transposed.C = mat.DenseCopyOf(right.C.T())
					list = append(list, transposed)
				}
				for i, wrong := range list {
					if e := right.off(t, layer, c, w, testkit.Must(wrong.Step(c, w))(t)); l == 0 && e < 100 {
						t.Errorf("%s: wrong step %d is off by %.3g times the rounding only", a, i, e)
					}
				}
				w = next
			}
		}
	}
}

// By hand: d = 1, n = 2, φ = 1, 2, γφ′ = 1, 1/2, r = 1, 3. From w = 0, δ = 1, 3.
func TestStepByHand(t *testing.T) {
	c := &Context{mat.NewDense(1, 2, []float64{1, 2}), mat.NewDense(1, 2, []float64{1, .5}), []float64{1, 3},
		[]float64{2}}
	for a, want := range map[Algorithm]float64{
		TD0:              (1*1 + 3*2) / 2.,
		TDLambda:         (1*1 + 3*(2+.5*1)) / 2.,
		ResidualGradient: 3 * 1.5 / 2, // g = φ − γφ′ = 0, 3/2
		AverageReward:    1 * 2 / 2.,  // δ = r − r̄ = 0, 1
	} {
		spec := Spec{Algorithm: a, D: 1, N: 2, Alpha: 1, Trace: .5}
		if got := testkit.Must(spec.Step(c, []float64{0}))(t)[0]; got != want {
			t.Errorf("%s: w = %v, want %v", a, got, want)
		}
		if got := testkit.Must(spec.Value(c, testkit.Must(spec.Layer())(t), 1))(t); got != 2*want {
			t.Errorf("%s: the layer's value is %v, want %v", a, got, 2*want)
		}
	}
}

func TestRefusesBadInput(t *testing.T) {
	layer := func(s Spec) error { _, err := s.Layer(); return err }
	prompt := func(change func(*Context)) error {
		c := normal(2, 3, .9, seed.New(1))
		change(c)
		_, err := c.Prompt(0)
		return err
	}
	five := mat.NewDense(5, 5, nil)
	for want, err := range map[string]error{
		"a query of 0":             prompt(func(c *Context) { c.Query = nil }),
		"successors [1, 3]":        prompt(func(c *Context) { c.Next = mat.NewDense(1, 3, nil) }),
		"row 4, column 1":          prompt(func(c *Context) { c.R[1] = math.NaN() }),
		"without features":         prompt(func(c *Context) { c.Phi = nil }),
		"unknown algorithm":        layer(Spec{Algorithm: "sarsa", D: 1, N: 1}),
		"0 transitions":            layer(Spec{Algorithm: TD0, D: 1}),
		"step size is NaN":         layer(Spec{Algorithm: TD0, D: 1, N: 1, Alpha: math.NaN()}),
		"decay of traces":          layer(Spec{Algorithm: TD0, D: 1, N: 1, Trace: 2}),
		"preconditioner is [5, 5]": layer(Spec{Algorithm: TD0, D: 1, N: 1, C: five}),
		"and 1 weights": func() error {
			_, err := Spec{Algorithm: TD0, D: 2, N: 3}.Step(normal(2, 3, .9, seed.New(1)), []float64{0})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

func network(d, length int, a Attention) Network {
	n := Network{baseline.WangRecipe(), a}
	n.D, n.N, n.Fresh = d, length, 3
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
		applied := testkit.Must(spec.Value(c, n.Weights(params), n.Layers))(t)
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
		got := testkit.Must(n.Measure(params))(t)
		want := []float64{.7, 0, -4, 4, (8 - 0) / 73., 1, 0, got[8], got[8]}
		if floats.Distance(got, want, math.Inf(1)) > 1e-12 || got[8] == 0 {
			t.Errorf("%v, want %v", got, want)
		}
		params = baseline.Normal(len(params), .2, seed.New(3))
		if got := testkit.Must(n.Measure(params))(t); got[5] > .9 || got[6] < 1e-3 {
			t.Errorf("random weights are like TD(0): %v", got)
		}
	}
}

// After 120 chains the weights evaluate better than zeros do, and than the TD(0) fitted beside, with linear
// attention and with the public code's softmax; their direction is TD(0)'s.
func TestTrainingLearns(t *testing.T) {
	for _, a := range []Attention{Linear, OverQueries} {
		n := network(2, 10, a)
		n.Layers, n.States, n.Processes, n.Fresh, n.Batch, n.Rate = 2, 5, 120, 16, 16, 1e-2
		zero := testkit.Must(n.Measure(make([]float64, 51)))(t)
		got := testkit.Must(n.Measure(testkit.Must(n.Train(context.Background(), testkit.Backend(t), n))(t)))(t)
		if !(got[7] < .95*zero[7] && got[7] < got[8] && got[5] > .5) {
			t.Errorf("%s: %v after training, %v of zeros", a, got, zero)
		}
	}
}

package xie

import (
	"context"
	"math"
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

// off returns the largest difference of what the layer makes of the values v from the values next, in units
// of what rounding explains. A weight of the kernel is right to d² + n + 8 + 2·(largest score)·d² units in the
// last place (the score's rounding is an absolute error of its exponential; sum; quotient), a sum of n of
// them to n more, and both sides have it; the numbers added are at most the largest |v| and the largest
// sum of the parts of an error δ.
func (s Spec) off(t *testing.T, layer *Layer, c *Context, v, next []float64) float64 {
	from, want := testkit.Must(s.Prompt(c, v))(t), testkit.Must(s.Prompt(c, next))(t)
	var scores, difference mat.Dense
	scores.Product(c.X.T(), s.weights(), c.X)
	difference.Sub(layer.Apply(from), want)
	_, _, successor := s.rows()
	difference.Set(successor, s.N, 0) // the query has no successor and nothing reads this
	top := func(x []float64) float64 { return floats.Norm(x, math.Inf(1)) }
	size := max(top(v), top(next)) + s.Alpha*(top(c.R)+(1+s.Gamma)*top(v))
	units := 2 * (float64(s.D*s.D+2*s.N+8) + 2*top(scores.RawMatrix().Data)*float64(s.D*s.D))
	return top(difference.RawMatrix().Data) / (size * units * 0x1p-53)
}

// Each of forty layers of both forms is the algorithm's step to rounding; a step with a millionth more step
// size or discount, or with the kernel's weights transposed, is not. Over depth nothing but rounding adds up.
func TestEachLayerIsAStep(t *testing.T) {
	for _, form := range []Form{TwoHeads, OneHead} {
		rng := seed.New(1)
		c := &Context{baseline.NormalMatrix(3, 101, 1, rng), baseline.Normal(100, 1, rng)}
		right := Spec{Form: form, D: 3, N: 100, Gamma: .9, Alpha: 1, W: baseline.NormalMatrix(3, 3, .6, rng)}
		layer, v := testkit.Must(right.Layer())(t), make([]float64, 101)
		z := testkit.Must(right.Prompt(c, v))(t)
		_, current, _ := right.rows()
		for l := range 40 {
			faster, farther, transposed := right, right, right
			faster.Alpha, farther.Gamma, transposed.W = 1+1e-6, .9+1e-6, mat.DenseCopyOf(right.W.T())
			next := testkit.Must(right.Step(c, v))(t)
			if e := right.off(t, layer, c, v, next); !(e <= 1) {
				t.Errorf("%s, layer %d: off by %.3g times its rounding", form, l, e)
			}
			for i, wrong := range []Spec{faster, farther, transposed} {
				if e := right.off(t, layer, c, v, testkit.Must(wrong.Step(c, v))(t)); l == 1 && e < 100 {
					t.Errorf("%s: wrong step %d is off by %.3g times the rounding only", form, i, e)
				}
			}
			z, v = layer.Apply(z), next
			if e := floats.Distance(z.RawRowView(current), v, math.Inf(1)); e > 1e-10*(1+floats.Norm(v, math.Inf(1))) {
				t.Errorf("%s, layer %d: error %.3g over depth", form, l, e)
			}
		}
	}
}

// A step by hand: x = 0, so that K(j, k) = 1/2 of two transitions; R = 1, 3, v = 2, 4, 8, γ = 1/2: δ = 1 + 2 − 2
// and 3 + 4 − 4, so every value rises by (1 + 3)/2.
func TestStepByHand(t *testing.T) {
	c, v, want := &Context{mat.NewDense(1, 3, nil), []float64{1, 3}}, []float64{2, 4, 8}, []float64{4, 6, 10}
	for _, form := range []Form{TwoHeads, OneHead} {
		spec := Spec{Form: form, D: 1, N: 2, Gamma: .5, Alpha: 1}
		z := testkit.Must(spec.Layer())(t).Apply(testkit.Must(spec.Prompt(c, v))(t))
		_, current, successor := spec.rows()
		if got := testkit.Must(spec.Step(c, v))(t); !floats.Equal(got, want) {
			t.Errorf("v = %v, want %v", got, want)
		}
		if !floats.Equal(z.RawRowView(current), want) || !floats.Equal(z.RawRowView(successor)[:2], want[1:]) {
			t.Errorf("%s: the layer has %v", form, mat.Formatted(z))
		}
	}
}

func TestRefusesBadInput(t *testing.T) {
	good := Spec{Form: OneHead, D: 1, N: 1, Gamma: .5, Alpha: 1}
	layer := func(change func(*Spec)) error {
		s := good
		change(&s)
		_, err := s.Layer()
		return err
	}
	step := func(c *Context, v ...float64) error { _, err := good.Step(c, v); return err }
	two := mat.NewDense(1, 2, nil)
	for want, err := range map[string]error{
		"features of a walk":          step(nil, 0, 0),
		"2 rewards":                   step(&Context{two, []float64{1, 1}}, 0, 0),
		"row 1, column 0":             step(&Context{two, []float64{math.NaN()}}, 0, 0),
		"row 2, column 1":             step(&Context{two, []float64{1}}, 0, math.Inf(1)),
		"and 1 values":                step(&Context{two, []float64{1}}, 0),
		"unknown form":                layer(func(s *Spec) { s.Form = "" }),
		"0 transitions":               layer(func(s *Spec) { s.N = 0 }),
		"discount is 1":               layer(func(s *Spec) { s.Gamma = 1 }),
		"step size is +Inf":           layer(func(s *Spec) { s.Alpha = math.Inf(1) }),
		"kernel's weights are [2, 2]": layer(func(s *Spec) { s.W = mat.NewDense(2, 2, nil) }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

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
		p := testkit.Must(n.Process(0))(t)
		walk := p.Walk(seed.New(1), n.N+1)
		z := testkit.Must(n.Prompt(p, walk))(t)
		out := testkit.Must(CallOnceN(testkit.Backend(t), func(in []*Node) []*Node { return n.Values(in[0], in[1]) },
			params, tensors.FromFlatDataAndDimensions(z.RawMatrix().Data, 1, n.D+3, n.N+1)))(t)
		layer, spec := testkit.Must(n.Layer(params))(t), n.spec(params[n.D*n.D+3], params[n.D*n.D+4])
		v := make([]float64, n.N+1)
		for range n.Layers {
			z = layer.Apply(z)
			v = testkit.Must(spec.Step(Window(p, walk[1:]), v))(t)
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
	n.Fresh = 3
	params := make([]float64, n.D*n.D, n.D*n.D+5)
	for i := range n.D {
		params[i*n.D+i] = 1.5
	}
	params = append(params, .8, .8*.9, -.8, .8, 1.5)
	got := testkit.Must(n.Measure(params))(t)
	for i, want := range []float64{.8, .9, 1, 1.5, 1, .8, 1.5, 0, got[9]} {
		if math.Abs(got[i]-want) > 1e-12 || got[9] == 0 {
			t.Errorf("%s: %v, want %v", quantities[i].Quantity, got[i], want)
		}
	}
	params[0], params[1] = -1, 3
	if got = testkit.Must(n.Measure(params))(t); got[7] < 1e-6 || got[4] > .9 {
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
	n.Rate, n.Fresh = 1e-2, 16
	got := testkit.Must(n.Measure(testkit.Must(n.Train(context.Background(), testkit.Backend(t), n))(t)))(t)
	if !(got[8] < got[9] && got[4] > .5) {
		t.Errorf("%v", got)
	}
}

package xie

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Every layer of both forms is the algorithm's step within the tolerance, and over depth
// nothing but rounding adds up: the algorithm does not grow here.
func TestEachLayerIsAStep(t *testing.T) {
	check := StandardCheck(1)
	check.Trials = 3
	rows, err := check.Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2*check.Layers {
		t.Fatalf("%d rows, want %d", len(rows), 2*check.Layers)
	}
	for _, r := range rows {
		if !(r.OneStep <= 1) {
			t.Errorf("%s, layer %d: one-step error is %.3g tolerances", r.Form, r.Layer, r.OneStep)
		}
		if !(r.Free <= 1e-10*(1+r.Value)) {
			t.Errorf("%s, layer %d: error %.3g at values up to %.3g", r.Form, r.Layer, r.Free, r.Value)
		}
	}
}

// The tolerance is not so wide that a wrong step would pass: a millionth more step size or
// discount, kernel weights transposed, the query among the sources.
func TestToleranceTellsStepsApart(t *testing.T) {
	rng := seed.New(4)
	context := &Context{X: mrp.Normal(3, 101, 1, rng), R: mrp.Normal(1, 100, 1, rng).RawRowView(0)}
	v := mrp.Normal(1, 101, 1, rng).RawRowView(0)
	for _, form := range []Form{TwoHeads, OneHead} {
		right := Spec{Form: form, D: 3, N: 100, Gamma: .9, Alpha: 1, W: mrp.Normal(3, 3, .6, rng)}
		layer, err := right.Layer()
		if err != nil {
			t.Fatal(err)
		}
		faster, farther, transposed := right, right, right
		faster.Alpha *= 1 + 1e-6
		farther.Gamma *= 1 + 1e-6
		transposed.W = mat.DenseCopyOf(right.W.T())
		for i, wrong := range []Spec{faster, farther, transposed} {
			if e := right.oneStep(layer, context, v, wrong.Step(context, v)); e < 100 {
				t.Errorf("%s: wrong step %d is within %.3g tolerances", form, i, e)
			}
		}
	}
}

// A step by hand: x = 0, so that K(j, k) = 1/2 of two transitions; R = 1, 3, v = 2, 4, 8,
// γ = 1/2: δ = 1 + 2 − 2 and 3 + 4 − 4, so every value rises by (1 + 3)/2.
func TestStepByHand(t *testing.T) {
	context := &Context{X: mat.NewDense(1, 3, nil), R: []float64{1, 3}}
	if err := context.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, form := range []Form{TwoHeads, OneHead} {
		spec := Spec{Form: form, D: 1, N: 2, Gamma: .5, Alpha: 1}
		layer, err := spec.Layer()
		if err != nil {
			t.Fatal(err)
		}
		v := []float64{2, 4, 8}
		z := layer.Apply(spec.Prompt(context, v))
		for j, want := range []float64{4, 6, 10} {
			if got := spec.Step(context, v)[j]; got != want {
				t.Errorf("v(S_%d) = %v, want %v", j, got, want)
			}
			if got := z.At(spec.current(), j); got != want {
				t.Errorf("%s: the layer's v(S_%d) is %v, want %v", form, j, got, want)
			}
		}
		if z.At(spec.successor(), 0) != 6 || z.At(spec.successor(), 1) != 10 {
			t.Errorf("%s: successors' values %v", form, z.RawRowView(spec.successor()))
		}
	}
}

// The table's steps are those of the walk: equal states, equal values.
func TestTableAgreesWithTheWalk(t *testing.T) {
	process, err := mrp.Loop(5, .8, .5, seed.New(2))
	if err != nil {
		t.Fatal(err)
	}
	x := mrp.Features(5, 3, seed.New(3))
	walk := process.Walk(seed.New(4), 60)
	all, err := Count(walk, process.R).Table(x, .8, 6)
	if err != nil {
		t.Fatal(err)
	}
	context := Window(process, x, walk)
	spec := Spec{Form: OneHead, D: 3, N: 60, Gamma: .8, Alpha: 1}
	v := make([]float64, 61)
	for l := range all {
		v = spec.Step(context, v)
		for j, s := range walk {
			if math.Abs(all[l][s]-v[j]) > 1e-12 {
				t.Fatalf("layer %d: the table has v(%d) = %v, the walk %v", l+1, s, all[l][s], v[j])
			}
		}
	}
}

// With one-hot features of length √τ and a large τ the algorithm is tabular TD in which every
// state seen moves by the mean of its own errors: the paper's special case. States other than
// one's own have at most n·e^{−τ} of the weight.
func TestTabularTDIsASpecialCase(t *testing.T) {
	process, err := mrp.Loop(4, .8, .5, seed.New(5))
	if err != nil {
		t.Fatal(err)
	}
	const tau = 60
	x := mat.NewDense(4, 4, nil)
	for s := range 4 {
		x.Set(s, s, math.Sqrt(tau))
	}
	walk := process.Walk(seed.New(6), 200)
	all, err := Count(walk, process.R).Table(x, .8, 5)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float64, 4)
	for l := range all {
		sum, count := make([]float64, 4), make([]float64, 4)
		for k, s := range walk[:200] {
			sum[s] += process.R[s] + .8*v[walk[k+1]] - v[s]
			count[s]++
		}
		for s := range v {
			v[s] += sum[s] / count[s]
			if math.Abs(all[l][s]-v[s]) > 1e-12 {
				t.Errorf("layer %d: v(%d) = %v, tabular TD has %v", l+1, s, all[l][s], v[s])
			}
		}
	}
}

func TestRefusesBadInput(t *testing.T) {
	good := Spec{Form: OneHead, D: 1, N: 1, Gamma: .5, Alpha: 1}
	for want, build := range map[string]func() error{
		"features of a walk":   func() error { return (*Context)(nil).Validate() },
		"3 states and 1":       func() error { return (&Context{mat.NewDense(1, 3, nil), []float64{1}}).Validate() },
		"rewards hold NaN":     func() error { return (&Context{mat.NewDense(1, 2, nil), []float64{math.NaN()}}).Validate() },
		"unknown form":         func() error { s := good; s.Form = ""; _, err := s.Layer(); return err },
		"0 transitions":        func() error { s := good; s.N = 0; _, err := s.Layer(); return err },
		"discount is 1":        func() error { s := good; s.Gamma = 1; _, err := s.Layer(); return err },
		"step size is +Inf":    func() error { s := good; s.Alpha = math.Inf(1); _, err := s.Layer(); return err },
		"kernel's weights are": func() error { s := good; s.W = mat.NewDense(2, 2, nil); _, err := s.Layer(); return err },
		"0 trials":             func() error { _, err := Check{Layers: 1}.Run(); return err },
		"features of 3 states": func() error {
			_, err := Count([]int{0, 1}, []float64{1, 2}).Table(mat.NewDense(3, 1, nil), .5, 1)
			return err
		},
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

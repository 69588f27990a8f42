package xie

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
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
			if e := testkit.Must(right.oneStep(layer, context, v, testkit.Must(wrong.Step(context, v))(t)))(t); e < 100 {
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
		z := testkit.Must(layer.Apply(testkit.Must(spec.Prompt(context, v))(t)))(t)
		for j, want := range []float64{4, 6, 10} {
			if got := testkit.Must(spec.Step(context, v))(t)[j]; got != want {
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
	all := testkit.Must(testkit.Must(Count(walk, process.R))(t).Table(x, .8, 6))(t)
	context := testkit.Must(Window(process, x, walk))(t)
	spec := Spec{Form: OneHead, D: 3, N: 60, Gamma: .8, Alpha: 1}
	v := make([]float64, 61)
	for l := range all {
		v = testkit.Must(spec.Step(context, v))(t)
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
	all := testkit.Must(testkit.Must(Count(walk, process.R))(t).Table(x, .8, 5))(t)
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
	wide, narrow := &Context{mat.NewDense(2, 2, nil), []float64{1}}, &Context{mat.NewDense(1, 2, nil), []float64{1}}
	prompt, four := mat.NewDense(4, 2, nil), mat.NewDense(4, 4, nil)
	process := testkit.Must(mrp.Loop(2, .8, .5, seed.New(1)))(t)
	for want, build := range map[string]func() error{
		"features of a walk":   func() error { return (*Context)(nil).Validate() },
		"3 states and 1":       func() error { return (&Context{mat.NewDense(1, 3, nil), []float64{1}}).Validate() },
		"rewards hold NaN":     func() error { return (&Context{mat.NewDense(1, 2, nil), []float64{math.NaN()}}).Validate() },
		"unknown form":         func() error { s := good; s.Form = ""; _, err := s.Layer(); return err },
		"0 transitions":        func() error { s := good; s.N = 0; _, err := s.Layer(); return err },
		"discount is 1":        func() error { s := good; s.Gamma = 1; _, err := s.Layer(); return err },
		"step size is +Inf":    func() error { s := good; s.Alpha = math.Inf(1); _, err := s.Layer(); return err },
		"kernel's weights are": func() error { s := good; s.W = mat.NewDense(2, 2, nil); _, err := s.Layer(); return err },
		"0 trials":             func() error { _, err := Check{Layers: 1, D: 1, N: 1}.Run(); return err },
		"0 features":           func() error { _, err := Check{Layers: 1, Trials: 1, N: 1}.Run(); return err },
		"features of 3 states": func() error {
			_, err := testkit.Must(Count([]int{0, 1}, []float64{1, 2}))(t).Table(mat.NewDense(3, 1, nil), .5, 1)
			return err
		},
		"walk of 1 states":                   func() error { _, err := Count([]int{0}, []float64{1}); return err },
		"state 1 of the walk is 2":           func() error { _, err := Count([]int{0, 2}, []float64{1, 2}); return err },
		"features [2, 2] and 2 values, want": func() error { _, err := good.Prompt(wide, []float64{0, 0}); return err },
		"and 1 values":                       func() error { _, err := good.Step(narrow, []float64{0}); return err },
		"value 1 is NaN":                     func() error { _, err := good.Step(narrow, []float64{0, math.NaN()}); return err },
		"V of head 0: [1, 1]": func() error {
			_, err := (&Layer{Heads: []Head{{mat.NewDense(1, 1, nil), four}}}).Apply(prompt)
			return err
		},
		"A of head 0: [1, 1]": func() error {
			_, err := (&Layer{Heads: []Head{{four, mat.NewDense(1, 1, nil)}}}).Apply(prompt)
			return err
		},
		"E: no matrix":                func() error { _, err := (&Layer{E: &mat.Dense{}}).Apply(prompt); return err },
		"A: [1, 1], want [4, 4]":      func() error { _, err := Kernel(prompt, mat.NewDense(1, 1, nil)); return err },
		"a prompt [4, 1]":             func() error { _, err := Kernel(mat.NewDense(4, 1, nil), four); return err },
		"features [1, 1] of 2 states": func() error { _, err := Window(process, mat.NewDense(1, 1, nil), []int{0, 1}); return err },
		"a walk of 1 states from":     func() error { _, err := Window(process, mat.NewDense(2, 1, nil), []int{0}); return err },
		"state 0 of a walk is 2":      func() error { _, err := Window(process, mat.NewDense(2, 1, nil), []int{2, 0}); return err },
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

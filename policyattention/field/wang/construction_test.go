package wang

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Every layer of every construction is the algorithm's step within the tolerance, with
// general preconditioners too.
func TestEachLayerIsAStep(t *testing.T) {
	for _, preconditioned := range []bool{false, true} {
		check := PublishedCheck(1)
		check.Trials, check.Preconditioned = 3, preconditioned
		rows, err := check.Run()
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 4*check.Layers {
			t.Fatalf("%d rows, want %d", len(rows), 4*check.Layers)
		}
		for _, r := range rows {
			if !(r.OneStep <= 1) {
				t.Errorf("%s, layer %d: one-step error is %.3g times the tolerance %.3g", r.Algorithm, r.Layer, r.OneStep, Tolerance(check.D, check.N))
			}
		}
	}
}

// The tolerance is not so wide that a wrong step would pass: a millionth more step size, a
// trace that decays a millionth more, a preconditioner transposed.
func TestToleranceTellsStepsApart(t *testing.T) {
	rng := seed.New(5)
	context := normalContext(3, 100, .9, rng)
	w := []float64{.3, -1, 2}
	c := mrp.Normal(3, 3, 1, rng)
	for _, a := range Algorithms() {
		right := Spec{Algorithm: a, D: 3, N: 100, Queries: 1, Alpha: 1, Trace: .5, C: c}
		step, faster, transposed := right, right, right
		step.Alpha *= 1 + 1e-6
		faster.Trace -= 1e-6
		transposed.C = mat.DenseCopyOf(c.T())
		for i, wrong := range []Spec{step, transposed, faster} {
			if i == 2 && a != TDLambda {
				continue
			}
			layer, err := right.Layer()
			if err != nil {
				t.Fatal(err)
			}
			if e := testkit.Must(oneStep(right, layer, context, w, testkit.Must(wrong.Step(context, w))(t)))(t); e < 100 {
				t.Errorf("%s: wrong step %d is within %.3g tolerances", a, i, e)
			}
		}
	}
}

// TD(0) by hand: d = 1, n = 2, φ = 1, 2, γφ′ = 1, 1/2, r = 1, 3. From w = 0, δ = 1, 3 and
// w ← (1·1 + 3·2)/2 = 7/2.
func TestStepByHand(t *testing.T) {
	context := &Context{Phi: mat.NewDense(1, 2, []float64{1, 2}), Next: mat.NewDense(1, 2, []float64{1, .5}), R: []float64{1, 3}, Queries: mat.NewDense(1, 2, []float64{2, -1})}
	if err := context.Validate(); err != nil {
		t.Fatal(err)
	}
	for a, want := range map[Algorithm]float64{
		TD0:      3.5,
		TDLambda: (1*1 + 3*(2+.5*1)) / 2.,
		// g = φ − γφ′ = 0, 3/2
		ResidualGradient: 3 * 1.5 / 2,
		// δ = r − r̄ = 0, 1
		AverageReward: 1 * 2 / 2.,
	} {
		spec := Spec{Algorithm: a, D: 1, N: 2, Queries: 2, Alpha: 1, Trace: .5}
		if got := testkit.Must(spec.Step(context, []float64{0}))(t)[0]; got != want {
			t.Errorf("%s: w = %v, want %v", a, got, want)
		}
		layer, err := spec.Layer()
		if err != nil {
			t.Fatal(err)
		}
		if got := testkit.Must(spec.through(layer, context, 1))(t); got[0] != 2*want || got[1] != -want {
			t.Errorf("%s: the layer's values are %v, want %v, %v", a, got, 2*want, -want)
		}
	}
}

// Many layers of TD(0) reach the fixed point of the context, A w = b.
func TestDepthReachesTheFixedPoint(t *testing.T) {
	context := normalContext(2, 400, .5, seed.New(9))
	a, b := mat.NewDense(2, 2, nil), mat.NewVecDense(2, nil)
	for k, r := range context.R {
		phi := mat.NewVecDense(2, column(context.Phi, k))
		var drift mat.VecDense
		drift.SubVec(phi, mat.NewVecDense(2, column(context.Next, k)))
		var outer mat.Dense
		outer.Outer(1, phi, &drift)
		a.Add(a, &outer)
		b.AddScaledVec(b, r, phi)
	}
	var w mat.VecDense
	if err := w.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Algorithm: TD0, D: 2, N: 400, Queries: 1, Alpha: .5}
	layer, err := spec.Layer()
	if err != nil {
		t.Fatal(err)
	}
	want := floats.Dot(w.RawVector().Data, column(context.Queries, 0))
	if got := testkit.Must(spec.through(layer, context, 200))(t)[0]; math.Abs(got-want) > 1e-12 {
		t.Errorf("200 layers give %v, the fixed point %v", got, want)
	}
}

// Errors over depth are those of the paper's figure: TD(0) and TD(λ) stay at rounding,
// residual gradient reaches about e⁻²⁰, average-reward TD about e⁻⁵ by layer 40 (read off
// to ±2), since there the iterates themselves grow: relative to them nothing is lost.
func TestErrorsOverDepth(t *testing.T) {
	check := PublishedCheck(2)
	rows, err := check.Run()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Layer != check.Layers {
			continue
		}
		within := map[Algorithm][2]float64{TD0: {-39, -36}, TDLambda: {-39, -36}, ResidualGradient: {-26, -15}, AverageReward: {-15, 5}}[r.Algorithm]
		if !(r.LogFree() >= within[0] && r.LogFree() <= within[1]) {
			t.Errorf("%s: log error at layer 40 is %.1f, want %v to %v", r.Algorithm, r.LogFree(), within[0], within[1])
		}
		if r.FreeRelative > 1e-10 {
			t.Errorf("%s: relative error %.2g at layer 40", r.Algorithm, r.FreeRelative)
		}
	}
}

// The paper's figure of the demonstration was read to 5 %; 600 loops leave a standard
// error of about 4 %, theirs of 300 about 6 %. The sum of the three is exceeded by none.
func TestDemoHasTheFiguresErrors(t *testing.T) {
	rows, err := PublishedDemo(1, 600).Run()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		want := PublishedErrors()[r.Length]
		theirs := r.Standard * math.Sqrt(600./300)
		if math.Abs(r.Mean-want) > .05*want+2*math.Hypot(r.Standard, theirs) {
			t.Errorf("n = %d: error %.3f ± %.3f, the figure has %.2f", r.Length, r.Mean, r.Standard, want)
		}
	}
}

func TestRefusesBadInput(t *testing.T) {
	good := func() *Context { return normalContext(2, 3, .9, seed.New(1)) }
	spec := Spec{Algorithm: TD0, D: 2, N: 3, Queries: 1, Alpha: 1}
	for want, build := range map[string]func() error{
		"no context":          func() error { return (*Context)(nil).Validate() },
		"features of queries": func() error { c := good(); c.Queries = nil; return c.Validate() },
		"successors [1, 3]":   func() error { c := good(); c.Next = mat.NewDense(1, 3, nil); return c.Validate() },
		"reward 1 is NaN":     func() error { c := good(); c.R[1] = math.NaN(); return c.Validate() },
		"hold +Inf at 2":      func() error { c := good(); c.Phi.RawMatrix().Data[2] = math.Inf(1); return c.Validate() },
		"unknown algorithm":   func() error { _, err := Spec{Algorithm: "sarsa", D: 1, N: 1, Queries: 1}.Layer(); return err },
		"0 transitions":       func() error { _, err := Spec{Algorithm: TD0, D: 1, Queries: 1}.Layer(); return err },
		"step size is NaN": func() error {
			_, err := Spec{Algorithm: TD0, D: 1, N: 1, Queries: 1, Alpha: math.NaN()}.Layer()
			return err
		},
		"decay of traces": func() error { _, err := Spec{Algorithm: TD0, D: 1, N: 1, Queries: 1, Trace: 2}.Layer(); return err },
		"preconditioner is": func() error {
			_, err := Spec{Algorithm: TD0, D: 1, N: 1, Queries: 1, C: mat.NewDense(2, 2, nil)}.Layer()
			return err
		},
		"-1 more rows":           func() error { _, err := good().Prompt(-1); return err },
		"features of states":     func() error { c := good(); c.Phi = nil; _, err := c.Prompt(0); return err },
		"and 1 weights":          func() error { _, err := spec.Step(good(), []float64{0}); return err },
		"a prompt [4, 4]":        func() error { _, err := spec.Values(mat.NewDense(4, 4, nil)); return err },
		"P of head 0: no matrix": func() error { _, err := (&Layer{Heads: []Head{{}}}).Apply(mat.NewDense(5, 4, nil)); return err },
		"Mix of head 0: [5, 5]": func() error {
			five := mat.NewDense(5, 5, nil)
			_, err := (&Layer{Heads: []Head{{five, five, five}}}).Apply(mat.NewDense(5, 4, nil))
			return err
		},
		"features [1, 1] of 2 states": func() error {
			_, err := Window(testkit.Must(mrp.Loop(2, .8, .5, seed.New(1)))(t), mat.NewDense(1, 1, nil), []int{0, 1})
			return err
		},
		"0 trials":       func() error { _, err := Check{Layers: 1, D: 1, N: 1}.Run(); return err },
		"0 features":     func() error { _, err := Check{Layers: 1, Trials: 1, N: 1}.Run(); return err },
		"of -1":          func() error { _, err := Demo{D: 1, Processes: 2, Lengths: []int{-1}}.Run(); return err },
		"discount is 1":  func() error { _, err := Check{Layers: 1, Trials: 1, D: 1, N: 1, Gamma: 1}.Run(); return err },
		"on 1 processes": func() error { _, err := PublishedDemo(1, 1).Run(); return err },
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

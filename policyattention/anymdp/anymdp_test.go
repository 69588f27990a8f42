package anymdp_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

func released(t *testing.T, readout anymdp.Readout) *anymdp.Actor {
	t.Helper()
	forward := testkit.Must(anymdp.Released())(t)
	return testkit.Must(anymdp.NewActor(forward, readout))(t)
}

func act(t *testing.T, actor *anymdp.Actor, pi, q *mat.Dense, eta float64) *mat.Dense {
	t.Helper()
	out := testkit.Must(actor.Act([]control.Context{{Pi: pi, Q: q, Eta: eta}}))(t)
	return out[0].Pi
}

func table(rng *rand.Rand, s, a int) *mat.Dense {
	q := mat.NewDense(s, a, nil)
	for i := range q.RawMatrix().Data {
		q.RawMatrix().Data[i] = rng.NormFloat64()
	}
	return q
}

// renamed returns x with state s called states[s] and action a actions[a].
func renamed(x *mat.Dense, states, actions []int) *mat.Dense {
	out := mat.DenseCopyOf(x)
	for s := range states {
		for a := range actions {
			out.Set(states[s], actions[a], x.At(s, a))
		}
	}
	return out
}

// By construction: sums over actions are taken in another order, and nothing else changes.
func TestRenamingChangesNothing(t *testing.T) {
	for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
		for _, size := range [][2]int{{3, 2}, {5, 7}, {2, 33}} {
			rng := seed.New(1, "rename", size[0])
			pi, q := mdp.RandomPolicy(rng, size[0], size[1]), table(rng, size[0], size[1])
			states, actions := rng.Perm(size[0]), rng.Perm(size[1])
			before := act(t, released(t, readout), pi, q, 1)
			after := act(t, released(t, readout), renamed(pi, states, actions), renamed(q, states, actions), 1)
			// float64 rounding of some hundred sums, and of tokens to float32: a mean of Q in
			// another order can move a token by 6e-8/κ.
			if d := mdp.MaxAbsDiff(renamed(before, states, actions), after); d > 1e-5 {
				t.Errorf("%s, S = %d, A = %d: policies differ by %g", readout, size[0], size[1], d)
			}
		}
	}
}

// An offset of Q, and η against the scale of Q, change nothing; nor does a state depend on
// others.
func TestInvariances(t *testing.T) {
	rng := seed.New(2, "invariance")
	pi, q := mdp.RandomPolicy(rng, 4, 5), table(rng, 4, 5)
	actor := released(t, anymdp.Prior)
	want := act(t, actor, pi, q, 1)
	scaled, shifted := mat.DenseCopyOf(q), mat.DenseCopyOf(q)
	scaled.Scale(1e6, q)
	shifted.Apply(func(s, _ int, v float64) float64 { return v + float64(10*s) }, q)
	for name, got := range map[string]*mat.Dense{
		"1e6·Q at η = 1e-6": act(t, actor, pi, scaled, 1e-6),
		"Q + 10s":           act(t, actor, pi, shifted, 1),
	} {
		if d := mdp.MaxAbsDiff(got, want); d > 1e-5 { // tokens in float32
			t.Errorf("%s: policies differ by %g", name, d)
		}
	}
	alone := act(t, released(t, anymdp.Prior), mat.NewDense(1, 5, pi.RawRowView(2)),
		mat.NewDense(1, 5, q.RawRowView(2)), 1)
	for a, p := range alone.RawRowView(0) {
		if p != want.At(2, a) {
			t.Errorf("action %d has %v in the state by itself, %v among others", a, p, want.At(2, a))
		}
	}
}

// One step is PMD's, from rows that are far from anything that a run on a benchmark shows. With the
// read-out that adds log π masses go down to 1e-300 and separations from 1e-9 to 30 nats, and in every other
// row one action lies below a cliff of up to 10¹²; of the change of an action's logit against the best one's
// the released network may miss 1 % of the action's unit. That of the network alone may miss 1 % of the
// action's scale, where no mass is below the floor. And the empty token says nothing.
func TestReleasedIsPMD(t *testing.T) {
	for readout, x := range map[anymdp.Readout]struct {
		least, most float64 // log separations
		depth       func(u float64) float64
		within      func(depth, unit float64) float64
	}{
		anymdp.Prior: {-20, 3.4, func(u float64) float64 { return 690 * math.Pow(u, 4) },
			func(_, unit float64) float64 { return .01*unit + 1e-12 }},
		anymdp.Network: {-5, 1, func(u float64) float64 { return 15 * u },
			func(depth, unit float64) float64 { return .01 * (depth + unit) }},
	} {
		rng := seed.New(3, "pmd")
		for i := range 300 {
			a, separation := 2+rng.IntN(31), math.Exp(x.least+(x.most-x.least)*rng.Float64())
			pi, q, depth := mat.NewDense(1, a, nil), table(rng, 1, a), x.depth(rng.Float64())
			for j := range a {
				pi.Set(0, j, math.Exp(-depth*rng.Float64()))
			}
			pi.Scale(1/floats.Sum(pi.RawRowView(0)), pi)
			if i%2 == 1 {
				q.Set(0, rng.IntN(a), -math.Pow(10, 12*rng.Float64()))
			}
			got := act(t, released(t, readout), pi, q, separation)
			want := testkit.Must(pmd.Step(pi, q, separation))(t)
			row := testkit.Must(anymdp.NewRow(pi.RawRowView(0), q.RawRowView(0), separation))(t)
			best := floats.MaxIdx(q.RawRowView(0))
			for j := range a {
				g, w := got.At(0, j)/got.At(0, best), want.At(0, j)/want.At(0, best)
				off := math.Abs(math.Log(g) - math.Log(w))
				if w > 1e-250 && w < 1e250 && off > x.within(depth, row.Unit[j]) {
					t.Fatalf("%s, A = %d, masses to e^-%.3g, unit %.3g: log-odds of %d and the best are off by %g",
						readout, a, depth, row.Unit[j], j, off)
				}
			}
		}
	}
	forward := testkit.Must(anymdp.Released())(t)
	outputs, err := forward([][][]float64{{{0, 0, 0, 1}}})
	if err != nil || math.Abs(outputs[0][0]) > 1e-7 || math.Abs(outputs[0][1]) > 1e-7 { // biases are float32
		t.Errorf("the empty token has outputs %v, %v", outputs, err)
	}
}

// An action without mass stays without; a state without differences keeps its row.
func TestEdges(t *testing.T) {
	pi := mat.NewDense(1, 3, []float64{0, .25, .75})
	got := act(t, released(t, anymdp.Prior), pi, mat.NewDense(1, 3, []float64{9, 1, 0}), 1)
	if got.At(0, 0) != 0 {
		t.Errorf("an action without mass got %v", got.At(0, 0))
	}
	same := act(t, released(t, anymdp.Prior), pi, mat.NewDense(1, 3, []float64{2, 2, 2}), 1)
	if d := mdp.MaxAbsDiff(same, pi); d > 1e-15 {
		t.Errorf("without differences of Q the row moved by %g", d)
	}
	if one := act(t, released(t, anymdp.Network), mat.NewDense(1, 1, []float64{1}), mat.NewDense(1, 1, []float64{5}),
		1); one.At(0, 0) != 1 {
		t.Errorf("the only action got %v", one.At(0, 0))
	}
}

func TestRefusals(t *testing.T) {
	pi := mat.NewDense(1, 2, []float64{.5, .5})
	for want, c := range map[string]control.Context{
		"the policy is missing": {},
		"policy row s=0":        {Pi: mat.NewDense(1, 2, []float64{.5, .6}), Q: pi, Eta: 1},
		"has entry":             {Pi: pi, Q: mat.NewDense(1, 2, []float64{math.NaN(), 0}), Eta: 1},
		"nats in a state":       {Pi: pi, Q: mat.NewDense(1, 2, []float64{-1e308, 1e308}), Eta: 10},
		"step size":             {Pi: pi, Q: pi, Eta: -1},
	} {
		if _, err := released(t, anymdp.Prior).Act([]control.Context{c}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := anymdp.NewActor(nil, "both"); err == nil {
		t.Error("an unknown read-out was taken")
	}
}

// Contexts of one problem in one batch are answered each for itself, as they are alone.
func TestContextsOfOneProblem(t *testing.T) {
	contexts := []control.Context{
		{Pi: mat.NewDense(1, 3, []float64{.2, .3, .5}), Q: mat.NewDense(1, 3, []float64{1, 0, 2}), Eta: 1},
		{Pi: mat.NewDense(1, 2, []float64{.9, .1}), Q: mat.NewDense(1, 2, []float64{0, 3}), Eta: 1},
		{Pi: mat.NewDense(1, 3, []float64{.6, .3, .1}), Q: mat.NewDense(1, 3, []float64{0, 2, 1}), Eta: .5},
	}
	forward := testkit.Must(anymdp.Released())(t)
	together := testkit.Must((&anymdp.Actor{Forward: forward, Readout: anymdp.Network}).Act(contexts))(t)
	for i, c := range contexts {
		// Other sequences beside it change nothing but the last digits.
		if d := mdp.MaxAbsDiff(together[i].Pi, act(t, released(t, anymdp.Network), c.Pi, c.Q, c.Eta)); d > 1e-6 {
			t.Errorf("context %d: %g from its answer alone", i, d)
		}
	}
}

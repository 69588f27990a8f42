package lianglai

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
)

// The block with the expected update makes the expected increments of actor–critic, written
// out; and equal weights are a window's.
func TestExpectedUpdate(t *testing.T) {
	prompt := NewActorCriticPrompt(8, 3)
	problems := testkit.Must(mdp.Random.Draw(1, 8, 3, 1))(t)
	p := problems[0]
	b := Update{prompt, prompt.Analytic(p.MDP.Gamma, baseline.StepSizes{Alpha: 3, Beta: .5})}
	trajectories := testkit.Must(expected{b, baseline.Initial}.Run(problems, 1))(t)
	q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
	want := mat.NewDense(8, 3, nil)
	for s := range 8 {
		value := mat.Dot(p.Pi0.RowView(s), q.RowView(s))
		sum := 0.0
		for a := range 3 { // the mean of δ given s and a is Q − V; its mean under π is 0
			want.Set(s, a, p.Pi0.At(s, a)*math.Exp(3./8*p.Pi0.At(s, a)*(q.At(s, a)-value)))
			sum += want.At(s, a)
		}
		for a := range 3 {
			want.Set(s, a, want.At(s, a)/sum)
		}
	}
	// A few hundred roundings of numbers of about 1.
	if d := mdp.MaxAbsDiff(trajectories[0].Policies[1], want); d > 1e-12 {
		t.Errorf("the policy differs by %v from the expected update", d)
	}
	window := make([]baseline.Transition, 20)
	baseline.NewChain(p.MDP, seed.New(1, "chain")).Walk(p.Pi0, window)
	equalWeights := make([]float64, 20)
	for i := range equalWeights {
		equalWeights[i] = 1. / 20
	}
	x, y := testkit.Must(baseline.Initial.Learner(p.Pi0))(t), testkit.Must(baseline.Initial.Learner(p.Pi0))(t)
	testkit.Check(t, x.Step(b.increment(x, window, nil, p.Pi0)))
	testkit.Check(t, y.Step(b.increment(y, window, equalWeights, p.Pi0)))
	if d := mdp.MaxAbsDiff(x.Theta, y.Theta); d > 1e-12 {
		t.Errorf("equal weights differ by %v from none", d)
	}
}

// The grid of the study ascends, and its losses are the least where the actor's step is neither tiny nor huge.
func TestTuning(t *testing.T) {
	study := testkit.Must(tune(method.Setting{States: 4, Root: 1}))(t).(Tuning)
	if g := study.Grid; !slices.IsSorted(g.Alphas) || !slices.IsSorted(g.Betas) {
		t.Errorf("grid %+v", g)
	}
	study.Grid = Grid{[]baseline.Start{baseline.Initial}, []float64{0.01, 16, 5000}, []float64{0.2, 0.4}}
	losses := testkit.Must(study.Compute(nil, testkit.Must(mdp.Random.Draw(1, 4, 3, 8))(t)))(t).Tuned
	if len(losses) != 6*2*8 || losses[3*16].Alpha != 16 || losses[3*16].Beta != .4 {
		t.Fatalf("%d losses, %+v", len(losses), losses[3*16])
	}
	mean := map[float64]float64{}
	for _, l := range losses {
		mean[l.Alpha] += l.Loss
	}
	if !(mean[16] < mean[.01] && mean[16] < mean[5000]) {
		t.Errorf("losses by α: %v, want the least at 16", mean)
	}
}

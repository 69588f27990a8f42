package train

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// TestSampleMean compares with what many samples must come to: the exact backup for
// weight 1, the backup on the mean of all states for weight 0. It also draws problems
// until the weight with the least squared error shows, which the formula must be.
func TestSampleMean(t *testing.T) {
	const states, actions, samples = 4, 3, 6
	problems, err := mdp.Random.Draw(1, states, actions, 2000)
	if err != nil {
		t.Fatal(err)
	}
	var contexts []control.Context
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			t.Fatal(err)
		}
		contexts = append(contexts, control.Context{Problem: i, MDP: p.MDP, Pi: p.Pi0, Q: q})
	}
	evaluate := func(critic SampleMean, batch []control.Context) []*mat.Dense {
		values, err := critic.Evaluate(batch)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	x := contexts[:1]
	exact := x[0].MDP.EvaluationBackup(x[0].Pi, x[0].Q)
	// 10⁶ samples of values within B = 10 have standard errors below .01.
	if d := mdp.MaxAbsDiff(evaluate(SampleMean{Samples: 1e6, Weight: 1, Root: 1}, x)[0], exact); d > .05 {
		t.Errorf("the mean of 10⁶ samples is %v from the exact backup", d)
	}
	v := 0.0
	for s := range states {
		for a := range actions {
			v += x[0].Pi.At(s, a) * x[0].Q.At(s, a) / states
		}
	}
	zero := evaluate(SampleMean{Samples: samples, Weight: 0, Root: 1}, x)[0]
	if got, want := zero.At(2, 1), x[0].MDP.R.At(2, 1)+x[0].MDP.Gamma*v; math.Abs(got-want) > 1e-12 {
		t.Errorf("weight 0 gives %v, want r + γ times the mean value %v", got, want)
	}
	squared := func(weight float64) (sum float64) {
		for i, q := range evaluate(SampleMean{Samples: samples, Weight: weight, Root: 1}, contexts) {
			d := mat.NewDense(states, actions, nil)
			d.Sub(q, contexts[i].MDP.EvaluationBackup(contexts[i].Pi, contexts[i].Q))
			sum += mat.Dot(mat.NewVecDense(states*actions, d.RawMatrix().Data), mat.NewVecDense(states*actions, d.RawMatrix().Data))
		}
		return sum
	}
	// A parabola through three weights: its minimum is the least squares' weight.
	a, b, c := squared(0), squared(.5), squared(1)
	best := .5 + .25*(a-c)/(a-2*b+c)
	// 24,000 pairs, dependent within a problem: the standard error is below .01.
	if want := PosteriorWeight(samples, states); math.Abs(best-want) > .03 {
		t.Errorf("the least squared error is at weight %v, want %v", best, want)
	}
}

package train

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

func TestSampleMeanRefused(t *testing.T) {
	p := testkit.Must(mdp.Random.Draw(1, 4, 3, 1))(t)[0]
	good := control.Context{MDP: p.MDP, Pi: p.Pi0, Q: mat.NewDense(4, 3, nil)}
	bare := good
	bare.MDP = nil
	for want, c := range map[string]struct {
		critic  SampleMean
		context control.Context
	}{
		"0 samples":  {SampleMean{Weight: 1}, good},
		"has no MDP": {SampleMean{Samples: 6, Weight: 1}, bare},
	} {
		if _, err := c.critic.Evaluate([]control.Context{c.context}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSampleMean compares with what many samples must come to: the exact backup for
// weight 1, the backup on the mean of all states for weight 0. It also draws problems
// until the weight with the least squared error shows, which the formula must be.
func TestSampleMean(t *testing.T) {
	const states, actions, samples = 4, 3, 6
	problems := testkit.Must(mdp.Random.Draw(1, states, actions, 2000))(t)
	var contexts []control.Context
	for i, p := range problems {
		q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
		contexts = append(contexts, control.Context{Problem: i, MDP: p.MDP, Pi: p.Pi0, Q: q})
	}
	evaluate := func(critic SampleMean, batch []control.Context) []*mat.Dense {
		values := testkit.Must(critic.Evaluate(batch))(t)
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

// What stands in the way of a learned critic that forgets: no network trained for the
// squared error of a backup can be better at it than the posterior mean, which has .3 to
// .9 times the error of the mean of samples, and in the loop the posterior mean is worse
// at every size. What it adds is bias, which stays from round to round, where noise
// averages out. With memory, package anymdp/critic takes the bias back.
func TestPosteriorMeanIsWorseInTheLoop(t *testing.T) {
	const problems, rounds, root = 32, 40, 31900
	for _, states := range []int{4, 8, 16} {
		drawn := testkit.Must(mdp.Random.Draw(root, states, 3, problems))(t)
		scales := testkit.Must(control.NewScales(drawn))(t)
		for _, m := range []int{2, 6, 20} {
			// measure returns the mean absolute error of a backup and the mean loss.
			measure := func(critic control.Critic) (backup, loss float64) {
				watched := control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
					q, err := critic.Evaluate([]control.Context{x})
					if err != nil {
						return nil, err
					}
					exact := x.MDP.EvaluationBackup(x.Pi, x.Q).RawMatrix().Data
					for i, v := range q[0].RawMatrix().Data {
						backup += math.Abs(v-exact[i]) / float64(len(exact)*problems*rounds)
					}
					return q[0], nil
				})
				loop := control.ExactPMD(control.NominalStep)
				loop.Critic = watched
				trajectories := testkit.Must(loop.Run(drawn, rounds))(t)
				for i, trajectory := range trajectories {
					l := testkit.Must(scales[i].Loss(trajectory.Policies[rounds]))(t)
					loss += l / problems
				}
				return backup, loss
			}
			_, exact := measure(control.ExactCritic{})
			error1, loss1 := measure(SampleMean{Samples: m, Weight: 1, Root: root + 1})
			error2, loss2 := measure(SampleMean{Samples: m, Weight: PosteriorWeight(m, states), Root: root + 1})
			t.Logf("S = %d, m = %d: error %.4f and %.4f, loss of exact PMD %.4f, with the mean of samples %.4f, with the posterior mean %.4f", states, m, error1, error2, exact, loss1, loss2)
			if error2 > .95*error1 || loss2 < loss1 {
				t.Errorf("S = %d, m = %d: the posterior mean has %.2f times the error and %.2f times the loss of the mean of samples", states, m, error2/error1, loss2/loss1)
			}
			if loss1 > 2.2*exact {
				t.Errorf("S = %d, m = %d: the mean of samples ends at %.2f times exact PMD's loss", states, m, loss1/exact)
			}
		}
	}
}

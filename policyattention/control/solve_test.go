package control

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// TestSolving holds every round of a loop that keeps none against Run and Score.
func TestSolving(t *testing.T) {
	for i, p := range draw(t, 3, 5, 4) {
		loop := ExactPMD(NominalStep)
		if i > 0 {
			loop.Start = func(p mdp.Problem) (*mat.Dense, error) { return p.MDP.R, nil }
		}
		loop.Critic = CriticFunc(func(c Context) (*mat.Dense, error) {
			q := c.MDP.EvaluationBackup(c.Pi, c.Q)
			q.Set(0, 0, q.At(0, 0)+.01)
			return q, nil
		})
		trajectories := testkit.Must(loop.Run([]mdp.Problem{p}, 30))(t)
		scored := testkit.Must(Score([]mdp.Problem{p}, trajectories))(t)
		scale := testkit.Must(NewScale(p))(t)
		s := testkit.Must(loop.Begin(scale))(t)
		for k := 1; k <= 30; k++ {
			s = testkit.Must(s.Step())(t)
			bound, _, err := scored[0].Bound(k)
			testkit.Check(t, err)
			_, _, distance, err := s.Values()
			testkit.Check(t, err)
			if !mat.Equal(s.Policy.Pi, trajectories[0].Policies[k]) || !mat.Equal(s.Q, trajectories[0].Q[k-1]) ||
				s.Theorem2 != bound ||
				distance/s.Normalizer != scored[0].Loss[k] {
				t.Fatalf("round %d: bound %+v, want %+v", k, s.Theorem2, bound)
			}
			if !(distance <= s.Proven()) || s.Proven() > bound.Total() {
				t.Errorf("round %d: distance %v, proven %v, Theorem 2 %v", k, distance, s.Proven(), bound.Total())
			}
		}
		if s.Round != 30 || s.Zeta != 0 || math.Abs(s.Delta-.01) > 1e-12 {
			t.Errorf("%d rounds, ζ = %v, δ = %v", s.Round, s.Zeta, s.Delta)
		}
	}
}

// Where the start is optimal there is nothing to lose, and nothing divides by
// zero: two equal actions, and no reward at all.
func TestBeginAtTheOptimum(t *testing.T) {
	for name, c := range map[string]struct{ reward, normalizer float64 }{"equal actions": {1, 2},
		"no rewards": {0, 1}} {
		m := testkit.Must(mdp.New(0.5, mat.NewDense(2, 1, []float64{1, 1}),
			mat.NewDense(1, 2, []float64{c.reward, c.reward})))(t)
		scale := testkit.Must(NewScale(mdp.Problem{MDP: m, Pi0: m.Uniform()}))(t)
		s := testkit.Must(ExactPMD(NominalStep).Begin(scale))(t)
		if s.Normalizer != c.normalizer || !(s.Proven() < 1e-15) { // rounding
			t.Errorf("%s: normalizer %v, proven %v", name, s.Normalizer, s.Proven())
		}
	}
}

// TestLost counts states in which the best action is out of reach: π_0 leaves it out, or the
// actor forgets it.
func TestLost(t *testing.T) {
	m := testkit.Must(mdp.New(.5, mat.NewDense(4, 2, []float64{1, 0, 1, 0, 0, 1, 0, 1}),
		mat.NewDense(2, 2, []float64{0, 1, 0, 1})))(t)
	scale := testkit.Must(NewScale(mdp.Problem{MDP: m, Pi0: mat.NewDense(2, 2, []float64{1, 0, .5, .5})}))(t)
	forgetful := ActorFunc(func(Context) (*mat.Dense, error) { return mat.NewDense(2, 2, []float64{1, 0, 1, 0}), nil })
	for name, c := range map[string]struct {
		actor Actor
		now   int
	}{"exact": {RuleActor(pmd.PMD), 1}, "forgetful": {forgetful, 2}} {
		s := testkit.Must(Loop{Actor: c.actor, Critic: ExactCritic{}, Eta: 1}.Begin(scale))(t)
		s = testkit.Must(s.Step())(t)
		if now, before := s.Lost(); now != c.now || before != 1 {
			t.Errorf("%s: %d states, %d at the start; want %d and 1", name, now, before, c.now)
		}
	}
}

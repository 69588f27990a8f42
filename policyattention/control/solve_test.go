package control

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

func TestSolve(t *testing.T) {
	problems, err := mdp.Random.Draw(3, 5, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range problems {
		s, err := ExactPMD(NominalStep).Solve(p, 60)
		if err != nil {
			t.Fatal(err)
		}
		c := s.Certificate
		if len(s.Loss) != 61 || s.Loss[0] != 1 || math.Abs(s.Loss[60]-c.Distance/s.Normalizer) > 1e-15 {
			t.Errorf("problem %d: losses %v … %v, distance %v", i, s.Loss[0], s.Loss[60], c.Distance)
		}
		if c.Distance > c.Bound || c.Zeta > 1e-15 || c.Delta != 0 || c.OptimalityError > 1e-12 {
			t.Errorf("problem %d: certificate %+v", i, c)
		}
		if s.Policy[0][0] == p.Pi0.At(0, 0) {
			t.Errorf("problem %d: the policy is π_0", i)
		}
	}
}

// Where the start is optimal there is nothing to lose, and nothing divides by
// zero: two equal actions, and no reward at all.
func TestSolveOptimalStart(t *testing.T) {
	for name, c := range map[string]struct{ reward, normalizer float64 }{"equal actions": {1, 2}, "no rewards": {0, 1}} {
		m, err := mdp.New(0.5, mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(1, 2, []float64{c.reward, c.reward}))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ExactPMD(NominalStep).Solve(mdp.Problem{MDP: m, Pi0: m.Uniform()}, 3)
		if err != nil {
			t.Fatal(err)
		}
		if s.Normalizer != c.normalizer || len(s.Loss) != 4 {
			t.Errorf("%s: normalizer %v, losses %v", name, s.Normalizer, s.Loss)
		}
		for _, loss := range s.Loss {
			if !(loss < 1e-15) { // rounding
				t.Errorf("%s: loss %v", name, loss)
			}
		}
	}
}

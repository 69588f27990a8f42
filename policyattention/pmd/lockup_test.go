package pmd_test

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// TestLockUp checks the witness for many ζ and step caps: the residual and the proximal excess of an actor that never
// moves vanish together while the loop stays where it is. With prior mass p on the good action its excess is
// log(1+p(e^η−1)) − pη ≤ p(e^η−1) ≤ ζ/2.
func TestLockUp(t *testing.T) {
	for _, zeta := range []float64{1, .1, 1e-3, 1e-6, 1e-12} {
		for _, eta := range []float64{.1, .8, 5, 50} {
			problem := testkit.Must(pmd.LockUp(zeta, eta, .9))(t)
			stuck := control.Loop{Actor: control.RuleActor(pmd.Identity), Critic: control.ExactCritic{}, Eta: eta}
			trajectories := testkit.Must(stuck.Run([]mdp.Problem{problem}, 10))(t)
			scored := testkit.Must(control.Score([]mdp.Problem{problem}, trajectories))(t)
			pi, q := problem.Pi0, trajectories[0].Q[0]
			best := testkit.Must(pmd.Step(pi, q, eta))(t)
			excess := pmd.ProximalLoss(pi, pi, q, eta) - pmd.ProximalLoss(best, pi, q, eta)
			if excess > zeta/2*(1+1e-9)+1e-12*(1+eta) {
				t.Errorf("ζ %g η %g: the proximal excess is %v", zeta, eta, excess)
			}
			for k, z := range scored[0].Zeta {
				// Probabilities near one are rounded to 1e-16.
				if z > zeta*(1+1e-9)+1e-15 || math.Abs(scored[0].Loss[k+1]-1) > 1e-9 {
					t.Errorf("ζ %g η %g round %d: residual %v, loss %v", zeta, eta, k, z, scored[0].Loss[k+1])
				}
			}
		}
	}
	for _, bad := range [][2]float64{{0, 1}, {3, 1}, {1, 0}, {1, 800}} {
		if _, err := pmd.LockUp(bad[0], bad[1], .9); err == nil {
			t.Errorf("LockUp(%g, %g) was not refused", bad[0], bad[1])
		}
	}
}

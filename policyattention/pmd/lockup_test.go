package pmd_test

import (
	"fmt"
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// TestLockUp checks the witness for many ζ and step caps.
func TestLockUp(t *testing.T) {
	for _, zeta := range []float64{1, .1, 1e-3, 1e-6, 1e-12} {
		for _, eta := range []float64{.1, .8, 5, 50} {
			problem := testkit.Must(pmd.LockUp(zeta, eta, .9))(t)
			stuck := control.Loop{Actor: control.RuleActor(pmd.Identity), Critic: control.ExactCritic{}, Eta: eta}
			trajectories := testkit.Must(stuck.Run([]mdp.Problem{problem}, 10))(t)
			scored := testkit.Must(control.Score([]mdp.Problem{problem}, trajectories))(t)
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

// An actor that never moves is ever closer to exact PMD in one step as the
// good action's prior mass shrinks, its proximal excess vanishes, and it loses
// everything in every round.
func ExampleLockUp() {
	for _, zeta := range []float64{.1, .01, .001} {
		problem, _ := pmd.LockUp(zeta, .8, .9)
		stuck := control.Loop{Actor: control.RuleActor(pmd.Identity), Critic: control.ExactCritic{}, Eta: .8}
		trajectories, _ := stuck.Run([]mdp.Problem{problem}, 40)
		scored, _ := control.Score([]mdp.Problem{problem}, trajectories)
		pi, q := problem.Pi0, trajectories[0].Q[0]
		best, _ := pmd.Step(pi, q, .8)
		excess := pmd.ProximalLoss(pi, pi, q, .8) - pmd.ProximalLoss(best, pi, q, .8)
		fmt.Printf("ζ_0 %.4f of %.3f, excess %.1e, loss after 40 rounds %.3f\n",
			scored[0].Zeta[0], zeta, excess, scored[0].Loss[40])
	}
	// Output:
	// ζ_0 0.0914 of 0.100, excess 1.6e-02, loss after 40 rounds 1.000
	// ζ_0 0.0099 of 0.010, excess 1.7e-03, loss after 40 rounds 1.000
	// ζ_0 0.0010 of 0.001, excess 1.7e-04, loss after 40 rounds 1.000
}

package decoder

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

func effective(t *testing.T) (*Effective, []control.Context) {
	t.Helper()
	problems, err := mdp.Random.Draw(14, 4, 3, 6)
	if err != nil {
		t.Fatal(err)
	}
	var contexts []control.Context
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			t.Fatal(err)
		}
		contexts = append(contexts, control.Context{MDP: p.MDP, Pi: p.Pi0, Q: q, Eta: .4 + .16*float64(i)})
	}
	e, err := NewEffective(contexts)
	if err != nil {
		t.Fatal(err)
	}
	return e, contexts
}

// TestGradient compares the closed form with central differences of the risk
// (error of order 1e-9 for gonum's step), and checks strong monotonicity.
func TestGradient(t *testing.T) {
	e, _ := effective(t)
	const radius = .5
	curvature, err := e.Curvature(radius)
	if err != nil {
		t.Fatal(err)
	}
	rng := seed.New(15)
	least := math.Inf(1)
	for range 50 {
		theta := make([]float64, 3)
		for i := range theta {
			theta[i] = e.Target[i] + radius*(2*rng.Float64()-1)/math.Sqrt(3)
		}
		got := e.Gradient(theta)
		want := fd.Gradient(nil, e.Risk, theta, &fd.Settings{Formula: fd.Central})
		inner := 0.
		for i := range theta {
			if math.Abs(got[i]-want[i]) > 1e-7*(1+math.Abs(want[i])) {
				t.Errorf("∂R/∂ϑ_%d = %v, finite difference %v", i, got[i], want[i])
			}
			inner += got[i] * (theta[i] - e.Target[i])
		}
		d := e.Distance(theta)
		least = min(least, inner/(d*d))
		if inner < curvature.Monotone()*d*d {
			t.Errorf("(ϑ−ϑ*)ᵀ∇R = %v, below p₀λ‖ϑ−ϑ*‖² = %v", inner, curvature.Monotone()*d*d)
		}
	}
	t.Logf("p₀ %.3g, λ %.3g: monotone with at least %.3g on samples, p₀λ = %.3g", curvature.P0, curvature.Lambda, least, curvature.Monotone())
}

// TestDescent compares the rate of gradient descent with the predicted ones: at
// no step above Rate, in the end at LocalRate.
func TestDescent(t *testing.T) {
	e, _ := effective(t)
	start := []float64{1.2, .8, .3}
	curvature, err := e.Curvature(e.Distance(start))
	if err != nil {
		t.Fatal(err)
	}
	step := 1 / curvature.Smooth
	distance := e.Descend(start, step, 2000)
	rate := curvature.Rate(step)
	for i := 1; i < len(distance) && distance[i] > 1e-12; i++ {
		if distance[i] > rate*distance[i-1]*(1+1e-9) {
			t.Fatalf("step %d shrinks the distance by %v, bound %v", i, distance[i]/distance[i-1], rate)
		}
	}
	local, err := e.LocalRate(step)
	if err != nil {
		t.Fatal(err)
	}
	measured := math.Pow(distance[2000]/distance[1000], 1e-3)
	t.Logf("rate measured %.6f, predicted at ϑ* %.6f, bound %.6f", measured, local, rate)
	if math.Abs(measured-local) > 1e-3*(1-local) {
		t.Errorf("measured rate %v, want %v", measured, local)
	}
}

// TestLockUp checks the witness for many ζ and step caps.
func TestLockUp(t *testing.T) {
	for _, zeta := range []float64{1, .1, 1e-3, 1e-6, 1e-12} {
		for _, eta := range []float64{.1, .8, 5, 50} {
			problem, err := LockUp(zeta, eta, .9)
			if err != nil {
				t.Fatal(err)
			}
			stuck := control.Loop{Actor: control.RuleActor(pmd.Identity), Critic: control.ExactCritic{}, Eta: eta}
			trajectories, err := stuck.Run([]mdp.Problem{problem}, 10)
			if err != nil {
				t.Fatal(err)
			}
			scored, err := control.Score([]mdp.Problem{problem}, trajectories)
			if err != nil {
				t.Fatal(err)
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
		if _, err := LockUp(bad[0], bad[1], .9); err == nil {
			t.Errorf("LockUp(%g, %g) was not refused", bad[0], bad[1])
		}
	}
}

// An actor that never moves is ever closer to exact PMD in one step as the
// good action's prior mass shrinks, its proximal excess vanishes, and it loses
// everything in every round.
func ExampleLockUp() {
	for _, zeta := range []float64{.1, .01, .001} {
		problem, _ := LockUp(zeta, .8, .9)
		stuck := control.Loop{Actor: control.RuleActor(pmd.Identity), Critic: control.ExactCritic{}, Eta: .8}
		trajectories, _ := stuck.Run([]mdp.Problem{problem}, 40)
		scored, _ := control.Score([]mdp.Problem{problem}, trajectories)
		excess, _ := pmd.ProximalExcess(problem.Pi0, problem.Pi0, trajectories[0].Q[0], .8)
		fmt.Printf("ζ_0 %.4f of %.3f, excess %.1e, loss after 40 rounds %.3f\n", scored[0].Zeta[0], zeta, excess, scored[0].Loss[40])
	}
	// Output:
	// ζ_0 0.0914 of 0.100, excess 1.6e-02, loss after 40 rounds 1.000
	// ζ_0 0.0099 of 0.010, excess 1.7e-03, loss after 40 rounds 1.000
	// ζ_0 0.0010 of 0.001, excess 1.7e-04, loss after 40 rounds 1.000
}

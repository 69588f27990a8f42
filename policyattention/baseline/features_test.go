package baseline

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// A learner that keeps its parameters in the features themselves, logits Xθ and
// values Fw, makes the same policies as one that keeps logits and values and has
// its increments carried over.
func TestFeaturesAgreeWithExplicitParameters(t *testing.T) {
	const states, actions, rounds = 4, 3, 30
	steps := StepSizes{Alpha: 2, Beta: 0.2}
	p := problems(t, states, actions, 3)
	got := testkit.Must((Teacher{Steps: steps, Start: Initial, Features: Dense, Root: 5}).Run(p, rounds))(t)
	square := func(rng interface{ Float64() float64 }, n int) *mat.Dense {
		x := mat.NewDense(n, n, nil)
		x.Apply(func(int, int, float64) float64 { return rng.Float64() }, x)
		return x
	}
	for i, problem := range p {
		rng := seed.New(5, "baseline", "features", i)
		x := square(rng, states*actions)
		f := square(rng, states)
		chain := NewChain(problem.MDP, seed.New(5, "baseline", "chain", i))
		theta, w := mat.NewVecDense(states*actions, nil), mat.NewVecDense(states, nil)
		window := make([]Transition, Window)
		for round := range rounds {
			// π ∝ π₀ exp(Xθ), so that θ = 0 is π₀.
			var logits, values mat.VecDense
			logits.MulVec(x, theta)
			values.MulVec(f, w)
			pi := mat.NewDense(states, actions, nil)
			for s := range states {
				sum := 0.0
				for a := range actions {
					pi.Set(s, a, problem.Pi0.At(s, a)*math.Exp(logits.AtVec(s*actions+a)))
					sum += pi.At(s, a)
				}
				for a := range actions {
					pi.Set(s, a, pi.At(s, a)/sum)
				}
			}
			if !mat.EqualApprox(pi, got[i].Policies[round], 1e-9) { // rounding, grown over the rounds
				t.Fatalf("problem %d, round %d: policy\n%v, want\n%v", i, round,
					mat.Formatted(got[i].Policies[round]), mat.Formatted(pi))
			}
			chain.Walk(pi, window)
			for _, tr := range window {
				delta := (tr.Reward + problem.MDP.Gamma*values.AtVec(tr.Next) - values.AtVec(tr.State)) / Window
				w.AddScaledVec(w, steps.Beta*delta, f.RowView(tr.State))
				// ∇_θ log π(a|s) = x(s,a) − Σ_b π(b|s) x(s,b)
				theta.AddScaledVec(theta, steps.Alpha*delta, x.RowView(tr.State*actions+tr.Action))
				for b := range actions {
					theta.AddScaledVec(theta, -steps.Alpha*delta*pi.At(tr.State, b), x.RowView(tr.State*actions+b))
				}
			}
		}
	}
	if _, err := (Teacher{Steps: steps, Start: Initial, Features: "sparse"}).Run(p, 1); err == nil {
		t.Error("unknown features passed")
	}
}

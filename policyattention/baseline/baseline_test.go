package baseline

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

func problems(t *testing.T, states, actions, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(1, states, actions, n))(t)
}

func TestChainIsAWalk(t *testing.T) {
	p := problems(t, 5, 3, 1)[0]
	chain := NewChain(p.MDP, seed.New(1, "walk"))
	window := make([]Transition, 50)
	start := chain.State
	chain.Walk(p.Pi0, window)
	for _, tr := range window {
		if tr.State != start || tr.Reward != p.MDP.R.At(tr.State, tr.Action) {
			t.Fatalf("transition %+v does not go on from state %d with its reward", tr, start)
		}
		start = tr.Next
	}
	if chain.State != start {
		t.Errorf("the chain is in state %d after reaching %d", chain.State, start)
	}
}

// The increments against their definition, with ∇log π by finite differences of
// log softmax(θ).
func TestIncrementAgreesWithItsDefinition(t *testing.T) {
	const states, actions, gamma, h = 4, 3, 0.9, 1e-5
	steps := StepSizes{Alpha: 1.7, Beta: 0.3}
	p := problems(t, states, actions, 1)[0]
	l := testkit.Must(NewActorCritic(p.Pi0))(t)
	rng := seed.New(1, "w")
	for i := range l.W {
		l.W[i] = rng.NormFloat64()
	}
	pi := l.Policy()
	if !mat.EqualApprox(pi, p.Pi0, 1e-14) { // rounding of exp(log p)
		t.Errorf("softmax(log π₀) is\n%v, want\n%v", mat.Formatted(pi), mat.Formatted(p.Pi0))
	}
	window := make([]Transition, Window)
	NewChain(p.MDP, rng).Walk(pi, window)
	dTheta, dW := l.Increment(window, pi, gamma, steps)

	logPi := func(tr Transition) float64 { return math.Log(l.Policy().At(tr.State, tr.Action)) }
	wantTheta, wantW := make([]float64, states*actions), make([]float64, states)
	for _, tr := range window {
		delta := tr.Reward + gamma*l.W[tr.Next] - l.W[tr.State]
		wantW[tr.State] += steps.Beta * delta / Window
		theta := l.Theta.RawMatrix().Data
		for i, x := range theta {
			theta[i] = x + h
			up := logPi(tr)
			theta[i] = x - h
			down := logPi(tr)
			theta[i] = x
			wantTheta[i] += steps.Alpha * delta * (up - down) / (2 * h) / Window
		}
	}
	for i := range dTheta {
		if math.Abs(dTheta[i]-wantTheta[i]) > 1e-9 { // h² = 1e-10 times third derivatives below 1
			t.Errorf("Δθ[%d] = %v, want %v", i, dTheta[i], wantTheta[i])
		}
	}
	for i := range dW {
		if math.Abs(dW[i]-wantW[i]) > 1e-14 { // rounding
			t.Errorf("Δw[%d] = %v, want %v", i, dW[i], wantW[i])
		}
	}
}

func TestTeacherImprovesAndRepeats(t *testing.T) {
	p := problems(t, 4, 3, 8)
	c := Teacher{Steps: StepSizes{Alpha: 8, Beta: 0.4}, Start: Initial, Root: 3}
	first := testkit.Must(c.Run(p, 40))(t)
	again := testkit.Must(c.Run(p[:2], 40))(t)
	for i, a := range again {
		for k := range a.Policies {
			if !mat.Equal(a.Policies[k], first[i].Policies[k]) {
				t.Fatalf("problem %d, round %d: a run on fewer problems differs", i, k)
			}
		}
	}
	scales := testkit.Must(control.NewScales(p))(t)
	losses := testkit.Must(Score(first, c.Steps, c.Start, scales))(t)
	var loss [2]float64 // medians at S=8 in the harness are .22 and .12
	for i, l := range losses {
		loss[i/len(p)] += l.Loss / float64(len(p))
	}
	if !(loss[1] < loss[0] && loss[0] < 0.5) {
		t.Errorf("mean losses at T=20, 40 are %v", loss)
	}
}

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

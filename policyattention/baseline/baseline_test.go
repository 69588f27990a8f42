package baseline

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

func problems(t *testing.T, states, actions, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(1, states, actions, n))(t)
}

func TestChainIsAWalk(t *testing.T) {
	p := problems(t, 5, 3, 1)[0]
	chain := NewChain(p.MDP, seed.New(1, "walk"))
	start := chain.State
	for _, tr := range chain.Walk(nil, p.Pi0, 50) {
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
	window := NewChain(p.MDP, rng).Walk(nil, pi, Window)
	increment := l.Increment(window, pi, gamma, steps)
	dTheta, dW := increment[:states*actions], increment[states*actions:]

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
	c := Teacher(StepSizes{Alpha: 8, Beta: 0.4}, Initial, OneHot, 3)
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
	losses := testkit.Must(Score(first, StepSizes{}, Initial, scales))(t)
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
	got := testkit.Must(Teacher(steps, Initial, Dense, 5).Run(p, rounds))(t)
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
			for _, tr := range chain.Walk(nil, pi, Window) {
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
	if _, err := Teacher(steps, Initial, "sparse", 0).Run(p, 1); err == nil {
		t.Error("unknown features passed")
	}
}

// loss returns ‖Q* − Q^π‖∞.
func loss(t *testing.T, m *mdp.MDP, pi *mat.Dense) float64 {
	t.Helper()
	return mdp.MaxAbsDiff(testkit.Must(m.Optimal())(t).Q, testkit.Must(m.PolicyValue(pi))(t))
}

func last(t *testing.T, c control.Controller, problems []mdp.Problem, rounds int) *mat.Dense {
	t.Helper()
	trajectories := testkit.Must(c.Run(problems, rounds))(t)
	return trajectories[0].Policies[rounds]
}

// With the model: policy iteration is done after as many rounds as there are states at
// the latest, value iteration within its bound.
func TestPlanners(t *testing.T) {
	problems := problems(t, 4, 3, 1)
	m := problems[0].MDP
	if d := loss(t, m, last(t, PolicyIteration(), problems, 12)); d > 1e-12 {
		t.Errorf("policy iteration is %v from the best policy", d)
	}
	// The greedy policy of Q_{T−1} is within 2γE/(1−γ), E = γ^{T−1}·2B (Singh and Yee, 1994).
	const rounds = 200
	bound := 2 * m.Gamma / (1 - m.Gamma) * math.Pow(m.Gamma, rounds-1) * 2 * m.Bound()
	if d := loss(t, m, last(t, ValueIteration(), problems, rounds)); d > bound+1e-12 {
		t.Errorf("value iteration is %v from the best policy, bound %v", d, bound)
	}
	if d := loss(t, m, last(t, NaturalPolicyGradient(20), problems, rounds)); d > 1e-9 {
		t.Errorf("the natural policy gradient is %v from the best policy", d)
	}
}

// Two states, two actions, γ = .5, by hand: V = ⟨π, Q⟩ is 2 and −1.
func TestEstimatorsByHand(t *testing.T) {
	told := Told{States: 2, Actions: 2, Gamma: .5}
	pi := mat.NewDense(2, 2, []float64{.5, .5, .25, .75})
	q := mat.NewDense(2, 2, []float64{1, 3, 2, -2})
	window := []Transition{{State: 0, Action: 0, Reward: 1, Next: 0}, {State: 0, Action: 0, Reward: 1, Next: 1},
		{State: 1, Action: 1, Reward: -1, Next: 1}}
	for _, x := range []struct {
		name string
		Estimator
		want []float64
	}{
		{"mean", Mean(told, 1), []float64{1.25, 3, 2, -1.5}},
		{"shrunk", Mean(told, .5), []float64{1.125, 3, 2, -1.75}},
		{"all", All(told), []float64{1.25, 3, 2, -1.5}},
		// Q(0,0) is 1 + .5(2 − 1) = 1.5, so V(0) = 2.25, and 1.5 + .5(.5 − 1.5) = 1.
		{"TD", TD(told, .5), []float64{1, 3, 2, -1.75}},
	} {
		got := x.Estimator(pi, q, window)
		if !mat.EqualApprox(got, mat.NewDense(2, 2, x.want), 1e-15) {
			t.Errorf("%s: %v, by hand %v", x.name, got.RawMatrix().Data, x.want)
		}
	}
}

// deterministic has transitions that can be learned from one look at each: pair (s, a)
// leads to (s + a + 1) mod S.
func deterministic(t *testing.T) mdp.Problem {
	t.Helper()
	p := problems(t, 4, 3, 1)[0]
	next := mat.NewDense(12, 4, nil)
	for i := range 12 {
		next.Set(i, (i/3+i%3+1)%4, 1)
	}
	return testkit.Must(mdp.NewProblem(.9, next, p.MDP.R, p.Pi0))(t)
}

// In a deterministic problem one look at each pair is the model: certainty equivalence
// is done after one round, Q-learning with α = 1 converges like value iteration, also on
// a walk that looks everywhere.
func TestAgentsFindTheBest(t *testing.T) {
	p := deterministic(t)
	certain := func(t Told) Agent { return CertaintyEquivalence(t, 0) }
	for _, x := range []struct {
		name   string
		source Source
		agent  func(Told) Agent
		rounds int
	}{
		{"certainty equivalence", Generative(12, 1), certain, 1},
		{"certainty equivalence on a walk", Walk(20, 1), certain, 20},
		{"Q-learning", Generative(12, 1), func(t Told) Agent { return QLearning(t, 1, 0) }, 300},
		{"Q-learning on a walk", Walk(20, 1), func(t Told) Agent { return QLearning(t, 1, 1) }, 300},
		{"SARSA", Generative(12, 1), func(t Told) Agent { return Sarsa(t, .5, 0) }, 300},
		{"posterior sampling", Generative(1200, 1), PosteriorSampling, 3},
		{"posterior sampling on a walk", Walk(200, 1), PosteriorSampling, 40},
	} {
		c := Agents{Source: x.source, New: func(t Told) (Agent, error) { return x.agent(t), nil }, Root: 2}
		pi := last(t, c, []mdp.Problem{p}, x.rounds)
		if d := loss(t, p.MDP, pi); d > 1e-9 {
			t.Errorf("%s is %v from the best policy after %d rounds", x.name, d, x.rounds)
		}
	}
}

// What cannot be is refused, with its problem.
func TestRefused(t *testing.T) {
	problems := problems(t, 4, 3, 1)
	for name, c := range map[string]control.Controller{
		"ε of 2": Agents{
			Source: Walk(20, 1), New: func(t Told) (Agent, error) { return CertaintyEquivalence(t, 2), nil },
		},
		"ε of −1": Agents{
			Source: Walk(20, 1), New: func(t Told) (Agent, error) { return QLearning(t, .1, -1), nil },
		},
		"η of −1": Improved(Sampled(Walk(20, 1), 0, All), control.RuleActor(pmd.PMD), -1),
		"diverging": Improved(Sampled(Walk(20, 1), 0, func(t Told) Estimator { return TD(t, 1e200) }),
			control.RuleActor(pmd.PMD), 1),
		"diverging critic": Teacher(StepSizes{Alpha: 1, Beta: 1e200}, Initial, OneHot, 0),
		"Q diverges": Agents{
			Source: Walk(20, 1), New: func(t Told) (Agent, error) { return QLearning(t, 1e200, 1), nil },
		},
	} {
		if _, err := c.Run(problems, 40); err == nil {
			t.Errorf("%s was run", name)
		}
	}
	if _, err := NewActorCritic(mat.NewDense(1, 2, []float64{1, 0})); err == nil {
		t.Error("actor–critic began with a zero")
	}
	late := []control.Context{{MDP: problems[0].MDP, Pi: problems[0].Pi0, Q: mat.NewDense(4, 3, nil), Round: 1}}
	if _, err := Sampled(Walk(20, 1), 0, All).Evaluate(late); err == nil {
		t.Error("a critic began at round 1")
	}
	// A stream is a function of problem and round, and takes all pairs in turn: 150 are 12 or 13 of each of 12.
	n := map[[2]int]int{}
	for round := range 5 {
		for _, x := range Generative(30, 3)(0, problems[0].MDP)(round, nil) {
			n[[2]int{x.State, x.Action}]++
		}
	}
	for pair, k := range n {
		if k < 12 || k > 13 || len(n) != 12 {
			t.Errorf("pair %v has %d transitions of 150", pair, k)
		}
	}
	m := problems[0].MDP
	a, b := Generative(20, 3)(1, m)(4, nil), Generative(20, 3)(1, m)(4, nil)
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 20 {
		t.Error("a generative stream is not a function of problem and round")
	}
}

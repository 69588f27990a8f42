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
)

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
	certain := func(t Told) (Agent, error) { return CertaintyEquivalence(t, 0) }
	for _, x := range []struct {
		name   string
		source Source
		agent  func(Told) (Agent, error)
		rounds int
	}{
		{"certainty equivalence", Generative{12, 1}, certain, 1},
		{"certainty equivalence on a walk", Walk{20, 1}, certain, 20},
		{"Q-learning", Generative{12, 1}, func(t Told) (Agent, error) { return QLearning(t, 1, 0) }, 300},
		{"Q-learning on a walk", Walk{20, 1}, func(t Told) (Agent, error) { return QLearning(t, 1, 1) }, 300},
		{"SARSA", Generative{12, 1}, func(t Told) (Agent, error) { return Sarsa(t, .5, 0) }, 300},
		{"posterior sampling", Generative{1200, 1}, PosteriorSampling, 3},
		{"posterior sampling on a walk", Walk{200, 1}, PosteriorSampling, 40},
	} {
		pi := last(t, Agents{Source: x.source, New: x.agent, Root: 2}, []mdp.Problem{p}, x.rounds)
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
			Source: Walk{20, 1}, New: func(t Told) (Agent, error) { return CertaintyEquivalence(t, 2) },
		},
		"ε of −1": Agents{Source: Walk{20, 1}, New: func(t Told) (Agent, error) { return QLearning(t, .1, -1) }},
		"η of −1": Improved(&Sampled{Source: Walk{20, 1}, New: All}, control.RuleActor(pmd.PMD), -1),
		"diverging": Improved(&Sampled{Source: Walk{20, 1}, New: func(t Told) Estimator { return TD(t, 1e200) }},
			control.RuleActor(pmd.PMD), 1),
		"diverging critic": Teacher{Steps: StepSizes{Alpha: 1, Beta: 1e200}, Start: Initial},
		"Q diverges": Agents{
			Source: Walk{20, 1}, New: func(t Told) (Agent, error) { return QLearning(t, 1e200, 1) },
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
	if _, err := (&Sampled{Source: Walk{20, 1}, New: All}).Evaluate(late); err == nil {
		t.Error("a critic began at round 1")
	}
	// A stream is a function of problem and round, and takes all pairs in turn: 150 are 12 or 13 of each of 12.
	n := map[[2]int]int{}
	for round := range 5 {
		for _, x := range (Generative{30, 3}).Open(0, problems[0].MDP)(round, nil) {
			n[[2]int{x.State, x.Action}]++
		}
	}
	for pair, k := range n {
		if k < 12 || k > 13 || len(n) != 12 {
			t.Errorf("pair %v has %d transitions of 150", pair, k)
		}
	}
	m := problems[0].MDP
	a, b := Generative{20, 3}.Open(1, m)(4, nil), Generative{20, 3}.Open(1, m)(4, nil)
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 20 {
		t.Error("a generative stream is not a function of problem and round")
	}
}

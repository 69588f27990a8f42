package lianglai

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/capability"
)

// system is its row in the capability map. What is not there it cannot do.
var system = &capability.System{
	Name: "Liang–Lai 2026", Source: "arXiv 2605.05755",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Word("linear", capability.Test("baseline/lianglai.TestAnalyticActorCritic")),
		capability.Evaluation: capability.Yes(capability.Test("baseline/lianglai.TestAnalyticActorCritic"), capability.Test("baseline/lianglai.TestQualificationInTheNativeShape")),
		capability.Control:    capability.Yes(capability.Files("paper/benchmark/liang-lai-paper-S8-18100-*/manifest.json")),
		capability.Learned:    capability.Yes(capability.Test("baseline/lianglai.TestHarnessShapeAndController"), capability.Files("paper/qualification/liang-lai-*/manifest.json")),
	},
	Model: "none", Samples: "20 transitions a round", Weights: "2(2SA+3S+2)²: 10,952 at S = 8", Work: "one layer a round",
	Step: step,
}

// step makes the step of an actor–critic from π₀, with its critic 0, by the block that is written down.
func step(w capability.Walk) (capability.Step, error) {
	m := w.Problem.MDP
	s := capability.Step{Algorithm: "semi-gradient actor–critic, α = 2, β = .2", Attends: "TD errors δ_k: surprising transitions", Keys: w.Keys()}
	steps := baseline.StepSizes{Alpha: 2, Beta: .2}
	learner, err := baseline.NewActorCritic(w.Problem.Pi0)
	if err != nil {
		return s, err
	}
	prompt, err := NewActorCriticPrompt(m.States(), m.Actions())
	if err != nil {
		return s, err
	}
	block, pi := prompt.Analytic(m.Gamma, steps), learner.Policy()
	context, query := prompt.Context(w.Window, pi), prompt.Query(learner)
	theta, value := prompt.Increment(block.Attend(context, query))
	wantTheta, wantValue := learner.Increment(w.Window, pi, m.Gamma, steps)
	s.Distance = max(floats.Distance(theta, wantTheta, math.Inf(1)), floats.Distance(value, wantValue, math.Inf(1)))
	// A sum of the window's errors, each of at most two roundings more than the numbers in it.
	s.Bound = 2 * float64(len(w.Window)+4) * steps.Alpha * (1 + m.Gamma) * 0x1p-53 * m.Bound()
	var key, scores mat.VecDense
	key.MulVec(block.P, mat.NewVecDense(len(query), query))
	scores.MulVec(context, &key)
	s.Share = capability.Shares(scores.RawVector().Data)
	return s, nil
}

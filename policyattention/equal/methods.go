package equal

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/reference"
)

// nominal is the deployed step size of the paper and the start from π₀.
func nominal(int) []float64 { return []float64{control.NominalStep, 0} }

// methods are the methods of each information.
var methods = map[Information][]Method{
	Model: {
		{Name: "exact-pmd", Label: "exact PMD", Parameters: []Parameter{etaOf, startOf}, Published: nominal, New: func(c Case) (control.Controller, error) {
			return begun{reference.ExactPMD(c.Values[0]), c.Values[1]}, nil
		}},
		{Name: "policyattention", Label: "PolicyAttention", Learned: true, Parameters: []Parameter{etaOf, startOf}, Published: nominal, New: func(c Case) (control.Controller, error) {
			actor, err := c.Networks.Actor(c.States, c.Run)
			return begun{control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: c.Values[0]}, c.Values[1]}, err
		}},
		{Name: "decoder", Label: "decoder, expectations", Parameters: []Parameter{etaOf, startOf}, As: "exact-pmd", New: func(c Case) (control.Controller, error) {
			actor, critic, err := c.Networks.Decoder(c.Condition, c.States, c.Root)
			return begun{control.Loop{Actor: actor, Critic: critic, Eta: min(c.Values[0], decoderMost)}, c.Values[1]}, err
		}},
		{Name: "liang-lai", Label: "Liang–Lai, expected update", Learned: true, Parameters: []Parameter{actorOf, criticOf, startOf}, New: func(c Case) (control.Controller, error) {
			return newLiangLai(c)
		}},
		{Name: "natural-gradient", Label: "natural policy gradient", Parameters: []Parameter{etaOf, startOf}, New: func(c Case) (control.Controller, error) {
			return begun{reference.NaturalPolicyGradient(c.Values[0]), c.Values[1]}, nil
		}},
		{Name: "value-iteration", Label: "value iteration", New: func(Case) (control.Controller, error) { return reference.ValueIteration(), nil }},
		{Name: "policy-iteration", Label: "policy iteration", New: func(Case) (control.Controller, error) { return reference.PolicyIteration(), nil }},
	},
	Generative: {
		improved("pmd-mean", "PMD, mean of samples", false, nil, meanOf),
		improved("pmd-shrunk", "PMD, shrunk mean", false, []Parameter{weightOf}, shrunkOf),
		improved("pmd-all", "PMD, all samples", false, nil, allOf),
		improved("policyattention-shrunk", "PolicyAttention, shrunk mean", true, []Parameter{weightOf}, shrunkOf),
		improved("policyattention-all", "PolicyAttention, all samples", true, nil, allOf),
		{
			Name: "policyattention-critic", Label: "PolicyAttention, learned critic", Learned: true, Identities: 1, Parameters: []Parameter{etaOf, startOf},
			Can: func(n, states int) bool { return n == 144 && states == 8 }, // as it was trained
			New: func(c Case) (control.Controller, error) {
				actor, err := c.Networks.Actor(c.States, c.Run)
				if err != nil {
					return nil, err
				}
				critic, err := c.Networks.Critic(c.States, c.Run, c.Root)
				return reference.Improved{Critic: critic, Actor: actor, Eta: c.Values[0], Start: start(c.Values[1])}, err
			},
		},
		{
			Name: "decoder", Label: "decoder, packets", Parameters: []Parameter{etaOf, startOf}, As: "pmd-mean",
			Can: func(n, states int) bool { return n%(states*Actions) == 0 }, // as many from every pair
			New: func(c Case) (control.Controller, error) {
				actor, critic, err := c.Networks.Decoder(c.Condition, c.States, c.Root)
				return reference.Improved{Critic: critic, Actor: actor, Eta: min(c.Values[0], decoderMost), Start: start(c.Values[1])}, err
			},
		},
		{Name: "liang-lai", Label: "Liang–Lai", Learned: true, Parameters: []Parameter{actorOf, criticOf, startOf}, New: newLiangLai},
		tabular("q-learning", "Q-learning", []Parameter{alphaOf}, func(t reference.Told, v []float64) (reference.Agent, error) { return reference.QLearning(t, v[0], 0) }),
		tabular("sarsa", "SARSA", []Parameter{alphaOf, epsilonOf}, func(t reference.Told, v []float64) (reference.Agent, error) { return reference.Sarsa(t, v[0], v[1]) }),
		tabular("certainty-equivalence", "certainty equivalence", nil, func(t reference.Told, _ []float64) (reference.Agent, error) {
			return reference.CertaintyEquivalence(t, 0)
		}),
		tabular("posterior-sampling", "posterior sampling", nil, func(t reference.Told, _ []float64) (reference.Agent, error) { return reference.PosteriorSampling(t) }),
	},
	Window: {
		improved("pmd-td", "PMD, TD", false, []Parameter{tdOf}, tdEstimate),
		improved("pmd-all", "PMD, all samples", false, nil, allOf),
		improved("policyattention-td", "PolicyAttention, TD", true, []Parameter{tdOf}, tdEstimate),
		improved("policyattention-all", "PolicyAttention, all samples", true, nil, allOf),
		{
			Name: "liang-lai", Label: "Liang–Lai", Learned: true, Parameters: []Parameter{actorOf, criticOf, startOf}, New: newLiangLai,
			Published: func(states int) []float64 {
				m, err := all.Methods.Find(experiment.LiangLai)
				if err != nil {
					return nil
				}
				d, err := m.Deploy(method.Setting{Recipe: "paper", States: states, Actions: Actions})
				if err != nil {
					return nil
				}
				steps := d.(method.Learner).StepSizes()
				return []float64{steps.Alpha, steps.Beta, 0}
			},
		},
		{
			Name: "algorithm-distillation", Label: "Algorithm Distillation", Learned: true, Published: func(int) []float64 { return []float64{} },
			New: func(c Case) (control.Controller, error) { return c.Networks.Distillation(c) },
		},
		tabular("q-learning", "Q-learning", []Parameter{alphaOf, epsilonOf}, func(t reference.Told, v []float64) (reference.Agent, error) {
			return reference.QLearning(t, v[0], v[1])
		}),
		tabular("sarsa", "SARSA", []Parameter{alphaOf, epsilonOf}, func(t reference.Told, v []float64) (reference.Agent, error) { return reference.Sarsa(t, v[0], v[1]) }),
		tabular("certainty-equivalence", "certainty equivalence", []Parameter{epsilonOf}, func(t reference.Told, v []float64) (reference.Agent, error) {
			return reference.CertaintyEquivalence(t, v[0])
		}),
		tabular("posterior-sampling", "posterior sampling", nil, func(t reference.Told, _ []float64) (reference.Agent, error) { return reference.PosteriorSampling(t) }),
	},
}

// The estimates that an actor improves on; v are the method's own numbers.
func meanOf(t reference.Told, _ []float64) reference.Estimator { return reference.Mean(t, 1) }
func shrunkOf(t reference.Told, v []float64) reference.Estimator {
	return reference.Mean(t, v[0])
}
func allOf(t reference.Told, _ []float64) reference.Estimator { return reference.All(t) }
func tdEstimate(t reference.Told, v []float64) reference.Estimator {
	return reference.TD(t, v[0])
}

// source returns the condition's source of transitions.
func (c Case) source() reference.Source {
	if c.Information == Generative {
		return reference.Generative{N: c.N, Root: c.Root}
	}
	return reference.Walk{N: c.N, Root: c.Root}
}

// improved is exact PMD, or the learned actor, on estimated values. Its numbers are η, the
// start and the estimator's own.
func improved(name, label string, learned bool, own []Parameter, estimator func(reference.Told, []float64) reference.Estimator) Method {
	return Method{
		Name: name, Label: label, Learned: learned, Parameters: append([]Parameter{etaOf, startOf}, own...),
		New: func(c Case) (control.Controller, error) {
			actor := reference.PMD()
			if learned {
				var err error
				if actor, err = c.Networks.Actor(c.States, c.Run); err != nil {
					return nil, err
				}
			}
			critic := &reference.Sampled{Source: c.source(), Root: c.Root, New: func(t reference.Told) reference.Estimator { return estimator(t, c.Values[2:]) }}
			return reference.Improved{Critic: critic, Actor: actor, Eta: c.Values[0], Start: start(c.Values[1])}, nil
		},
	}
}

// tabular is an agent of package reference.
func tabular(name, label string, own []Parameter, agent func(reference.Told, []float64) (reference.Agent, error)) Method {
	return Method{Name: name, Label: label, Parameters: own, New: func(c Case) (control.Controller, error) {
		return reference.Agents{Source: c.source(), Root: c.Root, New: func(t reference.Told) (reference.Agent, error) { return agent(t, c.Values) }}, nil
	}}
}

// newLiangLai returns Liang–Lai's trained block in any condition.
func newLiangLai(c Case) (control.Controller, error) {
	block, err := c.Networks.Update(c.States, c.Run, baseline.StepSizes{Alpha: c.Values[0], Beta: c.Values[1]})
	if err != nil {
		return nil, err
	}
	if c.Information == Model {
		return expected{block, start(c.Values[2])}, nil
	}
	return reference.Agents{Source: c.source(), Root: c.Root, New: func(t reference.Told) (reference.Agent, error) {
		return newBlockAgent(block, t, start(c.Values[2]), c.Information == Generative)
	}}, nil
}

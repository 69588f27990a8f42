package equal

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// The free numbers of the methods here.
var (
	etaOf     = Parameter{Name: "η", Start: .8}
	weightOf  = Parameter{Name: "w", Start: .5, Most: 1}
	tdOf      = Parameter{Name: "β", Start: .2, Most: 1}
	alphaOf   = Parameter{Name: "α", Start: .2, Most: 1}
	epsilonOf = Parameter{Name: "ε", Start: .2, Most: 1}
	startOf   = method.StartParameter
)

// nominal is the deployed step size of the paper and the start from π₀.
func nominal(int) []float64 { return []float64{control.NominalStep, 0} }

// improving are PMD, PolicyAttention and the decoder on what each information gives.
var improving = map[Information][]Method{
	Model: {
		{Name: "exact-pmd", Label: "exact PMD", Parameters: []Parameter{etaOf, startOf}, Published: nominal, New: func(c Case) (control.Controller, error) {
			return begun{baseline.ExactPMD(c.Values[0]), c.Values[1]}, nil
		}},
		{Name: "policyattention", Label: "PolicyAttention", Learned: true, Proposed: true, Parameters: []Parameter{etaOf, startOf}, Published: nominal, New: func(c Case) (control.Controller, error) {
			actor, err := actorOf(c)
			return begun{control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: c.Values[0]}, c.Values[1]}, err
		}},
		anyMDP("any", "actor for any MDP", nil, func(c Case, actor control.Actor) control.Controller {
			return begun{control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: c.Values[0]}, c.Values[1]}
		}),
		{Name: "decoder", Label: "decoder, expectations", Parameters: []Parameter{etaOf, startOf}, As: "exact-pmd", New: func(c Case) (control.Controller, error) {
			actor, critic, err := fixedDecoder(c)
			return begun{control.Loop{Actor: actor, Critic: critic, Eta: min(c.Values[0], decoderMost)}, c.Values[1]}, err
		}},
	},
	Generative: {
		improved("pmd-mean", "PMD, mean of samples", false, nil, meanOf),
		improved("pmd-shrunk", "PMD, shrunk mean", false, []Parameter{weightOf}, shrunkOf),
		improved("pmd-all", "PMD, all samples", false, nil, allOf),
		improved("policyattention-shrunk", "PolicyAttention, shrunk mean", true, []Parameter{weightOf}, shrunkOf),
		improved("policyattention-all", "PolicyAttention, all samples", true, nil, allOf),
		anyMDP("any-all", "actor for any MDP, all samples", nil, onEstimates(allOf)),
		{
			Name: "decoder", Label: "decoder, packets", Parameters: []Parameter{etaOf, startOf}, As: "pmd-mean",
			Can: func(n, states int) bool { return n%(states*Actions) == 0 }, // as many from every pair
			New: func(c Case) (control.Controller, error) {
				actor, critic, err := fixedDecoder(c)
				return baseline.Improved{Critic: critic, Actor: actor, Eta: min(c.Values[0], decoderMost), Start: method.StartOf(c.Values[1])}, err
			},
		},
	},
	Window: {
		improved("pmd-td", "PMD, TD", false, []Parameter{tdOf}, tdEstimate),
		improved("pmd-all", "PMD, all samples", false, nil, allOf),
		improved("policyattention-td", "PolicyAttention, TD", true, []Parameter{tdOf}, tdEstimate),
		improved("policyattention-all", "PolicyAttention, all samples", true, nil, allOf),
		anyMDP("any-td", "actor for any MDP, TD", []Parameter{tdOf}, onEstimates(tdEstimate)),
		anyMDP("any-all", "actor for any MDP, all samples", nil, onEstimates(allOf)),
	},
}

// references are the algorithms of package reference that are told as much.
var references = map[Information][]Method{
	Model: {
		{Name: "natural-gradient", Label: "natural policy gradient", Parameters: []Parameter{etaOf, startOf}, New: func(c Case) (control.Controller, error) {
			return begun{baseline.NaturalPolicyGradient(c.Values[0]), c.Values[1]}, nil
		}},
		{Name: "value-iteration", Label: "value iteration", New: func(Case) (control.Controller, error) { return baseline.ValueIteration(), nil }},
		{Name: "policy-iteration", Label: "policy iteration", New: func(Case) (control.Controller, error) { return baseline.PolicyIteration(), nil }},
	},
	Generative: {
		tabular("q-learning", "Q-learning", "value-iteration", []Parameter{alphaOf}, func(t baseline.Told, v []float64) (baseline.Agent, error) { return baseline.QLearning(t, v[0], 0) }),
		tabular("sarsa", "SARSA", "value-iteration", []Parameter{alphaOf, epsilonOf}, func(t baseline.Told, v []float64) (baseline.Agent, error) { return baseline.Sarsa(t, v[0], v[1]) }),
		tabular("certainty-equivalence", "certainty equivalence", "policy-iteration", nil, func(t baseline.Told, _ []float64) (baseline.Agent, error) {
			return baseline.CertaintyEquivalence(t, 0)
		}),
		tabular("posterior-sampling", "posterior sampling", "policy-iteration", nil, func(t baseline.Told, _ []float64) (baseline.Agent, error) { return baseline.PosteriorSampling(t) }),
	},
	Window: {
		tabular("q-learning", "Q-learning", "value-iteration", []Parameter{alphaOf, epsilonOf}, func(t baseline.Told, v []float64) (baseline.Agent, error) {
			return baseline.QLearning(t, v[0], v[1])
		}),
		tabular("sarsa", "SARSA", "value-iteration", []Parameter{alphaOf, epsilonOf}, func(t baseline.Told, v []float64) (baseline.Agent, error) { return baseline.Sarsa(t, v[0], v[1]) }),
		tabular("certainty-equivalence", "certainty equivalence", "policy-iteration", []Parameter{epsilonOf}, func(t baseline.Told, v []float64) (baseline.Agent, error) {
			return baseline.CertaintyEquivalence(t, v[0])
		}),
		tabular("posterior-sampling", "posterior sampling", "policy-iteration", nil, func(t baseline.Told, _ []float64) (baseline.Agent, error) { return baseline.PosteriorSampling(t) }),
	},
}

// The estimates that an actor improves on; v are the method's own numbers.
func meanOf(t baseline.Told, _ []float64) baseline.Estimator { return baseline.Mean(t, 1) }
func shrunkOf(t baseline.Told, v []float64) baseline.Estimator {
	return baseline.Mean(t, v[0])
}
func allOf(t baseline.Told, _ []float64) baseline.Estimator { return baseline.All(t) }
func tdEstimate(t baseline.Told, v []float64) baseline.Estimator {
	return baseline.TD(t, v[0])
}

// improved is exact PMD, or the learned actor, on estimated values. Its numbers are η, the
// start and the estimator's own.
func improved(name, label string, learned bool, own []Parameter, estimator func(baseline.Told, []float64) baseline.Estimator) Method {
	return Method{
		Name: name, Label: label, Learned: learned, Proposed: learned, Improves: true, Parameters: append([]Parameter{etaOf, startOf}, own...),
		New: func(c Case) (control.Controller, error) {
			actor := baseline.PMD()
			if learned {
				var err error
				if actor, err = actorOf(c); err != nil {
					return nil, err
				}
			}
			return onEstimates(estimator)(c, actor), nil
		},
	}
}

// onEstimates returns how an actor runs on estimated values.
func onEstimates(estimator func(baseline.Told, []float64) baseline.Estimator) func(Case, control.Actor) control.Controller {
	return func(c Case, actor control.Actor) control.Controller {
		critic := &baseline.Sampled{Source: c.Source(), Root: c.Root, New: func(t baseline.Told) baseline.Estimator { return estimator(t, c.Values[2:]) }}
		return baseline.Improved{Critic: critic, Actor: actor, Eta: c.Values[0], Start: method.StartOf(c.Values[1])}
	}
}

// anyMDP is the one actor for any MDP, by its network alone.
func anyMDP(name, label string, own []Parameter, run func(Case, control.Actor) control.Controller) Method {
	return Method{
		Name: name, Label: label, Learned: true, Improves: true, Parameters: append([]Parameter{etaOf, startOf}, own...),
		New: func(c Case) (control.Controller, error) {
			actor, err := anyOf(c)
			if err != nil {
				return nil, err
			}
			return run(c, actor), nil
		},
	}
}

// tabular is an agent of package reference; withModel is what it becomes with the model.
func tabular(name, label, withModel string, own []Parameter, agent func(baseline.Told, []float64) (baseline.Agent, error)) Method {
	return Method{Name: name, Label: label, WithModel: withModel, Parameters: own, New: func(c Case) (control.Controller, error) {
		return baseline.Agents{Source: c.Source(), Root: c.Root, New: func(t baseline.Told) (baseline.Agent, error) { return agent(t, c.Values) }}, nil
	}}
}

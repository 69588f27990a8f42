package lianglai

import (
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/reference"
)

// informed are the trained block's forms with equal information. Its free numbers are both step
// sizes and the start.
func informed() (forms []method.Form) {
	for _, f := range []struct {
		method.Information
		label, withModel string
		published        func(states int) []float64
	}{
		{method.ByModel, "Liang–Lai, expected update", "", nil}, {method.ByGenerative, "Liang–Lai", name, nil}, {method.ByWindow, "Liang–Lai", name, published},
	} {
		forms = append(forms, method.Form{
			Information: f.Information, Label: f.label, Learned: true, WithModel: f.withModel, Published: f.published, New: controllerOf,
			Parameters: []method.Parameter{{Name: "α", Start: 16}, {Name: "β", Start: .4}, method.StartParameter},
		})
	}
	return forms
}

// published are the paper's step sizes and its start, π₀; nil where it has none.
func published(states int) []float64 {
	steps, err := PaperSteps(states)
	if err != nil {
		return nil
	}
	return []float64{steps.Alpha, steps.Beta, 0}
}

// controllerOf returns the trained block in any condition.
func controllerOf(c method.Case) (control.Controller, error) {
	d, err := c.Networks.Deployment(name, "tuned", c.States, c.Run)
	if err != nil {
		return nil, err
	}
	block, err := d.(*Deployment).update(c.Networks.Models(), baseline.StepSizes{Alpha: c.Values[0], Beta: c.Values[1]})
	if err != nil {
		return nil, err
	}
	start := method.StartOf(c.Values[2])
	if c.Information == method.ByModel {
		return expected{block, start}, nil
	}
	return reference.Agents{Source: c.Source(), Root: c.Root, New: func(t reference.Told) (reference.Agent, error) {
		return newBlockAgent(block, t, start, c.Information == method.ByGenerative)
	}}, nil
}

// blockAgent is the block on transitions.
type blockAgent struct {
	*update
	told       reference.Told
	learner    *baseline.ActorCritic
	pi         *mat.Dense
	generative bool
}

// newBlockAgent returns the block as an agent. The update is an expectation under the
// policy, so generative transitions, whose actions are uniform, get the weights
// A·π(a|s)/n.
func newBlockAgent(b *update, t reference.Told, start baseline.Start, generative bool) (reference.Agent, error) {
	l, err := start.Learner(t.Pi0)
	if err != nil {
		return nil, err
	}
	return &blockAgent{b, t, l, l.Policy(), generative}, nil
}

// Behaviour implements reference.Agent.
func (a *blockAgent) Behaviour() *mat.Dense { return a.pi }

// Learn implements reference.Agent.
func (a *blockAgent) Learn(window []baseline.Transition) (*mat.Dense, error) {
	var weights []float64
	if a.generative {
		for _, t := range window {
			weights = append(weights, float64(a.told.Actions)*a.pi.At(t.State, t.Action)/float64(len(window)))
		}
	}
	if err := a.learned(a.learner, window, weights, a.pi, a.told.Meter); err != nil {
		return nil, err
	}
	a.told.Meter.Charge(5 * a.told.States * a.told.Actions) // the softmax
	a.pi = a.learner.Policy()
	return a.pi, nil
}

// expected is the block with the expected update in place of its window: every pair and
// successor with the weight π(a|s)P(s'|s,a)/S. It knows Q^{π₀} at the beginning, like all
// that have the model, so w starts at V^{π₀}.
type expected struct {
	*update
	start baseline.Start
}

// Run implements control.Controller.
func (e expected) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		m := p.MDP
		l, err := e.start.Learner(p.Pi0)
		if err != nil {
			return nil, err
		}
		pi := l.Policy()
		q, err := m.PolicyValue(pi)
		if err != nil {
			return nil, err
		}
		for s := range l.W {
			l.W[s] = mat.Dot(pi.RowView(s), q.RowView(s))
		}
		m.Meter().Charge(2 * m.States() * m.Actions())
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
		for range rounds {
			var all []baseline.Transition
			var weights []float64
			for s := range m.States() {
				for a, chosen := range pi.RawRowView(s) {
					reward := m.Reward(s, a)
					for next, probability := range m.Next(s, a) {
						all = append(all, baseline.Transition{State: s, Action: a, Reward: reward, Next: next})
						weights = append(weights, chosen*probability/float64(m.States()))
					}
				}
			}
			if err := e.learned(l, all, weights, pi, m.Meter()); err != nil {
				return nil, err
			}
			m.Meter().Charge(5 * m.States() * m.Actions())
			pi = l.Policy()
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
			m.Meter().EndRound()
		}
	}
	return trajectories, nil
}

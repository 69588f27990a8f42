package train

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Contexts draws the contexts on which c trains, in the order of its examples.
// They are a pure function of the configuration.
func (c Config) Contexts() ([]control.Context, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	problems, err := mdp.Random.Draw(c.taskRoot(), c.States(), c.Actions, c.MDPs)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	contexts := make([]control.Context, c.Examples)
	for i := range contexts {
		if contexts[i], err = c.context(i, problems); err != nil {
			return nil, fmt.Errorf("train: context %d: %w", i, err)
		}
	}
	return contexts, nil
}

// context draws one context on one of the problems. A critic's runs have the
// mean of its sampled targets in place of the exact backup: at deployment it
// reads tables with sampling errors, and must not learn to expect none.
func (c Config) context(example int, problems []mdp.Problem) (x control.Context, err error) {
	rng := seed.New(c.Seed, "train", "context", example)
	x.MDP = problems[rng.IntN(len(problems))].MDP
	if c.Recipe.Relabel {
		if x.MDP, err = relabel(x.MDP, rng.Perm(c.States()), rng.Perm(c.Actions)); err != nil {
			return x, err
		}
	}
	x.Pi = mdp.RandomPolicy(rng, c.States(), c.Actions)
	if x.Q, err = x.MDP.PolicyValue(x.Pi); err != nil {
		return x, err
	}
	x.Eta = c.Recipe.EtaMin + (c.Recipe.EtaMax-c.Recipe.EtaMin)*rng.Float64()
	rounds := c.Recipe.Rounds
	if example%2 == 1 {
		rounds = c.Recipe.Early
	}
	for range rng.IntN(rounds + 1) {
		before := x.Q
		if x, err = next(x); err != nil {
			return x, err
		}
		if c.Objective == Critic {
			x.Q = c.sample(rng, x.MDP, x.Pi, before).mean
		}
	}
	return x, nil
}

// relabel returns the MDP with state s called states[s] and action a called
// actions[a].
func relabel(m *mdp.MDP, states, actions []int) (*mdp.MDP, error) {
	p, r := m.DenseP(), mat.DenseCopyOf(m.R)
	for s, toState := range states {
		for a, toAction := range actions {
			row := p.RawRowView(toState*len(actions) + toAction)
			for t, probability := range m.Next(s, a) {
				row[states[t]] = probability
			}
			r.Set(toState, toAction, m.R.At(s, a))
		}
	}
	return mdp.New(m.Gamma, p, r)
}

// next returns the context one exact round later.
func next(x control.Context) (control.Context, error) {
	pi, err := pmd.Step(x.Pi, x.Q, x.Eta)
	if err != nil {
		return control.Context{}, err
	}
	return control.Context{MDP: x.MDP, Pi: pi, Q: x.MDP.EvaluationBackup(pi, x.Q), Eta: x.Eta, Round: x.Round + 1}, nil
}

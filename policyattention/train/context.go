package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Contexts draws the contexts on which c trains, in the order of its examples.
// They are a pure function of the configuration.
func (c Config) Contexts() ([]control.Context, error) { return c.contexts(0) }

// contexts draws the contexts of every example in one of its runs, see Recipe.Spread.
func (c Config) contexts(run int) ([]control.Context, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	problems := make([][]mdp.Problem, len(c.Sizes))
	for i, states := range c.Sizes {
		var err error
		if problems[i], err = mdp.Random.Draw(c.taskRoot(), states, c.Actions, c.MDPs); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
	}
	contexts := make([]control.Context, c.Examples)
	for i := range contexts {
		size, turn := i%len(problems), i/len(problems)
		var err error
		if contexts[i], err = c.context(i, run, problems[size], turn%2 == 1); err != nil {
			return nil, fmt.Errorf("train: context %d: %w", i, err)
		}
	}
	return contexts, nil
}

// context draws one context on one of the problems. A critic's runs have the
// mean of its sampled targets in place of the exact backup: at deployment it
// reads tables with sampling errors, and must not learn to expect none. Runs of one
// example are on the same problem, for as many rounds.
func (c Config) context(example, run int, problems []mdp.Problem, early bool) (control.Context, error) {
	rng := seed.New(c.Seed, "train", "context", example)
	m := problems[rng.IntN(len(problems))].MDP
	if c.Recipe.Relabel {
		var err error
		if m, err = relabel(m, rng.Perm(m.States()), rng.Perm(m.Actions())); err != nil {
			return control.Context{}, err
		}
	}
	pi := mdp.RandomPolicy(rng, m.States(), m.Actions())
	if c.Recipe.Contexts == StarvedStarts {
		starve(rng, pi, example/2%2 == 1)
	}
	q, err := m.PolicyValue(pi)
	if err != nil {
		return control.Context{}, err
	}
	x := control.Context{MDP: m, Pi: pi, Q: q}
	x.Eta = c.Recipe.EtaMin + (c.Recipe.EtaMax-c.Recipe.EtaMin)*rng.Float64()
	if c.Recipe.Contexts == RandomPolicies {
		return x, nil
	}
	rounds := c.Recipe.Rounds
	if early {
		rounds = c.Recipe.Early
	}
	rounds = rng.IntN(rounds + 1)
	if run > 0 {
		rng = seed.New(c.Seed, "train", "run", run, example)
	}
	for range rounds {
		before := x.Q
		if x, err = next(x); err != nil {
			return control.Context{}, err
		}
		if c.Objective == Critic {
			x.Q = c.sample(rng, m, x.Pi, before).mean
		}
	}
	return x, nil
}

// starve leaves an action of every state, or of one, little mass.
func starve(rng *rand.Rand, pi *mat.Dense, everywhere bool) {
	states, actions := pi.Dims()
	only := rng.IntN(states)
	for s := range states {
		action, mass := rng.IntN(actions), numeric.Exp(-math.Ln10*(1+float64(11*rng.Float64())))
		if s == only || everywhere {
			pmd.Starve(pi.RawRowView(s), action, mass)
		}
	}
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

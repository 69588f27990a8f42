package train

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Context is one training context of an actor: what round Round of a run shows.
type Context struct {
	MDP   *mdp.MDP
	Pi, Q *mat.Dense // π_k and Q_k [S, A]
	Eta   float64
	Round int
}

// Contexts draws the contexts on which c trains, in the order of its examples.
// They are a pure function of the configuration.
func (c Config) Contexts() ([]Context, error) {
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
	contexts := make([]Context, c.Examples)
	for i := range contexts {
		rng := seed.New(c.Seed, "train", "context", i)
		m := problems[i%len(problems)][rng.IntN(c.MDPs)].MDP
		pi := mdp.RandomPolicy(rng, m.States(), m.Actions())
		q, err := m.PolicyValue(pi)
		if err != nil {
			return nil, fmt.Errorf("train: context %d: %w", i, err)
		}
		x := Context{MDP: m, Pi: pi, Q: q}
		x.Eta = c.Recipe.EtaMin + (c.Recipe.EtaMax-c.Recipe.EtaMin)*rng.Float64()
		if c.Recipe.Contexts == Trajectories {
			for range rng.IntN(c.Recipe.Rounds + 1) {
				if x, err = x.next(); err != nil {
					return nil, fmt.Errorf("train: context %d: %w", i, err)
				}
			}
		}
		contexts[i] = x
	}
	return contexts, nil
}

// next returns the context one exact round later.
func (x Context) next() (Context, error) {
	pi, err := pmd.Step(x.Pi, x.Q, x.Eta)
	if err != nil {
		return Context{}, err
	}
	return Context{MDP: x.MDP, Pi: pi, Q: x.MDP.EvaluationBackup(pi, x.Q), Eta: x.Eta, Round: x.Round + 1}, nil
}

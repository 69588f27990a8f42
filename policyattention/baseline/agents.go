package baseline

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Told is what is known of a problem before the first transition.
type Told struct {
	States, Actions int
	Gamma           float64
	Problem         int        // its index
	Pi0             *mat.Dense // [S, A]
	Rand            *rand.Rand // for draws of the learner's own
}

// Agent learns from transitions alone. It takes in those of a round, and returns the round's policy and the one that
// the next round's walk follows, both [S, A]. Its first call, before there are any, says how it begins; all others have
// some.
type Agent func(window []Transition) (policy, behaviour *mat.Dense, err error)

// Source returns what hands out the transitions of a round of problem i, given the round's policy. Two controllers with
// equal sources get the same random numbers; with a generative source they get the same transitions.
type Source func(i int, m *mdp.MDP) func(round int, behaviour *mat.Dense) []Transition

// Generative draws n transitions a round from pairs of its choice, whatever the policy: as many from every
// state and action, in their order, and where n is no multiple of S·A, one more from
// some, which are others each round until all have had their turn. Each problem's index and round has a stream of its
// own below root. Where n is m·S·A, the transitions are those that a learned critic with m samples and the same root
// draws itself.
func Generative(n int, root uint64) Source {
	return func(i int, m *mdp.MDP) func(int, *mat.Dense) []Transition {
		pairs := m.States() * m.Actions()
		each, more := n/pairs, n%pairs
		return func(round int, _ *mat.Dense) []Transition {
			rng := seed.New(root, "critic", i, round)
			window := make([]Transition, 0, n)
			for pair := range pairs {
				k := each
				if (pair-round*more%pairs+pairs)%pairs < more {
					k++
				}
				for range k {
					t := Transition{State: pair / m.Actions(), Action: pair % m.Actions()}
					t.Reward, t.Next = m.Transition(rng, t.State, t.Action)
					window = append(window, t)
				}
			}
			return window
		}
	}
}

// Walk draws n transitions a round by walking under the agent's policy from where the round before ended, without
// resets, at first from a state drawn uniformly. Each problem's index has a stream of its own below root.
func Walk(n int, root uint64) Source {
	return func(i int, m *mdp.MDP) func(int, *mat.Dense) []Transition {
		chain := NewChain(m, seed.New(root, "baseline", "chain", i))
		return func(_ int, behaviour *mat.Dense) []Transition {
			window := make([]Transition, n)
			chain.Walk(behaviour, window)
			return window
		}
	}
}

// Agents runs an agent of its own on every problem, problems in parallel.
type Agents struct {
	Source Source
	New    func(Told) (Agent, error)
	Root   uint64 // of the agents' own draws
}

// Run implements control.Controller.
func (c Agents) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("baseline: %d rounds, want at least 1", rounds)
	}
	trajectories := make([]control.Trajectory, len(problems))
	return trajectories, numeric.Parallel(len(problems), func(i int) (err error) {
		trajectories[i], err = c.run(problems[i], problems[i].Index(i), rounds)
		return err
	})
}

func (c Agents) run(p mdp.Problem, i, rounds int) (t control.Trajectory, err error) {
	agent, err := c.New(told(p, c.Root, i))
	var pi, behaviour *mat.Dense
	if err == nil {
		_, behaviour, err = agent(nil)
	}
	if err != nil {
		return t, fmt.Errorf("baseline: problem %d: %w", i, err)
	}
	source := c.Source(i, p.MDP)
	t.Policies = []*mat.Dense{p.Pi0}
	for round := range rounds {
		if pi, behaviour, err = agent(source(round, behaviour)); err == nil {
			err = p.MDP.CheckPolicy(pi)
		}
		if err != nil {
			return t, fmt.Errorf("baseline: problem %d, round %d: %w", i, round, err)
		}
		t.Policies = append(t.Policies, pi)
	}
	return t, nil
}

func told(p mdp.Problem, root uint64, i int) Told {
	return Told{
		States: p.MDP.States(), Actions: p.MDP.Actions(), Gamma: p.MDP.Gamma, Problem: i, Pi0: p.Pi0,
		Rand: seed.New(root, "reference", i),
	}
}

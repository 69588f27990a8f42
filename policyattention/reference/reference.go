// Package reference holds the standard algorithms that a method of the harness is set
// beside at equal information: both learn from the model, from a generative source of
// transitions, or from a walk without resets.
//
// Those with the model are a control.Loop of other parts: see PolicyIteration. Those
// that see transitions come in two kinds. An Agent returns policies of its own. An
// Estimator returns action values, from which an actor of any kind makes the policy: see
// Sampled and Improved. Neither is handed the environment; Told is all that it knows beforehand.
//
// Floating-point operations are charged to the meter of the environment where they are
// done, by the count that stands beside them; see mdp.Meter for what is one. Random
// draws and bookkeeping of integers are none.
package reference

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Told is what is known of a problem before the first transition.
type Told struct {
	States, Actions int
	Gamma           float64
	Pi0             *mat.Dense // [S, A]
	Meter           *mdp.Meter // to charge operations to; may be nil
	Rand            *rand.Rand // for draws of the learner's own
}

// Agent learns from transitions alone.
type Agent interface {
	// Behaviour returns the policy [S, A] that the next round's walk follows.
	Behaviour() *mat.Dense
	// Learn takes in a round's transitions and returns the round's policy [S, A].
	Learn(window []baseline.Transition) (*mat.Dense, error)
}

// Source hands out the transitions of a round. Two controllers with equal sources get
// the same random numbers; with a generative source they get the same transitions.
type Source interface {
	// Open returns the stream of problem i. Its argument is the round's policy, which a
	// generative stream ignores.
	Open(i int, m *mdp.MDP) func(round int, behaviour *mat.Dense) []baseline.Transition
}

// Generative draws N transitions a round from pairs of its choice: as many from every
// state and action, in their order, and where N is no multiple of S·A, one more from
// some, which are others each round until all have had their turn.
type Generative struct {
	N    int
	Root uint64 // of the streams, one for each problem's index and round
}

// Open implements Source. Where N is m·S·A, the transitions are those that a learned
// critic with m samples and the same root draws itself.
func (g Generative) Open(i int, m *mdp.MDP) func(int, *mat.Dense) []baseline.Transition {
	states, actions := m.States(), m.Actions()
	pairs := states * actions
	each, more := g.N/pairs, g.N%pairs
	return func(round int, _ *mat.Dense) []baseline.Transition {
		rng := seed.New(g.Root, "critic", i, round)
		window := make([]baseline.Transition, 0, g.N)
		for pair := range pairs {
			n := each
			if (pair-round*more%pairs+pairs)%pairs < more {
				n++
			}
			for range n {
				t := baseline.Transition{State: pair / actions, Action: pair % actions}
				t.Reward, t.Next = m.Transition(rng, t.State, t.Action)
				window = append(window, t)
			}
		}
		return window
	}
}

// Walk draws N transitions a round by walking under the agent's policy from where the
// round before ended, without resets.
type Walk struct {
	N    int
	Root uint64 // of the streams, one for each problem's index
}

// Open implements Source. The walk is that of baseline.Run with the same root.
func (w Walk) Open(i int, m *mdp.MDP) func(int, *mat.Dense) []baseline.Transition {
	chain := baseline.NewChain(m, seed.New(w.Root, "baseline", "chain", i))
	return func(_ int, behaviour *mat.Dense) []baseline.Transition {
		window := make([]baseline.Transition, w.N)
		chain.Walk(behaviour, window)
		return window
	}
}

// Agents runs an agent of its own on every problem.
type Agents struct {
	Source Source
	New    func(Told) (Agent, error)
	Root   uint64 // of the agents' own draws
}

// Run implements control.Controller.
func (c Agents) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		agent, err := c.New(told(p, c.Root, i))
		if err != nil {
			return nil, fmt.Errorf("reference: problem %d: %w", i, err)
		}
		source := c.Source.Open(i, p.MDP)
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
		for round := range rounds {
			pi, err := agent.Learn(source(round, agent.Behaviour()))
			if err == nil {
				err = p.MDP.CheckPolicy(pi)
			}
			if err != nil {
				return nil, fmt.Errorf("reference: problem %d, round %d: %w", i, round, err)
			}
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
			p.MDP.Meter().EndRound()
		}
	}
	return trajectories, nil
}

func told(p mdp.Problem, root uint64, i int) Told {
	return Told{
		States: p.MDP.States(), Actions: p.MDP.Actions(), Gamma: p.MDP.Gamma, Pi0: p.Pi0,
		Meter: p.MDP.Meter(), Rand: seed.New(root, "reference", i),
	}
}

// Estimator returns the action values Q_{k+1} [S, A] of the policy pi from Q_k and a
// round's transitions, which were drawn under pi or from all pairs. It must change
// neither pi nor q.
type Estimator interface {
	Estimate(pi, q *mat.Dense, window []baseline.Transition) (*mat.Dense, error)
}

// Sampled is the critic that forms Q_{k+1} from a round's transitions alone.
type Sampled struct {
	Source Source
	New    func(Told) Estimator
	Root   uint64 // of the estimators' own draws

	streams map[int]stream // by problem, from its round 0
}

type stream struct {
	draw      func(round int, behaviour *mat.Dense) []baseline.Transition
	estimator Estimator
}

// Evaluate implements control.Critic.
func (c *Sampled) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	if c.streams == nil {
		c.streams = map[int]stream{}
	}
	return control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
		if x.Round == 0 {
			known := told(mdp.Problem{MDP: x.MDP, Pi0: x.Pi}, c.Root, x.Problem)
			c.streams[x.Problem] = stream{c.Source.Open(x.Problem, x.MDP), c.New(known)}
		}
		s, ok := c.streams[x.Problem]
		if !ok {
			return nil, fmt.Errorf("reference: problem %d begins at round %d, want 0", x.Problem, x.Round)
		}
		return s.estimator.Estimate(x.Pi, x.Q, s.draw(x.Round, x.Pi))
	}).Evaluate(batch)
}

// Improved runs a critic that learns from transitions, and an actor: each round the critic
// returns Q_{k+1} of π_k, and the actor the round's policy from (π_k, Q_{k+1}, η). It is a
// control.Loop that begins with the critic, since nothing is known of Q before the first
// transition: Q_0 = 0.
type Improved struct {
	Critic control.Critic
	Actor  control.Actor
	Eta    float64
	Start  baseline.Start
}

// Run implements control.Controller.
func (c Improved) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	if err := pmd.CheckStep(c.Eta); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	trajectories, batch := make([]control.Trajectory, len(problems)), make([]control.Context, len(problems))
	for i, p := range problems {
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
		pi := p.Pi0
		if c.Start == baseline.Uniform {
			pi = p.MDP.Uniform()
		}
		batch[i] = control.Context{Problem: i, MDP: p.MDP, Pi: pi, Q: mat.NewDense(p.MDP.States(), p.MDP.Actions(), nil), Eta: c.Eta}
	}
	for round := range rounds {
		for i := range batch {
			batch[i].Round = round
		}
		values, err := control.Evaluate(c.Critic, batch)
		if err != nil {
			return nil, fmt.Errorf("reference: round %d: %w", round, err)
		}
		for i, q := range values {
			batch[i].Q = q
		}
		policies, err := control.Act(c.Actor, batch)
		if err != nil {
			return nil, fmt.Errorf("reference: round %d: %w", round, err)
		}
		for i, pi := range policies {
			batch[i].Pi = pi
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
			problems[i].MDP.Meter().EndRound()
		}
	}
	return trajectories, nil
}

// Package control runs controllers in closed loop and scores the policies they
// return.
//
// A Controller is whatever turns problems into one returned policy a round. The
// paper's own controllers are a Loop of an Actor and a Critic; other methods
// implement Controller themselves. All are scored by the one exact evaluator,
// Score.
package control

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// NominalStep is the step size η at deployment.
const NominalStep = 0.8

// Context is what an actor or a critic is shown of one problem in one round.
type Context struct {
	Problem int        // index of the problem, for a critic that keeps a stream for each
	Round   int        // round k, from 0
	MDP     *mdp.MDP   // the environment; an actor must not read it
	Pi      *mat.Dense // actor: π̂_k; critic: the returned π̂_{k+1}. [S, A], row-stochastic
	Q       *mat.Dense // Q_k [S, A]
	Eta     float64    // step size η_k
}

// Actor maps each context (π̂_k, Q_k, η_k) of a batch to the returned policy
// π̂_{k+1} [S, A].
type Actor interface {
	Act(batch []Context) ([]*mat.Dense, error)
}

// Critic maps each context (π̂_{k+1}, Q_k) of a batch to Q_{k+1} [S, A], one
// step of policy evaluation.
type Critic interface {
	Evaluate(batch []Context) ([]*mat.Dense, error)
}

// Controller returns one policy a round for every problem.
type Controller interface {
	// Run returns one trajectory of the given number of rounds a problem.
	Run(problems []mdp.Problem, rounds int) ([]Trajectory, error)
}

// Trajectory is what a controller did on one problem in T rounds.
type Trajectory struct {
	// Policies holds π_0 and the returned policies π̂_1, …, π̂_T, each [S, A].
	Policies []*mat.Dense
	// Q holds the critic's tables Q_0, …, Q_{T−1}, each [S, A], from which the
	// policies were formed; it is nil for a controller without such tables.
	Q []*mat.Dense
	// Eta is the step size of every round; it has no meaning when Q is nil.
	Eta float64
}

// Loop is the actor–environment–critic loop of Figure 1. It starts from Q_0 =
// Q^{π_0}; the last round ends with the actor, since no critic call could
// change the policy already returned.
type Loop struct {
	Actor  Actor
	Critic Critic
	Eta    float64 // constant step size η ≥ 0
}

// Run implements Controller.
func (l Loop) Run(problems []mdp.Problem, rounds int) ([]Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("control: %d rounds, want at least 1", rounds)
	}
	batch := make([]Context, len(problems))
	trajectories := make([]Trajectory, len(problems))
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, fmt.Errorf("control: problem %d: %w", i, err)
		}
		batch[i] = Context{Problem: i, MDP: p.MDP, Pi: p.Pi0, Q: q, Eta: l.Eta}
		trajectories[i] = Trajectory{Policies: []*mat.Dense{p.Pi0}, Q: []*mat.Dense{q}, Eta: l.Eta}
	}
	for round := range rounds {
		policies, err := l.Actor.Act(batch)
		if err != nil {
			return nil, fmt.Errorf("control: actor in round %d: %w", round, err)
		}
		if err := check("actor", policies, batch, (*mdp.MDP).CheckPolicy); err != nil {
			return nil, fmt.Errorf("control: round %d: %w", round, err)
		}
		for i := range batch {
			batch[i].Pi = policies[i]
			trajectories[i].Policies = append(trajectories[i].Policies, policies[i])
		}
		if round == rounds-1 {
			break
		}
		values, err := l.Critic.Evaluate(batch)
		if err != nil {
			return nil, fmt.Errorf("control: critic in round %d: %w", round, err)
		}
		checkValues := func(m *mdp.MDP, q *mat.Dense) error { return m.CheckTable("Q", q) }
		if err := check("critic", values, batch, checkValues); err != nil {
			return nil, fmt.Errorf("control: round %d: %w", round, err)
		}
		for i := range batch {
			batch[i].Q, batch[i].Round = values[i], round+1
			trajectories[i].Q = append(trajectories[i].Q, values[i])
		}
	}
	return trajectories, nil
}

// check reports a table that the part of the loop called name should not have
// returned.
func check(name string, tables []*mat.Dense, batch []Context, valid func(*mdp.MDP, *mat.Dense) error) error {
	if len(tables) != len(batch) {
		return fmt.Errorf("the %s returned %d tables for %d contexts", name, len(tables), len(batch))
	}
	for i, table := range tables {
		if err := valid(batch[i].MDP, table); err != nil {
			return fmt.Errorf("the %s on problem %d: %w", name, i, err)
		}
	}
	return nil
}

// RuleActor is an Actor that applies a fixed update rule; RuleActor(pmd.PMD) is
// the exact actor.
type RuleActor pmd.Rule

// Act implements Actor.
func (r RuleActor) Act(batch []Context) ([]*mat.Dense, error) {
	return each(batch, func(c Context) (*mat.Dense, error) {
		return pmd.Rule(r).Update(c.Pi, c.Q, c.Eta)
	})
}

// MixedActor returns the mixture (1−φ)p + φ/A of another actor's policies p with
// the uniform policy (Section 4.2).
type MixedActor struct {
	Actor Actor
	Phi   float64 // φ in [0, 1]
}

// Act implements Actor.
func (m MixedActor) Act(batch []Context) ([]*mat.Dense, error) {
	policies, err := m.Actor.Act(batch)
	if err != nil {
		return nil, err
	}
	for i, p := range policies {
		if policies[i], err = pmd.Mix(p, m.Phi); err != nil {
			return nil, err
		}
	}
	return policies, nil
}

// ExactCritic is the model-based one-step backup Q_{k+1} = F^{π̂_{k+1}} Q_k.
type ExactCritic struct{}

// Evaluate implements Critic.
func (ExactCritic) Evaluate(batch []Context) ([]*mat.Dense, error) {
	return each(batch, func(c Context) (*mat.Dense, error) {
		return c.MDP.EvaluationBackup(c.Pi, c.Q), nil
	})
}

func each(batch []Context, f func(Context) (*mat.Dense, error)) ([]*mat.Dense, error) {
	out := make([]*mat.Dense, len(batch))
	for i, c := range batch {
		var err error
		if out[i], err = f(c); err != nil {
			return nil, fmt.Errorf("problem %d: %w", c.Problem, err)
		}
	}
	return out, nil
}

// ExactPMD is the oracle: exact actor and exact critic with step size eta.
func ExactPMD(eta float64) Loop {
	return Loop{Actor: RuleActor(pmd.PMD), Critic: ExactCritic{}, Eta: eta}
}

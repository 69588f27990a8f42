// Package control runs controllers in closed loop and scores the policies they
// return.
//
// A Controller is whatever turns problems into one returned policy a round. The
// paper's own controllers are a Loop of an Actor and a Critic; other methods
// implement Controller themselves. All are scored by the one exact evaluator,
// Score.
package control

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// NominalStep is the step size η at deployment.
const NominalStep = 0.8

// LogFloor bounds log π from below wherever a network that takes log π sees it.
const LogFloor = -30

// Context is what an actor or a critic is shown of one problem in one round.
type Context struct {
	Problem int        // index of the problem, for a critic that keeps a stream for each
	Round   int        // round k, from 0
	MDP     *mdp.MDP   // the environment; an actor must not read it
	Pi      *mat.Dense // actor: π̂_k; critic: the returned π̂_{k+1}. [S, A], row-stochastic
	Q       *mat.Dense // Q_k [S, A]
	Eta     float64    // step size η_k
}

// Check returns an error if c is invalid for s states and a actions: if Pi is not a
// policy [s, a], Q is not [s, a] and finite, or η is not finite and ≥ 0. The MDP may
// be missing.
func (c Context) Check(s, a int) error {
	if err := mdp.CheckPolicy(c.Pi, s, a); err != nil {
		return err
	}
	if err := mdp.CheckTable("Q", c.Q, s, a); err != nil {
		return err
	}
	return pmd.CheckStep(c.Eta)
}

// Actor maps each context (π̂_k, Q_k, η_k) of a batch to the returned policy
// π̂_{k+1} [S, A]. A Loop hands out copies of Pi and Q and copies what it gets,
// so an Actor may change and return them; it must not change the MDP.
type Actor interface {
	Act(batch []Context) ([]*mat.Dense, error)
}

// Critic maps each context (π̂_{k+1}, Q_k) of a batch to Q_{k+1} [S, A], one
// step of policy evaluation. It may do with Pi and Q what an Actor may.
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

// Run implements Controller. It returns an error if an Actor or a Critic is
// missing, Eta is not a step size, a problem lacks its MDP or has an invalid π_0,
// or either part returns an invalid policy or a table that is not [S, A] and
// finite.
func (l Loop) Run(problems []mdp.Problem, rounds int) ([]Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("control: %d rounds, want at least 1", rounds)
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	trajectories := make([]Trajectory, len(problems))
	for i, p := range problems {
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("control: problem %d: %w", i, err)
		}
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, fmt.Errorf("control: problem %d: %w", i, err)
		}
		trajectories[i] = Trajectory{Policies: []*mat.Dense{p.Pi0}, Q: []*mat.Dense{q}, Eta: l.Eta}
	}
	contexts := func(round int) []Context {
		batch := make([]Context, len(problems))
		for i, t := range trajectories {
			batch[i] = Context{
				Problem: i, Round: round, MDP: problems[i].MDP, Eta: l.Eta,
				Pi: t.Policies[len(t.Policies)-1], Q: t.Q[len(t.Q)-1],
			}
		}
		return batch
	}
	for round := range rounds {
		policies, err := Act(l.Actor, contexts(round))
		if err != nil {
			return nil, fmt.Errorf("control: round %d: %w", round, err)
		}
		for i, pi := range policies {
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
			problems[i].MDP.Meter().EndRound()
		}
		if round == rounds-1 {
			break
		}
		values, err := Evaluate(l.Critic, contexts(round))
		if err != nil {
			return nil, fmt.Errorf("control: round %d: %w", round, err)
		}
		for i, q := range values {
			trajectories[i].Q = append(trajectories[i].Q, q)
		}
	}
	return trajectories, nil
}

// check reports a missing part and an invalid step size.
func (l Loop) check() error {
	if l.Actor == nil || l.Critic == nil {
		return fmt.Errorf("control: a loop of the actor %T and the critic %T, want both", l.Actor, l.Critic)
	}
	if err := pmd.CheckStep(l.Eta); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Act returns what an actor answers to contexts, as a Loop asks it: the actor is given
// copies, so that nothing it does to them reaches the caller's tables, and the policies,
// one a context, are copied and checked. An error names the context's problem.
func Act(actor Actor, batch []Context) ([]*mat.Dense, error) {
	policies, err := actor.Act(copies(batch))
	if err != nil {
		return nil, fmt.Errorf("actor: %w", err)
	}
	return checked("actor", policies, batch, mdp.CheckPolicy)
}

// Evaluate is the same for a critic's tables [S, A].
func Evaluate(critic Critic, batch []Context) ([]*mat.Dense, error) {
	values, err := critic.Evaluate(copies(batch))
	if err != nil {
		return nil, fmt.Errorf("critic: %w", err)
	}
	return checked("critic", values, batch, func(q *mat.Dense, s, a int) error { return mdp.CheckTable("Q", q, s, a) })
}

func copies(batch []Context) []Context {
	own := make([]Context, len(batch))
	for i, c := range batch {
		c.Pi, c.Q = mat.DenseCopyOf(c.Pi), mat.DenseCopyOf(c.Q)
		own[i] = c
	}
	return own
}

// checked returns copies of tables, or an error that names the one which the part
// of the loop called name should not have returned.
func checked(name string, tables []*mat.Dense, batch []Context, valid func(table *mat.Dense, s, a int) error) ([]*mat.Dense, error) {
	if len(tables) != len(batch) {
		return nil, fmt.Errorf("the %s returned %d tables for %d contexts", name, len(tables), len(batch))
	}
	own := make([]*mat.Dense, len(tables))
	for i, table := range tables {
		s, a := batch[i].Pi.Dims()
		if err := valid(table, s, a); err != nil {
			return nil, fmt.Errorf("the %s on problem %d: %w", name, batch[i].Problem, err)
		}
		own[i] = mat.DenseCopyOf(table)
	}
	return own, nil
}

// ActorFunc is an Actor that treats each context by itself: f returns π̂_{k+1}
// [S, A]. An error names the problem.
type ActorFunc func(c Context) (*mat.Dense, error)

// Act implements Actor.
func (f ActorFunc) Act(batch []Context) ([]*mat.Dense, error) { return each(batch, f) }

// CriticFunc is a Critic that treats each context by itself: f returns Q_{k+1}
// [S, A]. An error names the problem.
type CriticFunc func(c Context) (*mat.Dense, error)

// Evaluate implements Critic.
func (f CriticFunc) Evaluate(batch []Context) ([]*mat.Dense, error) { return each(batch, f) }

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
	if m.Actor == nil {
		return nil, errors.New("control: a mixture without an actor")
	}
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
		if c.MDP == nil {
			return nil, errors.New("the exact critic needs the MDP")
		}
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

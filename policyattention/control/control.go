// Package control runs controllers in closed loop and scores the policies they return.
//
// A Controller is whatever turns problems into one returned policy a round. The paper's own controllers are a Loop of
// an Actor and a Critic; other methods implement Controller themselves. Score, the exact evaluator, scores all.
package control

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

const (
	NominalStep = 0.8 // the step size η at deployment
	LogFloor    = -30 // bounds log π from below wherever a network that takes log π sees it
)

// Context is what an actor or a critic is shown of one problem in one round.
type Context struct {
	Problem int        // index of the problem, for a critic that keeps a stream for each
	Round   int        // round k, from 0
	MDP     *mdp.MDP   // the environment; an actor must not read it
	Pi      *mat.Dense // actor: π̂_k; critic: the returned π̂_{k+1}. [S, A], row-stochastic
	LogPi   *mat.Dense // log π [S, A], which may lie below every float64's; nil stands for the logarithm of Pi
	Q       *mat.Dense // Q_k [S, A], −Inf for an action that does not exist
	Eta     float64    // step size η_k
}

// Check returns an error if c is invalid for s states and a actions: if Pi is not a policy [s, a], Q is not [s, a] and
// finite where the action exists, or η is not finite and ≥ 0. The MDP may be missing.
func (c Context) Check(s, a int) error {
	if err := c.checkPolicy(c.Pi, s, a); err != nil {
		return err
	}
	if err := c.checkTable(c.Q, s, a); err != nil {
		return err
	}
	return pmd.CheckStep(c.Eta)
}

// checkPolicy reports why pi is not a policy of the context's problem.
func (c Context) checkPolicy(pi *mat.Dense, s, a int) error {
	if c.MDP != nil && c.MDP.Masked() {
		return c.MDP.CheckPolicy(pi)
	}
	return mdp.CheckPolicy(pi, s, a)
}

// checkTable reports why q is not a table of values of the context's problem.
func (c Context) checkTable(q *mat.Dense, s, a int) error {
	if c.MDP != nil && c.MDP.Masked() {
		return c.MDP.CheckTable("Q", q)
	}
	return mdp.CheckTable("Q", q, s, a)
}

// Actor maps each context (π̂_k, Q_k, η_k) of a batch to the returned policy π̂_{k+1} [S, A], perhaps with its
// logarithm, which tells a probability below the smallest float64 from none. A Loop hands out copies of Pi and Q and
// copies what it gets, so an Actor may change and return them; it must not change the MDP.
type Actor interface {
	Act(batch []Context) ([]pmd.Policy, error)
}

// Critic maps each context (π̂_{k+1}, Q_k) of a batch to Q_{k+1} [S, A]. It may change Pi and Q, as an Actor may.
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
	Policies []*mat.Dense // π_0 and the returned policies π̂_1, …, π̂_T, each [S, A]
	Logs     []*mat.Dense // their logarithms where the actor returned them; nil stands for that of Policies
	Q        []*mat.Dense // Q_0, …, Q_{T−1} [S, A], from which they were formed; nil for a controller without
	Eta      []float64    // step sizes η_0, …, η_{T−1} of rounds with such tables
}

// Loop is the actor–environment–critic loop of Figure 1. It ends with the actor: no critic could change its policy.
type Loop struct {
	Actor    Actor
	Critic   Critic
	Eta      float64                                 // constant step size η ≥ 0
	Schedule func(k int) float64                     // in place of Eta, the step size η_k of round k from 0
	Start    func(p mdp.Problem) (*mat.Dense, error) // Q_0 [S, A], in place of Q^{π_0}
}

// eta returns η_k.
func (l Loop) eta(k int) float64 {
	if l.Schedule != nil {
		return l.Schedule(k)
	}
	return l.Eta
}

// start returns Q_0.
func (l Loop) start(p mdp.Problem) (*mat.Dense, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if l.Start == nil {
		return p.MDP.PolicyValue(p.Pi0)
	}
	q, err := l.Start(p)
	if err != nil {
		return nil, err
	}
	return q, p.MDP.CheckTable("Q", q)
}

// Run implements Controller. It returns an error if an Actor or a Critic is missing, a step size is none, a problem
// lacks its MDP or has an invalid π_0, or either part returns an invalid policy or a table that is not [S, A] and
// finite where the action exists.
func (l Loop) Run(problems []mdp.Problem, rounds int) ([]Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("control: %d rounds, want at least 1", rounds)
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	trajectories := make([]Trajectory, len(problems))
	for i, p := range problems {
		q, err := l.start(p)
		if err != nil {
			return nil, fmt.Errorf("control: problem %d: %w", i, err)
		}
		trajectories[i] = Trajectory{Policies: []*mat.Dense{p.Pi0}, Logs: []*mat.Dense{nil}, Q: []*mat.Dense{q}}
	}
	contexts := func(round int) []Context {
		batch := make([]Context, len(problems))
		for i, t := range trajectories {
			last := len(t.Policies) - 1
			batch[i] = Context{
				Problem: problems[i].Index(i), Round: round, MDP: problems[i].MDP, Eta: l.eta(round),
				Pi: t.Policies[last], LogPi: t.Logs[last], Q: t.Q[len(t.Q)-1],
			}
		}
		return batch
	}
	for round := range rounds {
		policies, err := Act(l.Actor, contexts(round))
		if err != nil {
			return nil, fmt.Errorf("control: round %d: %w", round, err)
		}
		for i, p := range policies {
			t := &trajectories[i]
			t.Policies, t.Logs = append(t.Policies, p.Pi), append(t.Logs, p.Log)
			t.Eta = append(t.Eta, l.eta(round))
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
	if err := pmd.CheckStep(l.eta(0)); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Act returns what an actor answers to contexts, as a Loop asks it: the actor is given copies, so that nothing it does
// reaches the caller's tables, and the policies, one a context, are copied and checked. An error names the problem.
func Act(actor Actor, batch []Context) ([]pmd.Policy, error) {
	valid := func(c Context, p pmd.Policy, s, a int) error { return c.checkPolicy(p.Pi, s, a) }
	answers, err := actor.Act(copies(batch))
	return checked("actor", batch, answers, err, valid, pmd.Policy.Clone)
}

// Evaluate is the same for a critic's tables [S, A].
func Evaluate(critic Critic, batch []Context) ([]*mat.Dense, error) {
	clone := func(q *mat.Dense) *mat.Dense { return mat.DenseCopyOf(q) }
	answers, err := critic.Evaluate(copies(batch))
	return checked("critic", batch, answers, err, Context.checkTable, clone)
}

// copies returns contexts whose tables are the callee's own.
func copies(batch []Context) []Context {
	given := slices.Clone(batch)
	for i, c := range batch {
		p := pmd.Policy{Pi: c.Pi, Log: c.LogPi}.Clone()
		given[i].Pi, given[i].LogPi, given[i].Q = p.Pi, p.Log, mat.DenseCopyOf(c.Q)
	}
	return given
}

// checked returns clones of what a part of the loop has answered to contexts, or an error, also of a wrong answer.
func checked[T any](part string, batch []Context, answers []T, err error,
	valid func(c Context, answer T, s, a int) error, clone func(T) T) ([]T, error) {
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("returned %d tables for %d contexts", len(answers), len(batch))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	own := make([]T, len(batch))
	for i, c := range batch {
		s, a := c.Pi.Dims()
		if err := valid(c, answers[i], s, a); err != nil {
			return nil, fmt.Errorf("%s: problem %d: %w", part, c.Problem, err)
		}
		own[i] = clone(answers[i])
	}
	return own, nil
}

// ActorFunc is an Actor that treats each context by itself: f returns π̂_{k+1} [S, A]. An error names the problem.
type ActorFunc func(c Context) (*mat.Dense, error)

// Act implements Actor.
func (f ActorFunc) Act(batch []Context) ([]pmd.Policy, error) {
	return each(batch, func(c Context) (pmd.Policy, error) {
		pi, err := f(c)
		return pmd.Policy{Pi: pi}, err
	})
}

// CriticFunc is a Critic that treats each context by itself: f returns Q_{k+1} [S, A]. An error names the problem.
type CriticFunc func(c Context) (*mat.Dense, error)

// Evaluate implements Critic.
func (f CriticFunc) Evaluate(batch []Context) ([]*mat.Dense, error) { return each(batch, f) }

// RuleActor is an Actor that applies a fixed update rule, with logarithms; RuleActor(pmd.PMD) is the exact actor.
type RuleActor pmd.Rule

// Act implements Actor.
func (r RuleActor) Act(batch []Context) ([]pmd.Policy, error) {
	return each(batch, func(c Context) (pmd.Policy, error) {
		return pmd.Rule(r).Next(pmd.Policy{Pi: c.Pi, Log: c.LogPi}, c.Q, c.Eta)
	})
}

// MixedActor mixes another actor's policies p with the uniform policy of each state: (1−φ)p + φ/A (Section 4.2).
type MixedActor struct {
	Actor Actor
	Phi   float64 // φ in [0, 1]
}

// Act implements Actor.
func (m MixedActor) Act(batch []Context) ([]pmd.Policy, error) {
	if m.Actor == nil {
		return nil, errors.New("control: a mixture without an actor")
	}
	own := slices.Clone(batch) // the actor may write over its own
	policies, err := m.Actor.Act(batch)
	if err != nil {
		return nil, err
	}
	for i, p := range policies {
		policies[i].Log = nil
		if env := own[i].MDP; env != nil && env.Masked() {
			policies[i].Pi, err = pmd.MixWith(p.Pi, env.Uniform(), m.Phi)
		} else {
			policies[i].Pi, err = pmd.Mix(p.Pi, m.Phi)
		}
		if err != nil {
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

// ValueCritic returns the action values of the policy themselves, Q_{k+1} = Q^{π̂_{k+1}}, by an exact solve, which
// costs much more than ExactCritic's backup and forgets Q_k at once. Exact PMD with it converges linearly where steps
// grow by 1/γ a round or more (Xiao, 2022), and approaches policy iteration as they grow faster.
type ValueCritic struct{}

// Evaluate implements Critic.
func (ValueCritic) Evaluate(batch []Context) ([]*mat.Dense, error) {
	return each(batch, func(c Context) (*mat.Dense, error) {
		if c.MDP == nil {
			return nil, errors.New("the exact critic needs the MDP")
		}
		return c.MDP.PolicyValueFrom(c.Pi, c.Q)
	})
}

func each[T any](batch []Context, f func(Context) (T, error)) (out []T, err error) {
	out = make([]T, len(batch))
	for i, c := range batch {
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

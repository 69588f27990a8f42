package control

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Turn is what a controller does in one round on one problem: from the context
// (π̂_k, Q_k, η_k) it returns the policy π̂_{k+1} and the table Q_{k+1} formed
// under it, each [S, A]. It must not change the context. A nil Q_{k+1} says that
// there was no critic call, as in the last round of a trajectory.
type Turn func(c Context) (next pmd.Policy, nextQ *mat.Dense, err error)

// Round is one measured round k. Tables are [S, A].
type Round struct {
	Index  int        // k, from 0
	Pi, Q  *mat.Dense // the context (π̂_k, Q_k)
	LogPi  *mat.Dense // log π̂_k, or nil where it is the logarithm of Pi
	Eta    float64    // η_k
	NextPi *mat.Dense // the policy returned, π̂_{k+1}
	NextQ  *mat.Dense // Q_{k+1}, or nil

	Zeta   float64 // ζ_k, equation (4), in [0, 2]
	RowL1  float64 // the mean over states where ζ_k takes the maximum
	Delta  float64 // δ_k, equation (5), in units of Q; 0 where NextQ is nil
	Defect float64 // ḡ_k, the lifted greedy defect, in units of Q
	// Distance is ‖Q* − Q^{π̂_{k+1}}‖∞, by exact solves.
	Distance float64
	// Bound is what Theorem 2 says of Distance, at T = k+1, in every context; +Inf at γ = 1. The critic call of
	// this round has no part in it.
	Bound pmd.Bound
}

// Runner takes one problem through rounds and measures each against exact PMD,
// the exact backup and the exact solution. Its Step is the only place where ζ,
// δ, ḡ and the distance to Q* are computed: for the trajectories of Score, for
// package decoder's runs, and for the web page.
type Runner struct {
	*Scale
	Eta float64 // step size of the round to come
	E0  float64 // ‖Q* − Q_0‖∞

	turn   Turn
	pi     pmd.Policy // the context of the round to come
	q      *mat.Dense
	rounds int
	delta  float64   // of the latest round
	bound  pmd.Bound // for it
}

// NewRunner returns a runner on the problem from the table q0 [S, A], with the
// step size eta, which its user may change between rounds. Nothing has been computed but Q* and Q^{π_0}. It returns
// an error if the problem, q0 or eta is invalid, or turn is nil.
func NewRunner(problem mdp.Problem, q0 *mat.Dense, eta float64, turn Turn) (*Runner, error) {
	scale, err := NewScale(problem)
	if err != nil {
		return nil, err
	}
	return scale.runner(q0, eta, turn)
}

// runner is NewRunner for the problem of a scale.
func (s *Scale) runner(q0 *mat.Dense, eta float64, turn Turn) (*Runner, error) {
	if err := s.Problem.MDP.CheckTable("Q", q0); err != nil {
		return nil, err
	}
	if err := pmd.CheckStep(eta); err != nil {
		return nil, err
	}
	if turn == nil {
		return nil, errors.New("control: a runner without a turn")
	}
	e0 := mdp.MaxAbsDiff(s.Optimum.Q, q0)
	return &Runner{
		Scale: s, Eta: eta, E0: e0, turn: turn, pi: pmd.Policy{Pi: s.Problem.Pi0}, q: q0,
		bound: pmd.StartBound(s.Problem.MDP.Gamma, e0),
	}, nil
}

// Step runs and measures the next round. It returns an error, and leaves the
// runner where it was, if the turn fails or returns an invalid policy or table,
// and after a round without critic call.
func (r *Runner) Step() (*Round, error) {
	k, err := r.measure()
	if err != nil {
		return nil, fmt.Errorf("control: round %d: %w", r.rounds, err)
	}
	return k, nil
}

// measure takes the turn of the next round and measures it.
func (r *Runner) measure() (*Round, error) {
	if r.q == nil {
		return nil, errors.New("the round before had no critic call, so there is no Q to go on from")
	}
	m := r.Problem.MDP
	k := &Round{Index: r.rounds, Pi: r.pi.Pi, LogPi: r.pi.Log, Q: r.q, Eta: r.Eta}
	next, nextQ, err := r.turn(Context{Round: k.Index, MDP: m, Pi: k.Pi, LogPi: k.LogPi, Q: k.Q, Eta: r.Eta})
	if err != nil {
		return nil, err
	}
	k.NextPi, k.NextQ = next.Pi, nextQ
	if k.Distance, err = r.distance(k.NextPi); err != nil {
		return nil, fmt.Errorf("the policy returned: %w", err)
	}
	exact, err := pmd.PMD.Next(r.pi, k.Q, r.Eta)
	if err != nil {
		return nil, err
	}
	k.Zeta, k.RowL1 = pmd.MaxRowL1(k.NextPi, exact.Pi), pmd.RowL1(k.NextPi, exact.Pi)
	k.Defect = pmd.LiftedDefect(m, pmd.GreedyDefect(k.NextPi, k.Q))
	if k.NextQ != nil {
		if err := m.CheckTable("Q", k.NextQ); err != nil {
			return nil, err
		}
		k.Delta = pmd.Delta(m, k.NextQ, k.NextPi, k.Q)
	}
	k.Bound = r.bound.Next(m.Gamma, r.delta, k.Defect)
	r.pi, r.q, r.delta, r.bound, r.rounds = next, nextQ, k.Delta, k.Bound, r.rounds+1
	return k, nil
}

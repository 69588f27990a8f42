package control

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Round is one measured round k. Tables are [S, A].
type Round struct {
	Index   int        // k, from 0
	Pi, Q   *mat.Dense // the context (π̂_k, Q_k)
	LogPi   *mat.Dense // log π̂_k, or nil where it is the logarithm of Pi
	Eta     float64    // η_k
	NextPi  *mat.Dense // the policy returned, π̂_{k+1}
	NextLog *mat.Dense // its logarithm, likewise
	NextQ   *mat.Dense // Q_{k+1}, formed under it; nil where there was no critic call, as in the last round

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

// Context is what a controller goes on from behind the round, at the step size eta.
func (r *Round) Context(m *mdp.MDP, eta float64) Context {
	return Context{Round: r.Index + 1, MDP: m, Pi: r.NextPi, LogPi: r.NextLog, Q: r.NextQ, Eta: eta}
}

// Measure measures a round of a controller that, from the context c, returned the policy next and then the table
// nextQ [S, A], nil without a critic call, against exact PMD, the exact backup and the exact solution. The
// round before it is nil where the account of Theorem 2 begins. It is the only place where ζ, δ, ḡ and the
// distance to Q* are computed: for the trajectories of Score, for package decoder's runs, and for the web page.
// It returns an error if the context, the policy or the table is invalid.
func (s *Scale) Measure(before *Round, c Context, next pmd.Policy, nextQ *mat.Dense) (_ *Round, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("control: round %d: %w", c.Round, err)
		}
	}()
	m := s.Problem.MDP
	if c.Q == nil && before != nil {
		return nil, errors.New("the round before had no critic call, so there is no Q to go on from")
	}
	if err := m.CheckTable("Q", c.Q); err != nil {
		return nil, err
	}
	k := &Round{Index: c.Round, Pi: c.Pi, LogPi: c.LogPi, Q: c.Q, Eta: c.Eta, NextPi: next.Pi, NextLog: next.Log,
		NextQ: nextQ}
	if k.Distance, err = s.distance(k.NextPi); err != nil {
		return nil, fmt.Errorf("the policy returned: %w", err)
	}
	exact, err := pmd.PMD.Next(pmd.Policy{Pi: k.Pi, Log: k.LogPi}, k.Q, k.Eta)
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
	bound, delta := pmd.StartBound(m.Gamma, mdp.MaxAbsDiff(s.Optimum.Q, k.Q)), 0.0
	if before != nil {
		bound, delta = before.Bound, before.Delta
	}
	k.Bound = bound.Next(m.Gamma, delta, k.Defect)
	return k, nil
}

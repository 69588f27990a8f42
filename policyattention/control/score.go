package control

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Round is one measured round k. Tables are [S, A].
type Round struct {
	Context            // of the actor: π̂_k and Q_k; k is its Round
	NextPi  *mat.Dense // the policy returned, π̂_{k+1}
	NextLog *mat.Dense // its logarithm; nil stands for that of NextPi
	NextQ   *mat.Dense // Q_{k+1}, formed under it; nil where there was no critic call, as in the last round

	Zeta     float64   // ζ_k, equation (4), in [0, 2]
	RowL1    float64   // the mean over states where ζ_k takes the maximum
	Delta    float64   // δ_k, equation (5), in units of Q; 0 where NextQ is nil
	Defect   float64   // ḡ_k, the lifted greedy defect, in units of Q
	Distance float64   // ‖Q* − Q^{π̂_{k+1}}‖∞, by exact solves
	Bound    pmd.Bound // what Theorem 2 says of Distance, at T = k+1, without this critic call; +Inf at γ = 1
}

// After is what a controller goes on from behind the round, at the step size eta.
func (r *Round) After(m *mdp.MDP, eta float64) Context {
	return Context{Round: r.Round + 1, MDP: m, Pi: r.NextPi, LogPi: r.NextLog, Q: r.NextQ, Eta: eta}
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
	k := &Round{Context: c, NextPi: next.Pi, NextLog: next.Log, NextQ: nextQ}
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

// Scored is the exact evaluation of one trajectory of T rounds.
type Scored struct {
	Gamma float64 // γ of the problem
	Gap   float64 // ‖Q* − Q^{π_0}‖∞, the normalizer of Loss
	E0    float64 // ‖Q* − Q_0‖∞
	// Loss [T+1] is ‖Q* − Q^{π̂_k}‖∞ / Gap of the policy returned in round k;
	// Loss[0] = 1. Where π_0 is optimal, Gap is 0 and every Loss is 0 or +Inf.
	Loss []float64
	// Zeta [T], Delta [T−1] and Defect [T] are ζ_k, δ_k and ḡ_k of the context that the controller was in; RowL1
	// [T] is the mean over states where ζ_k takes the maximum. They are nil for a controller without critic tables.
	Zeta, RowL1, Delta, Defect []float64
}

// Bound returns the returned-policy bound of Theorem 2 at the given horizon and its slack: bound minus realized
// ‖Q* − Q^{π̂_T}‖∞. It returns an error if the trajectory has fewer rounds, or no critic tables.
func (s Scored) Bound(horizon int) (bound pmd.Bound, slack float64, err error) {
	if horizon < 1 || horizon >= len(s.Loss) {
		return pmd.Bound{}, 0, fmt.Errorf("control: horizon %d of a trajectory with %d rounds", horizon, len(s.Loss)-1)
	}
	if s.Defect == nil {
		return pmd.Bound{}, 0, errors.New("control: a trajectory without critic tables has no returned-policy bound")
	}
	bound, err = pmd.ReturnedPolicyBound(s.Gamma, s.E0, s.Delta, s.Defect, horizon)
	return bound, bound.Total() - s.Loss[horizon]*s.Gap, err
}

// Score evaluates trajectories, one a problem, exactly: every policy by a linear solve, against Q* by policy iteration.
// It runs on all processors and its result does not depend on their number. It returns an error if a trajectory does
// not begin with the problem's π₀, or holds an invalid policy or a table that is not [S, A] and finite.
func Score(problems []mdp.Problem, trajectories []Trajectory) ([]Scored, error) {
	if len(problems) != len(trajectories) {
		return nil, fmt.Errorf("control: %d trajectories for %d problems", len(trajectories), len(problems))
	}
	scored := make([]Scored, len(problems))
	return scored, numeric.Parallel(len(problems), func(i int) error {
		scale, err := NewScale(problems[i])
		if err == nil {
			scored[i], err = scale.score(trajectories[i])
		}
		if err != nil {
			return fmt.Errorf("control: problem %d: %w", i, err)
		}
		return nil
	})
}

// score evaluates a trajectory of the problem that the scale was made for.
func (scale *Scale) score(t Trajectory) (Scored, error) {
	if err := t.check(scale.Problem); err != nil {
		return Scored{}, err
	}
	s := Scored{Gamma: scale.Problem.MDP.Gamma, Gap: scale.Gap, Loss: []float64{normalize(scale.Gap, scale.Gap)}}
	if len(t.Q) == 0 {
		for k, pi := range t.Policies[1:] {
			loss, err := scale.Loss(pi)
			if err != nil {
				return Scored{}, fmt.Errorf("round %d: %w", k+1, err)
			}
			s.Loss = append(s.Loss, loss)
		}
		return s, nil
	}
	rounds, err := scale.rounds(t)
	if err != nil {
		return Scored{}, err
	}
	s.E0 = mdp.MaxAbsDiff(scale.Optimum.Q, t.Q[0])
	for _, k := range rounds {
		s.Loss = append(s.Loss, normalize(k.Distance, scale.Gap))
		s.Zeta, s.RowL1, s.Defect = append(s.Zeta, k.Zeta), append(s.RowL1, k.RowL1), append(s.Defect, k.Defect)
		if k.NextQ != nil {
			s.Delta = append(s.Delta, k.Delta)
		}
	}
	return s, nil
}

// rounds measures the rounds of a trajectory with critic tables.
func (scale *Scale) rounds(t Trajectory) (rounds []*Round, err error) {
	var last *Round
	for k, q := range t.Q {
		c := Context{Round: k, MDP: scale.Problem.MDP, Pi: t.Policies[k], Q: q, Eta: t.Eta[k]}
		next := pmd.Policy{Pi: t.Policies[k+1]}
		if t.Logs != nil {
			c.LogPi, next.Log = t.Logs[k], t.Logs[k+1]
		}
		var nextQ *mat.Dense
		if k+1 < len(t.Q) {
			nextQ = t.Q[k+1]
		}
		if last, err = scale.Measure(last, c, next, nextQ); err != nil {
			return nil, err
		}
		rounds = append(rounds, last)
	}
	return rounds, nil
}

// check reports a trajectory that is none of the problem's.
func (t Trajectory) check(p mdp.Problem) error {
	rounds := len(t.Policies) - 1
	if rounds < 0 || t.Q != nil && len(t.Q) != rounds || t.Q != nil && len(t.Eta) != rounds ||
		t.Logs != nil && len(t.Logs) != rounds+1 {
		return fmt.Errorf("a trajectory of %d policies, %d logarithms, %d critic tables and %d step sizes",
			len(t.Policies), len(t.Logs), len(t.Q), len(t.Eta))
	}
	if err := p.MDP.CheckPolicy(t.Policies[0]); err != nil {
		return fmt.Errorf("round 0: %w", err)
	}
	if !mat.Equal(t.Policies[0], p.Pi0) {
		return errors.New("the trajectory does not begin with the problem's π₀")
	}
	return nil
}

// normalize returns loss/gap, with 0/0 = 0: nothing was left to lose.
func normalize(loss, gap float64) float64 {
	if loss == 0 {
		return 0
	}
	if gap == 0 {
		return math.Inf(1)
	}
	return loss / gap
}

// Scale is what the losses of a problem are measured on.
type Scale struct {
	Problem mdp.Problem
	Optimum *mdp.Optimum
	Start   *mat.Dense // Q^{π_0} [S, A]
	Gap     float64    // ‖Q* − Q^{π_0}‖∞
}

// NewScale solves a problem exactly.
func NewScale(p mdp.Problem) (*Scale, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	optimum, err := p.MDP.Optimal()
	if err != nil {
		return nil, err
	}
	q, err := p.MDP.PolicyValue(p.Pi0)
	if err != nil {
		return nil, fmt.Errorf("π₀: %w", err)
	}
	return &Scale{Problem: p, Optimum: optimum, Start: q, Gap: mdp.MaxAbsDiff(optimum.Q, q)}, nil
}

// NewScales is NewScale for each of several problems.
func NewScales(problems []mdp.Problem) (scales []*Scale, err error) {
	scales = make([]*Scale, len(problems))
	for i, p := range problems {
		if scales[i], err = NewScale(p); err != nil {
			return nil, fmt.Errorf("control: problem %d: %w", i, err)
		}
	}
	return scales, nil
}

// AtTemperature returns the policy proportional to π(a|s)^(1/temperature) for pi [S, A], at temperature
// 0 the greedy one: all mass on each state's first likeliest action.
func AtTemperature(pi *mat.Dense, temperature float64) *mat.Dense {
	out := mat.DenseCopyOf(pi)
	for s := range out.RawMatrix().Rows {
		row := out.RawRowView(s)
		best := floats.MaxIdx(row)
		if temperature == 0 {
			clear(row)
			row[best] = 1
			continue
		}
		top := row[best]
		for a, p := range row {
			row[a] = math.Pow(p/top, 1/temperature)
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return out
}

// Loss returns ‖Q* − Q^π‖∞ / Gap of the policy pi [S, A], exactly.
func (s *Scale) Loss(pi *mat.Dense) (float64, error) {
	d, err := s.distance(pi)
	return normalize(d, s.Gap), err
}

// distance returns ‖Q* − Q^π‖∞.
func (s *Scale) distance(pi *mat.Dense) (float64, error) {
	q, err := s.Problem.MDP.PolicyValue(pi)
	if err != nil {
		return 0, err
	}
	return mdp.MaxAbsDiff(s.Optimum.Q, q), nil
}

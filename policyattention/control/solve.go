package control

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Solving is a loop on its way on one problem. It holds the latest policy and what is proven of it, and nothing of the
// rounds before, so its memory does not grow. It does not change: Step returns what comes next.
type Solving struct {
	*Scale
	Loop       Loop
	Round      int        // k, rounds so far
	Policy     pmd.Policy // π̂_k
	Q          *mat.Dense // Q_{k−1}, from which it was formed; before the first round Q_0
	Normalizer float64    // of losses: see Begin

	Zeta, Delta float64   // the largest residuals so far, equations (4) and (5)
	Theorem2    pmd.Bound // on ‖Q* − Q^{π̂_k}‖∞; +Inf at γ = 1
	Missed      float64   // max_s V*(s) − ⟨π̂_k(·|s), Q*(s,·)⟩
}

const optimal = 1e-12 // the share of max |V*| below which a distance to Q* is rounding

// Begin returns the loop before its first round on a problem. Losses are in units of ‖Q* − Q^{π_0}‖∞, so that
// π_0 loses 1; where π_0 is optimal to rounding, of max |V*|, or of 1 where all values are 0.
func (l Loop) Begin(scale *Scale) (_ *Solving, err error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	s := &Solving{Scale: scale, Loop: l, Policy: pmd.Policy{Pi: scale.Problem.Pi0}, Q: scale.Start,
		Normalizer: scale.Gap}
	if l.Start != nil {
		if s.Q, err = l.start(scale.Problem); err != nil {
			return nil, err
		}
	}
	top := max(slices.Max(scale.Optimum.V), -slices.Min(scale.Optimum.V))
	if !(scale.Gap > optimal*top) {
		s.Normalizer = cmp.Or(top, 1)
	}
	s.Theorem2 = pmd.StartBound(scale.Problem.MDP.Gamma, mdp.MaxAbsDiff(scale.Optimum.Q, s.Q))
	s.Missed = scale.Optimum.Missed(s.Policy.Pi)
	return s, nil
}

// Step runs the next round.
func (s *Solving) Step() (_ *Solving, err error) {
	m, next, delta := s.Problem.MDP, *s, 0.0
	c := Context{Round: s.Round, MDP: m, Pi: s.Policy.Pi, LogPi: s.Policy.Log, Q: s.Q, Eta: s.Loop.eta(s.Round)}
	if s.Round > 0 {
		if c.Q, delta, err = s.evaluate(c); err != nil {
			return nil, err
		}
	}
	exact, err := pmd.PMD.Next(s.Policy, c.Q, c.Eta)
	if err != nil {
		return nil, err
	}
	if next.Policy = exact; s.Loop.Actor != RuleActor(pmd.PMD) {
		answers, err := Act(s.Loop.Actor, []Context{c})
		if err != nil {
			return nil, err
		}
		next.Policy = answers[0]
	}
	next.Round, next.Q = s.Round+1, c.Q
	next.Zeta, next.Delta = max(s.Zeta, pmd.MaxRowL1(next.Policy.Pi, exact.Pi)), max(s.Delta, delta)
	next.Theorem2 = s.Theorem2.Next(m.Gamma, delta, pmd.LiftedDefect(m, pmd.GreedyDefect(next.Policy.Pi, c.Q)))
	next.Missed = s.Optimum.Missed(next.Policy.Pi)
	return &next, nil
}

// evaluate returns the critic's table of the policy, and its residual δ.
func (s *Solving) evaluate(c Context) (q *mat.Dense, delta float64, err error) {
	if s.Loop.Critic == (ExactCritic{}) {
		return c.MDP.EvaluationBackup(c.Pi, c.Q), 0, nil
	}
	c.Round, c.Eta = s.Round-1, s.Loop.eta(s.Round-1)
	values, err := Evaluate(s.Loop.Critic, []Context{c})
	if err != nil {
		return nil, 0, err
	}
	return values[0], pmd.Delta(c.MDP, values[0], c.Pi, c.Q), nil
}

// Proven returns what ‖Q* − Q^{π̂_k}‖∞ is at most, but for rounding, without a solve: by Theorem 2, or by
// (19), whose inverse has rows that sum to 1/(1−γ).
func (s *Solving) Proven() float64 {
	return min(s.Theorem2.Total(), s.Problem.MDP.Gamma*s.ProvenInState())
}

// ProvenInState returns what V*(s) − V^{π̂_k}(s) is at most, in the worst state.
func (s *Solving) ProvenInState() float64 {
	if s.Missed == 0 {
		return 0
	}
	return s.Missed / (1 - s.Problem.MDP.Gamma)
}

// Values returns Q^π of the policy, by an exact solve.
func (s *Solving) Values() (*mat.Dense, error) {
	return s.Problem.MDP.PolicyValueFrom(s.Policy.Pi, s.Optimum.Q)
}

// Lost returns in how many states no optimal action has any mass left, and in how many of
// them none had at the start. No update of the form π·exp(ηQ) gives mass to an action without.
func (s *Solving) Lost() (now, before int) {
	none := func(p pmd.Policy, state int) bool {
		for a, mass := range p.Pi.RawRowView(state) {
			if s.Optimum.Optimal(state, a) && (mass > 0 || p.Log != nil && !math.IsInf(p.Log.At(state, a), -1)) {
				return false
			}
		}
		return true
	}
	for state := range s.Problem.MDP.States() {
		if none(s.Policy, state) {
			now++
			if none(pmd.Policy{Pi: s.Problem.Pi0}, state) {
				before++
			}
		}
	}
	return now, before
}

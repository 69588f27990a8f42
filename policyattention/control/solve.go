package control

import (
	"fmt"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Solution is what a loop returned for one problem, scored exactly. Tables are
// [S][A].
type Solution struct {
	Policy [][]float64 `json:"policy"` // π̂_T, the policy returned
	Q      [][]float64 `json:"q"`      // Q_{T−1}, from which it was formed
	QStar  [][]float64 `json:"q_star"` // Q*
	QPi    [][]float64 `json:"q_pi"`   // Q^π of the returned policy
	// Loss [T+1] is ‖Q* − Q^{π̂_k}‖∞ / Normalizer.
	Loss        []float64   `json:"loss"`
	Eta         float64     `json:"eta"`
	Certificate Certificate `json:"certificate"`
	// Normalizer is ‖Q* − Q^{π_0}‖∞, so that Loss[0] = 1. Where π_0 is optimal
	// to rounding there is nothing to normalize by: then it is B, or 1 where all
	// rewards are 0, and Loss[0] is about 0.
	Normalizer float64 `json:"normalizer"`
}

// Certificate says how good the returned policy is and what Theorem 2
// guarantees of it, in units of Q.
type Certificate struct {
	Distance        float64   `json:"distance"`         // ‖Q* − Q^{π̂_T}‖∞
	Bound           float64   `json:"bound"`            // on Distance, by Theorem 2
	Terms           pmd.Bound `json:"terms"`            // of Bound
	Zeta            float64   `json:"zeta"`             // largest actor residual
	Delta           float64   `json:"delta"`            // largest critic residual
	OptimalityError float64   `json:"optimality_error"` // bound on the error of Q*
}

// optimal is the share of B below which a distance to Q* is rounding.
const optimal = 1e-12

// Solve runs the loop for rounds ≥ 1 on a problem.
func (l Loop) Solve(problem mdp.Problem, rounds int) (*Solution, error) {
	trajectories, err := l.Run([]mdp.Problem{problem}, rounds)
	if err != nil {
		return nil, err
	}
	m, t := problem.MDP, trajectories[0]
	scale, err := NewScale(problem)
	if err != nil {
		return nil, err
	}
	s, err := scale.score(problem, t)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	optimum := scale.Optimum
	value, err := m.PolicyValue(t.Policies[rounds])
	if err != nil {
		return nil, err
	}
	bound, _, err := s.Bound(rounds)
	if err != nil {
		return nil, err
	}
	solution := &Solution{
		Policy: mdp.ToRows(t.Policies[rounds]), Q: mdp.ToRows(t.Q[rounds-1]),
		QStar: mdp.ToRows(optimum.Q), QPi: mdp.ToRows(value),
		Loss: s.Loss, Eta: l.Eta, Normalizer: s.Gap,
		Certificate: Certificate{
			Distance: mdp.MaxAbsDiff(optimum.Q, value), Bound: bound.Total(), Terms: bound,
			Zeta: largest(s.Zeta), Delta: largest(s.Delta),
			OptimalityError: largest(optimum.Error),
		},
	}
	if s.Gap <= optimal*m.Bound() {
		if solution.Normalizer = m.Bound(); solution.Normalizer == 0 {
			solution.Normalizer = 1
		}
		for k, pi := range t.Policies {
			d, err := scale.distance(pi)
			if err != nil {
				return nil, err
			}
			solution.Loss[k] = d / solution.Normalizer
		}
	}
	return solution, nil
}

func largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	return top
}

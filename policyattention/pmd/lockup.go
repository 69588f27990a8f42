package pmd

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// LockUp returns the paper's witness that one-step fidelity does not suffice
// (Appendix G): one state, a good action of reward 1 and a
// bad one of reward 0, both leading back. The prior puts so little mass p on the
// good action that exact PMD with any step up to etaMax moves by at most zeta in
// L1:
//
//	2p(1−p)(e^η−1)/(1+p(e^η−1)) ≤ 2p(e^η−1) ≤ ζ,
//
// since Q(good) − Q(bad) = 1 under every policy. An actor that never moves is
// then within ζ of PMD in every round, yet the loop stays at the prior for
// ever, and its proximal excess (equation 13) vanishes with ζ. LockUp returns an
// error unless 0 < zeta ≤ 2, 0 < etaMax and p is representable.
func LockUp(zeta, etaMax, gamma float64) (mdp.Problem, error) {
	p := math.Min(0.5, zeta/(2*math.Expm1(etaMax)))
	if !(zeta > 0 && zeta <= 2) || !(etaMax > 0) || !(p > math.SmallestNonzeroFloat64) {
		return mdp.Problem{}, fmt.Errorf(
			"pmd: lock-up for ζ = %v and steps up to %v, want 0 < ζ ≤ 2 and a step cap whose prior mass %v is "+
				"representable", zeta, etaMax, p)
	}
	env, err := mdp.New(gamma, mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(1, 2, []float64{1, 0}))
	if err != nil {
		return mdp.Problem{}, err
	}
	return mdp.Problem{MDP: env, Pi0: mat.NewDense(1, 2, []float64{p, 1 - p})}, nil
}

// Starve leaves an action of a policy's row [A] the given mass, in (0, 1). The other actions
// share the rest in proportion.
func Starve(row []float64, action int, mass float64) {
	others := 0.0
	for a, p := range row {
		if a != action {
			others += p
		}
	}
	for a := range row {
		row[a] *= (1 - mass) / others
	}
	row[action] = mass
}

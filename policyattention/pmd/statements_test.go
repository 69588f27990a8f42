package pmd

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// excess returns ℓ(p) − ℓ(PMD_η(π,Q)), by which p misses the minimum of the proximal loss.
func excess(t *testing.T, p, pi, q *mat.Dense, eta float64) float64 {
	best := testkit.Must(Step(pi, q, eta))(t)
	return ProximalLoss(p, pi, q, eta) - ProximalLoss(best, pi, q, eta)
}

// TestProximalExcess holds (13) and the price of the mixture (Section 4), for policies some of which hold zeros. Both
// sides of (29) come near each other in some case, so that a wrong one would show.
func TestProximalExcess(t *testing.T) {
	price, floor := math.Inf(1), math.Inf(1) // by how much the sides of (29) differ at least
	for i := range 2000 {
		rng := seed.New(40, "step", i)
		s, a, eta, phi := 1+rng.IntN(6), 2+rng.IntN(5), 3*rng.Float64(), rng.Float64()
		pi, p, q := mdp.RandomPolicy(rng, s, a), mdp.RandomPolicy(rng, s, a), randomTable(rng, s, a, 10)
		for k := 0; k < s && i%2 == 0; k++ { // an action that nothing chooses
			Starve(pi.RawRowView(k), 0, 0)
			Starve(p.RawRowView(k), 0, 0)
		}
		best, divergence := testkit.Must(Step(pi, q, eta))(t), 0.0
		for k := range s {
			divergence += KL(p.RawRowView(k), best.RawRowView(k)) / float64(s)
		}
		// Losses of size ηB + log 1/π are subtracted.
		if x := excess(t, p, pi, q, eta); !(math.Abs(x-divergence) <= 1e-12*(1+divergence)) || x < -1e-12 {
			t.Errorf("case %d: ℓ(p) − ℓ(PMD) = %v, KL(p‖PMD) = %v", i, x, divergence)
		}
		mixed := testkit.Must(Mix(p, phi))(t)
		price = min(price, 2*phi*float64(a-1)/float64(a)-MaxRowL1(mixed, p))
		floor = min(floor, mat.Min(mixed)-phi/float64(a))
	}
	if price < -1e-14 || price > .1 || floor < -1e-16 || floor > .1 {
		t.Errorf("‖p̂ − p‖₁ is at least %v below 2φ(A−1)/A, p̂ at least %v above φ/A", price, floor)
	}
}

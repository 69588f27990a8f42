package pmd

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// statements holds statements of the paper on many cases, and keeps the least slack of each:
// right minus left side of an inequality, or minus the distance of the sides of an identity.
type statements map[string]float64

func (least statements) hold(t *testing.T, says string, slack, allowed float64) {
	t.Helper()
	if !(slack >= -allowed) {
		t.Errorf("%s: falls short by %g", says, -slack)
	}
	if known, ok := least[says]; !ok || slack < known {
		least[says] = slack
	}
}

// close fails where no case came near equality, so that a wrong right side would pass.
func (least statements) close(t *testing.T) {
	for says, slack := range least {
		if slack > .1 {
			t.Errorf("%s: the least slack is %g", says, slack)
		}
	}
}

// excess returns ℓ(p) − ℓ(PMD_η(π,Q)), by which p misses the minimum of the proximal loss.
func excess(t *testing.T, p, pi, q *mat.Dense, eta float64) float64 {
	best := testkit.Must(Step(pi, q, eta))(t)
	return ProximalLoss(p, pi, q, eta) - ProximalLoss(best, pi, q, eta)
}

// TestProximalExcess holds (13) and the price of the mixture (Section 4) on contexts at random.
func TestProximalExcess(t *testing.T) {
	least := statements{}
	for i := range 2000 {
		least.proximal(t, seed.New(40, "step", i))
	}
	least.close(t)
}

// proximal holds (13) and the price of the mixture, for policies some of which hold zeros.
func (least statements) proximal(t *testing.T, rng *rand.Rand) {
	s, a := 1+rng.IntN(6), 2+rng.IntN(5)
	pi, p, q := mdp.RandomPolicy(rng, s, a), mdp.RandomPolicy(rng, s, a), randomTable(rng, s, a, 10)
	if rng.IntN(2) == 0 { // an action that nothing chooses
		for _, x := range []*mat.Dense{pi, p} {
			for i := range s {
				row := x.RawRowView(i)
				rest := 1 - row[0]
				row[0] = 0
				for j := range row {
					row[j] /= rest
				}
			}
		}
	}
	eta := 3 * rng.Float64()
	excess := excess(t, p, pi, q, eta)
	best, divergence := testkit.Must(Step(pi, q, eta))(t), 0.0
	for i := range s {
		divergence += KL(p.RawRowView(i), best.RawRowView(i)) / float64(s)
	}
	// Losses of size ηB + log 1/π are subtracted.
	least.hold(t, "(13): ℓ(p) − ℓ(PMD) = KL(p‖PMD)", -math.Abs(excess-divergence), 1e-12*(1+divergence))
	least.hold(t, "(13): PMD is the minimum", excess, 1e-12)

	phi := rng.Float64()
	mixed := testkit.Must(Mix(p, phi))(t)
	most := 2 * phi * float64(a-1) / float64(a)
	least.hold(t, "(29): ‖p̂ − p‖₁ ≤ 2φ(A−1)/A", most-MaxRowL1(mixed, p), 1e-14)
	least.hold(t, "(29): p̂ ≥ φ/A", mat.Min(mixed)-phi/float64(a), 1e-16)
}

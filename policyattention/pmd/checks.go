package pmd

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Checks evaluates statements about one step on the given number of contexts at
// random: (13), the price of the mixture (Section 4), and Appendix G's witness, whose
// residual and proximal excess vanish together while the loop stays where it is.
func Checks(root uint64, contexts int) ([]Check, error) {
	var tally Tally
	for i := range contexts {
		rng := seed.New(root, "step", i)
		if err := checkProximal(&tally, rng); err != nil {
			return nil, err
		}
		if err := checkLockUp(&tally, rng); err != nil {
			return nil, err
		}
	}
	return tally, nil
}

// checkProximal enters (13) and the price of the mixture, for policies some of which
// hold zeros.
func checkProximal(tally *Tally, rng *rand.Rand) error {
	s, a := 1+rng.IntN(6), 2+rng.IntN(5)
	pi, p, q := mdp.RandomPolicy(rng, s, a), mdp.RandomPolicy(rng, s, a), mat.NewDense(s, a, nil)
	q.Apply(func(_, _ int, _ float64) float64 { return 10 * (2*rng.Float64() - 1) }, q)
	if rng.IntN(2) == 0 { // an action that nothing chooses
		for _, x := range []*mat.Dense{pi, p} {
			x.Apply(func(_, j int, v float64) float64 {
				if j == 0 {
					return 0
				}
				return v
			}, x)
			if err := normalize(x); err != nil {
				return err
			}
		}
	}
	eta := 3 * rng.Float64()
	excess, err := ProximalExcess(p, pi, q, eta)
	if err != nil {
		return err
	}
	best, err := Step(pi, q, eta)
	if err != nil {
		return err
	}
	divergence := 0.0
	for i := range s {
		divergence += KL(p.RawRowView(i), best.RawRowView(i)) / float64(s)
	}
	// Losses of size ηB + log 1/π are subtracted.
	tally.Add(Check{Equation: "(13)", Says: "ℓ(p) − ℓ(PMD) = KL(p‖PMD)", Slack: -math.Abs(excess - divergence)},
		1e-12*(1+divergence))
	tally.Add(Check{Equation: "(13)", Says: "so PMD is the minimum: 0 ≤ ℓ(p) − ℓ(PMD)", Slack: excess}, 1e-12)

	phi := rng.Float64()
	mixed, err := Mix(p, phi)
	if err != nil {
		return err
	}
	most := 2 * phi * float64(a-1) / float64(a)
	tally.Add(Check{Equation: "(29)", Says: "‖p̂ − p‖₁ ≤ 2φ(A−1)/A", Slack: most - MaxRowL1(mixed, p)}, 1e-14)
	tally.Add(Check{Equation: "(29)", Says: "p̂ ≥ φ/A", Slack: mat.Min(mixed) - phi/float64(a)}, 1e-16)
	return nil
}

// normalize divides every row by its sum.
func normalize(x *mat.Dense) error {
	for s := range x.RawMatrix().Rows {
		row, sum := x.RawRowView(s), 0.0
		for _, v := range row {
			sum += v
		}
		for a := range row {
			row[a] /= sum
		}
	}
	return mdp.CheckRows("policy", x)
}

// checkLockUp enters Appendix G for a ζ over nine orders of magnitude and a step cap
// up to 20: with prior mass p on the good action the excess of an actor that stays is
// log(1+p(e^η−1)) − pη ≤ p(e^η−1) ≤ ζ/2.
func checkLockUp(tally *Tally, rng *rand.Rand) error {
	zeta, gamma := math.Pow(10, -9*rng.Float64()), []float64{0, .5, .9, .99}[rng.IntN(4)]
	limit := .01 + 20*rng.Float64()
	problem, err := LockUp(zeta, limit, gamma)
	if err != nil {
		return err
	}
	m, pi := problem.MDP, problem.Pi0
	q, err := m.PolicyValue(pi)
	if err != nil {
		return err
	}
	const appendix = "Appendix G"
	for _, eta := range []float64{limit, limit * rng.Float64()} {
		moved, err := Zeta(pi, pi, q, eta)
		if err != nil {
			return err
		}
		excess, err := ProximalExcess(pi, pi, q, eta)
		if err != nil {
			return err
		}
		// Probabilities near one are rounded to 1e-16, logits to 1e-15 of ηB.
		allowed := 1e-9*zeta + 1e-13*(1+eta)/(1-gamma)
		tally.Add(Check{Equation: appendix, Slack: zeta - moved,
			Says: "an actor that stays is within ζ of PMD at every step size up to the cap"}, allowed)
		tally.Add(Check{Equation: appendix, Says: "its proximal excess is at most ζ/2, so both vanish together",
			Slack: zeta/2 - excess}, allowed)
	}
	tally.Add(Check{Equation: appendix, Says: "Q^π is a fixed point of the exact critic: F^πQ^π = Q^π",
		Slack: -mdp.MaxAbsDiff(q, m.EvaluationBackup(pi, q))}, 1e-13/(1-gamma))
	optimum, err := m.Optimal()
	if err != nil {
		return err
	}
	// V* = 1/(1−γ) and V^π = p/(1−γ) with p ≤ ½; only later rewards count in Q.
	least := gamma / (2 * (1 - gamma))
	tally.Add(Check{Equation: appendix, Says: "there it is suboptimal: ‖Q* − Q^π‖ ≥ γ/(2(1−γ))",
		Slack: mdp.MaxAbsDiff(optimum.Q, q) - least}, 1e-13/(1-gamma))
	return nil
}

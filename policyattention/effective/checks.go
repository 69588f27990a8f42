package effective

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Checks evaluates Appendix D on the given number of models at random, of 2 to 12
// rows, 2 to 5 actions and 1 to 5 coordinates, each at eight points of a ball: (30)
// against the chain rule, (31) and what it is made of, and the contraction of gradient
// flow and of gradient descent with step 1/L.
func Checks(root uint64, models int) ([]pmd.Check, error) {
	var tally pmd.Tally
	for i := range models {
		rng := seed.New(root, "effective", i)
		m, err := random(rng, 2+rng.IntN(11), 1+rng.IntN(5))
		if err != nil {
			return nil, err
		}
		radius := .05 + rng.Float64()
		curvature, err := m.Curvature(radius)
		if err != nil {
			return nil, err
		}
		for range 8 {
			m.checkPoint(&tally, within(rng, m, radius), curvature)
		}
		if err := m.checkPaths(&tally, within(rng, m, radius), curvature); err != nil {
			return nil, err
		}
	}
	return tally, nil
}

// random draws a model with normal features and target.
func random(rng *rand.Rand, rows, n int) (*Model, error) {
	normal := func(k int) []float64 {
		x := make([]float64, k)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	var features []*mat.Dense
	for i := range rows {
		actions := 2 + i%4
		phi := mat.NewDense(actions, n, normal(actions*n))
		Centre(phi)
		features = append(features, phi)
	}
	return FromFeatures(features, normal(n))
}

// within returns a point of the ball of the given radius around ϑ*.
func within(rng *rand.Rand, m *Model, radius float64) []float64 {
	theta := slices.Clone(m.Target)
	for i := range theta {
		theta[i] += radius * (2*rng.Float64() - 1) / math.Sqrt(float64(len(theta)))
	}
	return theta
}

// byChainRule returns ∇R(ϑ) without a matrix H: the mean over rows of
// Σ_a ∂q_a/∂ϑ · log(q_a/q*_a) with ∂q_a/∂ϑ = q_a (φ_a − Σ_b q_b φ_b).
func (m *Model) byChainRule(theta []float64) []float64 {
	sum := make([]float64, len(theta))
	for i, phi := range m.Features {
		q, star := m.Policy(i, theta), m.Policy(i, m.Target)
		mean := make([]float64, len(theta))
		for a, p := range q {
			floats.AddScaled(mean, p, phi.RawRowView(a))
		}
		for a, p := range q {
			weight := p * math.Log(p/star[a]) / float64(len(m.Features))
			floats.AddScaled(sum, weight, phi.RawRowView(a))
			floats.AddScaled(sum, -weight, mean)
		}
	}
	return sum
}

// checkPoint enters what is said of one point of the ball.
func (m *Model) checkPoint(tally *pmd.Tally, theta []float64, c Curvature) {
	const rounding = 1e-12 // of sums of some hundred terms of size one to ten
	g, d := m.Gradient(theta), m.offset(theta)
	tally.Add(pmd.Check{Equation: "(30)", Says: "∇R = E[ΦᵀH(q_ϑ)Φ](ϑ−ϑ*), against the chain rule", Slack: -floats.Distance(g, m.byChainRule(theta), math.Inf(1))}, rounding)
	least := math.Inf(1)
	for i, phi := range m.Features {
		q := m.Policy(i, theta)
		least = min(least, floats.Min(q))
		// vᵀHv is the variance of v under q.
		var v mat.VecDense
		v.MulVec(phi, mat.NewVecDense(len(d), d))
		mean, variance, square := floats.Dot(q, v.RawVector().Data), 0.0, 0.0
		for a, p := range q {
			variance += p * (v.AtVec(a) - mean) * (v.AtVec(a) - mean)
			square += v.AtVec(a) * v.AtVec(a)
		}
		tally.Add(pmd.Check{Equation: "Appendix D", Says: "vᵀH(q)v ≥ p₀‖v‖² for centred v and p₀ = min q", Slack: variance - floats.Min(q)*square}, rounding)
	}
	tally.Add(pmd.Check{Equation: "Appendix D", Says: "on the ball every probability is at least p₀", Slack: least - c.P0}, rounding)
	square := floats.Dot(d, d)
	tally.Add(pmd.Check{Equation: "(31)", Says: "(ϑ−ϑ*)ᵀ∇R ≥ p₀λ‖ϑ−ϑ*‖²", Slack: floats.Dot(d, g) - c.Monotone()*square}, rounding)
}

// checkPaths enters how gradient flow and gradient descent from theta contract.
func (m *Model) checkPaths(tally *pmd.Tally, theta []float64, c Curvature) error {
	// The Runge–Kutta method's own error at a sixteenth of 1/L is below 1e-6 of what
	// the risk loses, see the tests.
	flow, err := m.Flow(theta, 1/(16*c.Smooth), 160)
	if err != nil {
		return err
	}
	step := 1 / c.Smooth
	descent, err := m.Descend(theta, step, 40)
	if err != nil {
		return err
	}
	start, farthest := flow[0], 0.0
	for i, p := range flow[1:] {
		farthest = max(farthest, p.Distance)
		tally.Add(pmd.Check{Equation: "Appendix D", Says: "gradient flow: ‖ϑ(t)−ϑ*‖ ≤ e^{−p₀λt}‖ϑ(0)−ϑ*‖", Slack: c.Flow(p.Time)*start.Distance - p.Distance}, 1e-12)
		tally.Add(pmd.Check{Equation: "Appendix D", Says: "along gradient flow the risk falls", Slack: flow[i].Risk - p.Risk}, 1e-14)
	}
	for i, p := range descent[1:] {
		farthest = max(farthest, p.Distance)
		tally.Add(pmd.Check{Equation: "Appendix D", Says: "a gradient step of size 1/L takes ‖ϑ−ϑ*‖ to at most 1−p₀λ/L of it", Slack: c.Rate(step)*descent[i].Distance - p.Distance}, 1e-12)
	}
	tally.Add(pmd.Check{Equation: "Appendix D", Says: "the ball is invariant: flow and descent stay inside", Slack: start.Distance - farthest}, 1e-12)
	return nil
}

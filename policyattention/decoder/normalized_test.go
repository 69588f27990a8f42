package decoder

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

func normCaps() Caps {
	caps := paperCaps(4, 3, 6)
	caps.EtaMin, caps.EtaMax, caps.Routing, caps.Floor, caps.Phi = .1, 2, 1e-9, 1e-4, 0
	return caps
}

// TestCarrier checks the geometry and the identity Jᵀ LN(Cc+Jx) = ρx. Numbers of
// size H are subtracted, so H·2⁻⁵³·√D per coordinate is the rounding to expect.
func TestCarrier(t *testing.T) {
	const width, h = 56, 1000.
	c := testkit.Must(NewCarrier(width, h))(t)
	basis := mat.NewDense(width+2, width+2, nil) // 1/√D, c, J
	basis.SetCol(0, slices.Repeat([]float64{1 / math.Sqrt(width+2)}, width+2))
	basis.SetCol(1, c.U)
	basis.Slice(0, width+2, 2, width+2).(*mat.Dense).Copy(c.J)
	var gram mat.Dense
	gram.Mul(basis.T(), basis)
	if one := mat.NewDiagDense(width+2, slices.Repeat([]float64{1}, width+2)); !mat.EqualApprox(&gram, one, 1e-14) {
		t.Fatalf("columns of [1/√D c J] are not orthonormal: %v", mat.Formatted(&gram))
	}
	rng := seed.New(13, "carrier")
	for range 50 {
		x, y := testkit.Normal[float64](rng, width), make([]float64, width+2)
		floats.Scale(20, x)
		c.embed(y, x)
		normalize(y, y, c.gain())
		rho := 1 / math.Sqrt(1+floats.Dot(x, x)/(h*h))
		var z mat.VecDense
		z.MulVec(c.J.T(), mat.NewVecDense(width+2, y))
		z.ScaleVec(1/rho, &z)
		if !floats.EqualApprox(z.RawVector().Data, x, 1e-11) || math.Abs(c.Rho(x)-rho) > 1e-12 {
			t.Fatalf("%v, want x = %v; ρ measured %v, want %v", z.RawVector().Data, x, c.Rho(x), rho)
		}
	}
}

func normContexts(t *testing.T, n int) []control.Context {
	t.Helper()
	problems := testkit.Must(mdp.Random.Draw(13, 4, 3, n))(t)
	var contexts []control.Context
	for i, p := range problems {
		pi, err := pmd.Mix(p.Pi0, .01) // respects the floor
		testkit.Check(t, err)
		q := testkit.Must(p.MDP.PolicyValue(pi))(t)
		contexts = append(contexts, control.Context{Problem: i, MDP: p.MDP, Pi: pi, Q: q, Eta: .8})
	}
	return contexts
}

// TestNormSlope compiles the decoder for scales H and compares what it returns with what the decoder without norms
// does on the same contexts and packets. Distances and 1−ρ fall like H⁻² until rounding, of order H·2⁻⁵³,
// takes over; the slope is of what lies before.
func TestNormSlope(t *testing.T) {
	plain, source := testkit.Must(New(normCaps()))(t), Sampled(13)
	var scales, defect, actor, critic []float64
	for e := 2.; e <= 8; e += .5 {
		h := math.Pow(10, e)
		d := testkit.Must(NewNormalized(normCaps(), h))(t)
		shrunk, formula, policy, value := 0., 0., 0., 0. // the greatest
		for _, c := range normContexts(t, 6) {
			next := testkit.Must(plain.Improve(c.Pi, c.Q, c.Eta))(t)
			policy = max(policy, pmd.MaxRowL1(testkit.Must(d.Improve(c.Pi, c.Q, c.Eta))(t), next))
			// Memories hold the context's policy, which respects the floor; a backup reads packets and Q alone.
			packets := source.Packets(c.MDP, next, d.Packets, c.Problem, c.Round)
			value = max(value, mdp.MaxAbsDiff(testkit.Must(d.Backup(c.Pi, c.Q, packets))(t),
				testkit.Must(plain.Backup(c.Pi, c.Q, packets))(t)))
			for _, x := range testkit.Must(d.TraceActor(c.Pi, c.Q, c.Eta))(t).Payloads {
				square := floats.Dot(x, x) / (h * h)
				root := math.Sqrt(1 + square)
				formula = max(formula, square/(root*(1+root))) // 1−1/root without cancellation
				shrunk = max(shrunk, 1-d.Carrier.Rho(x))
			}
		}
		t.Logf("H %8.2g: 1−ρ %8.3g (formula %8.3g), actor %8.3g ≤ %8.3g, critic %8.3g ≤ %8.3g", h, shrunk, formula,
			policy, d.Norm.Actor, value, d.Norm.Critic)
		if math.Abs(shrunk-formula) > 1e-3*formula+2e-17*h {
			t.Errorf("H %g: 1−ρ = %g, formula %g", h, shrunk, formula)
		}
		rounding := 1e-13 * h // sums of some hundred terms of size H, times margins
		if policy > d.Norm.Actor+rounding || value > d.Norm.Critic+10*rounding {
			t.Errorf("H %g: actor %g, bound %g; critic %g, bound %g", h, policy, d.Norm.Actor, value, d.Norm.Critic)
		}
		if h >= 300 && h <= 1e4 {
			scales, defect = append(scales, h), append(defect, shrunk)
			actor, critic = append(actor, policy), append(critic, value)
		}
	}
	for name, y := range map[string][]float64{"1−ρ": defect, "actor": actor, "critic": critic} {
		last := len(scales) - 1
		slope := math.Log(y[last]/y[0]) / math.Log(scales[last]/scales[0])
		t.Logf("slope of %s from H = 300 to 10⁴: %.4f", name, slope)
		if math.Abs(slope+2) > .05 {
			t.Errorf("%s falls like H^%.3f, want H⁻²", name, slope)
		}
	}
}

// TestNormalizedLoop runs the compiled decoder in closed loop with the constant
// step η = log(A/φ)/θ and checks the residuals against the certificate, the
// floor, and the corollary, equation (10), with the realized residuals as caps;
// it does the same for the decoder without norms.
func TestNormalizedLoop(t *testing.T) {
	const phi, theta = .02, 1.
	caps := normCaps()
	caps.Phi = phi
	caps.EtaMin = math.Log(3/phi) / theta
	caps.EtaMax = caps.EtaMin
	plain := testkit.Must(New(caps))(t)
	normalized := testkit.Must(NewNormalized(caps, 1e5))(t)
	for name, d := range map[string]*Decoder{"plain": plain, "normalized": normalized} {
		least := math.Inf(1)
		for i, c := range normContexts(t, 4) {
			step := walk(d, mdp.Problem{MDP: c.MDP, Pi0: c.Pi}, c.Q, caps.EtaMin, Sampled(uint64(i)))
			delta, zeta := 0., 0.
			e0 := mdp.MaxAbsDiff(testkit.Must(c.MDP.Optimal())(t).Q, c.Q)
			for k := range 40 {
				r := testkit.Must(step())(t)
				if r.Zeta > r.ZetaBound+d.RoundoffZeta || r.Route > r.RouteBound+d.RoundoffDelta {
					t.Fatalf("%s round %d: ζ %v of %v, routing %v of %v", name, k, r.Zeta, r.ZetaBound, r.Route,
						r.RouteBound)
				}
				if p := mat.Min(r.NextPi); p < phi/3*(1-1e-9) {
					t.Fatalf("%s round %d: probability %v below the floor φ/A", name, k, p)
				}
				zeta = max(zeta, r.Zeta)
				bound := pmd.MixtureBound(.9, e0, d.B, delta, zeta, theta, k+1)
				delta = max(delta, r.Delta)
				least = min(least, bound/r.Distance)
				if r.Distance > bound {
					t.Errorf("%s round %d: loss %v, corollary %v", name, k, r.Distance, bound)
				}
			}
		}
		t.Logf("%s: ζ ≤ %.4g, δ_route ≤ %.4g; least corollary/loss %.4g", name, d.Zeta, d.DeltaRoute, least)
	}
}

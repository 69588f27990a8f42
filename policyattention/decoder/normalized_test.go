package decoder

import (
	"math"
	"slices"
	"strings"
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
		c.norm().apply(y, y)
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

// TestNormSlope fits how 1−ρ and the output errors fall with H. The fall is H⁻² until
// rounding, of order H·2⁻⁵³, takes over; the fit covers what lies before.
func TestNormSlope(t *testing.T) {
	var scales []float64
	for e := 2.; e <= 8; e += .5 {
		scales = append(scales, math.Pow(10, e))
	}
	points := testkit.Must(SweepCarrier(normCaps(), normContexts(t, 6), Sampled(13), scales))(t)
	if _, err := SweepCarrier(normCaps(), normContexts(t, 1), PacketSource{}, scales); err == nil ||
		!strings.Contains(err.Error(), "without packets") {
		t.Errorf("a source without packets: %v", err)
	}
	var h, defect, actor, critic []float64
	for _, p := range points {
		t.Logf("H %8.2g: 1−ρ %8.3g (formula %8.3g), actor %8.3g ≤ %8.3g, critic %8.3g ≤ %8.3g", p.H, p.Defect,
			p.Predicted, p.Actor, p.ActorBound, p.Critic, p.CriticBound)
		rounding := 1e-13 * p.H // sums of some hundred terms of size H, times margins
		if p.Actor > p.ActorBound+rounding || p.Critic > p.CriticBound+10*rounding {
			t.Errorf("H %g: actor %g, bound %g; critic %g, bound %g", p.H, p.Actor, p.ActorBound, p.Critic,
				p.CriticBound)
		}
		if math.Abs(p.Defect-p.Predicted) > 1e-3*p.Predicted+2e-17*p.H {
			t.Errorf("H %g: 1−ρ = %g, formula %g", p.H, p.Defect, p.Predicted)
		}
		if p.H >= 300 && p.H <= 1e4 {
			h, defect, actor, critic = append(h, p.H), append(defect, p.Defect), append(actor,
				p.Actor), append(critic, p.Critic)
		}
	}
	for name, y := range map[string][]float64{"1−ρ": defect, "actor": actor, "critic": critic} {
		last := len(h) - 1
		slope := math.Log(y[last]/y[0]) / math.Log(h[last]/h[0])
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
			run := testkit.Must(d.Start(mdp.Problem{MDP: c.MDP, Pi0: c.Pi}, c.Q, caps.EtaMin, Sampled(uint64(i))))(t)
			delta, zeta := 0., 0.
			e0 := mdp.MaxAbsDiff(testkit.Must(c.MDP.Optimal())(t).Q, c.Q)
			for range 40 {
				r := testkit.Must(run.Step())(t)
				if r.Zeta > r.ZetaBound+d.RoundoffZeta || r.Route > r.RouteBound+d.RoundoffDelta {
					t.Fatalf("%s round %d: ζ %v of %v, routing %v of %v", name, r.Index, r.Zeta, r.ZetaBound, r.Route,
						r.RouteBound)
				}
				if p := mat.Min(r.NextPi); p < phi/3*(1-1e-9) {
					t.Fatalf("%s round %d: probability %v below the floor φ/A", name, r.Index, p)
				}
				// ḡ_k ≤ D̄_k/η + Bζ_k (Section 4).
				if limit := r.Price/r.Eta + d.B*r.Zeta + 1e-9; r.Defect > limit {
					t.Fatalf("%s round %d: defect %v, D̄/η + Bζ = %v", name, r.Index, r.Defect, limit)
				}
				zeta = max(zeta, r.Zeta)
				bound := pmd.MixtureBound(.9, e0, d.B, delta, zeta, theta, r.Index+1)
				delta = max(delta, r.Delta)
				least = min(least, bound/r.Distance)
				if r.Distance > bound {
					t.Errorf("%s round %d: loss %v, corollary %v", name, r.Index, r.Distance, bound)
				}
			}
		}
		t.Logf("%s: ζ ≤ %.4g, δ_route ≤ %.4g; least corollary/loss %.4g", name, d.Zeta, d.DeltaRoute, least)
	}
}

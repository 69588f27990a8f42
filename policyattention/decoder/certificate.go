package decoder

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Caps declares, before any MDP is seen, everything a decoder is built for. Inputs outside the caps are refused.
type Caps struct {
	States  int     `json:"states"`  // S ≥ 1
	Actions int     `json:"actions"` // A ≥ 1
	Gamma   float64 `json:"gamma"`   // discount γ in [0, 1); an MDP must have exactly this one
	RMax    float64 `json:"r_max"`   // R_max > 0, bound on |r|
	EtaMin  float64 `json:"eta_min"` // least step size ≥ 0
	EtaMax  float64 `json:"eta_max"` // greatest step size ≥ EtaMin
	Rounds  int     `json:"rounds"`  // horizon K ≥ 1: the most critic calls in a run
	// Routing is ε_r in (0, 2): ζ is at most ε_r, and each of the critic's heads leaks at most ε_r/2 attention.
	Routing  float64 `json:"routing"`
	Alpha    float64 `json:"alpha"`              // α in (0, 1), the probability that a sampling bound of a run fails
	Sampling float64 `json:"sampling,omitempty"` // wanted sampling error ε_s > 0; it chooses Packets where that is 0
	Packets  int     `json:"packets,omitempty"`  // m, packets from each state and action in a critic call
	Phi      float64 `json:"phi,omitempty"`      // φ in [0, 1], the uniform policy's share in the actor's readout
	// Floor is the least probability that a policy given to a normalized decoder may hold; weights of packets must lie
	// in [Floor, 1/Floor]. Other decoders ignore it.
	Floor    float64  `json:"floor,omitempty"`
	Override *Margins `json:"override,omitempty"` // replaces the margins that Routing implies, to study others
}

// Margins are the score margins of the three heads.
type Margins struct {
	Kappa float64 `json:"kappa"` // κ, between the query's state and others
	Nu    float64 `json:"nu"`    // ν, between memories and queries
	Tau1  float64 `json:"tau1"`  // τ₁ of the lookup head
	Tau2  float64 `json:"tau2"`  // τ₂ of the predecessor head
}

// Certificate states the margins of a decoder and what they guarantee (Theorem 1),
// in real arithmetic, for every input within the caps. It is made before any weight.
type Certificate struct {
	Caps
	Margins `json:"margins"`
	B       float64 `json:"b"` // R_max/(1−γ), bound on |Q|
	// Visible is the most packets in a critic call, max(mSA, (SA)²): enough for sampled and for weighted packets.
	Visible int `json:"visible"`

	RAct    float64 `json:"r_act"`   // greatest bad-to-good mass of the actor, at EtaMax: equation (24)
	R1      float64 `json:"r_1"`     // of the lookup head: (25)
	R2      float64 `json:"r_2"`     // of the predecessor head: (26)
	Lambda1 float64 `json:"lambda1"` // R₁/(1+R₁), leaked mass
	Lambda2 float64 `json:"lambda2"` // R₂/(1+R₂)

	Zeta float64 `json:"zeta"` // bound on ζ_k (equation 6), with the mixture's 2φ(A−1)/A and the normalization
	// DeltaRoute and DeltaStat are the two terms of equation (7).
	DeltaRoute float64 `json:"delta_route"` // bound on the critic's routing error
	DeltaStat  float64 `json:"delta_stat"`  // of sampling, with probability 1−α; weighted packets have none
	// DeltaRows bounds what rows of P and π add to δ that sum to one within mdp.Tolerance only: the mean of packets
	// is one over weights that are normalized, the exact backup is not. It is γB((1+t)²−1) for t the tolerance.
	DeltaRows float64 `json:"delta_rows"`
	// Returned bounds ‖Q* − Q^{π̂_K}‖∞ a priori; nil where Phi or EtaMin is zero, which imply no bound.
	Returned *Returned        `json:"returned,omitempty"`
	Norm     *NormCertificate `json:"norm,omitempty"` // of a normalized decoder

	// RoundoffZeta and RoundoffDelta bound what float64 adds to the residuals (first order in the unit roundoff).
	RoundoffZeta  float64 `json:"roundoff_zeta"`
	RoundoffDelta float64 `json:"roundoff_delta"`
}

// Returned is the a-priori bound of equation (10) at horizon K for a constant step of at least EtaMin.
type Returned struct {
	Theta         float64 `json:"theta"`         // θ = log(A/φ)/η
	Transient     float64 `json:"transient"`     // (2E₀+4B)γᴷ/(1−γ) with E₀ ≤ 2B
	Neighbourhood float64 `json:"neighbourhood"` // 2γ/(1−γ)² (δ + Bζ + θ) with sampled packets
	Weighted      float64 `json:"weighted"`      // the same with weighted packets
}

// Delta bounds the critic residual δ_k with sampled packets, with probability 1−α in all calls together.
func (c *Certificate) Delta() float64 { return c.DeltaRoute + c.DeltaStat + c.DeltaRows }

// DeltaWeighted bounds δ_k with weighted packets.
func (c *Certificate) DeltaWeighted() float64 { return c.DeltaRoute + c.DeltaRows }

const mostPackets = 1e9 // of all pairs in a critic call

// Certify computes margins, packets (equation 27) and bounds. Its error names the cap that is out of range.
func Certify(caps Caps) (*Certificate, error) {
	if err := caps.check(); err != nil {
		return nil, err
	}
	c := &Certificate{Caps: caps, B: caps.RMax / (1 - caps.Gamma)}
	s, a := float64(c.States), float64(c.Actions)
	pairs := s * a

	union := 2 * numeric.Log(2*pairs*float64(c.Rounds)/c.Alpha)
	if c.Packets == 0 {
		m := math.Ceil(c.limit() * c.limit() / (c.Sampling * c.Sampling) * union)
		if !(m*pairs <= mostPackets) {
			return nil, fmt.Errorf("decoder: m = %.3g packets from each of %g pairs; raise the cap sampling", m, pairs)
		}
		c.Packets = int(m)
	}
	m := float64(c.Packets)
	c.DeltaStat = c.limit() * math.Sqrt(union/m)
	c.Visible = c.States * c.Actions * max(c.Packets, c.States*c.Actions)

	// Margins become weights, whose bits must be the same everywhere. Each term of a ratio gets its share of r_ε.
	r := c.Routing / (2 - c.Routing)
	visible := float64(c.Visible)
	if caps.Override != nil {
		c.Margins = *caps.Override
	} else {
		c.Margins = Margins{
			Kappa: max(0, float64(2*c.EtaMax*c.B)+numeric.Log(2*s/r)),
			Nu:    1,
			Tau1:  max(0, numeric.Log(3*(s+a-2)/r), numeric.Log(3*(s-1)*(a-1)/r)/2, numeric.Log(3*visible/r)/3),
			Tau2:  max(0, numeric.Log(2*pairs/r), numeric.Log(4*pairs/(m*r))/3),
		}
	}
	c.RAct = c.actorRatio(c.EtaMax)
	c.R1 = float64((s+a-2)*numeric.Exp(-c.Tau1)) + float64((s-1)*(a-1)*numeric.Exp(-2*c.Tau1)) +
		float64(visible*numeric.Exp(-3*c.Tau1))
	c.R2 = c.predecessorRatio()
	c.Lambda1, c.Lambda2 = c.R1/(1+c.R1), c.R2/(1+c.R2)
	c.DeltaRoute = 2 * c.limit() * (float64(c.Gamma*c.Lambda1) + c.Lambda2)
	c.DeltaRows = c.Gamma * c.limit() * mdp.Tolerance * (2 + mdp.Tolerance)
	c.Zeta = c.ZetaAt(c.EtaMax)

	// A score is a sum of four products and its exponential an ulp off; scores weigh in the output by their own
	// probability, and p|log p| sums to at most log A. The oracle's logits round alike. A sum of n positive terms is
	// off by at most n units.
	const unit = 0x1p-53
	c.RoundoffZeta = 16 * unit * (c.Kappa + c.Nu + 3*c.EtaMax*c.B + numeric.Log(a) + pairs + s)
	c.RoundoffDelta = 16 * unit * c.B * (3*c.Tau1 + 3*c.Tau2 + numeric.Log(m) + visible + 2*pairs)
	c.setReturned()
	return c, nil
}

func (c *Certificate) setReturned() {
	if c.Phi == 0 || c.EtaMin == 0 {
		return
	}
	theta := numeric.Log(float64(c.Actions)/c.Phi) / c.EtaMin
	b := c.limit()
	transient := pmd.MixtureBound(c.Gamma, 2*b, b, 0, 0, 0, c.Rounds)
	neighbourhood := func(delta float64) float64 {
		return pmd.MixtureBound(c.Gamma, 2*b, b, delta, c.Zeta, theta, c.Rounds) - transient
	}
	c.Returned = &Returned{Theta: theta, Transient: transient, Neighbourhood: neighbourhood(c.Delta()),
		Weighted: neighbourhood(c.DeltaWeighted())}
}

// actorRatio is the printed envelope of R_act, for |Q| up to the limit and rows of π that sum to one within Tolerance.
func (c *Certificate) actorRatio(eta float64) float64 {
	s, b, rows := float64(c.States), c.limit(), (1+mdp.Tolerance)/(1-mdp.Tolerance)
	return float64(rows * (float64((s-1)*numeric.Exp(float64(2*eta*b)-c.Kappa)) +
		float64(s*numeric.Exp(float64(eta*b)-c.Kappa-c.Nu))))
}

// predecessorRatio is the printed envelope of R₂ with M = mSA, which counts a query's own pair among the bad ones.
// That is more than packets out of balance cost while SA < 3·10⁵; beyond, what they cost is taken: the packets of
// the other SA−1 pairs weigh up to m(1+balance), the query's own as little as m(1−balance).
func (c *Certificate) predecessorRatio() float64 {
	pairs, m := float64(c.States*c.Actions), float64(c.Packets)
	near, far := numeric.Exp(-c.Tau2), numeric.Exp(-3*c.Tau2)
	printed := float64(pairs*near) + float64(2*pairs/m*far)
	unbalanced := (float64((pairs-1)*(1+balance)*near) + float64(2*pairs/m*far)) / (1 - balance)
	return max(printed, unbalanced)
}

// limit is the greatest |Q| that is accepted.
func (c *Certificate) limit() float64 { return c.B * (1 + slack) }

// least is the least probability that a normalized decoder accepts.
func (c *Certificate) least() float64 { return c.Floor * (1 - slack) }

// depth is the greatest |log π| and |log weight| that a normalized decoder accepts.
func (c *Certificate) depth() float64 { return -numeric.Log(c.least()) }

// ZetaAt bounds the actor residual of a call with step size eta.
func (c *Certificate) ZetaAt(eta float64) float64 {
	r, a := c.actorRatio(eta), float64(c.Actions)
	zeta := 2/(1+1/r) + 2*c.Phi*(a-1)/a
	if c.Norm != nil {
		zeta += c.Norm.ZetaAt(c, eta)
	}
	return min(2, zeta)
}

// check names the first cap that is out of range.
func (c Caps) check() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	own := cmp.Or(c.Override, &Margins{1, 1, 1, 1}) // those of Routing are in range
	least, most := min(own.Kappa, own.Nu, own.Tau1, own.Tau2), max(own.Kappa, own.Nu, own.Tau1, own.Tau2)
	for _, bad := range []struct {
		is   bool
		cap  string
		got  any
		want string
	}{
		{c.States < 1 || c.States > 4096, "states", c.States, "1 to 4096"},
		{c.Actions < 1 || c.Actions > 4096, "actions", c.Actions, "1 to 4096"},
		{!(c.Gamma >= 0 && c.Gamma < 1), "gamma", c.Gamma, "a discount in [0, 1)"},
		{!(c.RMax > 0) || !finite(c.RMax/(1-c.Gamma)), "r_max", c.RMax, "a finite bound above 0"},
		{!(c.EtaMin >= 0), "eta_min", c.EtaMin, "a step size of at least 0"},
		{!(c.EtaMax >= c.EtaMin) || !finite(c.EtaMax), "eta_max", c.EtaMax, "a finite step size of at least eta_min"},
		{c.EtaMax*c.RMax/(1-c.Gamma) > MaxLogit*(1+slack), "eta_max", c.EtaMax,
			fmt.Sprintf("eta_max·B of at most %v, so that log 0 stays below every score: with these rewards and "+
				"gamma a step size of at most %.4g", MaxLogit, MaxLogit*(1-c.Gamma)/c.RMax)},
		{c.Rounds < 1, "rounds", c.Rounds, "at least 1"},
		{!(c.Routing > 0 && c.Routing < 2), "routing", c.Routing, "a tolerance in (0, 2)"},
		{!(c.Alpha > 0 && c.Alpha < 1), "alpha", c.Alpha, "a probability in (0, 1)"},
		{c.Packets < 0 || float64(c.Packets)*float64(c.States)*float64(c.Actions) > mostPackets, "packets", c.Packets,
			"at least 0 and at most 1e9/(states·actions)"},
		{!(c.Sampling >= 0) || !finite(c.Sampling) || c.Packets == 0 && c.Sampling == 0, "sampling", c.Sampling,
			"a finite tolerance, above 0 where packets is not given"},
		{!(c.Phi >= 0 && c.Phi <= 1), "phi", c.Phi, "a mixture weight in [0, 1]"},
		{!(c.Floor >= 0 && c.Floor <= 1/float64(c.Actions)), "floor", c.Floor, "a probability of at most 1/actions"},
		{!(least > 0 && finite(most)), "override", c.Override, "finite numbers above 0"},
	} {
		if bad.is {
			return fmt.Errorf("decoder: cap %s is %+v, want %s", bad.cap, bad.got, bad.want)
		}
	}
	return nil
}

// Write prints the certificate as a table.
func (c *Certificate) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, value any, how string) {
		if f, ok := value.(float64); ok {
			value = fmt.Sprintf("%.6g", f)
		}
		fmt.Fprintf(t, "%s\t%v\t%s\n", name, value, how)
	}
	l := NewLayout(c.States, c.Actions)
	row("S, A", fmt.Sprintf("%d, %d", c.States, c.Actions), "declared")
	row("γ, R_max", fmt.Sprintf("%g, %g", c.Gamma, c.RMax), "declared")
	row("η", fmt.Sprintf("%g … %g", c.EtaMin, c.EtaMax), "declared")
	row("K, α", fmt.Sprintf("%d, %g", c.Rounds, c.Alpha), "declared")
	row("ε_r", c.Routing, "declared")
	row("φ", c.Phi, "declared")
	row("width, head", fmt.Sprintf("%d, %d", l.Width(), l.HeadDim()), "6S+6A+14, S+A+3")
	row("B", c.B, "R_max/(1−γ)")
	row("κ", c.Kappa, "2η_max·B + log(2S/r_ε), r_ε = ε_r/(2−ε_r)")
	row("ν", c.Nu, "")
	row("τ₁", c.Tau1, "R₁ ≤ r_ε")
	row("τ₂", c.Tau2, "R₂ ≤ r_ε")
	row("m", c.Packets, "⌈2B²/ε_s² · log(2SAK/α)⌉, or declared")
	row("packets seen", c.Visible, "at most")
	row("R_act", c.RAct, "(S−1)e^{−κ+2ηB} + Se^{−(κ+ν)+ηB}")
	row("λ₁", c.Lambda1, "R₁/(1+R₁)")
	row("λ₂", c.Lambda2, "R₂/(1+R₂)")
	row("ζ ≤", c.Zeta, "2R/(1+R) + 2φ(A−1)/A")
	row("δ_route ≤", c.DeltaRoute, "2B(γλ₁+λ₂)")
	row("δ_stat ≤", c.DeltaStat, "B√(2 log(2SAK/α)/m), with probability 1−α, sampled packets")
	row("δ_rows ≤", c.DeltaRows, "rows of P and π that sum to one within 1e-9 only")
	if c.Returned != nil {
		row("θ", c.Returned.Theta, "log(A/φ)/η_min")
		row("transient", c.Returned.Transient, "(2E₀+4B)γᴷ/(1−γ)")
		row("neighbourhood", c.Returned.Neighbourhood, "2γ/(1−γ)²·(δ_route+δ_stat+Bζ+θ)")
		row("with weighted packets", c.Returned.Weighted, "2γ/(1−γ)²·(δ_route+Bζ+θ)")
	}
	if c.Norm != nil {
		row("H", c.Norm.H, "carrier")
		row("1−ρ ≤", c.Norm.Defect, "1−(1+X²/H²)^{−1/2}, included in ζ and δ_route")
	}
	row("float64", fmt.Sprintf("%.2g, %.2g", c.RoundoffZeta, c.RoundoffDelta), "added to ζ and δ at most")
	return t.Flush()
}

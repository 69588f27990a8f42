package decoder

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// Carrier embeds payloads x [d] into tokens y = C·c + J·x [d+2] on which layer normalization with gain H/√(d+2)
// acts as x ↦ ρx, ρ = (1+‖x‖²/H²)^{−1/2} (Section 4, and equation 28 in Appendix C). The columns of J and
// the unit vector c are orthonormal and orthogonal to the all-ones direction.
type Carrier struct {
	H float64    // scale, large against payloads
	C float64    // C² = H² − (d+2)ε
	U []float64  // the direction c [d+2]
	J *mat.Dense // [d+2, d]
}

// NewCarrier returns the carrier of scale h for payloads of the given width.
//
// The reflection I − 2vvᵀ/‖v‖² with v = e₀ − 1/√D maps e₀ to the all-ones direction, so its other
// columns are an orthonormal basis orthogonal to it: column 1 is c, the rest is J.
func NewCarrier(width int, h float64) (*Carrier, error) {
	n := width + 2
	c2 := float64(h*h) - float64(float64(n)*numeric.LayerNormEpsilon)
	if !(h > 0) || !(c2 > 0) || math.IsInf(c2, 1) {
		return nil, fmt.Errorf("decoder: carrier scale H is %v, want H² finite and above %g", h,
			float64(n)*numeric.LayerNormEpsilon)
	}
	v := slices.Repeat([]float64{-1 / math.Sqrt(float64(n))}, n)
	v[0]++
	norm := numeric.Dot(v, v)
	reflection := mat.NewDense(n, n, nil)
	reflection.Apply(func(i, j int, _ float64) float64 {
		x := float64(-2 * float64(v[i]*v[j]) / norm)
		if i == j {
			x++
		}
		return x
	}, reflection)
	j := mat.DenseCopyOf(reflection.Slice(0, n, 2, n))
	return &Carrier{H: h, C: math.Sqrt(c2), U: mat.Col(nil, 1, reflection), J: j}, nil
}

// gain returns that of the layer normalization, H/√(d+2).
func (c *Carrier) gain() []float64 {
	n := len(c.U)
	return slices.Repeat([]float64{c.H / math.Sqrt(float64(n))}, n)
}

// embed stores the token of a payload in dst.
func (c *Carrier) embed(dst, payload []float64) {
	for i, u := range c.U {
		dst[i] = float64(c.C * u)
	}
	for j, x := range payload {
		if x != 0 {
			for i := range dst {
				dst[i] += float64(x * c.J.At(i, j))
			}
		}
	}
}

// NormCertificate states what layer normalization adds to the bounds. Payloads within the caps have ‖x‖ ≤ X; a
// norm scales them by ρ with 1−ρ ≤ Defect, a score by a factor within 1−ρ² ≤ Score of one. Scores off by at
// most Δ move a softmax by at most 2 tanh(Δ/2) ≤ Δ in L1.
type NormCertificate struct {
	H      float64 `json:"h"`
	X      float64 `json:"x"`
	Defect float64 `json:"defect"` // 1 − (1+X²/H²)^{−1/2}
	Score  float64 `json:"score"`  // X²/(H²+X²)
	Actor  float64 `json:"actor"`  // added to ζ, at EtaMax
	Critic float64 `json:"critic"` // added to δ_route
}

func newNormCertificate(c *Certificate, h float64) *NormCertificate {
	depth, b, r := c.depth(), c.limit(), c.RMax*(1+slack)
	// A packet holds four one-hots, role, constant, reward, log weight, the centred row, the value looked up and the
	// target; other tokens hold less, or a step size.
	x2 := 7 + depth*depth + r*r + c.EtaMax*c.EtaMax + 2*b*b
	n := &NormCertificate{H: h, X: math.Sqrt(x2), Score: x2 / (h*h + x2)}
	rho := 1 / math.Sqrt(1+x2/(h*h))
	n.Defect = n.Score / (1 + rho) // 1−ρ without cancellation
	n.Actor = n.ZetaAt(c, c.EtaMax)
	first, second := n.Score*3*c.Tau1, n.Score*(3*c.Tau2+depth)
	n.Critic = b * (c.Gamma*min(2, first) + min(2, second) + (3+c.Gamma)*n.Defect)
	return n
}

// ZetaAt bounds what normalization adds to ζ at the step size eta: the moved softmax, values and output shrunk by ρ.
func (n *NormCertificate) ZetaAt(c *Certificate, eta float64) float64 {
	shift := n.Score * (c.Kappa + c.Nu + c.depth() + eta*c.limit())
	return min(2, shift) + 4*n.Defect
}

// NewNormalized returns the decoder for the caps compiled with carrier scale h to a pre-LN network of width d+2 with a
// final LN, each norm the standard operation. Action values are centred, e_a − 1/A, and the affine readout adds 1/A
// back, so that the shrinking by ρ keeps rows on the simplex. The caps must give a Floor above zero, which bounds the
// payloads; for a closed loop Phi/A must be at least Floor, or returned policies may be refused in the next round. Log
// weights of packets must lie within ±log Floor too: those of Sampled are 0, those of Weighted log(m·P·π), so that
// m·P·π must lie in [Floor, 1/Floor]. Rounding takes the rows of returned policies about 3e-16·h from the simplex;
// from h = 3e6 on that exceeds mdp.Tolerance, and a closed loop refuses them.
func NewNormalized(caps Caps, h float64) (*Decoder, error) {
	if !(caps.Floor > 0) {
		return nil, fmt.Errorf("decoder: cap floor is %v, want a probability above 0 for a normalized decoder",
			caps.Floor)
	}
	d, err := uncompiled(caps)
	if err != nil {
		return nil, err
	}
	c, l := d.Certificate, d.Layout
	if d.Carrier, err = NewCarrier(l.Width(), h); err != nil {
		return nil, err
	}
	c.Norm = newNormCertificate(c, h)
	c.Zeta = c.ZetaAt(c.EtaMax)
	c.DeltaRoute += c.Norm.Critic
	// A payload coordinate is read as a difference of numbers of size H.
	rounding := 8 * 0x1p-53 * h * float64(l.Width()+2)
	c.RoundoffZeta += rounding * (c.Kappa + c.Nu + c.EtaMax + c.B + c.depth() + 3)
	c.RoundoffDelta += rounding * c.B * (6*c.Tau1 + 6*c.Tau2 + c.depth() + 4)
	c.setReturned()
	d.centre()
	for _, w := range d.Network.Matrices() {
		if _, cols := w.Matrix.Dims(); cols == l.Width() {
			*w.Matrix = *times(w.Matrix, d.Carrier.J.T()) // reads tokens
		} else {
			*w.Matrix = *times(d.Carrier.J, w.Matrix) // writes tokens
		}
	}
	d.Policy.W, d.Value.W = times(d.Policy.W, d.Carrier.J.T()), times(d.Value.W, d.Carrier.J.T())
	d.Network.Width += 2
	d.Network.Gain = d.Carrier.gain()
	return d, d.compile()
}

// centre replaces the actor's values e_a by e_a − 1/A and its readout by the one that adds 1/A.
func (d *Decoder) centre() {
	v, share := d.Network.Blocks[0].Heads[0].V, 1/float64(d.Actions)
	for a := range d.Actions {
		v.Set(d.Layout.SlotAction.Offset+a, d.Layout.IsActor.Offset, 0)
		v.Set(d.Layout.SlotAction.Offset+a, d.Layout.IsMemory.Offset, -share)
		d.Policy.Bias[a] = share
	}
	for i, k := range d.Legend {
		if k.Matrix == "block.0.head.0.v" && k.From == d.Layout.IsActor {
			d.Legend[i] = Link{k.Matrix, k.To, d.Layout.IsMemory, -share, "−1/A",
				"centre the values; the readout adds 1/A back"}
		}
	}
}

// times returns the product x·y, summed in index order.
func times(x *mat.Dense, y mat.Matrix) *mat.Dense {
	_, cols := y.Dims()
	z := mat.NewDense(x.RawMatrix().Rows, cols, nil)
	for _, r := range compress(x) {
		for _, e := range r.entries {
			for j, sum := range z.RawRowView(r.at) {
				z.Set(r.at, j, sum+float64(e.value*y.At(e.at, j)))
			}
		}
	}
	return z
}

// Rho returns the factor ρ by which the norm of H scales a payload, measured by embedding it, applying the norm and
// projecting the result on the payload. The payload must not be zero.
func (c *Carrier) Rho(payload []float64) float64 {
	y := make([]float64, len(c.U))
	c.embed(y, payload)
	normalize(y, y, c.gain())
	inner := 0.0
	for j, x := range payload {
		inner += float64(numeric.Dot(mat.Col(nil, j, c.J), y) * x)
	}
	return inner / numeric.Dot(payload, payload)
}

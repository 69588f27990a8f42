package decoder

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// contextCase is a shape, a number of packets and a routing tolerance.
type contextCase struct {
	s, a, m int
	routing float64
}

func (c contextCase) decoder(t testing.TB) *Decoder {
	t.Helper()
	d, err := New(Caps{States: c.s, Actions: c.a, Gamma: .9, RMax: 1, EtaMax: 1.2, Rounds: 40, Routing: c.routing, Alpha: .05, Packets: c.m})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// input is an actor call's context together with a critic call's.
type input struct {
	pi, q   *mat.Dense
	eta     float64
	packets []Packet
}

// draw returns a random context: Dirichlet policies, Q uniform on [−B, B], any η
// up to the cap, and packets with arbitrary successors and rewards.
func (c contextCase) draw(rng *rand.Rand, d *Decoder) input {
	x := input{pi: mdp.RandomPolicy(rng, c.s, c.a), q: mat.NewDense(c.s, c.a, nil), eta: d.EtaMax * rng.Float64()}
	for i := range x.q.RawMatrix().Data {
		x.q.RawMatrix().Data[i] = d.B * (2*rng.Float64() - 1)
	}
	x.packets = c.packets(func(s, a int) Packet {
		return Packet{State: s, Action: a, Reward: d.RMax * (2*rng.Float64() - 1), NextState: rng.IntN(c.s), NextAction: rng.IntN(c.a)}
	})
	return x
}

func (c contextCase) packets(draw func(s, a int) Packet) []Packet {
	var list []Packet
	for s := range c.s {
		for a := range c.a {
			for range c.m {
				list = append(list, draw(s, a))
			}
		}
	}
	return list
}

// adversarial returns contexts made to come close to the bounds: Q at ±B, ties,
// policies with zeros, with denormal entries and nearly deterministic ones, one
// state whose good actions have the least score while all others have the
// greatest, and packets that all fall on one value while the rest of the table
// is at the other extreme.
func (c contextCase) adversarial(rng *rand.Rand, d *Decoder, kind int) input {
	x := c.draw(rng, d)
	x.eta = d.EtaMax
	victim, best := rng.IntN(c.s), rng.IntN(c.a)
	sign := float64(1 - 2*rng.IntN(2))
	tiny := []float64{0, 5e-324, 1e-300, 1e-40, 1e-17, 1e-9}[kind/6%6]
	for s := range c.s {
		for a := range c.a {
			switch kind % 6 {
			case 0: // signs at random
				x.q.Set(s, a, d.B*float64(1-2*rng.IntN(2)))
			case 1: // all values tie
				x.q.Set(s, a, sign*d.B)
			case 2, 3: // the victim's scores are least, all others greatest
				x.q.Set(s, a, d.B)
				if s == victim {
					x.q.Set(s, a, -d.B)
				}
			case 4: // one value differs from all others
				x.q.Set(s, a, sign*d.B)
				if s == victim && a == best {
					x.q.Set(s, a, -sign*d.B)
				}
			case 5: // the policy is against the values
				x.q.Set(s, a, -d.B)
				if a != best {
					x.q.Set(s, a, d.B)
				}
			}
			if kind%6 >= 2 {
				p := tiny
				at := best
				if s != victim && kind%6 == 3 {
					at = (best + 1) % c.a // other states hold what the victim lacks
				}
				if a == at {
					p = 1 - float64(c.a-1)*tiny
				}
				x.pi.Set(s, a, p)
			}
		}
	}
	x.packets = c.packets(func(s, a int) Packet {
		if s == victim && a == best {
			return Packet{State: s, Action: a, Reward: -sign * d.RMax, NextState: victim, NextAction: best}
		}
		return Packet{State: s, Action: a, Reward: sign * d.RMax, NextState: (victim + 1) % c.s, NextAction: rng.IntN(c.a)}
	})
	return x
}

// residuals returns ζ of the actor call and the routing error of the critic
// call.
func residuals(t testing.TB, d *Decoder, x input) (zeta, route float64) {
	t.Helper()
	next, err := d.Improve(x.pi, x.q, x.eta)
	if err != nil {
		t.Fatal(err)
	}
	if zeta, err = pmd.Zeta(next, x.pi, x.q, x.eta); err != nil {
		t.Fatal(err)
	}
	got, err := d.Backup(x.pi, x.q, x.packets)
	if err != nil {
		t.Fatal(err)
	}
	return zeta, mdp.MaxAbsDiff(got, meanTarget(x.packets, x.q, d.Gamma))
}

// TestBounds holds the residuals of random and adversarial contexts against the
// certificate. A context is the input of one actor or of one critic call.
func TestBounds(t *testing.T) {
	shapes := []struct{ s, a, m, n int }{
		{2, 2, 1, 9000}, {2, 3, 2, 4000}, {3, 2, 3, 4000}, {4, 3, 2, 1500}, {3, 5, 1, 1500},
		{8, 3, 6, 150}, {2, 16, 2, 250}, {16, 2, 2, 200}, {5, 7, 3, 150}, {16, 16, 1, 3},
	}
	tolerances := []float64{1.5, .3, 1e-3, 1e-8, 1e-15}
	type smallest struct {
		ratio float64
		at    contextCase
	}
	var ratios [2][2]smallest // [random, adversarial][ζ, δ_route]
	contexts, adversarial := 0, 0
	for _, sh := range shapes {
		for _, routing := range tolerances {
			c := contextCase{sh.s, sh.a, sh.m, routing}
			d, rng := c.decoder(t), seed.New(4, "bounds", sh.s, sh.a, routing)
			hold := func(name string, least *smallest, i int, residual, bound, rounding float64) {
				if !(residual <= bound+rounding) {
					t.Errorf("%+v, context %d: %s = %g exceeds its bound %g", c, i, name, residual, bound)
				}
				if r := bound / residual; residual > 100*rounding && (least.ratio == 0 || r < least.ratio) {
					*least = smallest{r, c}
				}
			}
			hostile := max(36, sh.n/20)
			for i := range sh.n + hostile {
				var x input
				least := &ratios[0]
				if i < hostile {
					x, least = c.adversarial(rng, d, i), &ratios[1]
					adversarial += 2
				} else {
					x = c.draw(rng, d)
					contexts += 2
				}
				zeta, route := residuals(t, d, x)
				hold("ζ", &least[0], i, zeta, d.ZetaAt(x.eta), d.RoundoffZeta)
				hold("δ_route", &least[1], i, route, d.DeltaRoute, d.RoundoffDelta)
			}
		}
	}
	for i, name := range []string{"random", "adversarial"} {
		t.Logf("%s: smallest bound/actual: ζ %.6g at %+v, δ_route %.6g at %+v", name,
			ratios[i][0].ratio, ratios[i][0].at, ratios[i][1].ratio, ratios[i][1].at)
	}
	t.Logf("%d random and %d adversarial contexts", contexts, adversarial)
	if contexts < 1e5 || adversarial < 1e3 {
		t.Errorf("%d random and %d adversarial contexts, want 10⁵ and 10³", contexts, adversarial)
	}
}

// TestPerturbed changes one weight at a time, one of every link in the legend,
// and expects a bound to break.
func TestPerturbed(t *testing.T) {
	c := contextCase{3, 2, 2, 1e-2}
	clean := c.decoder(t)
	for _, link := range clean.Legend {
		broken := false
		for _, factor := range []float64{0, 1e3, -1e3} {
			d := c.decoder(t)
			for _, w := range d.Network.matrices() {
				if w.name == link.Matrix {
					w.m.Set(link.To.Offset, link.From.Offset, factor*link.Value)
				}
			}
			if err := d.compile(); err != nil {
				t.Fatal(err)
			}
			rng := seed.New(5, "perturbed")
			for i := 0; i < 200 && !broken; i++ {
				x := c.adversarial(rng, d, i)
				for j := 0; j < len(x.packets); j += c.m { // one packet of 1.9 and one of 0.1
					x.packets[j].LogWeight, x.packets[j+1].LogWeight = math.Log(1.9), math.Log(.1)
					x.packets[j].Reward *= -1
				}
				zeta, route := residuals(t, d, x)
				broken = zeta > d.Zeta+d.RoundoffZeta || route > d.DeltaRoute+d.RoundoffDelta
			}
		}
		if !broken {
			t.Errorf("no bound broke when %s, %s ← %s (%s) was changed", link.Matrix, link.To.Name, link.From.Name, link.Symbol)
		}
	}
}

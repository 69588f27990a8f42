package decoder

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
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
	d := testkit.Must(New(Caps{States: c.s, Actions: c.a, Gamma: .9, RMax: 1, EtaMax: 1.2, Rounds: 40,
		Routing: c.routing, Alpha: .05, Packets: c.m}))(t)
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
		return Packet{State: s, Action: a, Reward: d.RMax * (2*rng.Float64() - 1), NextState: rng.IntN(c.s),
			NextAction: rng.IntN(c.a)}
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

// adversarial returns contexts made to come close to the bounds, at the limits of
// what is accepted: Q at ±B(1+slack), ties, policies with zeros, with denormal
// entries and nearly deterministic ones, rows that sum to one within mdp.Tolerance
// only, one state whose good actions have the least score while all others have
// the greatest, and packets that all fall on one value while the rest of the table
// is at the other extreme.
func (c contextCase) adversarial(rng *rand.Rand, d *Decoder, kind int) input {
	x := c.draw(rng, d)
	x.eta = d.EtaMax
	victim, best, top := rng.IntN(c.s), rng.IntN(c.a), d.limit()
	sign := float64(1 - 2*rng.IntN(2))
	tiny := []float64{0, 5e-324, 1e-300, 1e-40, 1e-17, 1e-9}[kind/6%6]
	for s := range c.s {
		for a := range c.a {
			switch kind % 6 {
			case 0: // signs at random
				x.q.Set(s, a, top*float64(1-2*rng.IntN(2)))
			case 1: // all values tie
				x.q.Set(s, a, sign*top)
			case 2, 3: // the victim's scores are least, all others greatest
				x.q.Set(s, a, top)
				if s == victim {
					x.q.Set(s, a, -top)
				}
			case 4: // one value differs from all others
				x.q.Set(s, a, sign*top)
				if s == victim && a == best {
					x.q.Set(s, a, -sign*top)
				}
			case 5: // the policy is against the values
				x.q.Set(s, a, -top)
				if a != best {
					x.q.Set(s, a, top)
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
		if kind%2 == 1 { // the victim's row is short and others are long
			off := within * mdp.Tolerance
			if s == victim {
				off = -off
			}
			floats.Scale(1+off, x.pi.RawRowView(s))
		}
	}
	x.packets = c.packets(func(s, a int) Packet {
		if s == victim && a == best {
			return Packet{State: s, Action: a, Reward: -sign * d.RMax * (1 + slack), NextState: victim,
				NextAction: best, LogWeight: math.Log1p(-within * balance)}
		}
		return Packet{State: s, Action: a, Reward: sign * d.RMax * (1 + slack), NextState: (victim + 1) % c.s,
			NextAction: rng.IntN(c.a), LogWeight: math.Log1p(within * balance)}
	})
	return x
}

// within keeps sums at a tolerance within it after rounding.
const within = 1 - 1e-4

// residuals returns ζ of the actor call and the routing error of the critic
// call.
func residuals(t testing.TB, d *Decoder, x input) (zeta, route float64) {
	t.Helper()
	next := testkit.Must(d.Improve(x.pi, x.q, x.eta))(t)
	zeta = pmd.MaxRowL1(next, testkit.Must(pmd.Step(x.pi, x.q, x.eta))(t))
	got := testkit.Must(d.Backup(x.pi, x.q, x.packets))(t)
	return zeta, mdp.MaxAbsDiff(got, meanTarget(x.packets, x.q, d.Gamma))
}

// randomCaps returns caps from the whole range that is declared, S and A given:
// ηB up to 2000, one time in four exactly there, R_max over ten and ε_r over twelve
// orders of magnitude.
func randomCaps(rng *rand.Rand, s, a, m int) Caps {
	gamma := []float64{0, .5, .9, .99, .999, .9999}[rng.IntN(6)]
	caps := Caps{
		States: s, Actions: a, Gamma: gamma, RMax: math.Pow(10, 10*rng.Float64()-6), Rounds: 40, Alpha: .05, Packets: m,
		Routing: 1.9 * math.Pow(10, -12.3*rng.Float64()),
	}
	product := math.Pow(10, 6.3*rng.Float64()-3)
	if rng.IntN(4) == 0 {
		product = 2000
	}
	b := caps.RMax / (1 - gamma)
	for caps.EtaMax = min(product, 2000) / b; caps.EtaMax*caps.RMax/(1-gamma) > 2000; {
		caps.EtaMax = math.Nextafter(caps.EtaMax, 0)
	}
	return caps
}

// offSimplex returns an MDP with rewards at the limit of what the decoder accepts
// and rows of P that sum to one within mdp.Tolerance only.
func offSimplex(t testing.TB, rng *rand.Rand, d *Decoder) *mdp.MDP {
	t.Helper()
	p := mdp.RandomPolicy(rng, d.States*d.Actions, d.States)
	r := mat.NewDense(d.States, d.Actions, nil)
	for i := range r.RawMatrix().Data {
		r.RawMatrix().Data[i] = d.RMax * (1 + slack) * float64(1-2*rng.IntN(2))
		floats.Scale(1+within*mdp.Tolerance*float64(1-2*rng.IntN(2)), p.RawRowView(i))
	}
	env := testkit.Must(mdp.New(d.Gamma, p, r))(t)
	return env
}

// TestBounds holds ζ, the routing error and δ of random contexts, and of hostile ones at the
// limits of what is accepted, against the certificate, over the whole range of caps. A
// context is the input of one actor or of one critic call.
func TestBounds(t *testing.T) {
	rng := seed.New(17, "accepted")
	random, hostile, closest := 0, 0, 0.0
	run := func(d *Decoder, kinds int) {
		c := contextCase{d.States, d.Actions, d.Packets, d.Routing}
		hold := func(kind int, name string, residual, bound, rounding float64) {
			if !(residual <= bound+rounding) {
				t.Errorf("%+v, kind %d: %s = %v exceeds its bound %v by %.3g, allowed %.3g",
					d.Caps, kind, name, residual, bound, residual-bound, rounding)
			}
			if rounding < 1e-6*bound {
				closest = max(closest, residual/bound)
			}
		}
		for i := range 2 * kinds {
			kind := i
			if kinds < 36 { // the 36 kinds over several caps
				kind = rng.IntN(36)
			}
			x := c.draw(rng, d)
			if i < kinds {
				x = c.adversarial(rng, d, kind)
				hostile += 2
			} else {
				random += 2
			}
			if d.Norm != nil {
				share := d.least() * (1 + 1e-12)
				x.pi.Apply(func(_, _ int, p float64) float64 { return (1-float64(c.a)*share)*p + share }, x.pi)
			}
			zeta, route := residuals(t, d, x)
			hold(kind, "ζ", zeta, d.ZetaAt(x.eta), d.RoundoffZeta)
			hold(kind, "δ_route", route, d.DeltaRoute, d.RoundoffDelta)
			if d.Norm == nil && i < kinds {
				env := offSimplex(t, rng, d)
				got := testkit.Must(d.Backup(x.pi, x.q, Weighted().Packets(env, x.pi, d.Packets, 0, 0)))(t)
				exact := env.EvaluationBackup(x.pi, x.q)
				hold(kind, "δ", mdp.MaxAbsDiff(got, exact), d.DeltaWeighted(), d.RoundoffDelta)
			}
		}
	}
	less := 1
	if testing.Short() {
		less = 10
	}
	// Where the bounds were once exceeded: they did not cover what is accepted.
	once := Caps{States: 2, Actions: 2, Gamma: .99, RMax: 1, EtaMax: .8, Rounds: 40, Routing: .01, Alpha: .05,
		Packets: 1}
	run(testkit.Must(New(once))(t), 36)
	once.EtaMax = 20
	run(testkit.Must(New(once))(t), 36)
	once.Gamma, once.EtaMax, once.Rounds, once.Routing, once.Packets = 0, 0, 1, 1.9, 1000
	run(testkit.Must(New(once))(t), 36)
	for range 900 / less {
		run(testkit.Must(New(randomCaps(rng, 1+rng.IntN(4), 2+rng.IntN(3), 1+rng.IntN(4))))(t), 36)
	}
	for range 150 / less {
		run(testkit.Must(New(randomCaps(rng, 1+rng.IntN(10), 2+rng.IntN(7), 1+rng.IntN(8))))(t), 10)
	}
	for s := 1; s <= 32; s++ {
		run(testkit.Must(New(randomCaps(rng, s, 2+s%7, 1+s%2)))(t), 3)
	}
	for range 100 / less {
		caps := randomCaps(rng, 1+rng.IntN(3), 2+rng.IntN(2), 1+rng.IntN(3))
		caps.Floor = math.Pow(10, -1-12*rng.Float64())
		run(testkit.Must(NewNormalized(caps, math.Pow(10, 2+5*rng.Float64())))(t), 36)
	}
	t.Logf("%d random and %d hostile contexts, residual at most %.6f of its bound", random, hostile, closest)
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
			for _, w := range d.Network.Matrices() {
				if w.Name == link.Matrix {
					w.Matrix.Set(link.To.Offset, link.From.Offset, factor*link.Value)
				}
			}
			testkit.Check(t, d.compile())
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
			t.Errorf("no bound broke when %s, %s ← %s (%s) was changed", link.Matrix, link.To.Name, link.From.Name,
				link.Symbol)
		}
	}
}

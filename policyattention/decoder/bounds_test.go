package decoder

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
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
			return Packet{State: s, Action: a, Reward: -sign * d.RMax * (1 + slack), NextState: victim, NextAction: best, LogWeight: math.Log1p(-within * balance)}
		}
		return Packet{State: s, Action: a, Reward: sign * d.RMax * (1 + slack), NextState: (victim + 1) % c.s, NextAction: rng.IntN(c.a), LogWeight: math.Log1p(within * balance)}
	})
	return x
}

// within keeps sums at a tolerance within it after rounding.
const within = 1 - 1e-4

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
	env, err := mdp.New(d.Gamma, p, r)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestAcceptedInputs holds ζ, the routing error and δ at the limits of what is
// accepted against the certificate, over the whole range of caps. A context is the
// input of one actor or of one critic call.
func TestAcceptedInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws a hundred thousand contexts")
	}
	rng := seed.New(17, "accepted")
	contexts, closest := 0, 0.0
	hold := func(d *Decoder, kind int, name string, residual, bound, rounding float64) {
		contexts++
		if !(residual <= bound+rounding) {
			t.Errorf("%+v, kind %d: %s = %v exceeds its bound %v by %.3g, allowed %.3g", d.Caps, kind, name, residual, bound, residual-bound, rounding)
		}
		if rounding < 1e-6*bound {
			closest = max(closest, residual/bound)
		}
	}
	run := func(caps Caps, kinds int) {
		d, err := New(caps)
		if err != nil {
			t.Fatal(err)
		}
		c := contextCase{caps.States, caps.Actions, caps.Packets, caps.Routing}
		for i := range kinds {
			kind := i
			if kinds < 36 { // the 36 kinds over several caps
				kind = rng.IntN(36)
			}
			x := c.adversarial(rng, d, kind)
			zeta, route := residuals(t, d, x)
			hold(d, kind, "ζ", zeta, d.ZetaAt(x.eta), d.RoundoffZeta)
			hold(d, kind, "δ_route", route, d.DeltaRoute, d.RoundoffDelta)

			env := offSimplex(t, rng, d)
			got, err := d.Backup(x.pi, x.q, Expectation(env, x.pi, d.Packets))
			if err != nil {
				t.Fatal(err)
			}
			hold(d, kind, "δ", mdp.MaxAbsDiff(got, env.EvaluationBackup(x.pi, x.q)), d.DeltaWeighted(), d.RoundoffDelta)
		}
	}
	// Where the bounds were once exceeded: they did not cover what is accepted.
	run(Caps{States: 2, Actions: 2, Gamma: .99, RMax: 1, EtaMax: .8, Rounds: 40, Routing: .01, Alpha: .05, Packets: 1}, 36)
	run(Caps{States: 2, Actions: 2, Gamma: .99, RMax: 1, EtaMax: 20, Rounds: 40, Routing: .01, Alpha: .05, Packets: 1}, 36)
	run(Caps{States: 2, Actions: 2, Gamma: 0, RMax: 1, EtaMax: 0, Rounds: 1, Routing: 1.9, Alpha: .05, Packets: 1000}, 36)
	for range 900 {
		run(randomCaps(rng, 1+rng.IntN(4), 2+rng.IntN(3), 1+rng.IntN(4)), 36)
	}
	for range 150 {
		run(randomCaps(rng, 1+rng.IntN(10), 2+rng.IntN(7), 1+rng.IntN(8)), 10)
	}
	for s := 1; s <= 32; s++ {
		run(randomCaps(rng, s, 2+s%7, 1+s%2), 3)
	}
	for range 100 {
		caps := randomCaps(rng, 1+rng.IntN(3), 2+rng.IntN(2), 1+rng.IntN(3))
		caps.Floor = math.Pow(10, -1-12*rng.Float64())
		d, err := NewNormalized(caps, math.Pow(10, 2+5*rng.Float64()))
		if err != nil {
			t.Fatal(err)
		}
		c := contextCase{caps.States, caps.Actions, caps.Packets, caps.Routing}
		for kind := range 36 {
			x := c.adversarial(rng, d, kind)
			share := d.least() * (1 + 1e-12)
			x.pi.Apply(func(_, _ int, p float64) float64 { return (1-float64(c.a)*share)*p + share }, x.pi)
			zeta, route := residuals(t, d, x)
			hold(d, kind, "ζ of the normalized decoder", zeta, d.ZetaAt(x.eta), d.RoundoffZeta)
			hold(d, kind, "δ_route of the normalized decoder", route, d.DeltaRoute, d.RoundoffDelta)
		}
	}
	t.Logf("%d contexts, residual at most %.6f of its bound", contexts, closest)
	if contexts < 1e5 {
		t.Errorf("%d contexts, want 10⁵", contexts)
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
			for _, w := range d.Network.Matrices() {
				if w.Name == link.Matrix {
					w.Matrix.Set(link.To.Offset, link.From.Offset, factor*link.Value)
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

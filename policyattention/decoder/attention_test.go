package decoder

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// leaks returns by how much the attention that the heads of an actor and a critic call give
// to tokens that are not meant exceeds the bounds (24), (25) and (26).
func leaks(t *testing.T, d *Decoder, x input) (actor, lookup, average float64) {
	t.Helper()
	call, a := testkit.Must(d.TraceActor(x.pi, x.q, x.eta))(t), d.Actions
	actor, lookup, average = math.Inf(-1), math.Inf(-1), math.Inf(-1)
	for s, i := range call.Reads {
		good := floats.Sum(call.Blocks[0].Heads[0].Weights(i)[s*a : (s+1)*a])
		actor = max(actor, 1-good-d.RAct/(1+d.RAct))
	}
	call = testkit.Must(d.TraceCritic(x.pi, x.q, x.packets))(t)
	memories := d.States * a
	for j, p := range x.packets {
		good := call.Blocks[0].Heads[1].Weights(memories + j)[p.NextState*a+p.NextAction]
		lookup = max(lookup, 1-good-d.Lambda1)
	}
	for pair, i := range call.Reads {
		weights, good := call.Blocks[1].Heads[0].Weights(i), 0.0
		for j, p := range x.packets {
			if p.State*a+p.Action == pair {
				good += weights[memories+j]
			}
		}
		average = max(average, 1-good-d.Lambda2)
	}
	return actor, lookup, average
}

// TestLeaks holds each head's leaked attention against its bound, and expects the bound of
// a head to fail when its margin is halved.
func TestLeaks(t *testing.T) {
	rng := seed.New(43, "leaks")
	for range 30 {
		c := contextCase{1 + rng.IntN(6), 2 + rng.IntN(3), 1 + rng.IntN(4), math.Pow(10, -6*rng.Float64())}
		d := c.decoder(t)
		for kind := range 36 {
			actor, lookup, average := leaks(t, d, c.adversarial(rng, d, kind))
			if actor > d.RoundoffZeta || lookup > 1e-12 || average > 1e-12 {
				t.Errorf("%+v, kind %d: bounds exceeded by %g, %g, %g", c, kind, actor, lookup, average)
			}
		}
	}
	c := contextCase{3, 2, 2, 1e-3}
	for i, name := range []string{"κ", "τ₁", "τ₂"} {
		d, worst := c.decoder(t), math.Inf(-1)
		q := []*mat.Dense{d.Network.Blocks[0].Heads[0].Q, d.Network.Blocks[0].Heads[1].Q,
			d.Network.Blocks[1].Heads[0].Q}[i]
		q.Scale(.5, q)
		testkit.Check(t, d.compile())
		for kind := range 36 {
			actor, lookup, average := leaks(t, d, c.adversarial(rng, d, kind))
			worst = max(worst, []float64{actor, lookup, average}[i])
		}
		if worst <= 1e-12 {
			t.Errorf("%s halved: no bound fails", name)
		}
	}
}

package decoder

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Checks evaluates the statements about the construction (Section 3, Appendices B
// and C) on the given number of decoders at random, each with one actor and one critic
// call: what the network is made of, (6), (7) without its sampling term, (24)–(27),
// and (28). S is 1 to 6, A 2 to 4, γ 0 to .99, ε_r 1e-6 to 1.
func Checks(root uint64, decoders int) ([]pmd.Check, error) {
	var tally pmd.Tally
	for i := range decoders {
		rng := seed.New(root, "decoder", i)
		if err := checkDecoder(&tally, rng); err != nil {
			return nil, err
		}
	}
	return tally, nil
}

func checkDecoder(tally *pmd.Tally, rng *rand.Rand) error {
	caps := Caps{
		States: 1 + rng.IntN(6), Actions: 2 + rng.IntN(3), Gamma: []float64{0, .5, .9, .99}[rng.IntN(4)], RMax: 1,
		Rounds: 40, Routing: math.Pow(10, -6*rng.Float64()), Alpha: .05, Packets: 1 + rng.IntN(4),
	}
	caps.EtaMax = 20 * rng.Float64() * (1 - caps.Gamma)
	d, err := New(caps)
	if err != nil {
		return err
	}
	r := mat.NewDense(d.States, d.Actions, nil)
	r.Apply(func(_, _ int, _ float64) float64 { return 2*rng.Float64() - 1 }, r)
	env, err := mdp.New(d.Gamma, mdp.RandomPolicy(rng, d.States*d.Actions, d.States), r)
	if err != nil {
		return err
	}
	pi, q := mdp.RandomPolicy(rng, d.States, d.Actions), mat.NewDense(d.States, d.Actions, nil)
	q.Apply(func(_, _ int, _ float64) float64 { return d.B * float64(1-2*rng.IntN(2)) }, q)
	actor, err := d.TraceActor(pi, q, d.EtaMax)
	if err != nil {
		return err
	}
	packets := Sample(env, pi, d.Packets, rng)
	critic, err := d.TraceCritic(pi, q, packets)
	if err != nil {
		return err
	}
	checkShape(tally, d)
	for _, call := range []*Call{actor, critic} {
		if err := checkAttention(tally, rng, d, call); err != nil {
			return err
		}
	}
	if err := d.checkLeaks(tally, pi, q, packets, actor, critic); err != nil {
		return err
	}
	if err := checkPackets(tally, rng, caps); err != nil {
		return err
	}
	return checkCarrier(tally, rng, d.Layout.Width())
}

// fact enters what is true or false, as the slack 0 or −1.
func fact(tally *pmd.Tally, equation, says string, holds bool) {
	slack := 0.0
	if !holds {
		slack = -1
	}
	tally.Add(pmd.Check{Equation: equation, Says: says, Slack: slack}, 0)
}

// checkShape enters what the paper counts, read off the matrices.
func checkShape(tally *pmd.Tally, d *Decoder) {
	n, s, a := d.Network, d.States, d.Actions
	heads, dims, maps := true, true, 0
	for _, b := range n.Blocks {
		heads = heads && len(b.Heads) == 2
		for _, h := range b.Heads {
			for _, m := range []mat.Matrix{h.Q, h.K, h.V, h.O.T()} {
				rows, cols := m.Dims()
				dims = dims && rows == s+a+3 && cols == 6*s+6*a+14
			}
		}
		if b.W1 != nil {
			maps++
		}
	}
	fact(tally, "Section 3", "two blocks of two heads", len(n.Blocks) == 2 && heads)
	fact(tally, "Section 3", "head dimension S+A+3, payload width 6S+6A+14", dims)
	fact(tally, "Section 3", "one ReLU map, and no normalization", maps == 1 && n.Norm == nil && n.Blocks[0].AttentionNorm == nil && n.Blocks[1].AttentionNorm == nil)
}

// checkAttention enters that a call is causal and has no positions.
func checkAttention(tally *pmd.Tally, rng *rand.Rand, d *Decoder, c *Call) error {
	full, err := d.Network.Forward(rows(c.Tokens))
	if err != nil {
		return err
	}
	prefix := 1 + rng.IntN(len(c.Tokens))
	part, err := d.Network.Forward(rows(c.Tokens[:prefix]))
	if err != nil {
		return err
	}
	fact(tally, "Section 3", "causal: tokens that follow change no bit of an output", mat.Equal(part, full.Slice(0, prefix, 0, d.Network.Width)))

	// Memories attend to nothing that matters and stand first in both calls.
	shuffled := append([][]float64(nil), c.Tokens...)
	memories := d.States * d.Actions
	rng.Shuffle(memories, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	moved, err := d.Network.Forward(rows(shuffled))
	if err != nil {
		return err
	}
	worst := 0.0
	for _, i := range c.Reads {
		worst = max(worst, floats.Distance(moved.RawRowView(i), full.RawRowView(i), math.Inf(1)))
	}
	// Sums over the tokens are taken in another order, of terms up to B.
	tally.Add(pmd.Check{Equation: "Section 3", Says: "no positions: the order of memories changes outputs by rounding only", Slack: -worst}, 1e-13*(1+d.B)*float64(len(c.Tokens)))
	return nil
}

// checkLeaks enters the attention that the heads of a traced call give to tokens that
// are not meant, and the residuals that follow.
func (d *Decoder) checkLeaks(tally *pmd.Tally, pi, q *mat.Dense, packets []Packet, actor, critic *Call) error {
	memories, a := d.States*d.Actions, d.Actions
	for s, i := range actor.Reads {
		weights := actor.Blocks[0].Heads[0].Weights(i)
		good := floats.Sum(weights[s*a : (s+1)*a])
		tally.Add(pmd.Check{Equation: "(24)", Says: "the actor's mass off the query's state is at most R/(1+R)", Slack: d.RAct/(1+d.RAct) - (1 - good)}, d.RoundoffZeta)
	}
	for j, p := range packets {
		weights := critic.Blocks[0].Heads[1].Weights(memories + j)
		tally.Add(pmd.Check{Equation: "(25)", Says: "the lookup's mass off the successor is at most λ₁", Slack: d.Lambda1 - (1 - weights[p.NextState*a+p.NextAction])}, 1e-12)
	}
	for pair, i := range critic.Reads {
		weights, good := critic.Blocks[1].Heads[0].Weights(i), 0.0
		for j, p := range packets {
			if p.State*a+p.Action == pair {
				good += weights[memories+j]
			}
		}
		tally.Add(pmd.Check{Equation: "(26)", Says: "the average's mass off the query's packets is at most λ₂", Slack: d.Lambda2 - (1 - good)}, 1e-12)
	}
	next, err := d.Improve(pi, q, d.EtaMax)
	if err != nil {
		return err
	}
	zeta, err := pmd.Zeta(next, pi, q, d.EtaMax)
	if err != nil {
		return err
	}
	tally.Add(pmd.Check{Equation: "(6)", Says: "ζ ≤ 2R/(1+R)", Slack: d.ZetaAt(d.EtaMax) - zeta}, d.RoundoffZeta)
	got, err := d.Backup(pi, q, packets)
	if err != nil {
		return err
	}
	route := mdp.MaxAbsDiff(got, meanTarget(packets, q, d.Gamma))
	tally.Add(pmd.Check{Equation: "(7)", Says: "δ_route ≤ 2B(γλ₁+λ₂)", Slack: d.DeltaRoute - route}, d.RoundoffDelta)
	return nil
}

// checkPackets enters (27): m packets give the sampling bound ε_s, and m−1 do not.
func checkPackets(tally *pmd.Tally, rng *rand.Rand, caps Caps) error {
	caps.Packets, caps.Sampling = 0, caps.RMax/(1-caps.Gamma)*(.05+rng.Float64())
	c, err := Certify(caps)
	if err != nil {
		return err
	}
	tally.Add(pmd.Check{Equation: "(27)", Says: "with m packets δ_stat ≤ ε_s", Slack: caps.Sampling - c.DeltaStat}, 1e-12*caps.Sampling)
	if c.Packets == 1 {
		return nil
	}
	caps.Packets = c.Packets - 1
	fewer, err := Certify(caps)
	if err != nil {
		return err
	}
	tally.Add(pmd.Check{Equation: "(27)", Says: "with m−1 packets it is not", Slack: fewer.DeltaStat - caps.Sampling}, 1e-12*caps.Sampling)
	return nil
}

// checkCarrier enters (28) for a payload and a scale at random.
func checkCarrier(tally *pmd.Tally, rng *rand.Rand, width int) error {
	h := math.Pow(10, 1+3*rng.Float64())
	c, err := NewCarrier(width, h)
	if err != nil {
		return err
	}
	x, square := make([]float64, width), 0.0
	for i := range x {
		x[i] = 3 * rng.NormFloat64()
		square += x[i] * x[i]
	}
	if square == 0 {
		return errors.New("decoder: a payload of zeros was drawn")
	}
	z, rho := c.normalized(x), 1/math.Sqrt(1+square/(h*h))
	worst := 0.0
	for i, v := range x {
		worst = max(worst, math.Abs(z[i]-rho*v))
	}
	// Coordinates of size H are subtracted, width of them.
	rounding := 1e-15 * h * float64(width)
	tally.Add(pmd.Check{Equation: "(28)", Says: "JᵀLN(Cc+Jx) = Hx/√(H²+‖x‖²)", Slack: -worst}, rounding)
	tally.Add(pmd.Check{Equation: "(28)", Says: "1−ρ ≤ ‖x‖²/(2H²)", Slack: square/(2*h*h) - (1 - c.Rho(x))}, rounding)
	return nil
}

// rows returns tokens [N][width] as a matrix.
func rows(tokens [][]float64) *mat.Dense {
	m := mat.NewDense(len(tokens), len(tokens[0]), nil)
	for i, x := range tokens {
		m.SetRow(i, x)
	}
	return m
}

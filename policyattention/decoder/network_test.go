package decoder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// randomMatrix has normal entries, of which the given share is non-zero.
func randomMatrix(rng *rand.Rand, rows, cols int, density float64) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			if x := rng.NormFloat64(); rng.Float64() < density {
				m.Set(i, j, x)
			}
		}
	}
	return m
}

// randomNetwork has two heads a block and, if norm is set, layer norms.
func randomNetwork(rng *rand.Rand, blocks, width, dim, hidden int, density float64, norm bool) *Network {
	n := &Network{Width: width, HeadDim: dim}
	layerNorm := func() *LayerNorm {
		if !norm {
			return nil
		}
		l := &LayerNorm{Epsilon: 1e-5}
		for range width {
			l.Gain = append(l.Gain, 1+.1*rng.NormFloat64())
		}
		return l
	}
	for range blocks {
		b := Block{
			AttentionNorm: layerNorm(), MapNorm: layerNorm(),
			W1: randomMatrix(rng, hidden, width, density), W2: randomMatrix(rng, width, hidden, density),
		}
		for range 2 {
			b.Heads = append(b.Heads, Head{
				Q: randomMatrix(rng, dim, width, density), K: randomMatrix(rng, dim, width, density),
				V: randomMatrix(rng, dim, width, density), O: randomMatrix(rng, width, dim, density),
			})
		}
		n.Blocks = append(n.Blocks, b)
	}
	n.Norm = layerNorm()
	return n
}

// randomTokens holds repeated tokens, so that keys and queries repeat.
func randomTokens(rng *rand.Rand, n, width int) [][]float64 {
	var kinds, tokens [][]float64
	for range max(1, n/3) {
		kinds = append(kinds, randomMatrix(rng, 1, width, .5).RawRowView(0))
	}
	for range n {
		tokens = append(tokens, kinds[rng.IntN(len(kinds))])
	}
	return tokens
}

func dense(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, x := range rows {
		m.SetRow(i, x)
	}
	return m
}

// TestForward compares the streaming pass, which groups equal keys and leaves
// zeros out, with the textbook definition. Both round sums of about a hundred
// terms of order one to ten: 1e-12 is some thousand ulps.
func TestForward(t *testing.T) {
	rng := seed.New(2, "forward")
	for _, density := range []float64{1, .4, .1} {
		for _, norm := range []bool{false, true} {
			n := randomNetwork(rng, 3, 11, 5, 7, density, norm)
			tokens := randomTokens(rng, 60, n.Width)
			got, err := n.Forward(dense(tokens))
			if err != nil {
				t.Fatal(err)
			}
			want, err := n.Trace(tokens)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range want.Output {
				for j, w := range row {
					if d := math.Abs(got.At(i, j) - w); !(d <= 1e-12*(1+math.Abs(w))) {
						t.Fatalf("density %v norm %v: output[%d,%d] = %v, textbook %v", density, norm, i, j, got.At(i, j), w)
					}
				}
			}
		}
	}
}

// TestCausal changes later tokens and expects earlier outputs bit for bit.
func TestCausal(t *testing.T) {
	rng := seed.New(2, "causal")
	n := randomNetwork(rng, 2, 9, 4, 5, 1, true)
	tokens := randomTokens(rng, 20, n.Width)
	before, err := n.Forward(dense(tokens))
	if err != nil {
		t.Fatal(err)
	}
	after, err := n.Forward(dense(append(tokens[:10:10], randomTokens(rng, 10, n.Width)...)))
	if err != nil {
		t.Fatal(err)
	}
	if !mat.Equal(before.Slice(0, 10, 0, n.Width), after.Slice(0, 10, 0, n.Width)) {
		t.Error("a later token changed an earlier output")
	}
	if mat.Equal(before.Slice(10, 20, 0, n.Width), after.Slice(10, 20, 0, n.Width)) {
		t.Error("changed tokens left their outputs as they were")
	}
}

// checkSkip compares what a compiled readout reads, having skipped what it does
// not need, with the readout of a full pass: bit for bit.
func checkSkip(t *testing.T, n *Network, r *Readout, tokens [][]float64, read func(i int) bool) {
	t.Helper()
	full, err := n.Forward(dense(tokens))
	if err != nil {
		t.Fatal(err)
	}
	program, err := n.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	pass, got := program.Start(), make([]float64, len(r.Bias))
	for i, x := range tokens {
		if !read(i) {
			pass.Push(x)
			continue
		}
		pass.Read(got, x)
		for j, b := range r.Bias {
			if want := b + dot(r.W.RawRowView(j), full.RawRowView(i)); math.Float64bits(got[j]) != math.Float64bits(want) {
				t.Fatalf("readout %d of token %d is %v, full pass %v", j, i, got[j], want)
			}
		}
	}
}

func TestSkippingKeepsBits(t *testing.T) {
	rng := seed.New(2, "skip")
	for trial := range 60 {
		density := []float64{.05, .15, 1}[trial%3]
		n := randomNetwork(rng, 1+trial%4, 12, 4, 3, density, trial%5 == 0)
		r := &Readout{Name: "test", W: randomMatrix(rng, 1, n.Width, .2), Bias: []float64{0}}
		every := 1 + rng.IntN(6)
		checkSkip(t, n, r, randomTokens(rng, 30, n.Width), func(i int) bool { return i%every == 0 })
	}
	for _, c := range []contextCase{{2, 2, 3, 1e-2}, {5, 3, 2, 1e-6}} {
		for _, normalized := range []bool{false, true} {
			d := c.decoder(t)
			if normalized {
				caps := d.Caps
				caps.Floor = 1e-9
				var err error
				if d, err = NewNormalized(caps, 1e4); err != nil {
					t.Fatal(err)
				}
			}
			x := c.draw(rng, d)
			actor, err := d.TraceActor(x.pi, x.q, x.eta)
			if err != nil {
				t.Fatal(err)
			}
			checkSkip(t, d.Network, d.Policy, actor.Tokens, func(i int) bool { return i >= actor.Reads[0] })
			critic, err := d.TraceCritic(x.pi, x.q, x.packets)
			if err != nil {
				t.Fatal(err)
			}
			checkSkip(t, d.Network, d.Value, critic.Tokens, func(i int) bool { return i >= critic.Reads[0] })
		}
	}
}

// TestTraceNames follows one packet through a traced critic call.
func TestTraceNames(t *testing.T) {
	c := contextCase{3, 2, 2, 1e-9}
	d := c.decoder(t)
	x := c.draw(seed.New(2, "trace"), d)
	call, err := d.TraceCritic(x.pi, x.q, x.packets)
	if err != nil {
		t.Fatal(err)
	}
	p, i := x.packets[4], 3*2+4
	want := fmt.Sprintf("packet 4 (s=%d,a=%d → s'=%d,a'=%d)", p.State, p.Action, p.NextState, p.NextAction)
	if call.Names[i] != want {
		t.Errorf("token %d is called %q, want %q", i, call.Names[i], want)
	}
	lookup := call.Blocks[0].Heads[1]
	if weight := lookup.Weights(i)[p.NextState*2+p.NextAction]; lookup.Name != "lookup" || !(weight > 1-1e-8) {
		t.Errorf("head %s gives the successor's memory weight %v", lookup.Name, weight)
	}
	target := call.Blocks[0].Output[i][d.Layout.Target.Offset]
	y := p.Reward + .9*x.q.At(p.NextState, p.NextAction)
	if d.Layout.Target.Label(0) != "target" || math.Abs(target-y) > 1e-7 {
		t.Errorf("coordinate %q holds %v, want r + γQ = %v", d.Layout.Target.Label(0), target, y)
	}
	got, err := d.Backup(x.pi, x.q, x.packets)
	if err != nil {
		t.Fatal(err)
	}
	if back := call.Results[0][0]; math.Abs(back-got.At(0, 0)) > 1e-12 {
		t.Errorf("the trace reads %v, the pass %v", back, got.At(0, 0))
	}
}

// TestLayout checks the paper's counts and that the legend explains every
// non-zero weight.
func TestLayout(t *testing.T) {
	for s := 2; s <= 16; s += 7 {
		for a := 2; a <= 5; a++ {
			d := contextCase{s, a, 2, 1e-3}.decoder(t)
			if d.Network.Width != 6*s+6*a+14 || d.Network.HeadDim != s+a+3 || len(d.Network.Blocks) != 2 {
				t.Fatalf("S=%d A=%d: width %d, head %d, %d blocks", s, a, d.Network.Width, d.Network.HeadDim, len(d.Network.Blocks))
			}
			for _, w := range d.Network.matrices() {
				for i := range w.rows {
					for j := range w.cols {
						link, ok := d.Legend.Explain(w.name, i, j)
						if v := w.m.At(i, j); ok != (v != 0) || ok && link.Value != v {
							t.Fatalf("S=%d A=%d: %s[%d,%d] = %v, legend says %v %v", s, a, w.name, i, j, v, ok, link)
						}
					}
				}
			}
		}
	}
}

// TestManyPackets runs 10⁵ packets, whose score matrix would take 80 GB.
func TestManyPackets(t *testing.T) {
	d, err := New(Caps{States: 8, Actions: 3, Gamma: .9, RMax: 1, EtaMax: 1, Rounds: 1, Routing: 1e-6, Alpha: .05, Packets: 4167})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := mdp.Random.Draw(3, 8, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	env, pi := problems[0].MDP, problems[0].Pi0
	packets := Sample(env, pi, d.Packets, seed.New(3))
	got, err := d.Backup(pi, env.R, packets)
	if err != nil {
		t.Fatal(err)
	}
	if route := mdp.MaxAbsDiff(got, meanTarget(packets, env.R, env.Gamma)); route > d.DeltaRoute+d.RoundoffDelta {
		t.Errorf("%d packets: routing error %v, bound %v", len(packets), route, d.DeltaRoute)
	}
	if delta := mdp.MaxAbsDiff(got, env.EvaluationBackup(pi, env.R)); delta > d.Delta() {
		t.Errorf("%d packets: δ = %v, bound %v", len(packets), delta, d.Delta())
	}
}

package decoder

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// TestCallsAreFullPasses compares the results of calls, which skip what they do not
// need, with the readout of the definition's full pass: sums in another order.
func TestCallsAreFullPasses(t *testing.T) {
	rng := seed.New(2, "skip")
	for _, c := range []contextCase{{2, 2, 3, 1e-2}, {5, 3, 2, 1e-6}} {
		for _, normalized := range []bool{false, true} {
			d := c.decoder(t)
			if normalized {
				caps := d.Caps
				caps.Floor = 1e-9
				d = testkit.Must(NewNormalized(caps, 1e4))(t)
			}
			x := c.draw(rng, d)
			check := func(got *mat.Dense, call *Call) {
				t.Helper()
				testkit.Near(t, "full pass", slices.Concat(call.Results...), got.RawMatrix().Data, 1e-11, 1+d.B)
			}
			actor := testkit.Must(d.TraceActor(x.pi, x.q, x.eta))(t)
			next := testkit.Must(d.Improve(x.pi, x.q, x.eta))(t)
			check(next, actor)
			for s := range d.States {
				row := testkit.Must(d.Attention(x.pi, x.q, x.eta, s))(t)
				if want := actor.Blocks[0].Heads[0].Weights(actor.Reads[s]); !slices.Equal(row, want) {
					t.Fatalf("attention of state %d is %v, in the trace %v", s, row, want)
				}
			}
			critic := testkit.Must(d.TraceCritic(x.pi, x.q, x.packets))(t)
			value := testkit.Must(d.Backup(x.pi, x.q, x.packets))(t)
			check(value, critic)
		}
	}
}

// TestTraceNames follows one packet through a traced critic call.
func TestTraceNames(t *testing.T) {
	c := contextCase{3, 2, 2, 1e-9}
	d := c.decoder(t)
	x := c.draw(seed.New(2, "trace"), d)
	call := testkit.Must(d.TraceCritic(x.pi, x.q, x.packets))(t)
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
}

// TestLayout checks the paper's counts and that the legend explains every
// non-zero weight.
func TestLayout(t *testing.T) {
	for s := 2; s <= 16; s += 7 {
		for a := 2; a <= 5; a++ {
			d := contextCase{s, a, 2, 1e-3}.decoder(t)
			if d.Network.Width != 6*s+6*a+14 || d.Network.HeadDim != s+a+3 || len(d.Network.Blocks) != 2 {
				t.Fatalf("S=%d A=%d: width %d, head %d, %d blocks", s, a, d.Network.Width, d.Network.HeadDim,
					len(d.Network.Blocks))
			}
			maps := 0
			for i, b := range d.Network.Blocks {
				if len(b.Heads) != 2 || d.Network.Gain != nil {
					t.Fatalf("S=%d A=%d: block %d has %d heads, or a norm", s, a, i, len(b.Heads))
				}
				if b.W1 != nil {
					maps++
				}
			}
			if maps != 1 {
				t.Fatalf("S=%d A=%d: %d ReLU maps, want 1", s, a, maps)
			}
			for _, w := range d.Network.Matrices() {
				for i := range w.Rows {
					for j := range w.Cols {
						link, ok := d.Legend.Explain(w.Name, i, j)
						if v := w.Matrix.At(i, j); ok != (v != 0) || ok && link.Value != v {
							t.Fatalf("S=%d A=%d: %s[%d,%d] = %v, legend says %v %v", s, a, w.Name, i, j, v, ok, link)
						}
					}
				}
			}
		}
	}
}

// TestManyPackets runs 10⁵ packets, whose score matrix would take 80 GB.
func TestManyPackets(t *testing.T) {
	d := testkit.Must(New(Caps{States: 8, Actions: 3, Gamma: .9, RMax: 1, EtaMax: 1, Rounds: 1, Routing: 1e-6,
		Alpha: .05, Packets: 4167}))(t)
	problems := testkit.Must(mdp.Random.Draw(3, 8, 3, 1))(t)
	env, pi := problems[0].MDP, problems[0].Pi0
	packets := Sample(env, pi, d.Packets, seed.New(3))
	got := testkit.Must(d.Backup(pi, env.R, packets))(t)
	if route := mdp.MaxAbsDiff(got, meanTarget(packets, env.R, env.Gamma)); route > d.DeltaRoute+d.RoundoffDelta {
		t.Errorf("%d packets: routing error %v, bound %v", len(packets), route, d.DeltaRoute)
	}
	if delta := mdp.MaxAbsDiff(got, env.EvaluationBackup(pi, env.R)); delta > d.Delta() {
		t.Errorf("%d packets: δ = %v, bound %v", len(packets), delta, d.Delta())
	}
}

//go:build !js

package decoder_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/decoder"
	"icrl/policyattention/decoder/network"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// gomlx is the pass as a GoMLX graph: dense matrices, a full score matrix and
// GoMLX's own softmax.
type gomlx struct {
	weights map[string]*Node
	blocks  int
}

func (n gomlx) forward(x *Node) *Node {
	for b := range n.blocks {
		u, sum := n.norm(x), x
		for h := 0; n.weights[fmt.Sprintf("block.%d.head.%d.q", b, h)] != nil; h++ {
			project := func(u *Node, matrix string) *Node {
				return Einsum("nd,ed->ne", u, n.weights[fmt.Sprintf("block.%d.head.%d.%s", b, h, matrix)])
			}
			scores := Einsum("ie,je->ij", project(u, "q"), project(u, "k"))
			g, shape := x.Graph(), shapes.Make(dtypes.Int32, scores.Shape().Dimensions...)
			visible := GreaterOrEqual(Iota(g, shape, 0), Iota(g, shape, 1))
			scores = Where(visible, scores, Scalar(g, dtypes.Float64, -1e30))
			sum = Add(sum, project(Einsum("ij,je->ie", Softmax(scores, -1), project(u, "v")), "o"))
		}
		x = sum
		if w1 := n.weights[fmt.Sprintf("block.%d.map.w1", b)]; w1 != nil {
			hidden := MaxScalar(Einsum("nd,hd->nh", n.norm(x), w1), 0)
			x = Add(x, Einsum("nh,dh->nd", hidden, n.weights[fmt.Sprintf("block.%d.map.w2", b)]))
		}
	}
	return n.norm(x)
}

func (n gomlx) norm(x *Node) *Node {
	gain := n.weights["norm.gain"]
	if gain == nil {
		return x
	}
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)
	return Mul(Div(centred, Sqrt(AddScalar(variance, decoder.LayerNormEpsilon))), ExpandLeftToRank(gain, 2))
}

// run feeds a traced call's tokens through the graph and returns the readout at
// the tokens that are read.
func run(t *testing.T, b compute.Backend, d *decoder.Decoder, r *network.Readout, call *decoder.Call) [][]float64 {
	t.Helper()
	var inputs []any
	var names []string
	var flat []float64
	for _, x := range call.Tokens {
		flat = append(flat, x...)
	}
	inputs = append(inputs, tensors.FromFlatDataAndDimensions(flat, len(call.Tokens), len(call.Tokens[0])))
	add := func(name string, x []float64, shape ...int) {
		inputs, names = append(inputs, tensors.FromFlatDataAndDimensions(x, shape...)), append(names, name)
	}
	for _, w := range d.Network().Matrices() {
		add(w.Name, mat.DenseCopyOf(w.Matrix).RawMatrix().Data, w.Rows, w.Cols)
	}
	add("readout", r.W.RawMatrix().Data, len(r.Bias), d.Network().Width)
	add("bias", r.Bias, len(r.Bias))
	if d.Network().Norm != nil {
		add("norm.gain", d.Network().Norm.Gain, d.Network().Width)
	}
	exec, err := NewExec(b, func(nodes []*Node) *Node {
		n := gomlx{weights: map[string]*Node{}, blocks: 2}
		for i, name := range names {
			n.weights[name] = nodes[i+1]
		}
		return Add(Einsum("nd,rd->nr", n.forward(nodes[0]), n.weights["readout"]),
			ExpandLeftToRank(n.weights["bias"], 2))
	})
	testkit.Check(t, err)
	out := testkit.Must(exec.Call1(inputs...))(t)
	all := out.Value().([][]float64)
	var rows [][]float64
	for _, i := range call.Reads {
		rows = append(rows, all[i])
	}
	return rows
}

// apart returns the largest difference of the rows got and the table want.
func apart(t *testing.T, got [][]float64, want *mat.Dense) float64 {
	t.Helper()
	flat := slices.Concat(got...)
	if len(flat) != len(want.RawMatrix().Data) {
		t.Fatalf("%d numbers, want %d", len(flat), len(want.RawMatrix().Data))
	}
	return floats.Distance(flat, want.RawMatrix().Data, math.Inf(1))
}

// TestGoMLX runs the weights in a GoMLX graph of float64 and expects
// the decoder's results to 1e-12, with and without norms.
func TestGoMLX(t *testing.T) {
	b := testkit.Backend(t)
	caps := decoder.Caps{States: 4, Actions: 3, Gamma: .9, RMax: 1, EtaMax: 1, Rounds: 40, Routing: 1e-6, Alpha: .05,
		Packets: 6, Phi: .01, Floor: 1e-4}
	plain := testkit.Must(decoder.New(caps))(t)
	normalized := testkit.Must(decoder.NewNormalized(caps, 1000))(t)
	problems := testkit.Must(mdp.Random.Draw(16, 4, 3, 2))(t)
	for _, c := range []struct {
		name string
		d    *decoder.Decoder
	}{{"plain", plain}, {"normalized", normalized}} {
		worst := 0.
		for _, p := range problems {
			pi := testkit.Must(pmd.Mix(p.Pi0, .01))(t)
			q := testkit.Must(p.MDP.PolicyValue(pi))(t)
			call := testkit.Must(c.d.TraceActor(pi, q, .8))(t)
			next := testkit.Must(c.d.Improve(pi, q, .8))(t)
			worst = max(worst, apart(t, run(t, b, c.d, c.d.Policy, call), next))

			packets := decoder.Sample(p.MDP, next, 6, seed.New(16))
			call = testkit.Must(c.d.TraceCritic(next, q, packets))(t)
			value := testkit.Must(c.d.Backup(next, q, packets))(t)
			worst = max(worst, apart(t, run(t, b, c.d, c.d.Value, call), value))
		}
		t.Logf("%s: largest difference %.2g", c.name, worst)
		if worst > 1e-12 {
			t.Errorf("%s: GoMLX differs by %g, want at most 1e-12", c.name, worst)
		}
	}
}

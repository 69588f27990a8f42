package fused

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit/graphs"
)

// The pieces and the additions to the residual stream are the whole network.
func TestPiecesAreTheNetwork(t *testing.T) {
	b := graphs.Backend(t)
	const batch, length = 2, 5
	for _, tail := range []int{length, 2} {
		rng := rand.New(rand.NewPCG(21, 22))
		params, tokens := perturbed(tiny, rng), graphs.Normal(rng, batch*length*tiny.Features)
		out := graphs.Run(t, b, func(in []*Node) []*Node {
			p := Bind(tiny, in[0]).newPass(batch)
			p.trunk(length, tail)
			h := Reshape(TransposeAllAxes(in[1], 2, 1, 0), tiny.Features, length*batch)
			for next, rest := 0, p.pieces; next < len(rest); {
				// An embedding, then blocks of 4 and 2 pieces on the stream, and 2 of the head.
				branch := 1
				if l := (next - 1) % 6; next > 0 && next < len(rest)-2 {
					branch = map[int]int{0: 4, 4: 2}[l]
				}
				x := h
				for _, q := range rest[next : next+branch] {
					if dims := h.Shape().Dimensions; !slices.Equal(dims, []int{q.in, q.tokens * batch}) {
						t.Errorf("%s is given %v, says [%d, %d·B]", q.part, dims, q.in, q.tokens)
					}
					h, _ = q.layer(h)
				}
				if branch > 1 {
					h = Add(SliceAxis(x, 1, AxisRange(x.Shape().Dimensions[1]-h.Shape().Dimensions[1])), h)
				}
				next += branch
			}
			return []*Node{TransposeAllAxes(Reshape(h, tail, batch), 1, 0)}
		}, tensors.FromFlatDataAndDimensions(params, len(params)),
			tensors.FromFlatDataAndDimensions(tokens, batch, length, tiny.Features))
		all := referenceBatch(tiny, params, tokens, batch, length)
		for i, got := range graphs.Values[float64](t, out[0]) {
			if want := all[i/tail*length+length-tail+i%tail]; math.Abs(got-want) > 1e-11*(1+math.Abs(want)) {
				t.Errorf("last %d tokens: output %d is %v, want %v", tail, i, got, want)
			}
		}
	}
}

// An isolated part returns the gradient that differentiating its layers' forward
// passes gives.
func TestIsolatedPartsAreDifferentiated(t *testing.T) {
	b := graphs.Backend(t)
	const batch, length, tail = 2, 5, 3
	for part, layers := range map[Part]int{Linear: 2 + 3*tiny.Layers, Attention: tiny.Layers, LayerNorm: 1 + 2*tiny.Layers} {
		rng := rand.New(rand.NewPCG(23, 24))
		params := perturbed(tiny, rng)
		shapes, graph := Isolate(tiny, part, batch, length, tail)
		if len(shapes) != layers {
			t.Errorf("%s: %d layers, want %d", part, len(shapes), layers)
		}
		in := []any{tensors.FromFlatDataAndDimensions(params, len(params))}
		for _, s := range shapes {
			in = append(in, tensors.FromFlatDataAndDimensions(graphs.Normal(rng, s[0]*s[1]), s...))
		}
		got := graphs.Run(t, b, graph, in...)
		want := graphs.Run(t, b, func(in []*Node) []*Node {
			p := Bind(tiny, in[0]).newPass(batch)
			p.trunk(length, tail)
			at, loss := 0, ScalarZero(in[0].Graph(), in[0].DType())
			for _, q := range p.pieces {
				if q.part == part {
					at++
					y, _ := q.layer(in[at])
					loss = Add(loss, DivScalar(ReduceAllSum(Square(y)), 2))
				}
			}
			return Gradient(loss, append(slices.Clone(in[1:]), in[0])...)
		}, in...)
		if part == LayerNorm {
			want = want[:len(want)-1] // without parameters
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d slopes, want %d", part, len(got), len(want))
		}
		for i := range want {
			if !got[i].Shape().Equal(want[i].Shape()) {
				t.Fatalf("%s: slope %d has shape %s, want %s", part, i, got[i].Shape(), want[i].Shape())
			}
			x, y := graphs.Values[float64](t, got[i]), graphs.Values[float64](t, want[i])
			largest := 0.
			for j := range y {
				largest = max(largest, math.Abs(y[j]))
				if math.Abs(x[j]-y[j]) > 1e-11*(1+math.Abs(y[j])) {
					t.Fatalf("%s: slope %d [%d] is %v, want %v", part, i, j, x[j], y[j])
				}
			}
			if largest == 0 {
				t.Errorf("%s: slope %d is zero", part, i)
			}
		}
	}
}

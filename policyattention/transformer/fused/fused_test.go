package fused

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/transformer"
)

// tiny has every size different.
var tiny = transformer.Config{Features: 5, Layers: 2, Heads: 2, Width: 6, Hidden: 7, Outputs: 1}

// unordered is c without the causal mask.
func unordered(c transformer.Config) transformer.Config {
	c.Unordered = true
	return c
}

// perturbed returns parameters in which no bias is zero and no gain one.
func perturbed[T float32 | float64](c transformer.Config, rng *rand.Rand) []T {
	params := make([]T, c.Size())
	for i, p := range c.Init(rng) {
		params[i] = T(float64(p) + 0.1*rng.NormFloat64())
	}
	return params
}

// What cannot be built says so while the graph is built.
func TestGraphsThatCannotBe(t *testing.T) {
	b := testkit.Backend(t)
	params, tokens := make([]float64, tiny.Size()), make([]float64, 2*tiny.Features)
	weights := tensors.FromFlatDataAndDimensions(params, len(params))
	x := tensors.FromFlatDataAndDimensions(tokens, 1, 2, tiny.Features)
	for want, graph := range map[string]func(in []*Node) *Node{
		"parameters have shape":    func(in []*Node) *Node { return Bind(tiny, in[1]).Tail(in[1], 2) },
		"tokens have shape":        func(in []*Node) *Node { return Bind(tiny, in[0]).Tail(in[0], 2) },
		"outputs of 3 of 2 tokens": func(in []*Node) *Node { return Bind(tiny, in[0]).Tail(in[1], 3) },
		"Gradient needs a pass": func(in []*Node) *Node {
			return Bind(tiny, in[0]).Gradient(ReduceAllSum(in[1]))
		},
	} {
		exec, err := NewExec(b, func(in []*Node) *Node { return graph(in) })
		if err == nil {
			_, err = exec.Call(weights, x)
			exec.Finalize()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// XLA compiles other programs of the same graph than the Go backend runs, and takes
// attention in its other form for short contexts.
func TestXLAAgreesWithTheGoBackend(t *testing.T) {
	if testing.Short() {
		t.Skip("XLA compiles for long")
	}
	xla := testkit.XLA(t, "")
	for _, tc := range []struct{ features, length, tail int }{{10, 12, 12}, {14, 24, 24}, {22, 48, 48}, {24, 84, 12}} {
		c, rng := transformer.Standard(tc.features), rand.New(rand.NewPCG(13, 14))
		c.Layers = 1 // XLA compiles each of them anew
		const batch = 4
		params, tokens := perturbed[float32](c, rng), testkit.Normal[float32](rng, batch*tc.length*tc.features)
		var outputs, grads [][]float32
		for _, b := range []compute.Backend{testkit.Backend(t), xla} {
			out := testkit.Run(t, b, func(in []*Node) []*Node {
				net := Bind(c, in[0])
				z := net.Tail(in[1], tc.tail)
				return []*Node{z, net.Gradient(ReduceAllMean(Square(z)))}
			}, tensors.FromFlatDataAndDimensions(params, len(params)),
				tensors.FromFlatDataAndDimensions(tokens, batch, tc.length, tc.features))
			outputs = append(outputs, testkit.Values[float32](t, out[0]))
			grads = append(grads, testkit.Values[float32](t, out[1]))
		}
		// float32 sums of some hundred terms over a block.
		what := fmt.Sprintf("%d of %d tokens, on XLA and on the Go backend: ", tc.tail, tc.length)
		testkit.Near(t, what+"outputs", outputs[1], outputs[0], 2e-5, 0)
		testkit.Near(t, what+"gradient", grads[1], grads[0], 2e-5, 0)
	}
}

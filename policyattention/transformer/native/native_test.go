//go:build amd64 && goexperiment.simd

package native

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"icrl/policyattention/transformer"
)

func random(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// passes are one with equal blocks, one with a tail, and a wide one.
var passes = []Pass{
	{transformer.Standard(14), 32, 24, 24},
	{transformer.Standard(24), 7, 84, 12},
	{transformer.Config{Features: 9, Layers: 2, Heads: 2, Width: 80, Hidden: 136, Outputs: 3, Unordered: true}, 5, 37, 20},
	{transformer.Config{Features: 20, Layers: 1, Heads: 3, Width: 15, Hidden: 7, Outputs: 1}, 3, 18, 5},
}

// perturbed returns parameters in which no bias is zero and no gain one.
func perturbed(c transformer.Config, rng *rand.Rand) []float32 {
	params := c.Init(rng)
	for i, v := range random(rng, len(params)) {
		params[i] += .1 * v
	}
	return params
}

// How many goroutines there are changes no bit, and neither does what the memory held that a
// call takes. (Package fused compares passes with the network's definition.)
func TestGoroutinesChangeNothing(t *testing.T) {
	if !Available {
		t.Skip("no AVX-512 here")
	}
	for _, p := range passes {
		rng := rand.New(rand.NewPCG(1, 2))
		c := p.Network
		params, tokens, slope := perturbed(c, rng), random(rng, p.B*p.T*c.Features), random(rng, p.B*p.K*c.Outputs)
		run := func(workers int) (results [3][]float32) {
			outputs, gradient, inferred := make([]float32, len(slope)), make([]float32, c.Size()), make([]float32, len(slope))
			saved, folded := random(rng, p.Saved()), random(rng, FoldedSize(c))
			for _, err := range []error{
				p.Forward(params, tokens, outputs, saved, workers),
				p.Backward(params, saved, slope, gradient, workers),
				Fold(c, params, folded),
				p.Infer(folded, tokens, inferred, workers),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			return [3][]float32{outputs, gradient, inferred}
		}
		want := run(1)
		for workers := 2; workers <= 5; workers++ {
			for i, got := range run(workers) {
				if !slices.Equal(got, want[i]) {
					t.Errorf("%+v: other results (%d) in %d goroutines", p, i, workers)
				}
			}
		}
		// Rounding of sums of up to hundreds of terms over some blocks, as in package fused.
		largest := 0.
		for _, y := range want[0] {
			largest = max(largest, math.Abs(float64(y)))
		}
		for i, y := range want[0] {
			if d := math.Abs(float64(want[2][i] - y)); !(d <= 2e-5*largest) {
				t.Fatalf("%+v: output %d is %v with folded parameters, %v with the stored ones", p, i, want[2][i], y)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	if !Available {
		t.Skip("no AVX-512 here")
	}
	p := Pass{transformer.Standard(3), 2, 3, 3}
	params, tokens, outputs, saved := make([]float32, p.Network.Size()), make([]float32, 18), make([]float32, 6), make([]float32, p.Saved())
	folded := make([]float32, FoldedSize(p.Network))
	for name, err := range map[string]error{
		"parameters":           p.Forward(params[1:], tokens, outputs, saved, 1),
		"tokens":               p.Forward(params, tokens[1:], outputs, saved, 1),
		"outputs":              p.Forward(params, tokens, outputs[1:], saved, 1),
		"nothing saved":        p.Forward(params, tokens, outputs, nil, 1),
		"saved":                p.Backward(params, saved[1:], outputs, params, 1),
		"gradient":             p.Backward(params, saved, outputs, params[1:], 1),
		"parameters to fold":   Fold(p.Network, params[1:], folded),
		"room for them":        Fold(p.Network, params, folded[1:]),
		"folded parameters":    p.Infer(folded[1:], tokens, outputs, 1),
		"tokens to infer from": p.Infer(folded, tokens[1:], outputs, 1),
		"inferred outputs":     p.Infer(folded, tokens, outputs[1:], 1),
	} {
		if err == nil {
			t.Errorf("%s of another length: no error", name)
		}
	}
}

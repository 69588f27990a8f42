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

// What the memory held that a call takes changes no bit, and a gradient is added to what was
// there. (Package fused compares passes with the network's definition.)
func TestCallsLeaveNothing(t *testing.T) {
	if !Available {
		t.Skip("no AVX-512 here")
	}
	for _, p := range passes {
		rng := rand.New(rand.NewPCG(1, 2))
		c := p.Network
		params, tokens, slope, before := perturbed(c, rng), random(rng, p.B*p.T*c.Features), random(rng, p.B*p.K*c.Outputs), random(rng, c.Size())
		run := func(before []float32) (outputs, gradient []float32) {
			outputs, gradient = make([]float32, len(slope)), slices.Clone(before)
			saved, prepared := random(rng, p.Saved()), random(rng, PreparedSize(c))
			for _, err := range []error{
				Prepare(c, params, prepared),
				p.Forward(prepared, tokens, outputs, saved),
				p.Backward(prepared, saved, slope, gradient),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			return outputs, gradient
		}
		outputs, gradient := run(make([]float32, c.Size()))
		again, sum := run(before)
		if !slices.Equal(again, outputs) {
			t.Errorf("%+v: other outputs at the second call", p)
		}
		largest := 0.
		for _, v := range gradient {
			largest = max(largest, math.Abs(float64(v)))
		}
		for i, v := range sum {
			// Rounding of sums of up to hundreds of terms, in another order, as in package fused.
			if d := math.Abs(float64(v - before[i] - gradient[i])); !(d <= 2e-5*max(largest, math.Abs(float64(before[i])))) {
				t.Fatalf("%+v: entry %d of the gradient is %v, and %v added to %v", p, i, gradient[i], v, before[i])
			}
		}
	}
}

// How many goroutines there are changes no bit of what Infer makes, which is what Forward
// makes.
func TestInfer(t *testing.T) {
	if !Available {
		t.Skip("no AVX-512 here")
	}
	for _, p := range passes {
		rng := rand.New(rand.NewPCG(1, 2))
		c := p.Network
		params, tokens, prepared := perturbed(c, rng), random(rng, p.B*p.T*c.Features), make([]float32, PreparedSize(c))
		outputs := make([]float32, p.B*p.K*c.Outputs)
		for _, err := range []error{Prepare(c, params, prepared), p.Forward(prepared, tokens, outputs, make([]float32, p.Saved()))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		infer := func(workers int) []float32 {
			inferred, folded := make([]float32, len(outputs)), random(rng, FoldedSize(c))
			for _, err := range []error{Fold(c, params, folded), p.Infer(folded, tokens, inferred, workers)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			return inferred
		}
		want := infer(1)
		for workers := 2; workers <= 5; workers++ {
			if !slices.Equal(infer(workers), want) {
				t.Errorf("%+v: other outputs in %d goroutines", p, workers)
			}
		}
		// Rounding of sums of up to hundreds of terms over some blocks, as in package fused.
		largest := 0.
		for _, y := range outputs {
			largest = max(largest, math.Abs(float64(y)))
		}
		for i, y := range outputs {
			if d := math.Abs(float64(want[i] - y)); !(d <= 2e-5*largest) {
				t.Fatalf("%+v: output %d is %v with folded parameters, %v with the stored ones", p, i, want[i], y)
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
	folded, prepared := make([]float32, FoldedSize(p.Network)), make([]float32, PreparedSize(p.Network))
	for name, err := range map[string]error{
		"parameters to prepare": Prepare(p.Network, params[1:], prepared),
		"room for those":        Prepare(p.Network, params, prepared[1:]),
		"prepared parameters":   p.Forward(prepared[1:], tokens, outputs, saved),
		"tokens":                p.Forward(prepared, tokens[1:], outputs, saved),
		"outputs":               p.Forward(prepared, tokens, outputs[1:], saved),
		"nothing saved":         p.Forward(prepared, tokens, outputs, nil),
		"saved":                 p.Backward(prepared, saved[1:], outputs, params),
		"gradient":              p.Backward(prepared, saved, outputs, params[1:]),
		"parameters to fold":    Fold(p.Network, params[1:], folded),
		"room for them":         Fold(p.Network, params, folded[1:]),
		"folded parameters":     p.Infer(folded[1:], tokens, outputs, 1),
		"tokens to infer from":  p.Infer(folded, tokens[1:], outputs, 1),
		"inferred outputs":      p.Infer(folded, tokens, outputs[1:], 1),
	} {
		if err == nil {
			t.Errorf("%s of another length: no error", name)
		}
	}
}

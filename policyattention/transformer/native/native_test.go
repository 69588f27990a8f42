//go:build amd64 && goexperiment.simd

package native

import (
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

// How many goroutines there are changes no bit, and neither does what the memory held that a
// call takes. Outputs without a way back are those with one. (Package fused compares passes
// with the network's definition.)
func TestGoroutinesChangeNothing(t *testing.T) {
	if !Available {
		t.Skip("no AVX-512 here")
	}
	for _, p := range []Pass{
		{transformer.Standard(14), 32, 24, 24},
		{transformer.Standard(24), 7, 84, 12},
		{transformer.Config{Features: 9, Layers: 2, Heads: 2, Width: 80, Hidden: 136, Outputs: 3, Unordered: true}, 5, 37, 20},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		c := p.Network
		params, tokens, slope := c.Init(rng), random(rng, p.B*p.T*c.Features), random(rng, p.B*p.K*c.Outputs)
		run := func(workers int) (outputs, gradient []float32) {
			outputs, gradient, alone, saved := make([]float32, len(slope)), make([]float32, c.Size()), make([]float32, len(slope)), random(rng, p.Saved())
			for _, err := range []error{
				p.Forward(params, tokens, outputs, saved, workers),
				p.Backward(params, saved, slope, gradient, workers),
				p.Forward(params, tokens, alone, nil, workers),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(outputs, alone) {
				t.Errorf("%+v: other outputs without a way back", p)
			}
			return outputs, gradient
		}
		outputs, gradient := run(1)
		for workers := 2; workers <= 5; workers++ {
			o, g := run(workers)
			if !slices.Equal(o, outputs) || !slices.Equal(g, gradient) {
				t.Errorf("%+v: other results in %d goroutines", p, workers)
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
	for name, err := range map[string]error{
		"parameters": p.Forward(params[1:], tokens, outputs, nil, 1),
		"tokens":     p.Forward(params, tokens[1:], outputs, nil, 1),
		"outputs":    p.Forward(params, tokens, outputs[1:], saved, 1),
		"saved":      p.Backward(params, saved[1:], outputs, params, 1),
		"gradient":   p.Backward(params, saved, outputs, params[1:], 1),
	} {
		if err == nil {
			t.Errorf("%s of another length: no error", name)
		}
	}
}

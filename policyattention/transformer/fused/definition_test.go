package fused

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/policyattention/transformer"
)

// Outputs, and the gradient of every tensor of parameters, are those of the definition,
// which GoMLX differentiates: for random shapes, whole passes and tails. What XLA
// makes of them is held against this backend in TestXLAAgreesWithTheGoBackend.
func TestAgreesWithTheDefinition(t *testing.T) {
	const float64s, float32s = 1e-10, 2e-5 // of sums of hundreds of terms over some blocks, relative to the largest
	b := testkit.Backend(t)
	for i := range 12 {
		rng := rand.New(rand.NewPCG(31, uint64(i)))
		c, batch, length, tail := randomShape(rng)
		agrees[float64](t, b, rng, c, batch, length, tail, float64s)
		if c.Width > 3 { // a LayerNorm of fewer entries multiplies rounding by up to 1/√ε
			agrees[float32](t, b, rng, c, batch, length, tail, float32s)
		}
	}
	// One token, all tokens and the last one alone; rows of one entry, of a vector and one more;
	// blocks of unequal numbers of sequences, and of queries.
	c := transformer.Config{Features: 3, Layers: 2, Heads: 2, Width: 34, Hidden: 17, Outputs: 2}
	for i, shape := range [][3]int{{1, 1, 1}, {3, 16, 16}, {3, 17, 1}, {23, 33, 17}, {1, 130, 117}} {
		rng := rand.New(rand.NewPCG(32, uint64(i)))
		agrees[float32](t, b, rng, c, shape[0], shape[1], shape[2], float32s)
		agrees[float32](t, b, rng, unordered(c), shape[0], shape[1], shape[2], float32s)
	}
	for _, c.Group = range []int{1, 3} {
		agrees[float64](t, b, rand.New(rand.NewPCG(33, 0)), c, 4, 12, 12, float64s)
	}
}

func randomShape(rng *rand.Rand) (c transformer.Config, batch, length, tail int) {
	heads := 1 + rng.IntN(4)
	c = transformer.Config{
		Features: 1 + rng.IntN(9), Layers: 1 + rng.IntN(3), Heads: heads, Width: heads * (1 + rng.IntN(9)),
		Hidden: 1 + rng.IntN(30), Outputs: 1 + rng.IntN(4), Unordered: rng.IntN(4) == 0,
	}
	length = 1 + rng.IntN(70)
	return c, 1 + rng.IntN(5), length, 1 + rng.IntN(length)
}

func agrees[T float32 | float64](t *testing.T, b compute.Backend, rng *rand.Rand, c transformer.Config, batch, length,
	tail int, tolerance float64) {
	t.Helper()
	params := perturbed[T](c, rng)
	out := testkit.Run(t, b, func(in []*Node) []*Node {
		loss := func(z *Node) *Node { return ReduceAllSum(Mul(in[2], Square(z))) } // each output has a slope of its own
		fast := Bind(c, in[0])
		y := fast.Tail(in[1], tail)
		z := SliceAxis(transformer.Bind(c, in[0]).Vectors(in[1]), 1, AxisRange(length-tail, length))
		return []*Node{y, z, fast.Gradient(loss(y)), Gradient(loss(z), in[0])[0]}
	}, tensors.FromFlatDataAndDimensions(params, len(params)),
		tensors.FromFlatDataAndDimensions(testkit.Normal[T](rng, batch*length*c.Features), batch, length, c.Features),
		tensors.FromFlatDataAndDimensions(testkit.Normal[T](rng, batch*tail*c.Outputs), batch, tail, c.Outputs))
	name := fmt.Sprintf("%+v, %d sequences, last %d of %d tokens: ", c, batch, tail, length)
	testkit.Near(t, name+"outputs", testkit.Values[T](t, out[0]), testkit.Values[T](t, out[1]), tolerance, 0)
	got, want := testkit.Values[T](t, out[2]), testkit.Values[T](t, out[3])
	whole := 0.
	for _, v := range want {
		whole = max(whole, math.Abs(float64(v)))
	}
	// In float32 what is left of terms that cancel has the rounding of the terms: tensors are
	// then compared relative to the whole gradient.
	least := 0.
	if _, single := any(got).([]float32); single {
		least = whole
	}
	for _, p := range c.Layout() {
		x, y := got[p.Offset:][:p.Size()], want[p.Offset:][:p.Size()]
		if p.Name[len(p.Name)-8:] == "qkv.bias" { // that of the keys has no gradient but rounding
			for i := c.Width; i < 2*c.Width; i++ {
				if !(math.Abs(float64(x[i])) <= tolerance*whole && math.Abs(float64(y[i])) <= tolerance*whole) {
					t.Fatalf("%+v: the keys' biases have gradients %v and %v", c, x[i], y[i])
				}
				x[i], y[i] = 0, 0
			}
		}
		testkit.Near(t, name+"gradient of "+p.Name, x, y, tolerance, least)
	}
}

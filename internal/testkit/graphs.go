package testkit

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/backend"
)

// Backend returns GoMLX's backend in pure Go, for the time of a test.
func Backend(t testing.TB) compute.Backend {
	t.Helper()
	b := Must(backend.New("go"))(t)
	t.Cleanup(b.Finalize)
	return b
}

// Run calls a graph once.
func Run(t testing.TB, b compute.Backend, graph func([]*Node) []*Node, inputs ...any) []*tensors.Tensor {
	t.Helper()
	exec := Must(NewExec(b, graph))(t)
	defer exec.Finalize()
	return Must(exec.Call(inputs...))(t)
}

// Values returns the numbers of a tensor, row-major.
func Values[T float32 | float64](t testing.TB, x *tensors.Tensor) []T {
	t.Helper()
	return Must(tensors.CopyFlatData[T](x))(t)
}

// Normal draws n numbers from the standard normal distribution.
func Normal(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// SumOfSquares runs a small graph.
func SumOfSquares(t testing.TB, b compute.Backend, x ...float32) float32 {
	t.Helper()
	square := func(in []*Node) []*Node { return []*Node{ReduceAllSum(Mul(in[0], in[0]))} }
	return Run(t, b, square, x)[0].Value().(float32)
}

package testkit

import (
	"errors"
	"math"
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

// XLA returns xla:cpu for the time of a test, which it skips without the plugin. Its test imports package xla.
func XLA(t testing.TB) compute.Backend {
	t.Helper()
	b, err := backend.New("xla:cpu")
	if errors.Is(err, backend.ErrNoPlugin) {
		t.Skip(err)
	}
	Check(t, err)
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
func Normal[F float32 | float64](rng *rand.Rand, n int) []F {
	x := make([]F, n)
	for i := range x {
		x[i] = F(rng.NormFloat64())
	}
	return x
}

// Near ends a test unless numbers are wanted ones up to a share of the largest of those, or of least if that is more.
func Near[F, G float32 | float64](t testing.TB, what string, got []F, want []G, share, least float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for _, v := range want {
		least = max(least, math.Abs(float64(v)))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - float64(v)); !(d <= share*least) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], v)
		}
	}
}

// SumOfSquares runs a small graph, which is exact in float32, and checks its result.
func SumOfSquares(t testing.TB, b compute.Backend) {
	t.Helper()
	square := func(in []*Node) []*Node { return []*Node{ReduceAllSum(Mul(in[0], in[0]))} }
	if got := Run(t, b, square, []float32{1, 2, 3})[0].Value(); got != float32(14) {
		t.Errorf("sum of squares = %v, want 14", got)
	}
}

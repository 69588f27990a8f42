// Package testkit holds what tests of many packages share. Where they import it, XLA's compiler leaves LLVM's
// optimizations out, which are half of its time and no part of what a graph means.
package testkit

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/backend"
)

func init() {
	if os.Getenv("XLA_FLAGS") == "" {
		os.Setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
	}
}

// Must returns a function that ends a test on an error and else returns v, as in testkit.Must(os.ReadFile(path))(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return v
	}
}

// Check ends a test on an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

// Way returns the functions of this module, but for those of tests, that the calling goroutine is in, the
// outermost first: the places that lead a reader there. A closure is a return to the place that it stands in.
func Way() (places []string, returns int) {
	stack := make([]byte, 1<<20)
	stack = stack[:runtime.Stack(stack, false)]
	lines := slices.Collect(strings.Lines(string(stack)))
	for i := len(lines) - 2; i >= 0; i-- {
		name, ok := strings.CutPrefix(lines[i], "icrl/policyattention/")
		if !ok || strings.Contains(lines[i+1], "_test.go:") {
			continue
		}
		name = name[:strings.LastIndex(name, "(")]
		if outer, _, closure := strings.Cut(name, ".func"); closure {
			name = outer
		}
		if slices.Contains(places, name) {
			returns++
		} else {
			places = append(places, name)
		}
	}
	return places, returns
}

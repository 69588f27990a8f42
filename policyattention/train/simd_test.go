package train

import (
	"context"
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
)

// scalarLosses are the first losses of the run below on GoMLX's pure-Go backend, built
// without GOEXPERIMENT=simd.
var scalarLosses = []float64{2.6961562633514404, 2.627441167831421, 1.820540189743042, 2.3058178424835205, 1.3531352281570435, 1.7064573764801025, 1.0555148124694824, 0.8999790549278259, 0.6063675880432129, 0.21798264980316162}

// The pure-Go backend has kernels of its own where it is built with GOEXPERIMENT=simd, as
// the Makefile does on x86-64. They add in another order. Both builds must agree with
// scalarLosses to 5e-6 relative: a loss here is a sum of 64 examples · 12 tokens in
// float32 (2⁻²⁴ a rounding). AdamW amplifies the difference where a slope near zero changes
// its sign: by step ten identity 6 differs from XLA by 5e-6 so, in either build, and
// identity 1 from the other build by 1e-5. Identity 5 has no such slope.
func TestPureGoBuildsAgree(t *testing.T) {
	b := testkit.Must(backend.New("go"))(t)
	c := Standard(Proximal, Plain(), 5, 4)
	c.Task, c.Actions, c.MDPs, c.Examples, c.Batch, c.Steps = 2, 3, 4, 128, 64, 10
	run := testkit.Must(c.In(t.TempDir(), nil))(t)
	results := testkit.Must(RunTogether(context.Background(), b, Execution{}, []Run{run}))(t)
	if got := len(results[0].Losses); got != len(scalarLosses) {
		t.Fatalf("%d losses, want %d: %v", got, len(scalarLosses), results[0].Losses)
	}
	for i, want := range scalarLosses {
		if got := float64(results[0].Losses[i]); math.Abs(got-want) > 5e-6*math.Abs(want) {
			t.Errorf("step %d: loss %v, want %v", i+1, got, want)
		}
	}
}

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
var scalarLosses = []float64{3.398602, 2.9573889, 2.787176, 2.584726, 2.8438802, 1.639645, 1.880299, 1.6408988, 1.4144223, 1.0454514}

// The pure-Go backend has kernels of its own where it is built with GOEXPERIMENT=simd, as
// the Makefile does on x86-64. They add in another order. Both builds must agree with
// scalarLosses to 1e-5 relative: a loss here is a sum of 64 examples · 12 tokens in
// float32 (2⁻²⁴ a rounding), and ten steps of AdamW hardly amplify the difference.
func TestPureGoBuildsAgree(t *testing.T) {
	b := testkit.Must(backend.New("go"))(t)
	c := Standard(Proximal, Plain(), 1, 4)
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

package anymdp_test

import (
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/seed"
)

// A trace of the released network ends in the actor's own row, bit by bit.
func TestTrace(t *testing.T) {
	b := testkit.Must(os.ReadFile("weights.safetensors"))(t)
	f := testkit.Must(safetensors.Unmarshal(b))(t)
	n := testkit.Must(anymdp.NewNetwork(safetensors.Floats(f)))(t)
	for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
		pi, q := []float64{0.5, 0.25, 0.125, 0.125, 0}, table(seed.New(6, "trace"), 1, 5)
		want := act(t, released(t, readout), mat.NewDense(1, 5, pi), q, 0.7)
		got := testkit.Must(anymdp.NewTrace(n, readout, pi, q.RawRowView(0), 0.7))(t)
		if !slices.Equal(got.Policy, want.RawRowView(0)) {
			t.Errorf("%s: the trace ends in %v, the actor in %v", readout, got.Policy, want.RawRowView(0))
		}
		if len(got.Pass.Blocks) != anymdp.Layers || len(got.Pass.Blocks[0].Weights) != anymdp.Heads ||
			len(got.Pass.Blocks[0].Weights[0]) != 5 {
			t.Errorf("%s: a trace of %d blocks", readout, len(got.Pass.Blocks))
		}
	}
}

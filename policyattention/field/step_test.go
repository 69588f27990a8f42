package field

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// Every construction makes the step of its own algorithm within what is allowed, and moves: the
// bounds are far below the step. Attention is a distribution that is spread as its form says.
func TestSteps(t *testing.T) {
	for root := range uint64(5) {
		steps, err := Steps(root)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) != 4 {
			t.Fatalf("%d steps, want 4", len(steps))
		}
		for _, s := range steps {
			if !(s.Distance <= s.Bound) || s.Bound > 2e-3 {
				t.Errorf("%s: %v from its algorithm, allowed are %v", s.System, s.Distance, s.Bound)
			}
			if len(s.Keys) != len(s.Share) || math.Abs(floats.Sum(s.Share)-1) > 1e-6 || floats.Min(s.Share) < 0 {
				t.Errorf("%s: shares %v of %d keys", s.System, s.Share, len(s.Keys))
			}
		}
		// Linear attention to one-hot features goes to the query's state alone and alike; the
		// softmax of their products gives it e times what others get.
		linear, soft := steps[0].Share, steps[1].Share
		for k := range linear {
			if same := linear[k] > 0; same && math.Abs(linear[k]-floats.Max(linear)) > 1e-15 {
				t.Errorf("root %d: shares %v", root, linear)
			} else if want := map[bool]float64{true: math.E, false: 1}[same] * floats.Min(soft); math.Abs(soft[k]-want) > 1e-12 && floats.Max(soft) != floats.Min(soft) {
				t.Errorf("root %d: softmax share %v of transition %d, want %v", root, soft[k], k, want)
			}
		}
		// PolicyAttention looks at the query's own memories.
		for k, share := range steps[3].Share {
			if share > .01 && !strings.HasPrefix(steps[3].Keys[k], "memory (s=") {
				t.Errorf("root %d: %v goes to %s", root, share, steps[3].Keys[k])
			}
		}
	}
}

package report

import (
	"bytes"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
)

func smoke(t *testing.T) *source {
	t.Helper()
	store := testkit.Must(experiment.Open(t.TempDir(), "smoke", "go"))(t)
	return newSource(store)
}

// Figures that need no artifact are drawn from an empty store, twice alike;
// those that do stay empty.
func TestExplainingFigures(t *testing.T) {
	s := smoke(t)
	for _, name := range []string{"oracle", "learning", "decoder-attention", "decoder-residuals", "lock-up"} {
		var previous []byte
		for range 2 {
			f := testkit.Must(BuildFigure(s.Store, name))(t)
			svg := testkit.Must(f.SVG())(t)
			if previous != nil && !bytes.Equal(svg, previous) {
				t.Errorf("%s has other bytes the second time", name)
			}
			previous = svg
		}
	}
}

func TestBlockMeans(t *testing.T) {
	// The last block is not full.
	got := blockMeans([]experiment.Loss{{Step: 10, Mean: 1}, {Step: 20, Mean: 3}, {Step: 30, Mean: 5}, {Step: 40, Mean: 7}, {Step: 50, Mean: 100}}, 2)
	if len(got) != 2 || got[0].X != 20 || got[0].Y != 2 || got[1].X != 40 || got[1].Y != 6 {
		t.Errorf("got %v", got)
	}
}

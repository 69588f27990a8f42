package report

import (
	"bytes"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"

	"gonum.org/v1/plot/plotter"
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

func TestDecades(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []string // labels within the axis
	}{
		{2, 15, []string{"2", "5", "10"}},
		{.3, 30, []string{"1", "10"}},
		{.74, .79, []string{"0.74", "0.76", "0.78"}},
		{.002, 2, []string{"0.01", "0.1", "1"}},
		{1e-20, 1, []string{"1e-18", "1e-15", "1e-12", "1e-9", "1e-6", "0.001", "1"}},
	} {
		var got []string
		for _, tick := range (decades{}).Ticks(c.lo, c.hi) {
			if tick.Label != "" && tick.Value >= c.lo && tick.Value <= c.hi {
				got = append(got, tick.Label)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("[%g, %g]: labels %q, want %q", c.lo, c.hi, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("[%g, %g]: labels %q, want %q", c.lo, c.hi, got, c.want)
				break
			}
		}
	}
}

// A run alone is drawn on logarithmic axes, too.
func TestSingleValue(t *testing.T) {
	p := newPanel("", "", "")
	points(p, light, true, plotter.XYs{{X: .5, Y: .02}})
	logLog(p)
	testkit.Must((&Figure{Name: "single", panels: []*panel{p}}).SVG())(t)
	if p.X.Min != .25 || p.X.Max != 1 {
		t.Errorf("x from %v to %v, want .25 to 1", p.X.Min, p.X.Max)
	}
}

func TestBlockMeans(t *testing.T) {
	// The last block is not full.
	got := blockMeans([]experiment.Loss{{Step: 10, Mean: 1}, {Step: 20, Mean: 3}, {Step: 30, Mean: 5}, {Step: 40, Mean: 7}, {Step: 50, Mean: 100}}, 2)
	if len(got) != 2 || got[0].X != 20 || got[0].Y != 2 || got[1].X != 40 || got[1].Y != 6 {
		t.Errorf("got %v", got)
	}
}

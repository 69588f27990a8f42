package plots

import (
	"testing"

	"gonum.org/v1/plot/plotter"

	"icrl/internal/testkit"
)

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
	p := NewPanel("", "", "")
	p.Points(Grey, true, plotter.XYs{{X: .5, Y: .02}})
	LogLog(p)
	testkit.Must((&Figure{Name: "single", Panels: []*Panel{p}}).SVG())(t)
	if p.X.Min != .25 || p.X.Max != 1 {
		t.Errorf("x from %v to %v, want .25 to 1", p.X.Min, p.X.Max)
	}
}

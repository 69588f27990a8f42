package plots

import (
	"testing"

	"gonum.org/v1/plot/vg"
)

// Labels keep their order, do not overlap, and stay between the two heights, and those that have
// room stay where they are.
func TestApart(t *testing.T) {
	for name, x := range map[string]struct{ lines, want []vg.Length }{
		"none":              {nil, nil},
		"one":               {[]vg.Length{50}, []vg.Length{50}},
		"room":              {[]vg.Length{80, 20}, []vg.Length{20, 80}},
		"same":              {[]vg.Length{50, 50}, []vg.Length{45, 55}},
		"at the top":        {[]vg.Length{99, 98}, []vg.Length{85, 95}},
		"below the bottom":  {[]vg.Length{-9, 1}, []vg.Length{5, 15}},
		"three at a height": {[]vg.Length{50, 50, 50}, []vg.Length{40, 50, 60}},
	} {
		var labels []label
		for _, y := range x.lines {
			labels = append(labels, label{line: y, at: y, height: 10})
		}
		apart(labels, 0, 100)
		for i, l := range labels {
			if d := l.at - x.want[i]; d < -1e-6 || d > 1e-6 {
				t.Errorf("%s: label %d at %v, want %v", name, i, l.at, x.want[i])
			}
		}
	}
}

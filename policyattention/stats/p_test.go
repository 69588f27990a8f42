package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"icrl/internal/testkit"
)

// The expected values were worked by hand from the definition in the comment of Holm. Adjusted
// values neither cross nor exceed 1.
func TestHolm(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{.04, .005, .13, .011, .02}, []float64{.08, .025, .13, .044, .06}},
		{[]float64{.5, .6, .03}, []float64{1, 1, .09}},
	} {
		if got := Holm(c.p); !floats.EqualApprox(got, c.want, 1e-12) {
			t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

// A p-value is twice the share of the thinner side, and below .05 outside the 95 %
// interval alone.
func TestP(t *testing.T) {
	e := Estimate{replicates: []float64{1, 2, 2, 3, 4, 5, 6, 7, 8}}
	for _, c := range []struct{ x, want float64 }{
		{0, .2}, {1, .4}, {1.5, .4}, {2, .8}, {4, 1}, {8, .4}, {9, .2}, // 2·(1 + replicates on the side)/10
	} {
		if got := e.P(c.x); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("P(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if p := (Estimate{Value: 1}).P(0); !math.IsNaN(p) {
		t.Errorf("without replicates: %v", p)
	}
	x := [][]float64{{1, 2, 3, 4, 5, 6, 7}, {2, 4, 3, 6, 5, 9, 8}}
	bootstrap := testkit.Must(Standard.RatioOfMeans(x, [][]float64{{2, 2, 3, 3, 4, 4, 5}, {2, 2, 3, 3, 4, 4, 5}}))(t)
	width := bootstrap.Hi - bootstrap.Lo
	for _, at := range []float64{-.2, -.01, .01, .5, .99, 1.01, 1.2} {
		value := bootstrap.Lo + at*width
		if p := bootstrap.P(value); (p < .05) != bootstrap.Resolved(value) {
			t.Errorf("P(%v) = %v beside the interval [%v, %v]", value, p, bootstrap.Lo, bootstrap.Hi)
		}
	}
}

package stats

import (
	"math"
	"slices"
	"testing"
)

func TestRanks(t *testing.T) {
	x := []float64{.1, .4, .2, .3}
	for _, c := range []struct {
		y          []float64
		ranks      []int
		rho        float64
		inversions int
	}{
		{[]float64{1, 4, 2, 3}, []int{1, 4, 2, 3}, 1, 0},
		{[]float64{4, 1, 3, 2}, []int{4, 1, 3, 2}, -1, 6},
		// Rank differences 0, 1, 0, −1: 1 − 6·2/(4·15) = 0.8.
		{[]float64{1, 3, 2, 4}, []int{1, 3, 2, 4}, .8, 1},
	} {
		if got := Ranks(c.y); !slices.Equal(got, c.ranks) {
			t.Errorf("ranks of %v: %v, want %v", c.y, got, c.ranks)
		}
		if got := RankCorrelation(x, c.y); math.Abs(got-c.rho) > 1e-15 {
			t.Errorf("rank correlation with %v: %v, want %v", c.y, got, c.rho)
		}
		if got := Inversions(x, c.y); got != c.inversions {
			t.Errorf("inversions against %v: %d, want %d", c.y, got, c.inversions)
		}
	}
}

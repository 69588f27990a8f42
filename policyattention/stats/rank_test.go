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

// The p-value is near the share of all orders of eight values whose coefficient is as far
// from zero. At this size Student's t misses that share by less than .02.
func TestRankP(t *testing.T) {
	const n = 8
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	var all []float64
	var permute func(k int, y []float64)
	permute = func(k int, y []float64) {
		if k == n {
			all = append(all, math.Abs(RankCorrelation(x, y)))
		}
		for i := k; i < n; i++ {
			y[k], y[i] = y[i], y[k]
			permute(k+1, y)
			y[k], y[i] = y[i], y[k]
		}
	}
	permute(0, slices.Clone(x))
	slices.Sort(all)
	for _, rho := range []float64{0, .2, .5, -.5, .7, -.9, 1} {
		least, _ := slices.BinarySearch(all, math.Abs(rho))
		exact := float64(len(all)-least) / float64(len(all))
		if got := RankP(rho, n); math.Abs(got-exact) > .02 {
			t.Errorf("p of %v: %.4f, %.4f of all orders", rho, got, exact)
		}
	}
}

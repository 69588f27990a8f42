package stats

import (
	"math"
	"testing"
)

// lattice is a sample of made-up losses, with ties.
func lattice(runs, problems, perRun, perProblem, modulus int) (sample [][]float64) {
	for j := range runs {
		var run []float64
		for m := range problems {
			run = append(run, float64((j*perRun+m*perProblem)%modulus)/float64(modulus))
		}
		sample = append(sample, run)
	}
	return sample
}

// The numbers are those of aggregate_iqm(x) and probability_of_improvement(-x, -y) of rliable 1.2.0.
func TestAggregatesAreThoseOfRliable(t *testing.T) {
	for _, c := range []struct {
		x, y             [][]float64
		iqm, improvement float64
	}{
		{lattice(5, 7, 37, 101, 97), lattice(3, 7, 11, 53, 89), 0.4514378730330982, 0.5285714285714286},
		{lattice(3, 64, 5, 7, 11), lattice(5, 64, 3, 4, 11), 0.45265151515151514, 0.5},
		{lattice(1, 10, 1, 3, 7), lattice(4, 10, 2, 3, 7), 0.42857142857142855, 0.45},
		{lattice(3, 9, 5, 7, 11), lattice(3, 9, 5, 7, 11), 0.4424242424242425, 0.5},
	} {
		if got := InterquartileMean(c.x); math.Abs(got-c.iqm) > 1e-15 {
			t.Errorf("interquartile mean %v, want %v", got, c.iqm)
		}
		if got, err := Improvement(c.x, c.y); err != nil || math.Abs(got.Value-c.improvement) > 1e-15 {
			t.Errorf("probability of improvement %v, %v, want %v", got.Value, err, c.improvement)
		}
	}
	if !math.IsNaN(InterquartileMean(nil)) {
		t.Error("the interquartile mean of nothing is a number")
	}
	if _, err := Improvement(lattice(1, 3, 1, 1, 5), lattice(1, 4, 1, 1, 5)); err == nil {
		t.Error("samples of 3 and 4 problems are compared")
	}
}

// By hand: x/y has the ratio 2, residuals −1, 0, 1 with standard deviation 1, so that the interval is
// 1.96/√3/2 to either side. Of a mean: standard deviation 1.
func TestOverProblemsByHand(t *testing.T) {
	half := 1.959963984540054 / math.Sqrt(3)
	for _, c := range []struct {
		x, y        [][]float64
		value, half float64
	}{
		{[][]float64{{3, 4, 5}}, [][]float64{{2, 2, 2}}, 2, half / 2},
		{[][]float64{{2, 4, 6}, {4, 4, 4}}, [][]float64{{2, 2, 2}, {2, 2, 2}}, 2, half / 2},
		{[][]float64{{2, 3, 4}}, [][]float64{{1, 1, 1}}, 3, half},
	} {
		got, err := RatioOverProblems(c.x, c.y)
		if err != nil || math.Abs(got.Value-c.value) > 1e-15 || math.Abs(got.Hi-c.value-c.half) > 1e-12 ||
			math.Abs(c.value-got.Lo-c.half) > 1e-12 {
			t.Errorf("%v [%v, %v], %v, want %v ± %v", got.Value, got.Lo, got.Hi, err, c.value, c.half)
		}
	}
	// Of 0, 0, 0, 4: mean 1, standard deviation 2, skewness 2/√3, so that with u = 2/√3/2·1.96 and
	// g²/24 = 1/18 the ends are 1 − 3√3·(∛(1 ± u − 1/18) − 1).
	u, root := 1.959963984540054/math.Sqrt(3), 3*math.Sqrt(3)
	got, err := RatioOverProblems([][]float64{{0, 0, 0, 4}}, [][]float64{{1, 1, 1, 1}})
	lo, hi := 1-root*(math.Cbrt(1+u-1./18)-1), 1-root*(math.Cbrt(1-u-1./18)-1)
	if err != nil || math.Abs(got.Lo-lo) > 1e-12 || math.Abs(got.Hi-hi) > 1e-12 {
		t.Errorf("[%v, %v], %v, want [%v, %v]", got.Lo, got.Hi, err, lo, hi)
	}
	if _, err := RatioOverProblems([][]float64{{1, 2}}, [][]float64{{0, 0}}); err == nil {
		t.Error("a ratio to nothing has an interval")
	}
}

// From tables of Clopper and Pearson: 0 of 10 and 3 of 10.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		k      float64
		n      int
		lo, hi float64
	}{{0, 10, 0, .30850}, {3, 10, .06674, .65245}, {10, 10, .69150, 1}} {
		if got := Share(c.k, c.n); math.Abs(got.Lo-c.lo) > 1e-5 || math.Abs(got.Hi-c.hi) > 1e-5 {
			t.Errorf("%v of %d: [%v, %v], want [%v, %v]", c.k, c.n, got.Lo, got.Hi, c.lo, c.hi)
		}
	}
}

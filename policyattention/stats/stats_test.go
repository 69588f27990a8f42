package stats

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// The quantiles of 1, 2, 3, 4 are NumPy's: np.quantile([1,2,3,4], p).
func TestQuantile(t *testing.T) {
	sorted := []float64{1, 2, 3, 4}
	for p, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 0.9: 3.7, 1: 4} {
		if got := Quantile(sorted, p); math.Abs(got-want) > 1e-15 {
			t.Errorf("Quantile(%v) = %v, want %v", p, got, want)
		}
	}
	for _, p := range []float64{-0.1, 1.1, math.NaN()} {
		if got := Quantile(sorted, p); !math.IsNaN(got) {
			t.Errorf("Quantile(%v) = %v, want NaN", p, got)
		}
	}
	if p, m := Quantile(nil, 0.5), Median(nil); !math.IsNaN(p) || !math.IsNaN(m) {
		t.Errorf("quantile of nothing is %v, median %v, want NaN", p, m)
	}
	inf := math.Inf(1)
	if got := Median([]float64{inf, 1, inf}); got != inf {
		t.Errorf("median %v, want infinity", got)
	}
	for p, want := range map[float64]float64{0: -inf, 0.25: -inf, 0.5: 1, 0.75: inf, 1: inf} {
		if got := Quantile([]float64{-inf, 1, inf}, p); got != want {
			t.Errorf("Quantile(%v) = %v, want %v among infinite values", p, got, want)
		}
	}
}

// The median of a resample, of its values, and by their quantile is one.
func TestMedian(t *testing.T) {
	rng := seed.New(1, "median")
	for n := 1; n < 20; n++ {
		run, counts := make([]float64, n), make([]uint32, n)
		var drawn []float64
		for m := range run {
			run[m] = float64(rng.IntN(5)) // with ties
		}
		for range n {
			m := rng.IntN(n)
			counts[m]++
			drawn = append(drawn, run[m])
		}
		got, want := rank(run).median(counts), Quantile(slices.Sorted(slices.Values(drawn)), .5)
		if got != want || Median(drawn) != want {
			t.Fatalf("n=%d: median of a resample %v, of values %v, want %v", n, got, Median(drawn), want)
		}
	}
}

// A sample of two runs and two problems has 4·4 equally likely resamples; the bootstrap distribution is
// then known exactly. Percentiles that fall inside an atom of it, well away from its steps at multiples of
// 1/16, are hit exactly: the Monte Carlo error of a step's place is at most 0.5/√20000 = .0035 (one
// standard deviation).
func TestAgainstEnumeration(t *testing.T) {
	x, y := [][]float64{{1, 5}, {2, 11}}, [][]float64{{0.5, 2}, {4, 3}}
	for name, c := range map[string]struct {
		estimate func(b Bootstrap, x, y [][]float64) (Estimate, error)
		of       func(x, y float64) float64 // means of a run
	}{
		"difference": {Bootstrap.Difference, func(x, y float64) float64 { return x - y }},
		"means":      {Bootstrap.RatioOfMeans, func(x, y float64) float64 { return x / y }},
	} {
		var exact []float64
		for r := range 4 {
			for m := range 4 {
				a, b := m/2, m%2
				of := func(j int) float64 { return c.of((x[j][a]+x[j][b])/2, (y[j][a]+y[j][b])/2) }
				exact = append(exact, (of(r/2)+of(r%2))/2)
			}
		}
		slices.Sort(exact)
		for _, tail := range []float64{0.09375, 0.15625, 0.28125, 0.40625} {
			got := testkit.Must(c.estimate(Bootstrap{Replicates: 20_000, Level: 1 - 2*tail, Seed: 3}, x, y))(t)
			lo, hi := exact[int(tail*16)], exact[15-int(tail*16)]
			if math.Abs(got.Lo-lo) > 1e-15 || math.Abs(got.Hi-hi) > 1e-14 {
				t.Errorf("%s, tail %v: interval [%v, %v], enumeration [%v, %v]", name, tail, got.Lo, got.Hi, lo, hi)
			}
		}
	}
}

// With one run the bootstrap distribution of the median of n distinct values is
// binomial: for odd n, P(median ≤ x_(i)) = P(Bin(n, i/n) ≥ (n+1)/2).
func TestMedianIntervalClosedForm(t *testing.T) {
	const n = 65
	run := make([]float64, n)
	for m := range run {
		run[m] = float64(m + 1)
	}
	got := testkit.Must(Standard.Median([][]float64{run}))(t)
	for _, processors := range []int{1, 5} {
		old := runtime.GOMAXPROCS(processors)
		again := testkit.Must(Standard.Median([][]float64{run}))(t)
		runtime.GOMAXPROCS(old)
		if again.Lo != got.Lo || again.Hi != got.Hi {
			t.Errorf("%d processors: %+v, want %+v", processors, again, got)
		}
	}
	below := func(i float64) float64 {
		return 1 - distuv.Binomial{N: n, P: i / n}.CDF((n+1)/2-1)
	}
	if got.Value != 33 {
		t.Errorf("median %v, want 33", got.Value)
	}
	// The simulated percentile's level is within 4 standard errors of its target.
	se := 4 * math.Sqrt(0.025*0.975/10_000)
	for _, c := range []struct{ at, level float64 }{{got.Lo, 0.025}, {got.Hi, 0.975}} {
		if below(c.at) < c.level-se || below(c.at-1) > c.level+se {
			t.Errorf("percentile %v has levels (%v, %v], want %v", c.at, below(c.at-1), below(c.at), c.level)
		}
	}
}

// Medians and paired differences are different estimands.
func TestPairedDifference(t *testing.T) {
	x, y := [][]float64{{1, 2, 9}}, [][]float64{{0, 5, 4}}
	paired := testkit.Must(Standard.PairedDifference(x, y))(t)
	plain := testkit.Must(Standard.Difference(x, y))(t)
	if paired.Value != 1 || plain.Value != -2 {
		t.Errorf("paired %v, plain %v, want 1 and -2", paired.Value, plain.Value)
	}
}

func TestErrors(t *testing.T) {
	ok := [][]float64{{1, 2}}
	for name, call := range map[string]func() (Estimate, error){
		"no runs":        func() (Estimate, error) { return Standard.Median(nil) },
		"no problems":    func() (Estimate, error) { return Standard.Median([][]float64{{}}) },
		"ragged":         func() (Estimate, error) { return Standard.Median([][]float64{{1, 2}, {1}}) },
		"NaN":            func() (Estimate, error) { return Standard.Median([][]float64{{1, math.NaN()}}) },
		"other runs":     func() (Estimate, error) { return Standard.Difference(ok, [][]float64{{1, 2}, {3, 4}}) },
		"other problems": func() (Estimate, error) { return Standard.PairedDifference(ok, [][]float64{{1}}) },
		"no replicates":  func() (Estimate, error) { return Bootstrap{Level: 0.9}.Median(ok) },
		"0/0": func() (Estimate, error) {
			return Standard.Ratio([][]float64{{0, 1, 2}}, [][]float64{{0, 1, 2}})
		},
		"∞−∞": func() (Estimate, error) {
			return Standard.Difference([][]float64{{1, 2, math.Inf(1)}}, [][]float64{{1, 2, math.Inf(1)}})
		},
		"level 1": func() (Estimate, error) { return Bootstrap{Replicates: 1, Level: 1}.Median(ok) },
	} {
		if got, err := call(); err == nil {
			t.Errorf("%s: no error, got %+v", name, got)
		}
	}
}

// A problem without a finite loss makes means infinite where it is drawn, and nothing else.
func TestInfiniteLoss(t *testing.T) {
	e, err := Standard.RatioOfMeans([][]float64{{1, 2, math.Inf(1)}}, [][]float64{{1, 1, 1}})
	if err != nil || !math.IsInf(e.Value, 1) || !(e.Lo >= 1 && e.Lo <= 2) || !math.IsInf(e.Hi, 1) {
		t.Errorf("%+v, %v, want +Inf from 1 to 2 on", e, err)
	}
}

// Contrasts add up, and by hand: the means of x are 2 and 6 in two runs, those of y 3 and
// 1, so x − y is −1 and 5, on average 2.
func TestContrast(t *testing.T) {
	x, y := [][]float64{{1, 2, 3}, {4, 6, 8}}, [][]float64{{3, 3, 3}, {0, 1, 2}}
	b := Bootstrap{Replicates: 2000, Level: .95, Seed: 3}
	get := func(weights ...float64) Estimate {
		e := testkit.Must(b.Contrast(weights, x, y))(t)
		return e
	}
	difference := get(1, -1)
	if math.Abs(difference.Value-2) > 1e-12 || !(difference.Lo < 0 && 4 < difference.Hi) {
		t.Errorf("%+v, by hand 2, between runs of −1 and 5", difference)
	}
	if a, c := get(1, 0), get(0, -1); math.Abs(a.Value+c.Value-difference.Value) > 1e-12 {
		t.Errorf("%v and %v do not add up to %v", a.Value, c.Value, difference.Value)
	}
	if twice := get(2, -2); math.Abs(twice.Lo-2*difference.Lo) > 1e-12 || math.Abs(twice.Hi-2*difference.Hi) > 1e-12 {
		t.Errorf("twice the contrast has the interval %+v, of %+v", twice, difference)
	}
	if _, err := b.Contrast([]float64{1}, x, y); err == nil {
		t.Error("one weight for two samples was accepted")
	}
}

// τ counts pairs that are ordered alike, and its interval covers it as often as it says: for normal numbers with
// correlation ρ it is 2/π·asin ρ.
func TestRankCorrelation(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	y := []float64{7, 3, 1, 5, 2, 4, 6, 9, 10, 8}
	concordant := 0.
	for i := range x {
		for j := range i {
			concordant += math.Copysign(1, y[i]-y[j])
		}
	}
	e := RankCorrelation(x, y)
	if want := concordant / 45; math.Abs(e.Value-want) > 1e-12 || e.Lo >= want || e.Hi <= want || e.Hi >= 1 {
		t.Errorf("τ = %v, want %v inside the interval", e, want)
	}
	rng, tau := seed.New(1, "rank correlation"), 2/math.Pi*math.Asin(.6)
	covered := 0
	for range 2000 {
		for i := range x {
			x[i] = rng.NormFloat64()
			y[i] = .6*x[i] + .8*rng.NormFloat64()
		}
		if e := RankCorrelation(x, y); e.Lo < tau && tau < e.Hi {
			covered++
		}
	}
	if share := float64(covered) / 2000; share < .93 || share > .99 {
		t.Errorf("intervals cover τ in %v of samples, want about .95", share)
	}
}

package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// InterquartileMean returns the mean of the middle half of all losses [runs][problems], NaN of none
// (Agarwal et al., arXiv 2108.13264: a quarter, rounded down, is left out at either end).
func InterquartileMean(sample [][]float64) float64 {
	all := slices.Concat(sample...)
	slices.Sort(all)
	cut := len(all) / 4
	return Mean(all[cut : len(all)-cut])
}

// Improvement estimates the probability that a run of x has a smaller loss than a run of y on the
// same problem, where ties count half, as a mean over problems (the probability of improvement of
// Agarwal et al.). The numbers of runs may differ. For the interval see RatioOverProblems.
func Improvement(x, y [][]float64) (Estimate, error) {
	if err := cmp.Or(check(x), check(y), check(x[:min(1, len(x))], y[:min(1, len(y))])); err != nil {
		return Estimate{}, err
	}
	smaller := make([]float64, len(x[0]))
	for m := range smaller {
		for j := range x {
			for k := range y {
				smaller[m] += float64(1-cmp.Compare(x[j][m], y[k][m])) / 2 // 1 for a smaller one, 1/2 for a tie
			}
		}
		smaller[m] /= float64(len(x) * len(y))
	}
	ones := slices.Repeat([]float64{1}, len(smaller))
	return RatioOverProblems([][]float64{smaller}, [][]float64{ones})
}

// level of the intervals over problems.
const level = .95

// RatioOverProblems estimates mean x / mean y of losses [runs][problems], over all runs of each, with
// a 95 % interval for other problems of their distribution and the same trained networks: by
// linearization (Cochran, Sampling Techniques, 1977, Section 6.4), and with Hall's transformation
// (J. R. Statist. Soc. B 54, 1992), which takes the skewness of losses out. With some hundred problems
// it covers less than 95 % where losses have a tail: see TestCoverage of package results.
func RatioOverProblems(x, y [][]float64) (Estimate, error) {
	if err := cmp.Or(check(x), check(y), check(x[:min(1, len(x))], y[:min(1, len(y))])); err != nil {
		return Estimate{}, err
	}
	n := len(x[0])
	a, b := overRuns(x), overRuns(y)
	ratio := Mean(a) / Mean(b)
	residuals := make([]float64, n)
	for m := range residuals {
		residuals[m] = a[m] - ratio*b[m]
	}
	z, scale := distuv.UnitNormal.Quantile((1+level)/2),
		stat.StdDev(residuals, nil)/math.Sqrt(float64(n))/math.Abs(Mean(b))
	if math.IsNaN(ratio) || math.IsNaN(scale) {
		return Estimate{}, fmt.Errorf("stats: the ratio of means %v over %d problems is undefined", ratio, n)
	}
	skewness := 0.
	if scale > 0 {
		skewness = stat.Moment(3, residuals, nil) / math.Pow(stat.PopStdDev(residuals, nil), 3)
	}
	e := Estimate{Value: ratio, Lo: ratio - hall(z, skewness, n)*scale, Hi: ratio - hall(-z, skewness, n)*scale}
	if len(x) == len(y) {
		for j := range x {
			e.ByRun = append(e.ByRun, Mean(x[j])/Mean(y[j]))
		}
	}
	return e, nil
}

// hall is the quantile of the studentized mean of n values with a skewness, for one of the normal distribution.
func hall(z, skewness float64, n int) float64 {
	root := math.Sqrt(float64(n))
	if math.Abs(skewness) < 1e-6 {
		return z
	}
	return 3 * root / skewness * (math.Cbrt(1+skewness*(z/root-skewness/(6*float64(n)))) - 1)
}

// overRuns returns the mean over runs on each problem.
func overRuns(x [][]float64) []float64 {
	means := make([]float64, len(x[0]))
	for _, run := range x {
		for m, v := range run {
			means[m] += v / float64(len(x))
		}
	}
	return means
}

// Share estimates how often something happens, k times in n independent trials, with the exact 95 %
// interval of Clopper and Pearson (Biometrika 26, 1934). Where k is a mean over several runs on the
// same n problems, the interval is that of one run, and wider than need be.
func Share(k float64, n int) Estimate {
	e, left := Estimate{Value: k / float64(n), Hi: 1}, float64(n)-k
	if k > 0 {
		e.Lo = distuv.Beta{Alpha: k, Beta: left + 1}.Quantile((1 - level) / 2)
	}
	if left > 0 {
		e.Hi = distuv.Beta{Alpha: k + 1, Beta: left}.Quantile((1 + level) / 2)
	}
	return e
}

// Holm adjusts p-values for their number: where those that are adjusted to at most α are taken for significant, the
// probability that any true hypothesis is among them is at most α, however the p-values depend on each other (Holm,
// Scandinavian Journal of Statistics 6, 1979). The order is kept.
func Holm(p []float64) []float64 {
	ranked, adjusted, greatest := rank(p), make([]float64, len(p)), 0.0
	for k, i := range ranked.places {
		greatest = max(greatest, min(1, float64(len(p)-k)*ranked.values[k]))
		adjusted[i] = greatest
	}
	return adjusted
}

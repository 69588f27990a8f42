// Package stats holds the estimators of the paper's tables: medians within and over runs, and hierarchical bootstraps.
//
// A sample is a table [runs][problems] of losses. A run (one trained model) is the independent unit. Problems are
// fixtures that all runs and all compared methods share, so column m is one problem throughout.
package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"icrl/internal/numeric"
	"icrl/policyattention/seed"
)

// Median returns the middle value, or the mean of the two middle values. It is NaN for no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return middle(slices.Clone(values))
}

// middle is Median of values, at least one, which it sorts.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Mean returns the arithmetic mean, NaN of no values.
func Mean(values []float64) float64 { return stat.Mean(values, nil) }

// RunMedians returns the median over problems of each run.
func RunMedians(sample [][]float64) []float64 {
	medians := make([]float64, len(sample))
	for j, run := range sample {
		medians[j] = Median(run)
	}
	return medians
}

// Quantile returns the p-quantile of sorted values, 0 ≤ p ≤ 1, with linear interpolation between order statistics
// (type 7 of Hyndman and Fan, NumPy's default). It is NaN for no values and for another p.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	low, high, share := sorted[i], sorted[i+1], at-float64(i)
	if low == high || math.IsInf(low, 0) || share == 0 && math.IsInf(high, 0) { // where arithmetic gives NaN
		return low
	}
	return low + share*(high-low)
}

// Tail describes a distribution by what its median hides.
type Tail struct {
	Mean, P95, P99, Worst float64
	Above                 float64 // share of values above a limit
}

// TailOf describes values, at least one, and the share of them above a limit.
func TailOf(values []float64, limit float64) Tail {
	sorted := slices.Sorted(slices.Values(values))
	above := floats.Count(func(v float64) bool { return v > limit }, sorted)
	return Tail{
		Mean: Mean(sorted), P95: Quantile(sorted, .95), P99: Quantile(sorted, .99), Worst: sorted[len(sorted)-1],
		Above: float64(above) / float64(len(sorted)),
	}
}

// Estimate is a statistic of a sample with its bootstrap percentile interval.
type Estimate struct {
	Value float64   `json:"value"`
	Lo    float64   `json:"lo"`
	Hi    float64   `json:"hi"`
	ByRun []float64 `json:"-"` // the same of each run, where it is one over runs

	replicates []float64 // ascending
}

// RankCorrelation is Kendall's τ of pairs that are more than 4, from -1 to 1, with a 95 % interval after Fieller,
// Hartley and Pearson (Biometrika 44, 1957): atanh τ has nearly the variance .437/(n-4).
func RankCorrelation(x, y []float64) Estimate {
	tau := stat.Kendall(x, y, nil)
	z, reach := math.Atanh(tau), 1.96*math.Sqrt(.437/float64(len(x)-4))
	return Estimate{Value: tau, Lo: math.Tanh(z - reach), Hi: math.Tanh(z + reach)}
}

// Text writes the value and its interval, with numbers written by a function.
func (e Estimate) Text(number func(float64) string) string {
	return fmt.Sprintf("%s [%s, %s]", number(e.Value), number(e.Lo), number(e.Hi))
}

// Resolved reports whether the interval excludes the given value.
func (e Estimate) Resolved(from float64) bool { return e.Lo > from || e.Hi < from }

// P returns the two-sided p-value of the percentile bootstrap, in (0, 1], for the hypothesis that the estimated
// quantity is x: twice the share of replicates on the side of x with fewer of them, counting those at x on both and the
// sample itself once (Davison and Hinkley, Bootstrap Methods and Their Application, 1997, Section 4.2.3). It is below
// .05 where a 95 % interval excludes x, up to ties and interpolation, and NaN for an estimate that no bootstrap made.
func (e Estimate) P(x float64) float64 {
	n := len(e.replicates)
	if n == 0 {
		return math.NaN()
	}
	below := floats.Count(func(v float64) bool { return v < x }, e.replicates)
	above := floats.Count(func(v float64) bool { return v > x }, e.replicates)
	return min(1, 2*float64(1+n-max(below, above))/float64(n+1))
}

// Bootstrap is a hierarchical bootstrap. A replicate draws runs with replacement, then one list of problems with
// replacement for all of them, since runs and methods share the problems; compared samples get the same draws. A sample
// of one run leaves the plain bootstrap over problems.
type Bootstrap struct {
	Replicates int     `json:"replicates"`
	Level      float64 `json:"level"` // coverage of the percentile interval, in (0, 1)
	Seed       uint64  `json:"seed"`
}

// Standard is the paper's bootstrap: 10,000 replicates and 95% intervals.
var Standard = Bootstrap{Replicates: 10_000, Level: 0.95, Seed: 1}

// Median estimates the median over runs of the median over problems. Like the other estimators it returns an error when
// it is undefined, that is NaN, on the sample or on a replicate of it: where it would be 0/0, ∞−∞ or ∞/∞.
func (b Bootstrap) Median(x [][]float64) (Estimate, error) {
	return b.estimate("median", ranking.median, only, middle, x)
}

// Difference estimates the median over runs of median_m x[j][m] − median_m y[j][m].
func (b Bootstrap) Difference(x, y [][]float64) (Estimate, error) {
	return b.estimate("difference", ranking.median, func(v []float64) float64 { return v[0] - v[1] }, middle, x, y)
}

// PairedDifference estimates the median over runs of the median over problems of x[j][m] − y[j][m].
func (b Bootstrap) PairedDifference(x, y [][]float64) (Estimate, error) {
	if err := check(x, y); err != nil {
		return Estimate{}, err
	}
	d := make([][]float64, len(x))
	for j := range x {
		d[j] = floats.SubTo(make([]float64, len(x[j])), x[j], y[j])
	}
	return b.estimate("paired difference", ranking.median, only, middle, d)
}

// Ratio estimates the median over runs of median_m x[j][m] / median_m y[j][m].
func (b Bootstrap) Ratio(x, y [][]float64) (Estimate, error) {
	return b.estimate("ratio", ranking.median, func(v []float64) float64 { return v[0] / v[1] }, middle, x, y)
}

// RatioOfMeans estimates the median over runs of mean_m x[j][m] / mean_m y[j][m].
// Unlike the ratio of medians it sees the problems with the largest losses.
func (b Bootstrap) RatioOfMeans(x, y [][]float64) (Estimate, error) {
	return b.estimate("ratio of means", ranking.mean, func(v []float64) float64 { return v[0] / v[1] }, middle, x, y)
}

// Contrast estimates Σ_i weights[i]·mean_m samples[i][j][m], a mean over runs j. It takes means where the other
// estimators take medians, so contrasts of the same samples add up, on every replicate too: where the weights of one
// are the sum of others', so are its estimates.
func (b Bootstrap) Contrast(weights []float64, samples ...[][]float64) (Estimate, error) {
	if len(weights) != len(samples) {
		return Estimate{}, fmt.Errorf("stats: %d weights for %d samples, want as many", len(weights), len(samples))
	}
	if err := check(samples...); err != nil {
		return Estimate{}, err
	}
	sum := make([][]float64, len(samples[0])) // its mean is the contrast
	for j := range sum {
		sum[j] = make([]float64, len(samples[0][j]))
		for i, sample := range samples {
			floats.AddScaled(sum[j], weights[i], sample[j])
		}
	}
	return b.estimate("contrast", ranking.mean, only, Mean, sum)
}

// only is the summary of an estimator of one sample.
func only(summaries []float64) float64 { return summaries[0] }

// chunk is how many replicates share a random stream, so that results do not depend on how chunks fall to processors.
const chunk = 500

// estimate, of the estimator called name, summarizes each run of each sample over its problems (within), combines the
// samples' summaries run by run, then runs (across, which may sort them), and bootstraps it.
func (b Bootstrap) estimate(name string, within func(run ranking, counts []uint32) float64,
	combine, across func([]float64) float64, samples ...[][]float64,
) (Estimate, error) {
	if b.Replicates < 1 || !(b.Level > 0 && b.Level < 1) {
		return Estimate{}, fmt.Errorf("stats: %d replicates at level %v, want at least 1 and a level in (0, 1)",
			b.Replicates, b.Level)
	}
	if err := check(samples...); err != nil {
		return Estimate{}, err
	}
	runs, problems := len(samples[0]), len(samples[0][0])
	sorted := make([][]ranking, len(samples))
	for i, sample := range samples {
		for _, run := range sample {
			sorted[i] = append(sorted[i], rank(run))
		}
	}
	// summary is combine at run j for problems drawn counts[m] times each.
	summary := func(j int, counts []uint32, scratch []float64) float64 {
		for i := range sorted {
			scratch[i] = within(sorted[i][j], counts)
		}
		return combine(scratch)
	}
	replicates := make([]float64, b.Replicates)
	numeric.Parallel((b.Replicates+chunk-1)/chunk, func(i int) error { //nolint:errcheck // there is none
		start := i * chunk
		rng := seed.New(b.Seed, "bootstrap", start)
		perRun, drawn, scratch := make([]float64, runs), make([]float64, runs), make([]float64, len(samples))
		picks, counts := make([]int, runs), make([]uint32, problems)
		for r := start; r < min(start+chunk, b.Replicates); r++ {
			for j := range picks {
				picks[j], perRun[j] = rng.IntN(runs), math.NaN()
			}
			clear(counts)
			for range problems {
				counts[rng.IntN(problems)]++
			}
			for i, j := range picks {
				if math.IsNaN(perRun[j]) {
					perRun[j] = summary(j, counts, scratch)
				}
				drawn[i] = perRun[j]
			}
			replicates[r] = across(drawn)
		}
		return nil
	})
	once := slices.Repeat([]uint32{1}, problems)
	values := make([]float64, runs)
	for j := range values {
		values[j] = summary(j, once, make([]float64, len(samples)))
	}
	value := across(slices.Clone(values))
	if math.IsNaN(value) {
		return Estimate{}, fmt.Errorf("stats: the %s of the sample is undefined: run by run it is %v", name, values)
	}
	slices.Sort(replicates) // NaN first
	if math.IsNaN(replicates[0]) {
		return Estimate{}, fmt.Errorf("stats: the %s is undefined on a replicate of the sample", name)
	}
	tail := (1 - b.Level) / 2
	lo, hi := Quantile(replicates, tail), Quantile(replicates, 1-tail)
	return Estimate{Value: value, Lo: lo, Hi: hi, ByRun: values, replicates: replicates}, nil
}

// ranking is values in ascending order with the place that each had. Of a run's losses, that is the problem: a
// resample's median is then one walk over the counts, without sorting again.
type ranking struct {
	values []float64
	places []int
}

func rank(values []float64) ranking {
	r := ranking{slices.Clone(values), make([]int, len(values))}
	floats.ArgsortStable(r.values, r.places)
	return r
}

// median returns the median of len(counts) draws, counts[m] of problem m.
func (r ranking) median(counts []uint32) float64 {
	n := len(counts)
	lower, upper := (n-1)/2, n/2 // the ranks to average
	seen, low := 0, math.NaN()
	for i, m := range r.places {
		seen += int(counts[m])
		if math.IsNaN(low) && seen > lower {
			low = r.values[i]
		}
		if seen > upper {
			return (low + r.values[i]) / 2
		}
	}
	return math.NaN()
}

// mean returns the mean of len(counts) draws, counts[m] of problem m.
func (r ranking) mean(counts []uint32) float64 {
	sum := 0.0
	for i, m := range r.places {
		if counts[m] > 0 { // 0·∞ is no number
			sum += float64(counts[m]) * r.values[i]
		}
	}
	return sum / float64(len(counts))
}

// check reports why the samples are not tables of one shape without NaN.
func check(samples ...[][]float64) error {
	for i, sample := range samples {
		if len(sample) == 0 || len(sample[0]) == 0 {
			return fmt.Errorf("stats: sample %d is empty", i)
		}
		if len(sample) != len(samples[0]) {
			return fmt.Errorf("stats: samples of %d and %d runs cannot be paired", len(samples[0]), len(sample))
		}
		for j, run := range sample {
			if want := len(samples[0][0]); len(run) != want {
				return fmt.Errorf("stats: run %d of sample %d has %d problems, want %d", j, i, len(run), want)
			}
			if m := slices.IndexFunc(run, math.IsNaN); m >= 0 {
				return fmt.Errorf("stats: run %d of sample %d is NaN at problem %d", j, i, m)
			}
		}
	}
	return nil
}

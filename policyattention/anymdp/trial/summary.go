package trial

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/seed"
)

// Behind is by how much of the normalized loss a problem that counts as locked is behind
// exact PMD at the last horizon.
const Behind = .02

// Bars are what the excess over exact PMD's loss is held to, read-out "prior".
var Bars = struct{ Median, P99, Worst, Ratio float64 }{.0005, .005, .02, 1.05}

// Summary is the excess of an actor's normalized loss over exact PMD's at one horizon, over
// the problems of a row and of all identities.
type Summary struct {
	Row                string
	Readout            anymdp.Readout
	Horizon            int
	Problems           int
	Median, P99, Worst float64
	Exact, Actor       float64 // mean losses
	Locked             int     // problems more than [Behind] behind; at the last horizon, locked
	// MedianIn and RatioIn are 95 % intervals: of the median from order statistics, of the
	// ratio of means from 1,000 resamples of the problems. A problem that several identities
	// were run on counts once, with all of them.
	MedianIn, RatioIn [2]float64
}

// Readouts are what is summarized of a row.
var Readouts = []anymdp.Readout{anymdp.Prior, anymdp.Network, Mixed}

// Of returns the losses of a read-out, by horizon.
func (l Losses) Of(readout anymdp.Readout) []float64 {
	switch readout {
	case anymdp.Prior:
		return l.Prior
	case anymdp.Network:
		return l.Network
	}
	return l.Mixed
}

// Ratio is the ratio of the mean losses.
func (s Summary) Ratio() float64 { return s.Actor / s.Exact }

// Within says which bars a summary is within: median, 99th percentile, worst, ratio.
func (s Summary) Within() [4]bool {
	return [4]bool{s.Median <= Bars.Median, s.P99 <= Bars.P99, s.Worst <= Bars.Worst, s.Ratio() <= Bars.Ratio}
}

// Summarize pools the losses of a row over identities, whose problems follow each other.
func Summarize(row Row, losses []Losses) (all []Summary) {
	for _, readout := range Readouts {
		for k, horizon := range Horizons {
			s := Summary{Row: row.Name, Readout: readout, Horizon: horizon}
			var exact, excess []float64
			var draws [][]int // what was drawn independently: the runs on a problem
			for i, l := range losses {
				v := l.Of(readout)[k]
				if math.IsNaN(v) {
					continue
				}
				if row.Fixture != 0 && i >= row.Problems {
					draws[i%row.Problems] = append(draws[i%row.Problems], len(exact))
				} else {
					draws = append(draws, []int{len(exact)})
				}
				exact, excess = append(exact, l.Exact[k]), append(excess, v-l.Exact[k])
			}
			s.Problems = len(excess)
			if s.Problems == 0 {
				continue
			}
			n := float64(s.Problems)
			s.Exact, s.Actor = floats.Sum(exact)/n, (floats.Sum(exact)+floats.Sum(excess))/n
			s.RatioIn = ratioIn(seed.New(Root, "any", "interval", row.Name, string(readout), horizon), draws, exact, excess)
			slices.SortFunc(excess, cmp.Compare[float64])
			for _, e := range excess {
				if e > Behind {
					s.Locked++
				}
			}
			s.Median, s.P99, s.Worst = quantile(excess, .5), quantile(excess, .99), excess[len(excess)-1]
			// The number of problems below the median is binomial, here in its normal limit.
			reach := 1.96 / math.Sqrt(4*float64(len(draws)))
			s.MedianIn = [2]float64{quantile(excess, max(0, .5-reach)), quantile(excess, min(1, .5+reach))}
			all = append(all, s)
		}
	}
	return all
}

// ratioIn is the 95 % percentile interval of the ratio of mean losses.
func ratioIn(rng *rand.Rand, draws [][]int, exact, excess []float64) [2]float64 {
	const resamples = 1000
	ratios := make([]float64, resamples)
	for i := range ratios {
		x, y := 0.0, 0.0
		for range draws {
			for _, k := range draws[rng.IntN(len(draws))] {
				x, y = x+exact[k], y+exact[k]+excess[k]
			}
		}
		ratios[i] = y / x
	}
	slices.SortFunc(ratios, cmp.Compare[float64])
	return [2]float64{quantile(ratios, .025), quantile(ratios, .975)}
}

// quantile of sorted values, between neighbours linearly.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	lo := int(at)
	if lo+1 >= len(sorted) {
		return sorted[lo]
	}
	return sorted[lo] + (at-float64(lo))*(sorted[lo+1]-sorted[lo])
}

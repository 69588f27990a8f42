package trial

import (
	"cmp"
	"slices"

	"icrl/policyattention/anymdp"
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
}

// Ratio is the ratio of the mean losses.
func (s Summary) Ratio() float64 { return s.Actor / s.Exact }

// Within says which bars a summary is within: median, 99th percentile, worst, ratio.
func (s Summary) Within() [4]bool {
	return [4]bool{s.Median <= Bars.Median, s.P99 <= Bars.P99, s.Worst <= Bars.Worst, s.Ratio() <= Bars.Ratio}
}

// Summarize pools the losses of a row over identities.
func Summarize(row string, losses []Losses) (all []Summary) {
	for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
		for k, horizon := range Horizons {
			s := Summary{Row: row, Readout: readout, Horizon: horizon}
			var excess []float64
			for _, l := range losses {
				actor := l.Prior[k]
				if readout == anymdp.Network {
					actor = l.Network[k]
				}
				if actor != actor { // NaN: not run
					continue
				}
				excess = append(excess, actor-l.Exact[k])
				s.Exact += l.Exact[k]
				s.Actor += actor
				if actor-l.Exact[k] > Behind {
					s.Locked++
				}
			}
			s.Problems = len(excess)
			if s.Problems == 0 {
				continue
			}
			s.Exact /= float64(s.Problems)
			s.Actor /= float64(s.Problems)
			slices.SortFunc(excess, cmp.Compare[float64])
			s.Median, s.P99, s.Worst = quantile(excess, .5), quantile(excess, .99), excess[len(excess)-1]
			all = append(all, s)
		}
	}
	return all
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

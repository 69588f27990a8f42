package results

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// Estimator names a comparison of two samples, or the median of one. See package
// stats.
type Estimator string

const (
	Median           Estimator = "median"
	Ratio            Estimator = "ratio"
	Difference       Estimator = "difference"
	PairedDifference Estimator = "paired difference"
	RatioOfMeans     Estimator = "ratio of means"
	FirstStep        Estimator = "first step within a bar"
)

// Estimate is an estimate with its origin.
type Estimate struct {
	Estimator
	X       Selection  `json:"x"`
	Y       *Selection `json:"y,omitempty"` // compared with
	T       int        `json:"t"`           // horizon
	Runs    int        `json:"runs"`        // behind it
	Planned int        `json:"planned"`
	stats.Estimate
	ByRun []float64                   `json:"by_run,omitempty"` // the same of each run
	Paper *Number                     `json:"paper,omitempty"`  // what the paper prints, if anything
	Used  [2][]*experiment.Evaluation `json:"-"`                // by run: of X and, where compared, of Y
}

// MarshalJSON implements json.Marshaler. A number that is not finite, such as a ratio to a
// loss of 0, is null.
func (e Estimate) MarshalJSON() ([]byte, error) {
	byRun := make([]finite, len(e.ByRun))
	for i, v := range e.ByRun {
		byRun[i] = finite(v)
	}
	return json.Marshal(struct {
		Estimator Estimator
		X         Selection  `json:"x"`
		Y         *Selection `json:"y,omitempty"`
		T         int        `json:"t"`
		Runs      int        `json:"runs"`
		Planned   int        `json:"planned"`
		Value     finite     `json:"value"`
		Lo        finite     `json:"lo"`
		Hi        finite     `json:"hi"`
		ByRun     []finite   `json:"by_run,omitempty"`
		Paper     *Number    `json:"paper,omitempty"`
	}{e.Estimator, e.X, e.Y, e.T, e.Runs, e.Planned, finite(e.Value), finite(e.Lo), finite(e.Hi), byRun, e.Paper})
}

// finite is a number that JSON may lack.
type finite float64

// MarshalJSON implements json.Marshaler.
func (f finite) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// Beside returns the estimate with the paper's number of that key, if there is one.
func (e Estimate) Beside(k Key) Estimate {
	e.Paper = Paper(k)
	return e
}

// missing is an estimate of results that are not there.
func missing(f Estimator, x Runs, horizon int) Estimate {
	return Estimate{Estimator: f, X: x.Selection, T: horizon, Planned: x.Planned}
}

// Median estimates the median over runs of the median loss.
func (r Runs) Median(horizon int) (Estimate, error) {
	e := missing(Median, r, horizon)
	if len(r.Found) == 0 {
		return e, nil
	}
	var err error
	e.Runs, e.Used[0], e.ByRun = len(r.Found), r.Found, r.Medians(horizon)
	e.Estimate, err = r.made.once(e, func() (stats.Estimate, error) { return stats.Standard.Median(r.Losses(horizon)) })
	return e, err
}

// Compare estimates how losses compare with those of other runs, of the same
// identities or of an exact method. Evidence needs both.
func (r Runs) Compare(f Estimator, other Runs, horizon int) (Estimate, error) {
	x, y := Pair(r, other)
	e := missing(f, r, horizon)
	e.Y = &y.Selection
	if len(x.Found) == 0 {
		return e, nil
	}
	e.Runs, e.Used = len(x.Found), [2][]*experiment.Evaluation{x.Found, y.Found}
	estimate := map[Estimator]func(x, y [][]float64) (stats.Estimate, error){
		Ratio: stats.Standard.Ratio, Difference: stats.Standard.Difference,
		PairedDifference: stats.Standard.PairedDifference, RatioOfMeans: stats.Standard.RatioOfMeans,
	}[f]
	a, b := x.Losses(horizon), y.Losses(horizon)
	var err error
	if e.Estimate, err = r.made.once(e, func() (stats.Estimate, error) { return estimate(a, b) }); err != nil {
		return e, err
	}
	for j := range a {
		e.ByRun = append(e.ByRun, each(f, a[j], b[j]))
	}
	return e, nil
}

// estimates are those that were made so far, by what they are of; nil remembers none. Tables
// and claims show the same comparisons, and each is 10,000 replicates.
type estimates map[string]Estimate

// once makes what e is to hold, unless an estimate of the same results was made before.
func (m estimates) once(e Estimate, of func() (stats.Estimate, error)) (stats.Estimate, error) {
	key := fmt.Sprint(e.Estimator, e.T, e.Used) // results by their addresses, which what is kept holds
	if made, ok := m[key]; ok {
		return made.Estimate, nil
	}
	var err error
	if e.Estimate, err = of(); m != nil && err == nil {
		m[key] = e
	}
	return e.Estimate, err
}

// each is the estimator of one run.
func each(f Estimator, x, y []float64) float64 {
	switch f {
	case Ratio:
		return stats.RatioOfMedians(x, y)
	case RatioOfMeans:
		return stats.Mean(x) / stats.Mean(y)
	case Difference:
		return stats.Median(x) - stats.Median(y)
	}
	return stats.Median(excess(x, y))
}

// Ratio estimates the median ratio of median losses (equation 14).
func (r Runs) Ratio(other Runs, horizon int) (Estimate, error) {
	return r.Compare(Ratio, other, horizon)
}

// excess returns x − y, problem by problem.
func excess(x, y []float64) []float64 {
	d := make([]float64, len(x))
	for m := range d {
		d[m] = x[m] - y[m]
	}
	return d
}

// BehindBy is the excess above which a problem counts as behind, in units of the
// normalized loss.
const BehindBy = .05

// Tail says what a median does not: how the losses of all problems of all runs
// compare with another method's on the same problems.
type Tail struct {
	X       Selection `json:"x"`
	T       int       `json:"t"`
	Runs    int       `json:"runs"`
	Planned int       `json:"planned"`
	// Of the excess over the other loss, problem by problem, all runs together.
	Mean, P95, P99, Worst float64
	Behind                float64  // share of problems with an excess above BehindBy
	Problems              int      // in all runs
	RatioOfMeans          Estimate // median over runs
	WorstRun              uint64   // identity with the greatest ratio of means
}

// Tail describes the excess over other losses on the same problems.
func (r Runs) Tail(other Runs, horizon int) (Tail, error) {
	t := Tail{X: r.Selection, T: horizon, Planned: r.Planned}
	var err error
	if t.RatioOfMeans, err = r.Compare(RatioOfMeans, other, horizon); err != nil || t.RatioOfMeans.Runs == 0 {
		return t, err
	}
	x, y := Pair(r, other)
	t.Runs = len(x.Found)
	var all []float64
	for j, losses := range x.Losses(horizon) {
		all = append(all, excess(losses, y.Found[j].Losses(horizon))...)
	}
	t.describe(all, BehindBy)
	byRun := t.RatioOfMeans.ByRun
	t.WorstRun = x.Found[slices.Index(byRun, slices.Max(byRun))].Cell.Seed
	return t, nil
}

// Spread describes the losses themselves; behind is who ends with more than the first
// policy's loss, which is 1.
func (r Runs) Spread(horizon int) Tail {
	t := Tail{X: r.Selection, T: horizon, Planned: r.Planned, Runs: len(r.Found)}
	if t.Runs > 0 {
		t.describe(slices.Concat(r.Losses(horizon)...), 1)
	}
	return t
}

// describe fills in the distribution of values, and the share of those above a limit.
func (t *Tail) describe(values []float64, limit float64) {
	slices.Sort(values)
	t.Problems, t.Mean, t.Worst = len(values), stats.Mean(values), values[len(values)-1]
	t.P95, t.P99 = stats.Quantile(values, .95), stats.Quantile(values, .99)
	above, _ := slices.BinarySearchFunc(values, limit, func(v, limit float64) int {
		if v > limit {
			return 1
		}
		return -1
	})
	t.Behind = float64(len(values)-above) / float64(len(values))
}

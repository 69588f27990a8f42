package equal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/stats"
)

// Factor is a quotient of losses with its interval: how many times as large one is as
// another. It is 10 to the contrast of logarithms of median losses, a mean over runs: see
// [stats.Bootstrap.Contrast].
type Factor struct {
	stats.Estimate
}

// factor is the quotient whose logarithm has the given weights on the samples.
func factor(weights []float64, samples ...[][]float64) (Factor, error) {
	e, err := stats.Standard.Contrast(Floor, weights, samples...)
	return tenTo(e), err
}

func tenTo(e stats.Estimate) Factor {
	return Factor{stats.Estimate{Value: math.Pow(10, e.Value), Lo: math.Pow(10, e.Lo), Hi: math.Pow(10, e.Hi)}}
}

// String returns the factor and its interval to three digits.
func (f Factor) String() string { return fmt.Sprintf("%.3g [%.3g, %.3g]", f.Value, f.Lo, f.Hi) }

// find returns the row of a method, tuned or not.
func (e *Evidence) find(states int, c Condition, name string, untuned bool) (Row, error) {
	for _, r := range e.Rows {
		if r.States == states && r.Condition == c && r.Method == name && r.Untuned == untuned {
			return r, nil
		}
	}
	return Row{}, fmt.Errorf("equal: no row %s", Row{States: states, Condition: c, Method: name, Untuned: untuned}.Name())
}

// Best returns PolicyAttention's row of a condition: where it has several estimates of Q to
// choose from, the one with the lower loss on calibration problems.
func (e *Evidence) Best(states int, c Condition) (best Row, err error) {
	for _, r := range e.Rows {
		if r.States == states && r.Condition == c && strings.HasPrefix(r.Method, "policyattention") && r.Tuning != nil && len(r.Losses) == Runs {
			if best.Tuning == nil || r.Tuning.Score < best.Tuning.Score {
				best = r
			}
		}
	}
	if best.Tuning == nil {
		return best, fmt.Errorf("equal: no row of PolicyAttention at S=%d, %s", states, c)
	}
	return best, nil
}

// at returns a row's losses at a horizon for so many runs. What has no runs, since nothing
// in it is random, is repeated.
func (r Row) at(horizon, runs int) ([][]float64, error) {
	losses := r.At(horizon)
	if len(losses) == 1 {
		losses = slices.Repeat(losses, runs)
	}
	if len(losses) < runs {
		return nil, fmt.Errorf("equal: %s has %d runs, want %d", r.Name(), len(losses), runs)
	}
	return losses[:runs], nil
}

// Curve returns the row's loss at each of Horizons with its interval over runs and
// problems, from a thousand replicates.
func (r Row) Curve() (losses []Factor, err error) {
	b := stats.Standard
	b.Replicates = 1000
	for _, horizon := range Horizons {
		e, err := b.Contrast(Floor, []float64{1}, r.At(horizon))
		if err != nil {
			return nil, fmt.Errorf("equal: %s: %w", r.Name(), err)
		}
		losses = append(losses, tenTo(e))
	}
	return losses, nil
}

// Quotient is a method's loss over PolicyAttention's in the same condition.
type Quotient struct {
	Horizon     int
	Row, Beside Row    // the method's, and PolicyAttention's in the same condition
	Runs        int    // behind it
	Loss        Factor // of the method
	Factor             // its loss over PolicyAttention's
}

// Quotients compares every method with PolicyAttention in its condition, both with the
// numbers that calibration problems chose.
func (e *Evidence) Quotients(states, horizon int) (all []Quotient, err error) {
	for _, r := range e.Rows {
		if r.States != states || r.Untuned {
			continue
		}
		q := Quotient{Horizon: horizon, Row: r}
		if q.Beside, err = e.Best(states, r.Condition); err != nil {
			return nil, err
		}
		q.Runs = len(q.Beside.Losses)
		if len(r.Losses) > 1 || r.Information != Model {
			q.Runs = len(r.Losses)
		}
		x, errX := r.at(horizon, q.Runs)
		y, errY := q.Beside.at(horizon, q.Runs)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		if q.Loss, err = factor([]float64{1}, x); err != nil {
			return nil, err
		}
		if q.Factor, err = factor([]float64{1, -1}, x, y); err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// Lead takes PolicyAttention's lead over a method apart: the method with the published
// numbers on a walk of 20 transitions a round, over PolicyAttention with the model and η =
// .8, as the paper compares them. Lead = Update · Information · Tuning, on every replicate
// of the bootstrap.
//
// With all numbers tuned there is a two-way table of losses: update rule by information.
// Update is the mean of its two columns, Information that of its two rows, in logarithms.
// A method that cannot be told the model has no such table: then Update is of the column
// that there is, and Information of PolicyAttention's row.
type Lead struct {
	Horizon             int
	Row                 Row // of the method on the walk
	Lead                Factor
	Update, Information Factor
	Tuning              Factor
	UpdateWalk          Factor // the method over PolicyAttention, both on the walk
	UpdateModel         Factor // both with the model
	TwoWay              bool   // whether there is an UpdateModel
}

// with names what a method of the walk becomes when it is told the model.
var with = map[string]string{
	"liang-lai": "liang-lai", "q-learning": "value-iteration", "sarsa": "value-iteration",
	"certainty-equivalence": "policy-iteration", "posterior-sampling": "policy-iteration",
}

// Leads lists the leads over the methods on the walk that are not PMD themselves.
func (e *Evidence) Leads(states, horizon int) (all []Lead, err error) {
	walk, model := Condition{Window, 20}, Condition{Model, 0}
	for _, name := range []string{"liang-lai", "algorithm-distillation", "q-learning", "sarsa", "certainty-equivalence", "posterior-sampling"} {
		l := Lead{Horizon: horizon}
		var rows [6]Row // the method on the walk, untuned; tuned; PolicyAttention there; with the model; untuned; the method with the model
		var failures [6]error
		rows[1], failures[1] = e.find(states, walk, name, false)
		if rows[0], err = e.find(states, walk, name, true); err != nil {
			rows[0] = rows[1] // nothing is published
		}
		rows[2], failures[2] = e.Best(states, walk)
		rows[3], failures[3] = e.find(states, model, "policyattention", false)
		rows[4], failures[4] = e.find(states, model, "policyattention", true)
		count := 5
		if counterpart, ok := with[name]; ok {
			l.TwoWay, count = true, 6
			rows[5], failures[5] = e.find(states, model, counterpart, false)
		}
		if err := errors.Join(failures[:]...); err != nil {
			return nil, err
		}
		var samples [][][]float64
		for _, r := range rows[:count] {
			x, err := r.at(horizon, Runs)
			if err != nil {
				return nil, err
			}
			samples = append(samples, x)
		}
		l.Row = rows[1]
		parts := map[*Factor][]float64{
			&l.Lead: {1, 0, 0, 0, -1, 0}, &l.Tuning: {1, -1, 0, 1, -1, 0}, &l.UpdateWalk: {0, 1, -1, 0, 0, 0},
			&l.Update: {0, 1, -1, 0, 0, 0}, &l.Information: {0, 0, 1, -1, 0, 0},
		}
		if l.TwoWay {
			parts[&l.UpdateModel] = []float64{0, 0, 0, -1, 0, 1}
			parts[&l.Update] = []float64{0, .5, -.5, -.5, 0, .5}
			parts[&l.Information] = []float64{0, .5, .5, -.5, 0, -.5}
		}
		for part, weights := range parts {
			if *part, err = factor(weights[:count], samples...); err != nil {
				return nil, err
			}
		}
		all = append(all, l)
	}
	return all, nil
}

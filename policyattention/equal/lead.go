package equal

import (
	"errors"
	"fmt"
	"slices"

	"icrl/policyattention/stats"
)

// Losses are compared by their means over problems, not by medians: once numbers are
// tuned, many methods solve more than half of the problems to the last digit, and a median
// says no more than that.

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
		if r.States != states || r.Condition != c || r.Tuning == nil || len(r.Losses) != Runs {
			continue
		}
		m, err := Find(c.Information, r.Method)
		if err != nil {
			return best, err
		}
		if m.Proposed && (best.Tuning == nil || r.Tuning.Score < best.Tuning.Score) {
			best = r
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

// Curve returns the row's mean loss at each of Horizons with its interval over runs and
// problems, from a thousand replicates.
func (r Row) Curve() (losses []stats.Estimate, err error) {
	b := stats.Standard
	b.Replicates = 1000
	for _, horizon := range Horizons {
		e, err := b.Contrast([]float64{1}, r.At(horizon))
		if err != nil {
			return nil, fmt.Errorf("equal: %s: %w", r.Name(), err)
		}
		losses = append(losses, e)
	}
	return losses, nil
}

// Comparison sets a method beside PolicyAttention in the same condition.
type Comparison struct {
	Horizon     int
	Row, Beside Row            // the method's, and PolicyAttention's
	Runs        int            // behind it
	Loss        float64        // the method's mean loss
	Difference  stats.Estimate // its mean loss less PolicyAttention's
}

// Compare compares every method with PolicyAttention in its condition, both with the
// numbers that calibration problems chose, in the conditions that keep accepts.
func (e *Evidence) Compare(states, horizon int, keep func(Condition) bool) (all []Comparison, err error) {
	for _, r := range e.Rows {
		if r.States != states || r.Untuned || !keep(r.Condition) {
			continue
		}
		c := Comparison{Horizon: horizon, Row: r}
		if c.Beside, err = e.Best(states, r.Condition); err != nil {
			return nil, err
		}
		c.Runs = len(c.Beside.Losses)
		if r.Information != Model { // with the model one run stands for all
			c.Runs = len(r.Losses)
		}
		x, errX := r.at(horizon, c.Runs)
		y, errY := c.Beside.at(horizon, c.Runs)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		c.Loss = stats.Mean(slices.Concat(x...))
		if c.Difference, err = stats.Standard.Contrast([]float64{1, -1}, x, y); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Lead takes PolicyAttention's lead over a method apart: the mean loss of the method with
// the published numbers on a walk of 20 transitions a round, less that of PolicyAttention
// with the model and η = .8, as the paper compares them. Lead = Update + Information +
// Tuning, on every replicate of the bootstrap too.
//
// With all numbers tuned there is a two-way table of losses, update rule by information.
// Update is the mean of its two differences between rules, Information that of its two
// differences between informations. A method that cannot be told the model has no such
// table: then Update is UpdateWalk, and Information PolicyAttention's difference.
type Lead struct {
	Horizon             int
	Row                 Row // of the method on the walk
	Lead                stats.Estimate
	Update, Information stats.Estimate
	Tuning              stats.Estimate
	UpdateWalk          stats.Estimate // the method less PolicyAttention, both on the walk
	UpdateModel         stats.Estimate // both with the model
	TwoWay              bool           // whether there is an UpdateModel
	Published           bool           // whether the method has published numbers
}

// paperWalk is what the paper gives the methods that see samples.
var paperWalk = Condition{Information: Window, N: 20}

// Leads takes the leads over the methods on the walk that are not PMD themselves apart.
func (e *Evidence) Leads(states, horizon int) (all []Lead, err error) {
	for _, m := range Methods(Window) {
		if m.Improves || !m.can(paperWalk, states) {
			continue
		}
		l := Lead{Horizon: horizon}
		rows, err := e.compared(states, m)
		if err != nil {
			return nil, err
		}
		l.Row, l.Published, l.TwoWay = rows[1], rows[0].Untuned, len(rows) == 6
		var samples [][][]float64
		for _, r := range rows {
			x, err := r.at(horizon, Runs)
			if err != nil {
				return nil, err
			}
			samples = append(samples, x)
		}
		parts := map[*stats.Estimate][]float64{
			&l.Lead: {1, 0, 0, 0, -1, 0}, &l.Tuning: {1, -1, 0, 1, -1, 0}, &l.UpdateWalk: {0, 1, -1, 0, 0, 0},
			&l.Update: {0, 1, -1, 0, 0, 0}, &l.Information: {0, 0, 1, -1, 0, 0},
		}
		if l.TwoWay {
			parts[&l.UpdateModel] = []float64{0, 0, 0, -1, 0, 1}
			parts[&l.Update] = []float64{0, .5, -.5, -.5, 0, .5}
			parts[&l.Information] = []float64{0, .5, .5, -.5, 0, -.5}
		}
		for part, weights := range parts {
			if *part, err = stats.Standard.Contrast(weights[:len(rows)], samples...); err != nil {
				return nil, err
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// compared returns the rows that a lead over a method is made of: the method on the walk
// as published, and tuned; PolicyAttention there; with the model, tuned, and as published;
// and the method with the model where there is such a thing.
func (e *Evidence) compared(states int, m Method) (rows []Row, err error) {
	tuned, err := e.find(states, paperWalk, m.Name, false)
	if err != nil {
		return nil, err
	}
	published, err := e.find(states, paperWalk, m.Name, true)
	if err != nil {
		published = tuned // nothing is published
	}
	best, err := e.Best(states, paperWalk)
	if err != nil {
		return nil, err
	}
	rows = []Row{published, tuned, best}
	more := []struct {
		name    string
		untuned bool
	}{{"policyattention", false}, {"policyattention", true}}
	if m.WithModel != "" {
		more = append(more, struct {
			name    string
			untuned bool
		}{m.WithModel, false})
	}
	for _, x := range more {
		r, err := e.find(states, Condition{Information: Model}, x.name, x.untuned)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

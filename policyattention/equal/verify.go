package equal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
)

// replayed is how many problems of a row's first run verification runs again.
const replayed = 2

// A loss that is run again may differ from the stored one by this much, relative and
// absolute. Losses are stored to five digits; those of networks in float32 have gone
// through 40 rounds of rounding of 1e-6 of a row's separation (see package anymdp/trial).
const (
	rounding, absolute = 1e-4, 1e-9
	network            = 1e-2
)

// Verify checks the evidence in a folder from nothing but itself: that it has the rows of
// the plan, and a sample of their losses, which is the first problems of the first run of
// every row, with the transitions used in it. It returns what is wrong and the number
// of losses that were run again. Where there is no evidence, nothing is wrong.
func Verify(n *Networks, folder string) (wrong []string, losses int, err error) {
	e, err := Read(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return []string{err.Error()}, 0, nil
	}
	plan := Plan()
	if len(plan) != len(e.Rows) {
		return []string{fmt.Sprintf("equal: %d rows, want %d", len(e.Rows), len(plan))}, 0, nil
	}
	drawn := map[int]fixtures{}
	for i, row := range e.Rows {
		if row.Name() != plan[i].Name() {
			wrong = append(wrong, fmt.Sprintf("equal: row %d is %s, want %s", i, row.Name(), plan[i].Name()))
			continue
		}
		m, err := Find(row.Information, row.Method)
		if err != nil {
			return nil, 0, err
		}
		if m.Same != nil && m.Same(row.N) {
			continue
		}
		f, ok := drawn[row.States]
		if !ok {
			if f, err = draw(e.Roots[row.States].Evaluation, row.States, replayed); err != nil {
				return nil, 0, err
			}
			drawn[row.States] = f
		}
		found, err := m.replay(n, row, f)
		if err != nil {
			return nil, 0, err
		}
		wrong, losses = append(wrong, found...), losses+replayed*len(Horizons)
	}
	return wrong, losses, nil
}

// replay runs the first problems of a row's first run again.
func (m Method) replay(n *Networks, row Row, f fixtures) (wrong []string, err error) {
	if len(row.Losses) != m.runs(row.Condition) {
		return []string{fmt.Sprintf("equal: %s has %d runs, want %d", row.Name(), len(row.Losses), m.runs(row.Condition))}, nil
	}
	r, err := m.Run(row.of(n, 0), f.problems, f.scales)
	if err != nil {
		return nil, err
	}
	relative := rounding
	if m.Learned {
		relative = network
	}
	for i, losses := range r.Loss {
		for h, got := range losses {
			if stored := row.Losses[0][i][h]; !(math.Abs(got-stored) <= relative*stored+absolute) {
				wrong = append(wrong, fmt.Sprintf("equal: %s: loss of problem %d after %d rounds is %v, run again %v", row.Name(), i, Horizons[h], stored, got))
			}
		}
	}
	last := len(Horizons) - 1
	if c := row.Condition; c.Information != Model && row.Use[last].Transitions != r.Use[last].Transitions {
		wrong = append(wrong, fmt.Sprintf("equal: %s used %v transitions, run again %v", row.Name(), row.Use[last].Transitions, r.Use[last].Transitions))
	}
	return wrong, nil
}

package report

import (
	"fmt"

	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
)

// key names a number of the paper.
type key struct {
	block    experiment.Block
	quantity string
	s, t     int
}

func (k key) number() *results.Number {
	return results.Paper(results.Key{Block: k.block, Quantity: k.quantity, S: k.s, T: k.t})
}

// printed returns the number, zero where the paper has none.
func (k key) printed() (n Number) {
	if p := k.number(); p != nil {
		n = *p
	}
	return n
}

// Number is a number of the paper.
type Number = results.Number

// find returns the results of the plan's cells that match, and how many are planned.
func (s *source) find(match func(experiment.Cell) bool) ([]*experiment.Evaluation, int, error) {
	runs, err := s.Where(match)
	return runs.Found, runs.Planned, err
}

func (s *source) oracle(states int) ([]*experiment.Evaluation, error) {
	runs, err := s.Oracle(states)
	return runs.Found, err
}

// grid returns Liang–Lai's scores on a grid of step sizes, nil where they are missing.
func (s *source) grid(recipe string, states int) (*experiment.Evaluation, error) {
	runs, err := s.Grid(recipe, states)
	if err != nil || len(runs.Found) == 0 {
		return nil, err
	}
	return runs.Found[0], nil
}

func losses(runs []*experiment.Evaluation, horizon int) [][]float64 {
	return results.Runs{Found: runs}.Losses(horizon)
}

// against repeats the reference for each run; they share its problems.
func against(reference []*experiment.Evaluation, runs, horizon int) [][]float64 {
	sample := make([][]float64, runs)
	for j := range sample {
		sample[j] = reference[0].Losses(horizon)
	}
	return sample
}

// pair keeps the runs whose identity both lists have.
func pair(x, y []*experiment.Evaluation) (px, py []*experiment.Evaluation) {
	a, b := results.Pair(results.Runs{Found: x}, results.Runs{Found: y})
	return a.Found, b.Found
}

// measuredAudit is the claim that no row violates the inequality.
type audited struct{ results.Audit }

func (s *source) audit(scope func(experiment.Cell) bool) (audited, error) {
	a, err := s.Audit(scope)
	return audited{a}, err
}

func (a audited) measured() *measured {
	return &measured{
		text: fmt.Sprintf("%d of %d rows", a.Rows-a.Violations, a.Rows), ok: a.Violations == 0,
		used: a.Used, runs: len(a.Used), planned: a.Planned,
	}
}

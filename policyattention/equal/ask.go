package equal

import (
	"fmt"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Question is a comparison of one's own: some methods in one condition, which may have
// another number of transitions or another family of problems than the evidence.
type Question struct {
	States int
	Condition
	Family   mdp.Family
	Problems int // to evaluate on; half as many, others, are for choosing numbers
	Methods  []string
}

// Check returns an error that says what is wrong with the question, if anything is.
func (q Question) Check() error {
	if q.Problems < 2 || q.Information != Model && q.N < 1 {
		return fmt.Errorf("equal: a question with %d problems and %d transitions a round, want at least two and one", q.Problems, q.N)
	}
	if _, err := q.Family.Draw(0, q.States, Actions, 0); err != nil {
		return fmt.Errorf("equal: %w", err)
	}
	for _, name := range q.Methods {
		m, err := Find(q.Information, name)
		if err != nil {
			return err
		}
		if !m.can(q.Condition, q.States) {
			return fmt.Errorf("equal: %s cannot run with %s at S=%d", name, q.Condition, q.States)
		}
	}
	return nil
}

// Answer chooses the numbers of each method on problems of the family and evaluates it on
// others, in one run.
func (q Question) Answer(n *Networks) (rows []Row, err error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	roots, ok := Roots[q.States]
	if !ok {
		roots = Roots[Sizes[0]]
	}
	var sets [2]fixtures
	for i, root := range []uint64{roots.Calibration, roots.Evaluation} {
		f := &sets[i]
		if f.problems, err = q.Family.Draw(root, q.States, Actions, q.Problems/(2-i)); err != nil {
			return nil, err
		}
		if f.scales, err = control.NewScales(f.problems); err != nil {
			return nil, err
		}
	}
	for _, name := range q.Methods {
		m, err := Find(q.Information, name)
		if err != nil {
			return nil, err
		}
		row := Row{States: q.States, Condition: q.Condition, Method: name}
		tuned := m
		if m.As != "" {
			if tuned, err = Find(q.Information, m.As); err != nil {
				return nil, err
			}
		}
		values, t, err := tuned.Tune(n, q.Condition, q.States, sets[0].problems, sets[0].scales)
		if err != nil {
			return nil, err
		}
		row.Values, row.Tuning = values, &t
		r, err := m.Run(Case{Networks: n, Condition: q.Condition, States: q.States, Values: values, Root: roots.Samples}, sets[1].problems, sets[1].scales)
		if err != nil {
			return nil, err
		}
		row.Losses, row.Use, row.Seconds = [][][]float64{r.Loss}, r.Use, r.Seconds
		rows = append(rows, row)
	}
	return rows, nil
}

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/experiment"
	"icrl/policyattention/lockup"
	"icrl/policyattention/results"
	"icrl/policyattention/tables"
)

// anyExcerpt says for groups of problems how far the read-outs of the actor for any MDP are
// behind exact PMD, in the worst of a group's lines.
func anyExcerpt(s *source) (Table, error) {
	bars := trial.Bars
	t := Table{Columns: []string{"read-out", "problems", "number", "lines within all bars",
		fmt.Sprintf("median (bar %g)", bars.Median), fmt.Sprintf("99 %% (%g)", bars.P99), fmt.Sprintf("worst (%g)", bars.Worst), fmt.Sprintf("ratio of means (%g)", bars.Ratio),
		fmt.Sprintf("more than %v behind at T = %d", trial.Behind, slices.Max(trial.Horizons))}}
	e, err := s.any()
	if err != nil || e == nil {
		return t, err
	}
	type part struct {
		name string
		of   func(trial.Row) bool
	}
	parts := []part{
		{"all other", func(r trial.Row) bool { return !r.Lock && r.Fixture == 0 }},
		{"benchmark's", func(r trial.Row) bool { return r.Fixture != 0 }},
	}
	rows := map[string]trial.Row{}
	for _, r := range trial.Rows {
		rows[r.Name] = r
		if r.Lock {
			parts = append(parts, part{r.Name, func(x trial.Row) bool { return x.Name == r.Name }})
		}
	}
	for _, readout := range trial.Readouts {
		for _, g := range parts {
			some := &trial.Evidence{Summaries: slices.DeleteFunc(slices.Clone(e.Summaries), func(x trial.Summary) bool {
				return x.Readout != readout || !g.of(rows[x.Row])
			})}
			if len(some.Summaries) == 0 {
				continue
			}
			whole, ratio := 0, 0.0
			for _, x := range some.Summaries {
				if x.Within() == [4]bool{true, true, true, true} {
					whole++
				}
				ratio = max(ratio, x.Ratio())
			}
			_, of, largest, locked, problems := some.Verdict(readout)
			t.Rows = append(t.Rows, tables.Cells(readout, g.name, problems, fmt.Sprintf("%d of %d", whole, of),
				short(largest[0]), short(largest[1]), short(largest[2]), fmt.Sprintf("%.3f", ratio), locked))
		}
	}
	return t, nil
}

// short prints two digits.
func short(v float64) string { return fmt.Sprintf("%.2g", v) }

// BesideTable sets the actor for any MDP beside the actors of fixed shape.
func BesideTable(store *experiment.Store) (Table, error) { return besideExcerpt(newSource(store)) }

func besideExcerpt(s *source) (Table, error) {
	t := Table{Title: "The actor for any MDP beside actors of fixed shape"}
	rows, err := s.Beside()
	fill(&t, rows,
		column[results.BesideRow]{"S", func(r results.BesideRow) any { return r.S }},
		column[results.BesideRow]{"T", func(r results.BesideRow) any { return r.T }},
		column[results.BesideRow]{"fixed shape", func(r results.BesideRow) any { return r.Fixed }},
		column[results.BesideRow]{"read-out", func(r results.BesideRow) any { return string(r.Readout) }},
		column[results.BesideRow]{"any MDP", func(r results.BesideRow) any { return r.Loss }},
		column[results.BesideRow]{"difference of medians", func(r results.BesideRow) any {
			return tables.Estimate(r.Difference.Value, r.Difference.Lo, r.Difference.Hi)
		}},
		column[results.BesideRow]{"by problem: 99 %, worst", func(r results.BesideRow) any { return short(r.P99) + ", " + short(r.Worst) }},
	)
	return t, err
}

// waysExcerpt compares ways to keep an actor from locking up, by the mass that the best
// actions begin with.
func waysExcerpt(s *source) (Table, error) {
	study, err := lockup.Read(lockup.Path(filepath.Dir(s.Store.Root())))
	var t Table
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	columns := []column[lockup.Curve]{{"actor", func(c lockup.Curve) any { return c.Actor }}}
	for i, mass := range study.Masses {
		if i%2 == 0 {
			columns = append(columns, column[lockup.Curve]{fmt.Sprintf("%g", mass), func(c lockup.Curve) any {
				return short(c.Medians()[i]) + ", " + short(slices.Max(c.Loss[i]))
			}})
		}
	}
	// PMD-target is left to the figure.
	curves := slices.DeleteFunc(slices.Clone(study.Curves), func(c lockup.Curve) bool { return c.Actor == "PMD-target" })
	plain := 1 + slices.IndexFunc(curves, func(c lockup.Curve) bool { return c.Actor == "PolicyAttention" })
	fill(&t, slices.Insert(curves, plain, study.Compared...), columns...)
	return t, nil
}

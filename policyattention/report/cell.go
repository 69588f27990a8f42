package report

import (
	"fmt"
	"slices"

	"icrl/policyattention/results"
	"icrl/policyattention/tables"
)

// The entries of a table; see package tables.
type (
	Cell     = tables.Cell
	Interval = tables.Interval
	Range    = tables.Range
)

// text writes all entries, as [Cell.String] does.
func (t Table) text() [][]string { return tables.Texts(t.Rows, tables.Number) }

// PresetNote is the note of a table that names the preset of its results.
func PresetNote(preset string) string { return fmt.Sprintf("Preset %s.", preset) }

// extent is the least and the greatest of values, if there are any.
func extent(values []float64) Cell {
	if len(values) == 0 {
		return nil
	}
	return Cell{Range{Lo: slices.Min(values), Hi: slices.Max(values)}}
}

// quoted is a number of the paper, or a dash where it has none.
func quoted(n *results.Number) Cell {
	switch {
	case n == nil:
		return Cell{"–"}
	case n.Lo < n.Hi:
		return tables.Estimate(n.Value, n.Lo, n.Hi)
	}
	return Cell{n.Value}
}

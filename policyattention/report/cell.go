package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// Cell is an entry of a table: texts and values (numbers, intervals, estimates), written one
// after the other. Whoever shows a table chooses the digits of its numbers.
type Cell []any

// Interval is the 95 % interval of the entry before it; with ends NaN it is missing.
type Interval struct{ Lo, Hi float64 }

// Range is the least and the greatest of several numbers.
type Range Interval

// cellOf returns the entry of one value or several.
func cellOf(value any) Cell {
	switch v := value.(type) {
	case nil:
		return nil
	case Cell:
		return v
	}
	return Cell{value}
}

// Cells returns a row of entries of one value each; nil is an empty one.
func Cells(values ...any) (row []Cell) {
	for _, v := range values {
		row = append(row, cellOf(v))
	}
	return row
}

// Text writes the entry, its numbers as number does.
func (c Cell) Text(number func(float64) string) string {
	var b strings.Builder
	for _, part := range c {
		switch v := part.(type) {
		case float64:
			b.WriteString(number(v))
		case Interval:
			if !math.IsNaN(v.Lo) {
				b.WriteString(Cell{Range(v)}.Text(number))
			}
		case Range:
			fmt.Fprintf(&b, "[%s, %s]", number(v.Lo), number(v.Hi))
		case stats.Estimate:
			b.WriteString(estimate(v.Value, v.Lo, v.Hi).Text(number))
		case Cell:
			b.WriteString(v.Text(number))
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// String writes the entry with numbers of four significant digits.
func (c Cell) String() string { return c.Text(number) }

// MarshalText implements encoding.TextMarshaler.
func (c Cell) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; the entry is one text.
func (c *Cell) UnmarshalText(text []byte) error {
	*c = Cell{string(text)}
	return nil
}

// Texts writes rows of entries, their numbers as number does.
func Texts(rows [][]Cell, number func(float64) string) (texts [][]string) {
	for _, cells := range rows {
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = c.Text(number)
		}
		texts = append(texts, row)
	}
	return texts
}

// text writes all entries, as [Cell.String] does.
func (t Table) text() [][]string { return Texts(t.Rows, number) }

// PresetNote is the note of a table that names the preset of its results.
func PresetNote(preset string) string { return fmt.Sprintf("Preset %s.", preset) }

// number prints four significant digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// estimate is a value with its interval.
func estimate(value, lo, hi float64) Cell { return Cell{value, " ", Interval{lo, hi}} }

// extent is the least and the greatest of values, if there are any.
func extent(values []float64) Cell {
	if len(values) == 0 {
		return nil
	}
	return Cell{Range{slices.Min(values), slices.Max(values)}}
}

// quoted is a number of the paper, or a dash where it has none.
func quoted(n *results.Number) Cell {
	switch {
	case n == nil:
		return Cell{"–"}
	case n.Lo < n.Hi:
		return estimate(n.Value, n.Lo, n.Hi)
	}
	return Cell{n.Value}
}

// Package tables holds the entries of tables: values whose digits are chosen by whoever
// shows them. It depends on no evidence, so that a notebook's cell that shows a table of its
// own links little.
package tables

import (
	"fmt"
	"math"
	"strings"

	"icrl/policyattention/stats"
)

// Cell is an entry of a table: texts and values (numbers, intervals, estimates), written one
// after the other. Whoever shows a table chooses the digits of its numbers.
type Cell []any

// Interval is the 95 % interval of the entry before it; with ends NaN it is missing.
type Interval struct{ Lo, Hi float64 }

// Range is the least and the greatest of several numbers.
type Range Interval

// CellOf returns the entry of one value or several; of nil, an empty one.
func CellOf(value any) Cell {
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
		row = append(row, CellOf(v))
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
			b.WriteString(Estimate(v.Value, v.Lo, v.Hi).Text(number))
		case Cell:
			b.WriteString(v.Text(number))
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// String writes the entry with numbers of four significant digits.
func (c Cell) String() string { return c.Text(Number) }

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

// Number prints four significant digits; NaN is a dash.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Estimate is a value with its interval.
func Estimate(value, lo, hi float64) Cell { return Cell{value, " ", Interval{lo, hi}} }

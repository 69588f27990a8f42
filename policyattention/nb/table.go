package nb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/tables"
)

// Sheet is a table that a cell fills row by row.
//
//	t := nb.NewTable("Two losses", "method", "loss at T = 20")
//	t.Add("exact PMD", 0.012345)
//	t.Show()
type Sheet struct {
	title   string
	columns []string
	rows    [][]tables.Cell
	notes   []string
	fold    bool
	laid    [][]int                // the columns of each part, where they are given
	number  func(v float64) string // writes the numbers
}

// NewTable returns an empty table.
func NewTable(title string, columns ...string) *Sheet {
	return &Sheet{title: title, columns: columns, number: number}
}

// Add adds a row, one value a column, written as [Format] does.
func (t *Sheet) Add(values ...any) {
	if len(values) != len(t.columns) {
		check(fmt.Errorf("nb: table %q has %d columns, and a row got %d values", t.title, len(t.columns), len(values)))
	}
	row := make([]tables.Cell, len(values))
	for i, v := range values {
		row[i] = entry(v)
	}
	t.rows = append(t.rows, row)
}

// Note adds a sentence below the table.
func (t *Sheet) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Fold shows the table closed, as a line to click on: for evidence that few readers want
// in full.
func (t *Sheet) Fold() *Sheet {
	t.fold = true
	return t
}

// Only keeps these columns, in this order: for tables that are wider than a page.
func (t *Sheet) Only(columns ...string) *Sheet {
	keep := make([]int, len(columns))
	for i, c := range columns {
		if keep[i] = slices.Index(t.columns, c); keep[i] < 0 {
			check(fmt.Errorf("nb: table %q has no column %q, want one of %q", t.title, c, t.columns))
		}
	}
	rows := make([][]tables.Cell, len(t.rows))
	for i, row := range t.rows {
		for _, k := range keep {
			rows[i] = append(rows[i], row[k])
		}
	}
	t.columns, t.rows, t.laid = columns, rows, nil
	return t
}

// Show shows the table.
func (t *Sheet) Show() {
	bundle{protocol.MIMETextHTML: t.HTML(), protocol.MIMETextPlain: t.text()}.show("")
}

// Compact returns a table of the report in less room: numbers have three significant digits,
// intervals stand beside their values, and a number of runs or problems that all rows share is
// in the title.
func Compact(title string, columns []string, rows [][]tables.Cell, notes []string) *Sheet {
	t := &Sheet{title: title, columns: columns, notes: slices.Clone(notes), number: shortened}
	for _, row := range rows {
		t.rows = append(t.rows, slices.Clone(row))
	}
	t.join()
	t.share()
	return t
}

// Keep keeps some rows, which stay as wide as all are; the first row has number 0.
func (t *Sheet) Keep(keep func(row int) bool) *Sheet {
	t.laid = t.parts()
	all := t.rows
	t.rows = nil
	for i, row := range all {
		if keep(i) {
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// shortened rounds what the report shows, so that no number is another one here.
func shortened(v float64) string {
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return number(rounded([]float64{v})[0])
}

// Format writes a value as tables show it: numbers with three significant digits,
// estimates as "value [from, to]", lists in brackets, text as it is.
func Format(value any) string { return entry(value).Text(number) }

// entry is the entry of a table that holds a value.
func entry(value any) tables.Cell {
	switch v := value.(type) {
	case float32:
		value = float64(v)
	case []float64:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = fmt.Sprintf("%.3f", x)
		}
		value = "[" + strings.Join(parts, " ") + "]"
	case bool:
		value = map[bool]string{true: "yes", false: "no"}[v]
	}
	return tables.Cell{value}
}

// number writes x with three significant digits, and an exponent where there would be
// more than four zeros.
func number(x float64) string {
	if size := math.Abs(x); size != 0 && (size < 1e-4 || size >= 1e6) {
		digits := strconv.FormatFloat(x, 'e', 2, 64)
		if exact := strconv.FormatFloat(x, 'e', -1, 64); len(exact) < len(digits) {
			return exact // a round number
		}
		return digits
	}
	if exact := strconv.FormatFloat(x, 'f', -1, 64); len(strings.Trim(exact, "-0.")) <= 3 && len(exact) < 8 {
		return exact // a round number
	}
	digits := 2
	if x != 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	}
	if x == math.Trunc(x) {
		digits = 0
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

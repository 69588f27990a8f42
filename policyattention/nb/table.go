package nb

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/report"
)

// Sheet is a table that a cell fills row by row.
//
//	t := nb.NewTable("Two losses", "method", "loss at T = 20")
//	t.Add("exact PMD", 0.012345)
//	t.Show()
type Sheet struct {
	report.Table
	fold    bool
	missing bool // in the rows of a small preset, which has been said
}

// NewTable returns an empty table. Its numbers have three significant digits.
func NewTable(title string, columns ...string) *Sheet {
	return &Sheet{Table: report.Table{Title: title, Columns: columns, Digits: number}}
}

// Add adds a row, one value a column, written as [Format] does.
func (t *Sheet) Add(values ...any) {
	if len(values) != len(t.Columns) {
		Try(fmt.Errorf("nb: table %q has %d columns, and a row got %d values", t.Title, len(t.Columns), len(values)))
	}
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = Format(v)
	}
	t.Rows = append(t.Rows, row)
}

// Note adds a sentence below the table.
func (t *Sheet) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Fold shows the table closed, as a line to click on.
func (t *Sheet) Fold() *Sheet {
	t.fold = true
	return t
}

// Only keeps these columns, in this order.
func (t *Sheet) Only(columns ...string) *Sheet {
	if t.missing {
		return t
	}
	rows := make([][]any, len(t.Rows))
	for _, c := range columns {
		k := slices.Index(t.Columns, c)
		if k < 0 {
			Try(fmt.Errorf("nb: table %q has no column %q, want one of %q", t.Title, c, t.Columns))
		}
		for i, row := range t.Rows {
			rows[i] = append(rows[i], row[k])
		}
	}
	t.Columns, t.Rows = columns, rows
	return t
}

// Show shows a table of package results, be it in the making, and ends the cell where it could not be made.
func Show(table report.Shower, errs ...error) { Of(table, errs...).Show() }

// Of returns a table, be it in the making, as a sheet.
func Of(table report.Shower, errs ...error) *Sheet {
	t, err := table.Shown()
	if lacks(append(errs, err)...) {
		return &Sheet{missing: true}
	}
	return &Sheet{Table: Must(t, append(errs, err)...)}
}

// Show shows the table.
func (t *Sheet) Show() {
	if !t.missing {
		HTML(t.page(), t.Plain())
	}
}

// page is the table as HTML.
func (t *Sheet) page() string {
	var b strings.Builder
	Try(t.HTML(&b))
	page := `<div style="overflow-x:auto">` + b.String() + "</div>"
	if t.fold {
		title := html.EscapeString(t.Title)
		return fmt.Sprintf("<details><summary>%s (%d rows)</summary>%s</details>", title, len(t.Rows), page)
	}
	return page
}

// Format writes a value as tables show it: numbers with three significant digits, lists in brackets, text as it is.
func Format(value any) string {
	switch v := value.(type) {
	case float32:
		return number(float64(v))
	case []float64:
		return fmt.Sprintf("%.3f", v)
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	}
	return report.Table{Digits: number}.Entry(value)
}

// number writes x with three significant digits, and an exponent where there would be more than four zeros.
func number(x float64) string {
	switch size := math.Abs(x); {
	case x == math.Trunc(x) && size < 1e6:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size < 1e-4 || size >= 1e6:
		return strconv.FormatFloat(x, 'e', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(x))))), 64)
}

package nb

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// Sheet is a table that a cell fills row by row.
//
//	t := nb.NewTable("Two losses", "method", "loss at T = 20")
//	t.Add("exact PMD", 0.012345)
//	t.Show()
type Sheet struct {
	title   string
	columns []string
	rows    [][]string
	notes   []string
	fold    bool
}

// NewTable returns an empty table.
func NewTable(title string, columns ...string) *Sheet { return &Sheet{title: title, columns: columns} }

// Add adds a row, one value a column, written as [Format] does.
func (t *Sheet) Add(values ...any) {
	if len(values) != len(t.columns) {
		check(fmt.Errorf("nb: table %q has %d columns, and a row got %d values", t.title, len(t.columns), len(values)))
	}
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = Format(v)
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
	rows := make([][]string, len(t.rows))
	for i, row := range t.rows {
		for _, k := range keep {
			rows[i] = append(rows[i], row[k])
		}
	}
	t.columns, t.rows = columns, rows
	return t
}

// Show shows the table.
func (t *Sheet) Show() {
	bundle{protocol.MIMETextHTML: t.html(), protocol.MIMETextPlain: t.text()}.show("")
}

// Table shows a table of the report.
func Table(r report.Table) { Report(r).Show() }

// Report returns a table of the report as a sheet.
func Report(r report.Table) *Sheet {
	return &Sheet{title: r.Title, columns: r.Columns, rows: r.Rows, notes: r.Notes}
}

// Format writes a value as tables show it: numbers with three significant digits,
// estimates as "value [from, to]", lists in brackets, text as it is.
func Format(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return number(v)
	case float32:
		return number(float64(v))
	case []float64:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = fmt.Sprintf("%.3f", x)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case stats.Estimate:
		return fmt.Sprintf("%s [%s, %s]", number(v.Value), number(v.Lo), number(v.Hi))
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return fmt.Sprint(value)
}

// number writes x with three significant digits, and an exponent where there would be
// more than four zeros.
func number(x float64) string {
	if size := math.Abs(x); size != 0 && (size < 1e-4 || size >= 1e6) {
		return strconv.FormatFloat(x, 'e', 2, 64)
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

// short is the length up to which an entry stays on one line.
const short = 32

func (t *Sheet) html() string {
	var b strings.Builder
	if t.fold {
		fmt.Fprintf(&b, "<details><summary>%s (%d rows)</summary>\n", html.EscapeString(t.title), len(t.rows))
	}
	fmt.Fprintf(&b, "<div style=\"overflow-x:auto\"><table>\n<caption style=\"text-align:left;font-weight:bold\">%s</caption>\n<thead><tr>", html.EscapeString(t.title))
	for _, c := range t.columns {
		fmt.Fprintf(&b, "<th scope=\"col\" style=\"text-align:left\">%s</th>", html.EscapeString(c))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.rows {
		b.WriteString("<tr>")
		for _, c := range row {
			style := "text-align:left"
			if utf8.RuneCountInString(c) <= short {
				style += ";white-space:nowrap"
			}
			fmt.Fprintf(&b, "<td style=\"%s\">%s</td>", style, code(html.EscapeString(c)))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table></div>\n")
	for _, note := range t.notes {
		fmt.Fprintf(&b, "<p>%s</p>\n", code(html.EscapeString(note)))
	}
	if t.fold {
		b.WriteString("</details>\n")
	}
	return b.String()
}

// text writes the table for terminals: columns aligned, two spaces apart.
func (t *Sheet) text() string {
	width := make([]int, len(t.columns))
	all := append([][]string{t.columns}, t.rows...)
	for _, row := range all {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	b.WriteString(t.title + "\n")
	for n, row := range all {
		line := ""
		for i, c := range row {
			line += c + strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if n == 0 {
			rule := ""
			for _, w := range width {
				rule += strings.Repeat("─", w) + "  "
			}
			b.WriteString(strings.TrimRight(rule, " ") + "\n")
		}
	}
	for _, note := range t.notes {
		b.WriteString(note + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

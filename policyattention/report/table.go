// Package report writes tables as text, Markdown, HTML, CSV and JSON, and draws figures as SVG and PNG. It knows no
// evaluation: package results makes what it writes. To change how numbers look, change Number.
package report

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Table is a table of values.
type Table struct {
	Name    string   `json:"name"` // by which commands and documents ask for it
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	// Rows hold text, whole numbers, float64, Interval, a Floater, a Texter, or nil where there is nothing.
	Rows   [][]any              `json:"rows"`
	Notes  []string             `json:"notes,omitempty"`
	Digits func(float64) string `json:"-"` // writes the numbers; nil stands for Number
}

// Interval is a range of numbers, such as a confidence interval.
type Interval struct{ Lo, Hi float64 }

// Texter is an entry of several numbers, such as an estimate with its interval.
type Texter interface {
	Text(number func(float64) string) string
}

// Floater is an entry that is shown as a number.
type Floater interface{ Float() float64 }

// Shown returns the table, and what went wrong while it was made.
func (t Table) Shown() (Table, error) { return t, nil }

// Shower is a table in the making.
type Shower interface{ Shown() (Table, error) }

// Add adds a row, one entry a column.
func (t *Table) Add(entries ...any) { t.Rows = append(t.Rows, entries) }

// Number writes four significant digits, whole numbers as they are, and a dash for NaN.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Decimals returns the format of the paper's Table 3: n digits after the point, and none before it below one.
func Decimals(n int) func(float64) string {
	return func(v float64) string {
		text := fmt.Sprintf("%.*f", n, v)
		if digits, ok := strings.CutPrefix(strings.TrimPrefix(text, "-"), "0."); ok {
			return strings.Repeat("-", strings.Count(text[:1], "-")) + "." + digits
		}
		return text
	}
}

// Entry writes an entry.
func (t Table) Entry(entry any) string {
	number := t.Digits
	if number == nil {
		number = Number
	}
	switch v := entry.(type) {
	case nil:
		return ""
	case float64:
		return number(v)
	case Interval:
		return fmt.Sprintf("[%s, %s]", number(v.Lo), number(v.Hi))
	case Floater:
		return number(v.Float())
	case Texter:
		return v.Text(number)
	}
	return fmt.Sprint(entry)
}

// Text returns the rows as they are written.
func (t Table) Text() [][]string { return each(t.Rows, t.Entry) }

// each makes something of each entry.
func each[T any](rows [][]any, of func(entry any) T) [][]T {
	made := make([][]T, len(rows))
	for i, row := range rows {
		for _, entry := range row {
			made[i] = append(made[i], of(entry))
		}
	}
	return made
}

// lines returns the columns and rows with entries of a column equally wide, and what is given left, right and between.
func lines(columns []string, rows [][]string, left, between, right string, rule func(width int) string) (
	lines []string) {
	rows = append([][]string{columns}, rows...)
	width := make([]int, len(columns))
	for _, row := range rows {
		for i, entry := range row {
			width[i] = max(width[i], utf8.RuneCountInString(entry))
		}
	}
	for n, row := range rows {
		var entries, rules []string
		for i, entry := range row {
			entries = append(entries, entry+strings.Repeat(" ", width[i]-utf8.RuneCountInString(entry)))
			rules = append(rules, rule(width[i]))
		}
		lines = append(lines, strings.TrimRight(left+strings.Join(entries, between)+right, " "))
		if n == 0 {
			lines = append(lines, left+strings.Join(rules, between)+right)
		}
	}
	return lines
}

// Plain writes the table for terminals.
func (t Table) Plain() string {
	lines := lines(t.Columns, t.Text(), "", "  ", "", func(n int) string { return strings.Repeat("─", n) })
	if t.Title != "" {
		lines = append([]string{t.Title}, lines...)
	}
	return strings.Join(append(lines, t.Notes...), "\n")
}

// body is the table as GitHub Markdown and the notes, what stands between the markers of a document.
func (t Table) body() string {
	rows := t.Text()
	for _, row := range rows {
		for k := range row {
			row[k] = strings.NewReplacer("|", `\|`, "\n", "<br>").Replace(row[k])
		}
	}
	lines := lines(t.Columns, rows, "| ", " | ", " |", func(n int) string { return strings.Repeat("-", max(3, n)) })
	text := strings.Join(lines, "\n") + "\n"
	for _, note := range t.Notes {
		text += "\n" + note + "\n"
	}
	return text
}

//go:embed table.html
var tableHTML string

var page = template.Must(template.New("table").Parse(strings.TrimSuffix(tableHTML, "\n")))

// HTML writes the table as an HTML fragment.
func (t Table) HTML(w io.Writer) error { return page.Execute(w, t) }

// plain is an entry in JSON, with all digits; numbers that JSON lacks are null.
func plain(entry any) any {
	switch v := entry.(type) {
	case float64:
		if !finite(v) {
			return nil
		}
	case Interval:
		return []any{plain(v.Lo), plain(v.Hi)}
	case Floater:
		return plain(v.Float())
	case fmt.Stringer:
		return v.String()
	}
	return entry
}

// Write writes the table in a format: md (GitHub Markdown below its title), html, csv or json.
func (t Table) Write(w io.Writer, format string) error {
	switch format {
	case "md":
		_, err := fmt.Fprintf(w, "### %s\n\n%s\n", t.Title, t.body())
		return err
	case "html":
		return t.HTML(w)
	case "csv":
		return csv.NewWriter(w).WriteAll(append([][]string{t.Columns}, t.Text()...))
	case "json":
		t.Rows = each(t.Rows, plain)
		return json.NewEncoder(w).Encode(t)
	}
	return fmt.Errorf("report: no format %q, want md, html, csv or json", format)
}

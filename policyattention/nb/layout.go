package nb

import (
	"html"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// join puts each column of intervals into the column before it, whose values they belong to.
func (t *Sheet) join() {
	for i := 1; i < len(t.columns); i++ {
		intervals := false
		for _, row := range t.rows {
			_, is := only(row[i]).(tables.Interval)
			if intervals = is || intervals; !is && len(row[i]) > 0 {
				intervals = false
				break
			}
		}
		if !intervals {
			continue
		}
		t.columns = slices.Concat(t.columns[:i-1], []string{t.columns[i-1] + " [95% interval]"}, t.columns[i+1:])
		for n, row := range t.rows {
			joined := row[i-1]
			if row[i].String() != "" {
				joined = tables.Cell{row[i-1], " ", row[i]}
			}
			t.rows[n] = slices.Concat(row[:i-1], []tables.Cell{joined}, row[i+1:])
		}
		i--
	}
}

// only returns the value of an entry that has one.
func only(c tables.Cell) any {
	if len(c) != 1 {
		return nil
	}
	return c[0]
}

// measured reports whether an entry has a number that was measured, or an interval.
func measured(c tables.Cell) bool {
	return slices.ContainsFunc(c, func(part any) bool {
		switch v := part.(type) {
		case float64, tables.Interval, tables.Range, stats.Estimate:
			return true
		case tables.Cell:
			return measured(v)
		}
		return false
	})
}

// Entries returns the rows as they are shown.
func (t *Sheet) Entries() [][]string { return tables.Texts(t.rows, t.number) }

// share puts numbers of runs and of problems that are the same for all rows into the title.
func (t *Sheet) share() {
	for _, name := range []string{"runs", "MDPs"} {
		var values []string
		for i, c := range t.columns {
			for _, row := range t.rows {
				if text := row[i].String(); c == name && !slices.Contains(values, text) {
					values = append(values, text)
				}
			}
		}
		if len(values) != 1 || len(t.rows) < 2 {
			continue
		}
		t.title += ", " + values[0] + " " + name
		for i := len(t.columns) - 1; i >= 0; i-- {
			if t.columns[i] != name {
				continue
			}
			t.columns = slices.Delete(slices.Clone(t.columns), i, i+1)
			for n, row := range t.rows {
				t.rows[n] = slices.Delete(row, i, i+1)
			}
		}
	}
}

// Sizes of a table in JupyterLab, in pixels: the page beside the list of files in a window of
// 1,280, and what stands around an entry. An entry of up to short letters stays on one line,
// and one of more than long letters gets a column that is wide enough to read.
const (
	page    = 828
	narrow  = 740 // wider ones get smaller letters, so that they fit a saved web page too
	around  = 13
	short   = 32
	long    = 160
	several = 130 // of a column with entries of several lines
	wide    = 230 // of one with long entries
)

// pixels is about how wide a text is in the widest of the usual fonts, DejaVu Sans.
func pixels(text string) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case '0' <= r && r <= '9':
			width += 8.4
		case strings.ContainsRune(".,:;'|()[] ijlIt", r):
			width += 4.5
		default:
			width += 7.8
		}
	}
	return width
}

// length is the number of letters in the longest line of an entry.
func length(entry string) (longest int) {
	for line := range strings.SplitSeq(entry, "\n") {
		longest = max(longest, utf8.RuneCountInString(line))
	}
	return longest
}

// width is the least width of a column.
func (t *Sheet) width(column int, rows [][]string) float64 {
	longest := 0.0
	for _, word := range strings.Fields(t.columns[column]) {
		longest = max(longest, 1.1*pixels(word)) // in bold letters
	}
	for _, row := range rows {
		switch {
		case utf8.RuneCountInString(row[column]) > long:
			longest = max(longest, wide)
			continue
		case length(row[column]) > short:
			longest = max(longest, several)
			continue
		}
		for line := range strings.Lines(row[column]) {
			longest = max(longest, pixels(line))
		}
	}
	return longest + around
}

// parts returns the columns of each part of a table. One that is wider than a page goes on
// below, where its first columns, which name the rows, stand again.
func (t *Sheet) parts() (parts [][]int) {
	if t.laid != nil {
		return t.laid
	}
	var names []int
	rows := t.Entries()
	for i := range t.columns {
		if i > 0 && (slices.ContainsFunc(t.rows, func(row []tables.Cell) bool { return measured(row[i]) }) ||
			slices.ContainsFunc(rows, func(row []string) bool { return length(row[i]) > short })) {
			break
		}
		names = append(names, i)
	}
	if len(names) == len(t.columns) {
		names = names[:1]
	}
	part, used := slices.Clone(names), 0.0
	for _, i := range names {
		used += t.width(i, rows)
	}
	room := page - used
	for i := len(names); i < len(t.columns); i++ {
		if w := t.width(i, rows); w > room && len(part) > len(names) {
			parts = append(parts, part)
			part, room = slices.Clone(names), page-used
		}
		part, room = append(part, i), room-t.width(i, rows)
	}
	return append(parts, part)
}

// sheet is the HTML of a table.
var sheet = template.Must(template.New("sheet").Funcs(template.FuncMap{
	"text": func(s string) template.HTML {
		return template.HTML(strings.ReplaceAll(code(html.EscapeString(s)), "\n", "<br>"))
	},
	"brief": func(entry string) bool { return length(entry) <= short },
	"long":  func(entry string) bool { return utf8.RuneCountInString(entry) > long },
	"wide":  func() int { return wide },
}).Parse(`{{if .Fold}}<details><summary>{{.Title}} ({{.Rows}} rows)</summary>
{{end}}<figure style="margin:0;overflow-x:auto">{{if not .Fold}}<figcaption style="font-weight:bold">{{.Title}}</figcaption>{{end}}
{{- range .Parts}}
<table{{if .Small}} style="font-size:12px"{{end}}><thead><tr>{{range .Columns}}<th scope="col" style="text-align:left">{{.}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range .}}<td style="text-align:left{{if brief .}};white-space:nowrap{{else if long .}};min-width:{{wide}}px{{end}}">{{text .}}</td>{{end}}</tr>
{{end}}</tbody></table>
{{end}}</figure>
{{range .Notes}}<p>{{text .}}</p>
{{end}}{{if .Fold}}</details>
{{end}}`))

// HTML returns the table as HTML.
func (t *Sheet) HTML() string {
	type part struct {
		Columns []string
		Rows    [][]string
		Small   bool
	}
	var parts []part
	rows := t.Entries()
	for _, columns := range t.parts() {
		pick := func(row []string) (entries []string) {
			for _, i := range columns {
				entries = append(entries, row[i])
			}
			return entries
		}
		p, width := part{Columns: pick(t.columns)}, 0.0
		for _, i := range columns {
			width += t.width(i, rows)
		}
		p.Small = width > narrow
		for _, row := range rows {
			p.Rows = append(p.Rows, pick(row))
		}
		parts = append(parts, p)
	}
	var b strings.Builder
	check(sheet.Execute(&b, map[string]any{"Fold": t.fold, "Title": t.title, "Rows": len(t.rows), "Parts": parts, "Notes": t.notes}))
	return b.String()
}

// text writes the table for terminals: columns aligned, two spaces apart.
func (t *Sheet) text() string {
	lines := []string{t.title}
	all := append([][]string{t.columns}, t.Entries()...)
	for p, columns := range t.parts() {
		if p > 0 {
			lines = append(lines, "")
		}
		for n, row := range all {
			line, rule := "", ""
			for _, i := range columns {
				width := 0
				for _, r := range all {
					width = max(width, utf8.RuneCountInString(r[i]))
				}
				entry := strings.ReplaceAll(row[i], "\n", " ")
				line += entry + strings.Repeat(" ", width-utf8.RuneCountInString(entry)+2)
				rule += strings.Repeat("─", width) + "  "
			}
			lines = append(lines, strings.TrimRight(line, " "))
			if n == 0 {
				lines = append(lines, strings.TrimRight(rule, " "))
			}
		}
	}
	return strings.Join(append(lines, t.notes...), "\n")
}

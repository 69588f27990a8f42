package nb

import (
	"html"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	// numeric is an entry that has nothing but numbers, intervals and shares.
	numeric = regexp.MustCompile(`^[-+0-9.e,%()\[\] ]+$`)
	decimal = regexp.MustCompile(`\d+\.\d+(e[-+]\d+)?`)
)

// round writes decimal numbers with three significant digits.
func (t *Sheet) round() {
	for _, row := range t.rows {
		for i, entry := range row {
			if numeric.MatchString(entry) {
				row[i] = decimal.ReplaceAllStringFunc(entry, func(x string) string {
					mantissa, _, _ := strings.Cut(x, "e")
					v, err := strconv.ParseFloat(x, 64)
					if digits := strings.ReplaceAll(mantissa, ".", ""); err != nil || len(strings.TrimLeft(digits, "0")) <= 3 {
						return x
					}
					return number(v)
				})
			}
		}
	}
}

// join puts each column of intervals into the column before it, whose values they belong to.
func (t *Sheet) join() {
	for i := 1; i < len(t.columns); i++ {
		if !strings.HasPrefix(t.columns[i], "95% interval") {
			continue
		}
		t.columns = slices.Concat(t.columns[:i-1], []string{t.columns[i-1] + " [95% interval]"}, t.columns[i+1:])
		for n, row := range t.rows {
			t.rows[n] = slices.Concat(row[:i-1], []string{strings.TrimRight(row[i-1]+" "+row[i], " ")}, row[i+1:])
		}
		i--
	}
}

var presetNote = regexp.MustCompile(`^Preset (\w+)\.$`)

// share puts into the title what is the same for all rows: the preset, and the numbers of runs
// and of problems.
func (t *Sheet) share() {
	t.notes = slices.DeleteFunc(t.notes, func(note string) bool {
		name := presetNote.FindStringSubmatch(note)
		if name != nil {
			t.title += ", preset " + name[1]
		}
		return name != nil
	})
	for _, name := range []string{"runs", "MDPs"} {
		var values []string
		for i, c := range t.columns {
			for _, row := range t.rows {
				if c == name && !slices.Contains(values, row[i]) {
					values = append(values, row[i])
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
func (t *Sheet) width(column int) float64 {
	longest := 0.0
	for _, word := range strings.Fields(t.columns[column]) {
		longest = max(longest, 1.1*pixels(word)) // in bold letters
	}
	for _, row := range t.rows {
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
	for i := range t.columns {
		if i > 0 && slices.ContainsFunc(t.rows, func(row []string) bool {
			return decimal.MatchString(row[i]) || length(row[i]) > short
		}) {
			break
		}
		names = append(names, i)
	}
	if len(names) == len(t.columns) {
		names = names[:1]
	}
	part, used := slices.Clone(names), 0.0
	for _, i := range names {
		used += t.width(i)
	}
	room := page - used
	for i := len(names); i < len(t.columns); i++ {
		if w := t.width(i); w > room && len(part) > len(names) {
			parts = append(parts, part)
			part, room = slices.Clone(names), page-used
		}
		part, room = append(part, i), room-t.width(i)
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
<table><thead><tr>{{range .Columns}}<th scope="col" style="text-align:left">{{.}}</th>{{end}}</tr></thead>
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
	}
	var parts []part
	for _, columns := range t.parts() {
		pick := func(row []string) (entries []string) {
			for _, i := range columns {
				entries = append(entries, row[i])
			}
			return entries
		}
		p := part{Columns: pick(t.columns)}
		for _, row := range t.rows {
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
	all := append([][]string{t.columns}, t.rows...)
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

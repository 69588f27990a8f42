package nb

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/report"
)

// A bundle is one output in several formats, by MIME type. The reader's program takes
// the richest one that it can show: JupyterLab HTML, a PDF the PNG, a terminal the text.
// Figures have neither HTML nor SVG: GitHub would prefer them to the PNG and strip them.
type bundle map[protocol.MIMEType]any

// written is HTML, and text where it cannot be shown.
func written(source, text string) bundle {
	return bundle{protocol.MIMETextHTML: source, protocol.MIMETextPlain: text}
}

// show shows a bundle and waits until the kernel has it: what is under way when a cell's program ends is lost. With an
// id, it takes the place of what was shown under that id before.
func (b bundle) show(id string) { b.described("", id) }

// described shows a bundle whose PNG has an alternative text.
func (b bundle) described(alt, id string) {
	if !gonbui.IsNotebook {
		return
	}
	data := &protocol.DisplayData{Data: b, DisplayID: id}
	if alt != "" { // where nbconvert looks for it; gonb sends maps of strings
		data.Metadata = map[string]any{"image/png": map[string]string{"alt": alt}}
	}
	gonbui.SendData(data)
	gonbui.Sync()
}

// showFigure shows a figure as a PNG, and a text for those who cannot see it as a paragraph that takes no room, since
// JupyterLab does not give images the text that belongs to them.
func showFigure(f *report.Figure, id string) {
	picture := Must(small(Must(f.PNG())))
	bundle{protocol.MIMEImagePNG: picture, protocol.MIMETextPlain: "[figure]"}.described(f.Alt(), id)
	if id != "" {
		id += "-text"
	}
	written(`<p style="position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)">Figure: `+
		html.EscapeString(f.Alt())+"</p>", f.Alt()).show(id)
}

// small returns a PNG with at most 256 colours, those of its pixels that occur most
// often; the others get the nearest of them. Line drawings lose nothing that is seen and
// three quarters of their size, which matters in notebooks that are kept in Git.
func small(picture []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, fmt.Errorf("nb: %w", err)
	}
	bounds := decoded.Bounds()
	count := map[color.RGBA]int{}
	pixels := image.NewRGBA(bounds)
	draw.Draw(pixels, bounds, decoded, bounds.Min, draw.Src)
	for p := range slices.Chunk(pixels.Pix, 4) {
		count[color.RGBA{p[0], p[1], p[2], p[3]}]++
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], bytes.Compare([]byte{a.R, a.G, a.B, a.A}, []byte{b.R, b.G, b.B, b.A}))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	reduced := image.NewPaletted(bounds, palette)
	draw.Draw(reduced, bounds, pixels, bounds.Min, draw.Src)
	var b bytes.Buffer
	err = png.Encode(&b, reduced) // the best compression saves a twelfth, and takes twenty times as long
	return b.Bytes(), err
}

// Say shows a sentence.
func Say(format string, args ...any) { sentence(fmt.Sprintf(format, args...)).show("") }

// sentence is a text of one line or several.
func sentence(text string) bundle {
	return written("<p>"+strings.ReplaceAll(code(html.EscapeString(text)), "\n", "<br>")+"</p>", text)
}

// HTML shows HTML. Lines of text stand in for it where HTML cannot be shown.
func HTML(source string, text ...string) {
	written(source, strings.Join(text, "\n")).show("")
}

// code sets what stands between backticks in a typewriter's letters.
func code(escaped string) string {
	parts := strings.Split(escaped, "`")
	if len(parts)%2 == 0 { // one is left over
		return escaped
	}
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return strings.Join(parts, "")
}

// Plot is a panel that a cell draws line by line; names stand where the lines end.
type Plot struct {
	panel report.Panel
	notes []string
}

// NewPlot returns an empty plot with the names of its axes.
func NewPlot(title, x, y string) *Plot { return &Plot{panel: report.Panel{Title: title, X: x, Y: y}} }

// LogX makes the horizontal axis logarithmic. Places that are not positive are left out.
func (p *Plot) LogX() *Plot { p.panel.LogX = true; return p }

// LogY makes the vertical axis logarithmic. Values that are not positive are left out.
func (p *Plot) LogY() *Plot { p.panel.LogY = true; return p }

// Line adds a line through (x, y); without x, through (0, y[0]), (1, y[1]), ….
func (p *Plot) Line(name string, x, y []float64) *Plot {
	return p.add(report.Series{Name: name, X: x, Y: y})
}

// Dashed adds a dashed line, for what others are compared with.
func (p *Plot) Dashed(name string, x, y []float64) *Plot {
	return p.add(report.Series{Name: name, X: x, Y: y, Dashed: true})
}

// Say adds a sentence below the plot.
func (p *Plot) Say(format string, args ...any) *Plot {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
	return p
}

func (p *Plot) add(s report.Series) *Plot {
	if s.X != nil && len(s.X) != len(s.Y) {
		Try(fmt.Errorf("nb: line %q has %d places and %d values", s.Name, len(s.X), len(s.Y)))
	}
	p.panel.Series = append(p.panel.Series, s)
	return p
}

func (p *Plot) figure() *report.Figure {
	return &report.Figure{Title: p.panel.Title, Panels: []*report.Panel{&p.panel}}
}

// Show shows the plot.
func (p *Plot) Show() { p.show("") }

func (p *Plot) show(id string) {
	showFigure(p.figure(), id)
	if len(p.notes) > 0 {
		if id != "" {
			id += "-notes"
		}
		sentence(strings.Join(p.notes, "\n")).show(id)
	}
}

// Figure shows a figure, such as those of package results.
func Figure(f *report.Figure, errs ...error) {
	if !lacks(errs...) && !lacks(Must(f, errs...).Check()) {
		showFigure(f, "")
	}
}

// Screen is a place in a cell's output whose contents can be replaced while the cell runs.
type Screen struct{ id string }

// NewScreen returns a place below what the cell has shown so far.
func NewScreen() *Screen { return &Screen{gonbui.UniqueId()} }

// Show shows a plot in place of the last one.
func (s *Screen) Show(p *Plot) { p.show(s.id) }

// HTML shows HTML in place of what was there, and text where HTML cannot be shown.
func (s *Screen) HTML(source, text string) {
	written(source, text).show(s.id)
}

// Sheet is a table that a cell fills row by row.
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

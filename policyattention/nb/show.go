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
	"slices"
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
//
//	nb.NewPlot("Loss by round", "round", "loss").LogY().Line("exact PMD", nil, losses).Show()
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

package nb

import (
	"bytes"
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

// show shows a bundle and waits until the kernel has it: what is under way when a
// cell's program ends is lost. With an id, it takes the place of what was shown under
// that id before.
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
	bundle{
		protocol.MIMEImagePNG:  Must(small(Must(f.PNG()))),
		protocol.MIMETextPlain: "[figure]",
	}.described(f.Alt(), id)
	if id != "" {
		id += "-text"
	}
	bundle{
		protocol.MIMETextHTML: `<p style="position:absolute;width:1px;height:1px;overflow:hidden;` +
			`clip-path:inset(50%)">Figure: ` + html.EscapeString(f.Alt()) + "</p>",
		protocol.MIMETextPlain: f.Alt(),
	}.show(id)
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
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[pixels.RGBAAt(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return bytes.Compare([]byte{a.R, a.G, a.B, a.A}, []byte{b.R, b.G, b.B, b.A})
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
	return bundle{
		protocol.MIMETextHTML:  "<p>" + strings.ReplaceAll(code(html.EscapeString(text)), "\n", "<br>") + "</p>",
		protocol.MIMETextPlain: text,
	}
}

// HTML shows HTML. Lines of text stand in for it where HTML cannot be shown.
func HTML(source string, text ...string) {
	b := bundle{protocol.MIMETextHTML: source}
	if len(text) > 0 {
		b[protocol.MIMETextPlain] = strings.Join(text, "\n")
	}
	b.show("")
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

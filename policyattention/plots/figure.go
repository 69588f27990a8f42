// Package plots draws figures in one style: panels with named lines, text of one size, and
// colours that colour-blind readers tell apart.
package plots

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is panels side by side, one or two in a row. Its bytes depend on the artifacts alone.
type Figure struct {
	Name   string
	Title  string
	Panels []*Panel
	Across int // panels a row; 0 stands for two
}

const panelHeight vg.Length = 285 // points

// SVG returns the figure as SVG.
func (f *Figure) SVG() ([]byte, error) {
	if len(f.Panels) == 0 {
		return nil, fmt.Errorf("plots: figure %s has no panels", f.Name)
	}
	c := vgsvg.New(f.size())
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return fixText(b.Bytes()), err
}

var svgText = regexp.MustCompile(`(?s)<text ([^>]*font-family:Liberation Sans[^>]*font-size:([0-9.]+)px[^>]*)>([^<]+)</text>`)

// fixText gives each text of a drawing the width that it was laid out with, in whatever
// font it is shown: where there is no Liberation Sans, other letters would run into lines.
func fixText(svg []byte) []byte {
	style := plot.New().X.Label.TextStyle
	style.Font.Variant = "Sans"
	svg = svgText.ReplaceAllFunc(svg, func(element []byte) []byte {
		parts := svgText.FindSubmatch(element)
		size, err := strconv.ParseFloat(string(parts[2]), 64)
		if err != nil {
			return element
		}
		style.Font.Size = vg.Length(size)
		width := style.Width(html.UnescapeString(string(parts[3])))
		return fmt.Appendf(nil, `<text textLength="%.5g" lengthAdjust="spacingAndGlyphs" %s>%s</text>`, width.Points(), parts[1], parts[3])
	})
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
}

// Alt describes the figure to those who cannot see it: what its panels show, and where
// their named lines end.
func (f *Figure) Alt() string {
	text := f.Title + "."
	for _, p := range f.Panels {
		if p.X.Label.Text == "" && p.Y.Label.Text == "" {
			continue // a key
		}
		text += " " + p.Title.Text + ": " + strings.TrimPrefix(p.Y.Label.Text+" against "+p.X.Label.Text, " against ")
		text = strings.TrimSuffix(text, " against ")
		for _, e := range p.Ends {
			text += fmt.Sprintf("; %s ends at %.3g", strings.ReplaceAll(e.Name, "\n", " "), e.Y)
		}
		text += "."
	}
	return text
}

// PNG returns the figure as PNG at 144 dots an inch.
func (f *Figure) PNG() ([]byte, error) {
	if len(f.Panels) == 0 {
		return nil, fmt.Errorf("plots: figure %s has no panels", f.Name)
	}
	c := vgimg.NewWith(vgimg.UseWH(f.size()), vgimg.UseDPI(144))
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

// Save writes the figure into a folder and returns the paths.
func (f *Figure) Save(folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	var paths []string
	for _, format := range []struct {
		extension string
		encode    func() ([]byte, error)
	}{{".svg", f.SVG}, {".png", f.PNG}} {
		b, err := format.encode()
		if err != nil {
			return nil, fmt.Errorf("plots: figure %s: %w", f.Name, err)
		}
		path := filepath.Join(folder, f.Name+format.extension)
		if err := renameio.WriteFile(path, b, 0o644); err != nil {
			return nil, fmt.Errorf("plots: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// grid returns the panels by row and column. The last row may lack one, which is nil.
func (f *Figure) grid() [][]*plot.Plot {
	columns := min(len(f.Panels), cmp.Or(f.Across, 2))
	var rows [][]*plot.Plot
	for some := range slices.Chunk(f.Panels, columns) {
		row := make([]*plot.Plot, columns)
		for i, p := range some {
			row[i] = p.Plot
		}
		rows = append(rows, row)
	}
	return rows
}

func (f *Figure) size() (width, height vg.Length) {
	height = panelHeight
	if f.Across == 1 {
		height *= 1.3 // these have many rows
	}
	return FigureWidth, height * vg.Length(len(f.grid()))
}

func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	// The axes' labels stand beside the tiles: within them, gonum leaves room at
	// the end of a logarithmic axis as if its label were centred there.
	labels := map[*plot.Plot][2]string{}
	ends := map[*plot.Plot][]End{}
	grid := f.grid()
	room := make([]vg.Length, len(grid[0])) // right of each column
	for i, p := range f.Panels {
		spread(&p.X)
		spread(&p.Y)
		labels[p.Plot] = [2]string{p.X.Label.Text, p.Y.Label.Text}
		p.X.Label.Text, p.Y.Label.Text = "", ""
		ends[p.Plot] = p.Ends
		column := i % len(room)
		room[column] = max(room[column], NameRoom(p.Plot, p.Ends))
	}
	tiles := draw.Tiles{
		Rows: len(grid), Cols: len(room), PadX: 10*vg.Millimeter + room[0], PadY: 11 * vg.Millimeter,
		PadTop: 2 * vg.Millimeter, PadBottom: 8 * vg.Millimeter, PadLeft: 9 * vg.Millimeter, PadRight: 4*vg.Millimeter + room[len(room)-1],
	}
	for i, row := range plot.Align(grid, tiles, c) {
		for j, canvas := range row {
			if p := grid[i][j]; p != nil {
				p.Draw(canvas)
				NameLines(c, p, p.DataCanvas(canvas), ends[p])
				LabelAxes(c, canvas, p, labels[p][0], labels[p][1])
				p.X.Label.Text, p.Y.Label.Text = labels[p][0], labels[p][1]
			}
		}
	}
}

// LabelAxes writes the labels of the axes of a panel without labels of its own, which was drawn
// on a part of c, canvas.
func LabelAxes(c, canvas draw.Canvas, p *plot.Plot, x, y string) {
	data := p.DataCanvas(canvas)
	below, beside := p.X.Label.TextStyle, p.Y.Label.TextStyle
	below.YAlign = draw.YTop
	beside.Rotation += math.Pi / 2
	c.FillText(below, vg.Point{X: data.Center().X, Y: canvas.Min.Y - 0.5*vg.Millimeter}, x)
	c.FillText(beside, vg.Point{X: canvas.Min.X - 1.8*vg.Millimeter, Y: data.Center().Y}, y)
}

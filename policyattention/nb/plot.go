package nb

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"icrl/policyattention/plots"
)

// Plot is a figure that a cell draws line by line; names stand where the lines end.
//
//	nb.NewPlot("Loss by round", "round", "loss").LogY().Line("exact PMD", nil, losses).Show()
type Plot struct {
	title, x, y string
	logX, logY  bool
	series      []series
	notes       []string
}

type series struct {
	Name   string    `json:"name"`
	X      []float64 `json:"x"`
	Y      []float64 `json:"y"`
	Dots   bool      `json:"dots,omitempty"`
	Dashed bool      `json:"dashed,omitempty"`
}

// NewPlot returns an empty plot with the names of its axes.
func NewPlot(title, x, y string) *Plot { return &Plot{title: title, x: x, y: y} }

// LogX makes the horizontal axis logarithmic. Places that are not positive are left out.
func (p *Plot) LogX() *Plot { p.logX = true; return p.filter() }

// LogY makes the vertical axis logarithmic. Values that are not positive are left out.
func (p *Plot) LogY() *Plot { p.logY = true; return p.filter() }

// Line adds a line through (x, y); without x, through (0, y[0]), (1, y[1]), ….
func (p *Plot) Line(name string, x, y []float64) *Plot { return p.add(name, x, y, false, false) }

// Dashed adds a dashed line, for what others are compared with.
func (p *Plot) Dashed(name string, x, y []float64) *Plot { return p.add(name, x, y, false, true) }

// Dots adds points that no line connects.
func (p *Plot) Dots(name string, x, y []float64) *Plot { return p.add(name, x, y, true, false) }

// Say adds a sentence below the plot.
func (p *Plot) Say(format string, args ...any) *Plot {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
	return p
}

func (p *Plot) add(name string, x, y []float64, dots, dashed bool) *Plot {
	if x == nil {
		for i := range y {
			x = append(x, float64(i))
		}
	}
	if len(x) != len(y) {
		check(fmt.Errorf("nb: line %q has %d places and %d values", name, len(x), len(y)))
	}
	p.series = append(p.series, series{Name: name, X: x, Y: y, Dots: dots, Dashed: dashed})
	return p.filter()
}

// filter leaves out what cannot be drawn.
func (p *Plot) filter() *Plot {
	for i, s := range p.series {
		x, y := s.X, s.Y
		s.X, s.Y = nil, nil
		for j := range x {
			if drawable(x[j], p.logX) && drawable(y[j], p.logY) {
				s.X, s.Y = append(s.X, x[j]), append(s.Y, y[j])
			}
		}
		p.series[i] = s
	}
	return p
}

func drawable(v float64, logarithmic bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !logarithmic)
}

// palette are colours that stay apart for colour-blind readers (Okabe and Ito, without
// its yellow), from the darkest; dashes tell lines apart in grey.
var palette = []color.RGBA{{0, 0, 0, 255}, {0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}}

var dashes = [][]vg.Length{nil, nil, {7, 2}, {2, 2}, {7, 2, 2, 2}, {4, 4}, {10, 3}}

const plotHeight = 300 // points, 400 pixels

// Show shows the plot.
func (p *Plot) Show() { p.show("") }

func (p *Plot) show(id string) {
	picture{Must(p.png()), p.alt()}.show(id)
	if len(p.notes) == 0 {
		return
	}
	if id != "" {
		id += "-notes"
	}
	sentence(strings.Join(p.notes, "\n")).show(id)
}

// alt describes the plot to those who cannot see it: what it shows, and where its lines end.
func (p *Plot) alt() string {
	text := p.title + ": " + p.y + " against " + p.x
	for _, s := range p.series {
		if n := len(s.Y); n > 0 && s.Name != "" && !s.Dots {
			text += fmt.Sprintf("; %s ends at %s", s.Name, number(s.Y[n-1]))
		}
	}
	return text
}

// Screen is a place in a cell's output whose contents can be replaced while the cell runs.
type Screen struct{ id string }

// NewScreen returns a place below what the cell has shown so far.
func NewScreen() *Screen { return &Screen{gonbui.UniqueId()} }

// Show shows a plot in place of the last one.
func (s *Screen) Show(p *Plot) { p.show(s.id) }

// Say shows a sentence, or several on lines of their own, in place of what was there.
func (s *Screen) Say(format string, args ...any) { sentence(fmt.Sprintf(format, args...)).show(s.id) }

// HTML shows HTML in place of what was there, and text where HTML cannot be shown.
func (s *Screen) HTML(source, text string) {
	bundle{protocol.MIMETextHTML: source, protocol.MIMETextPlain: text}.show(s.id)
}

func (p *Plot) png() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(plots.FigureWidth, plotHeight), vgimg.UseDPI(144))
	if err := p.draw(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

func (p *Plot) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	panel := plots.Axes(p.title, "", "")
	if p.logX {
		plots.LogScale(&panel.X)
	}
	if p.logY {
		plots.LogScale(&panel.Y)
	}
	for i, s := range p.series {
		if len(s.X) == 0 {
			continue
		}
		drawn, err := p.plotter(i)
		if err != nil {
			return fmt.Errorf("nb: plot %q: %w", p.title, err)
		}
		panel.Add(drawn...)
	}
	if p.logY && panel.Y.Min == panel.Y.Max {
		panel.Y.Min, panel.Y.Max = panel.Y.Min/2, panel.Y.Max*2
	}
	if p.logX && panel.X.Min == panel.X.Max {
		panel.X.Min, panel.X.Max = panel.X.Min/2, panel.X.Max*2
	}
	ends := p.ends()
	beside := panel.X.Label.TextStyle.Height(p.y) + 8
	left := draw.Crop(c, beside, -plots.NameRoom(panel, ends)-8, beside, -4)
	panel.Draw(left)
	plots.LabelAxes(c, draw.Crop(left, -4, 0, 0, 0), panel, p.x, p.y)
	plots.NameLines(c, panel, panel.DataCanvas(left), ends)
	return nil
}

// plotter returns what draws a series: a line, and rings for few points.
func (p *Plot) plotter(i int) ([]plot.Plotter, error) {
	s := p.series[i]
	xy := make(plotter.XYs, len(s.X))
	for j := range xy {
		xy[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
	}
	if s.Dots {
		dots, err := plotter.NewScatter(xy)
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Radius, dots.Shape = palette[i%len(palette)], 3.5, draw.CircleGlyph{}
		return []plot.Plotter{dots}, nil
	}
	line, err := plotter.NewLine(xy)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width, line.Dashes = palette[i%len(palette)], 1.6, dashes[i%len(dashes)]
	if s.Dashed {
		line.Dashes = []vg.Length{4, 3}
	}
	return []plot.Plotter{line}, nil
}

// ends are the names of the series, where they end.
func (p *Plot) ends() (ends []plots.End) {
	for i, s := range p.series {
		xy := make(plotter.XYs, len(s.X))
		for j := range xy {
			xy[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
		}
		if e, ok := plots.EndOf(s.Name, palette[i%len(palette)], xy); ok {
			ends = append(ends, e)
		}
	}
	return ends
}

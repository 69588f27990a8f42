package plots

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	Grey  = color.RGBA{115, 115, 115, 255}
	light = color.RGBA{230, 230, 230, 255}
)

// Palette holds colours for what is no method, apart for colour-blind readers.
var Palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{0, 158, 115, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 0, 0, 255},
}

// Axes returns an empty plot in the style of the report's figures.
func Axes(title, x, y string) *plot.Plot {
	p := plot.New()
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = light, color.Transparent
	p.Add(grid)
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = TextSize+1, 6
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = TextSize, TextSize
		axis.Tick.Marker = plot.TickerFunc(even)
	}
	p.Legend.TextStyle.Font.Size, p.Legend.Top = TextSize, true
	p.Legend.Padding = 1 * vg.Millimeter
	return p
}

// Panel is a plot of a figure, with the names of its lines and what went wrong first in
// drawing it.
type Panel struct {
	*plot.Plot
	Ends []End
	Err  error
}

// Name writes a name where a line ends.
func (p *Panel) Name(name string, l *plotter.Line) {
	if e, ok := EndOf(name, l.Color, l.XYs); ok {
		e.Dashes = l.Dashes
		p.Ends = append(p.Ends, e)
	}
}

func NewPanel(title, x, y string) *Panel { return &Panel{Plot: Axes(title, x, y)} }

// KeyPanel returns a panel that has nothing but a legend, that of the panels before it.
func KeyPanel(title string) *Panel {
	p := NewPanel(title, "", "")
	p.HideAxes()
	p.Legend.Left = true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	return p
}

// LogLog makes both axes of panels logarithmic.
func LogLog(panels ...*Panel) {
	for _, p := range panels {
		LogScale(&p.X)
		LogScale(&p.Y)
	}
}

// LogScale makes an axis logarithmic; its values must be positive.
func LogScale(axis *plot.Axis) {
	axis.Scale, axis.Tick.Marker = plot.LogScale{}, decades{}
}

// spread gives a logarithmic axis with a single value room on both sides. Gonum
// would go one down from it, below zero.
func spread(axis *plot.Axis) {
	if _, ok := axis.Scale.(plot.LogScale); ok && axis.Min == axis.Max {
		axis.Min, axis.Max = axis.Min/2, axis.Max*2
	}
}

// Points adds dots, and returns them for the legend.
func (p *Panel) Points(c color.Color, filled bool, xy plotter.XYs) *plotter.Scatter {
	s, err := plotter.NewScatter(xy)
	if err != nil {
		p.Err = cmp.Or(p.Err, err)
		return &plotter.Scatter{}
	}
	s.Color, s.Radius, s.Shape = c, 3.5, draw.RingGlyph{}
	if filled {
		s.Radius, s.Shape = 4.5, draw.CircleGlyph{}
	}
	p.Add(s)
	return s
}

// strokes tell the colours of lines apart in print in grey.
var strokes = map[color.Color][]vg.Length{
	Palette[1]: {9, 3}, Palette[2]: {2, 2}, Palette[3]: {9, 3, 2, 3}, Palette[4]: {5, 2},
	color.RGBA{86, 180, 233, 255}: {6, 4}, // the learned critic's
}

// Line adds a line, and returns it for its name.
func (p *Panel) Line(c color.Color, dashed bool, xy plotter.XYs) *plotter.Line {
	l, err := plotter.NewLine(xy)
	if err != nil {
		p.Err = cmp.Or(p.Err, err)
		return &plotter.Line{}
	}
	l.Color, l.Width, l.Dashes = c, 1.6, strokes[c]
	if dashed {
		l.Width, l.Dashes = 1.1, []vg.Length{4, 4}
	}
	p.Add(l)
	return l
}

// Bar draws an interval of the value at x.
func (p *Panel) Bar(c color.Color, x, lo, hi float64) {
	bar := p.Line(c, false, plotter.XYs{{X: x, Y: lo}, {X: x, Y: hi}})
	bar.Width, bar.Dashes = .7, nil
}

// Mark returns dots of any shape, or without any a sample of one for a legend.
func Mark(c color.Color, shape draw.GlyphDrawer, at ...plotter.XY) *plotter.Scatter {
	return &plotter.Scatter{XYs: at, GlyphStyle: draw.GlyphStyle{Color: c, Radius: 3, Shape: shape}}
}

// polygon draws a regular polygon or star, filled or in outline.
type polygon struct {
	corners int
	turn    float64 // of the first corner from the top, in radians
	inner   float64 // radius of a star's inner corners; 0 stands for a polygon
	open    bool
}

// Shapes are marks that tell apart what colours do not in print in grey: six filled ones,
// and the same six in outline.
var Shapes = func() []draw.GlyphDrawer {
	var filled, open []draw.GlyphDrawer
	for _, g := range []polygon{{corners: 36}, {corners: 4, turn: math.Pi / 4}, {corners: 3}, {corners: 3, turn: math.Pi}, {corners: 4}, {corners: 5, inner: 0.4}} {
		filled = append(filled, g)
		g.open = true
		open = append(open, g)
	}
	return append(filled, open...)
}()

// DrawGlyph implements draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	radii := []float64{1}
	if g.inner > 0 {
		radii = []float64{1, g.inner}
	}
	// Marks of few corners look as large as a disc only if they reach farther.
	reach := float64(style.Radius) * (1 + 1/float64(g.corners))
	var path vg.Path
	for i := range g.corners * len(radii) {
		sin, cos := math.Sincos(g.turn + 2*math.Pi*float64(i)/float64(g.corners*len(radii)))
		r := reach * radii[i%len(radii)]
		p := vg.Point{X: at.X + vg.Length(r*sin), Y: at.Y + vg.Length(r*cos)}
		if i == 0 {
			path.Move(p)
		} else {
			path.Line(p)
		}
	}
	path.Close()
	if g.open {
		c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: 1})
		c.Stroke(path)
		return
	}
	c.SetColor(style.Color)
	c.Fill(path)
}

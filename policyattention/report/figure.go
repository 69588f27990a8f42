package report

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is panels side by side. Its bytes depend on its data alone.
type Figure struct {
	Name, Title string
	Panels      []*Panel
}

// Panel is a plot: series over an axis of numbers or, with Ticks, of names.
type Panel struct {
	Title, X, Y string
	LogX, LogY  bool
	Ticks       []string // names of x = 0, 1, …
	Series      []Series
}

// Series is a line, or dots. Its name stands where it ends.
type Series struct {
	Name   string    `json:"name"`
	Colour string    `json:"-"` // #rrggbb; empty: by its place in the panel
	X      []float64 `json:"x"` // nil: 0, 1, …
	Y      []float64 `json:"y"`
	Lo, Hi []float64 `json:"-"` // intervals of Y
	Dots   bool      `json:"dots,omitempty"`
	Open   bool      `json:"-"` // dots that are rings
	Dashed bool      `json:"dashed,omitempty"`
}

// Palette are colours that stay apart for colour-blind readers (Okabe and Ito, without its yellow), from the darkest.
var Palette = []string{"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}

// Strokes tell lines apart in print in grey, by their place in the palette.
var Strokes = [][]float64{nil, nil, {7, 2}, {2, 2}, {7, 2, 2, 2}, {4, 4}, {10, 3}}

const panelHeight vg.Length = 285 // points

// look returns the colour and the dashes of a series.
func (p *Panel) look(i int) (color.Color, []vg.Length) {
	s := p.Series[i]
	name := cmp.Or(s.Colour, Palette[i%len(Palette)])
	v, _ := strconv.ParseUint(strings.TrimPrefix(name, "#"), 16, 32) // black for what is no colour
	var dashes []vg.Length
	for _, d := range Strokes[max(0, slices.Index(Palette, name))] {
		dashes = append(dashes, vg.Length(d))
	}
	if s.Dashed {
		dashes = []vg.Length{4, 3}
	}
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}, dashes
}

// Drawable returns a series with what of it can be drawn: finite, and positive on logarithmic axes.
func (p *Panel) Drawable(s Series) Series {
	can := func(v float64, logarithmic bool) bool { return finite(v) && (v > 0 || !logarithmic) }
	all := s
	s.X, s.Y, s.Lo, s.Hi = nil, nil, nil, nil
	for i, y := range all.Y {
		x := float64(i)
		if all.X != nil {
			x = all.X[i]
		}
		if !can(x, p.LogX) || !can(y, p.LogY) {
			continue
		}
		s.X, s.Y = append(s.X, x), append(s.Y, y)
		if all.Lo != nil {
			s.Lo, s.Hi = append(s.Lo, all.Lo[i]), append(s.Hi, all.Hi[i])
		}
	}
	return s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// axes returns an empty plot in the style of all figures.
func (p *Panel) axes() *plot.Plot {
	a := plot.New()
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.RGBA{230, 230, 230, 255}, color.Transparent
	a.Add(grid)
	for _, style := range []*text.Style{
		&a.Title.TextStyle, &a.X.Label.TextStyle, &a.Y.Label.TextStyle, &a.X.Tick.Label, &a.Y.Tick.Label,
	} {
		style.Font.Variant, style.Font.Size = "Sans", textSize
	}
	a.Title.Text, a.Title.Padding, a.Title.TextStyle.Font.Size = p.Title, 6, textSize+1
	for axis, logarithmic := range map[*plot.Axis]bool{&a.X: p.LogX, &a.Y: p.LogY} {
		axis.Tick.Marker = plot.TickerFunc(even)
		if logarithmic {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
		}
	}
	if p.Ticks != nil {
		a.NominalX(p.Ticks...)
		a.X.Tick.Label.Rotation, a.X.Tick.Label.XAlign = .35, draw.XRight
		a.X.Min, a.X.Max = -.5, float64(len(p.Ticks))-.5
	}
	return a
}

// build draws the series and returns their names.
func (p *Panel) build() (a *plot.Plot, ends []ending) {
	a = p.axes()
	for i, s := range p.Series {
		c, dashes := p.look(i)
		s = p.Drawable(s)
		if len(s.X) == 0 {
			continue
		}
		xy := make(plotter.XYs, len(s.X))
		for k, x := range s.X {
			xy[k] = plotter.XY{X: x, Y: s.Y[k]}
		}
		add(a, s, xy, c, dashes)
		for k, lo := range s.Lo {
			if (lo > 0 || !p.LogY) && finite(s.Hi[k]-lo) {
				bar := plotter.XYs{{X: s.X[k], Y: lo}, {X: s.X[k], Y: s.Hi[k]}}
				a.Add(&plotter.Line{XYs: bar, LineStyle: draw.LineStyle{Color: c, Width: .7}})
			}
		}
		if s.Name != "" {
			last := slices.MaxFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
			ends = append(ends, ending{last, wrap(s.Name), c})
		}
	}
	for _, axis := range []*plot.Axis{&a.X, &a.Y} {
		if _, logarithmic := axis.Scale.(plot.LogScale); logarithmic && axis.Min == axis.Max {
			axis.Min, axis.Max = axis.Min/2, axis.Max*2
		}
	}
	return a, ends
}

// add draws the points of a series.
func add(a *plot.Plot, s Series, xy plotter.XYs, c color.Color, dashes []vg.Length) {
	if !s.Dots {
		a.Add(&plotter.Line{XYs: xy, LineStyle: draw.LineStyle{Color: c, Width: 1.6, Dashes: dashes}})
		return
	}
	style := draw.GlyphStyle{Color: c, Radius: 4, Shape: draw.CircleGlyph{}}
	if s.Open {
		style.Radius, style.Shape = 3.5, draw.RingGlyph{}
	}
	a.Add(&plotter.Scatter{XYs: xy, GlyphStyle: style})
}

func (f *Figure) draw(c draw.Canvas) error {
	if err := f.Check(); err != nil {
		return err
	}
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	plots, ends := make([]*plot.Plot, len(f.Panels)), make([][]ending, len(f.Panels))
	room := make([]vg.Length, len(f.Panels)) // right of each
	for i, p := range f.Panels {
		plots[i], ends[i] = p.build()
		room[i] = nameRoom(plots[i], ends[i])
	}
	tiles := draw.Tiles{
		Rows: 1, Cols: len(plots), PadX: 10*vg.Millimeter + room[0], PadTop: 2 * vg.Millimeter,
		PadBottom: 8 * vg.Millimeter, PadLeft: 9 * vg.Millimeter, PadRight: 4*vg.Millimeter + room[len(room)-1],
	}
	// The axes' labels stand beside the tiles: within them, gonum leaves room at the end of a
	// logarithmic axis as if its label were centred there.
	for i, canvas := range plot.Align([][]*plot.Plot{plots}, tiles, c)[0] {
		a := plots[i]
		a.Draw(canvas)
		data := a.DataCanvas(canvas)
		nameLines(c, a, data, ends[i])
		below, beside := a.X.Label.TextStyle, a.Y.Label.TextStyle
		below.XAlign, below.YAlign = draw.XCenter, draw.YTop
		beside.XAlign, beside.Rotation = draw.XCenter, beside.Rotation+math.Pi/2
		c.FillText(below, vg.Point{X: data.Center().X, Y: canvas.Min.Y - .5*vg.Millimeter}, f.Panels[i].X)
		c.FillText(beside, vg.Point{X: canvas.Min.X - 1.8*vg.Millimeter, Y: data.Center().Y}, f.Panels[i].Y)
	}
	return nil
}

// Check returns an error if the figure has no panel, or one with a logarithmic axis, which needs a point, has none.
func (f *Figure) Check() error {
	if len(f.Panels) == 0 {
		return fmt.Errorf("report: figure %s has no panels", f.Name)
	}
	for _, p := range f.Panels {
		shows := func(s Series) bool { return len(p.Drawable(s).X) > 0 }
		if (p.LogX || p.LogY) && !slices.ContainsFunc(p.Series, shows) {
			return fmt.Errorf("report: figure %s: nothing to show of %q", f.Name, p.Title)
		}
	}
	return nil
}

// SVG returns the figure as SVG.
func (f *Figure) SVG() ([]byte, error) {
	b, err := f.encode(vgsvg.New(figureWidth, panelHeight))
	return bytes.ReplaceAll(b, []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), err
}

// PNG returns the figure as PNG at 144 dots an inch.
func (f *Figure) PNG() ([]byte, error) {
	size, resolution := vgimg.UseWH(figureWidth, panelHeight), vgimg.UseDPI(144)
	return f.encode(vgimg.PngCanvas{Canvas: vgimg.NewWith(size, resolution)})
}

func (f *Figure) encode(c vg.CanvasWriterTo) ([]byte, error) {
	if err := f.draw(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}

// Save writes the figure into a folder as SVG and PNG and returns the paths.
func (f *Figure) Save(folder string) (paths []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	for extension, encode := range map[string]func() ([]byte, error){".svg": f.SVG, ".png": f.PNG} {
		b, err := encode()
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, f.Name+extension)
		if err := renameio.WriteFile(path, b, 0o644); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}

// Alt describes the figure to those who cannot see it: what its panels show, and where their named lines end.
func (f *Figure) Alt() string {
	words := f.Title + "."
	for _, p := range f.Panels {
		words += fmt.Sprintf(" %s: %s", p.Title, p.Y)
		if p.X != "" {
			words += " against " + p.X
		}
		for _, s := range p.Series {
			if y := p.Drawable(s).Y; len(y) > 0 && s.Name != "" {
				words += fmt.Sprintf("; %s ends at %.3g", s.Name, y[len(y)-1])
			}
		}
		words += "."
	}
	return words
}

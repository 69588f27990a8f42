package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
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

	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/lockup"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// Figure is panels side by side, one or two in a row. Its bytes depend on the artifacts alone.
type Figure struct {
	Name   string
	Title  string
	panels []*panel
	across int // panels a row
}

const panelHeight vg.Length = 285 // points

type figureBuilder struct {
	name, title string
	build       func(*source) ([]*panel, error)
	tall        bool // one panel a row
}

// figureBuilders lists the figures; those of methods' qualifications are the methods' own.
func figureBuilders(methods method.Registry) []figureBuilder {
	list := slices.Clone(figuresBefore)
	for _, m := range methods {
		if m.Figure.Name == "" {
			continue
		}
		list = append(list, figureBuilder{name: m.Figure.Name, title: m.Figure.Title, build: func(s *source) ([]*panel, error) {
			if m.Qualify != nil {
				return imitationFigure(s, m.Name)
			}
			return lifeFigure(s, m)
		}})
	}
	return append(list, figuresAfter...)
}

var figuresBefore = []figureBuilder{
	{name: "oracle", title: "Exact PMD in closed loop, its bound, and other fixed rules", build: oracleFigure},
	{name: "learning", title: "Training and distance to fixed rules by round", build: learningFigure},
	{name: "mech", title: "The learned actor against fixed update rules", build: mechanismFigure},
	{name: "closed", title: "Ratios to exact PMD in closed loop and under shift", build: closedFigure},
	{name: "rounds", title: "Median and mean loss over rounds", build: roundsFigure},
	{name: "lit", title: "Median T = 20 loss by method", build: methodsFigure, tall: true},
	{name: "pareto", title: "Deviation from exact PMD and T = 20 loss along training", build: frontierFigure},
}

var figuresAfter = []figureBuilder{
	{name: "tuning", title: "Losses of the sampled methods by step size", build: tuningFigure},
	{name: "contrast", title: "One-step error and closed-loop loss by training recipe", build: contrastFigure},
	{name: "decoder-attention", title: "Attention of the fixed decoder in one round", build: attentionFigure},
	{name: "decoder-residuals", title: "The fixed decoder's residuals under their bounds", build: residualsFigure},
	{name: "decoder-audit", title: "Theorem 2 for the fixed decoder", build: auditFigure},
	{name: "decoder-carrier", title: "Normalized decoders against the carrier scale", build: carrierFigure},
	{name: "lock-up", title: "One-step fidelity without control", build: lockUpFigure},
	{name: "equal-transitions", title: "Loss against transitions with equal information", build: equalFigure("transitions", false, func(u equal.Use) float64 { return u.Transitions },
		equal.Condition{Information: equal.Generative, N: 144}, equal.Condition{Information: equal.Window, N: 20})},
	{name: "equal-operations", title: "Loss against floating-point operations with equal information", build: equalFigure("floating-point operations", true, func(u equal.Use) float64 { return u.Operations },
		equal.Condition{Information: equal.Model}, equal.Condition{Information: equal.Generative, N: 144})},
	{name: "lockup", title: "Loss by the mass that the best action begins with", build: massFigure},
}

// FigureNames lists the figures.
func FigureNames() []string {
	var names []string
	for _, b := range figureBuilders(all.Methods) {
		names = append(names, b.name)
	}
	return names
}

// BuildFigure returns the figure called name from the artifacts of a store.
// Panels of what has not been run stay empty and say so.
func BuildFigure(store *experiment.Store, name string) (*Figure, error) {
	return newSource(store).figure(name)
}

func (s *source) figure(name string) (*Figure, error) {
	for _, b := range figureBuilders(s.Store.Preset.Methods) {
		if b.name == name {
			panels, err := b.build(s)
			for _, p := range panels {
				err = cmp.Or(err, p.err)
			}
			if err != nil {
				return nil, fmt.Errorf("report: figure %s: %w", name, err)
			}
			across := 2
			if b.tall {
				across = 1
			}
			return &Figure{Name: name, Title: b.title, panels: panels, across: across}, nil
		}
	}
	return nil, fmt.Errorf("report: no figure %q, want one of %q", name, FigureNames())
}

// SVG returns the figure as SVG.
func (f *Figure) SVG() ([]byte, error) {
	c := vgsvg.New(f.size())
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return FixText(b.Bytes()), err
}

var svgText = regexp.MustCompile(`(?s)<text ([^>]*font-family:Liberation Sans[^>]*font-size:([0-9.]+)px[^>]*)>([^<]+)</text>`)

// FixText gives each text of a drawing the width that it was laid out with, in whatever
// font it is shown: where there is no Liberation Sans, other letters would run into lines.
func FixText(svg []byte) []byte {
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
	for _, p := range f.panels {
		if p.X.Label.Text == "" && p.Y.Label.Text == "" {
			continue // a key
		}
		text += " " + p.Title.Text + ": " + strings.TrimPrefix(p.Y.Label.Text+" against "+p.X.Label.Text, " against ")
		text = strings.TrimSuffix(text, " against ")
		for _, e := range p.ends {
			text += fmt.Sprintf("; %s ends at %.3g", strings.ReplaceAll(e.Name, "\n", " "), e.Y)
		}
		text += "."
	}
	return text
}

// PNG returns the figure as PNG at 144 dots an inch.
func (f *Figure) PNG() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.size()), vgimg.UseDPI(144))
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

// Save writes the figure into a folder and returns the paths.
func (f *Figure) Save(folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var paths []string
	for _, format := range []struct {
		extension string
		encode    func() ([]byte, error)
	}{{".svg", f.SVG}, {".png", f.PNG}} {
		b, err := format.encode()
		if err != nil {
			return nil, fmt.Errorf("report: figure %s: %w", f.Name, err)
		}
		path := filepath.Join(folder, f.Name+format.extension)
		if err := renameio.WriteFile(path, b, 0o644); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// grid returns the panels by row and column. The last row may lack one, which is nil.
func (f *Figure) grid() [][]*plot.Plot {
	columns := min(len(f.panels), f.across)
	var rows [][]*plot.Plot
	for some := range slices.Chunk(f.panels, columns) {
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
	if f.across == 1 {
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
	for i, p := range f.panels {
		spread(&p.X)
		spread(&p.Y)
		labels[p.Plot] = [2]string{p.X.Label.Text, p.Y.Label.Text}
		p.X.Label.Text, p.Y.Label.Text = "", ""
		ends[p.Plot] = p.ends
		column := i % len(room)
		room[column] = max(room[column], NameRoom(p.Plot, p.ends))
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

// colour returns the colour of a method, which stays apart from the others' for
// colour-blind readers.
func (s *source) colour(name method.Name) color.Color {
	if m := s.method(name); m.Name != "" {
		return m.Colour
	}
	return grey
}

var (
	grey  = color.RGBA{115, 115, 115, 255}
	light = color.RGBA{230, 230, 230, 255}
)

// Panel returns an empty plot in the style of the report's figures.
func Panel(title, x, y string) *plot.Plot {
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

// panel is a plot of a figure, with the names of its lines and what went wrong first in
// drawing it.
type panel struct {
	*plot.Plot
	ends []End
	err  error
}

// name writes a name where a line ends.
func (p *panel) name(name string, l *plotter.Line) {
	if e, ok := EndOf(name, l.Color, l.XYs); ok {
		e.Dashes = l.Dashes
		p.ends = append(p.ends, e)
	}
}

func newPanel(title, x, y string) *panel { return &panel{Plot: Panel(title, x, y)} }

// keyPanel returns a panel that has nothing but a legend, that of the panels before it.
func keyPanel(title string) *panel {
	p := newPanel(title, "", "")
	p.HideAxes()
	p.Legend.Left = true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	return p
}

// empty says that panels' data is missing.
func empty(panels ...*panel) {
	for _, p := range panels {
		p.Title.Text += " (" + NotRun + ")"
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	}
}

// logLog makes both axes of panels logarithmic.
func logLog(panels ...*panel) {
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

// points adds dots, and returns them for the legend.
func points(p *panel, c color.Color, filled bool, xy plotter.XYs) *plotter.Scatter {
	s, err := plotter.NewScatter(xy)
	if err != nil {
		p.err = cmp.Or(p.err, err)
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
	palette[1]: {9, 3}, palette[2]: {2, 2}, palette[3]: {9, 3, 2, 3}, palette[4]: {5, 2},
	color.RGBA{86, 180, 233, 255}: {6, 4}, // the learned critic's
}

// line adds a line, and returns it for its name.
func line(p *panel, c color.Color, dashed bool, xy plotter.XYs) *plotter.Line {
	l, err := plotter.NewLine(xy)
	if err != nil {
		p.err = cmp.Or(p.err, err)
		return &plotter.Line{}
	}
	l.Color, l.Width, l.Dashes = c, 1.6, strokes[c]
	if dashed {
		l.Width, l.Dashes = 1.1, []vg.Length{4, 4}
	}
	p.Add(l)
	return l
}

func mechanismFigure(s *source) ([]*panel, error) {
	a := newPanel("(a) distance to fixed rules", "", "mean row-L1")
	b := newPanel("(b) refitted step size", "supplied η", "fitted η")
	found, err := s.Find(results.Selection{Block: experiment.Mechanism, Method: experiment.PolicyAttention})
	if err != nil {
		return nil, err
	}
	runs := found.Found
	if len(runs) == 0 {
		empty(a, b)
		return []*panel{a, b}, nil
	}
	var names []string
	for i, rule := range pmd.Rules {
		names = append(names, string(rule))
		for _, r := range runs {
			points(a, s.sizeColour(r.Cell.S), false, plotter.XYs{{X: float64(i), Y: r.OneStep.MeanDistance(rule)}})
		}
	}
	a.NominalX(names...)
	a.X.Tick.Label.Rotation, a.X.Tick.Label.XAlign = 0.35, draw.XRight
	for _, q := range []struct {
		at       float64
		quantity string
	}{{0, "pmd"}, {1, "nearest alternative"}} {
		n := results.Paper(results.Key{Block: experiment.Mechanism, Quantity: q.quantity})
		l := line(a, grey, true, plotter.XYs{{X: q.at - 0.3, Y: n.Value}, {X: float64(len(pmd.Rules)) - 0.7, Y: n.Value}})
		if q.at == 0 {
			a.Legend.Add("paper: PMD, nearest other", l)
			a.Legend.Left = true
		}
	}
	LogScale(&a.Y)
	headroom(a, 2)
	seen := map[int]bool{}
	for _, r := range runs {
		var xy plotter.XYs
		for i, eta := range r.OneStep.Supplied {
			xy = append(xy, plotter.XY{X: eta, Y: r.OneStep.Fitted[i]})
		}
		l := line(b, s.sizeColour(r.Cell.S), false, xy)
		if !seen[r.Cell.S] {
			seen[r.Cell.S] = true
			b.name("S = "+strconv.Itoa(r.Cell.S), l)
		}
	}
	// Last, since actors that obey their η lie on it.
	b.name("supplied", line(b, color.Black, true, plotter.XYs{{X: 0.4, Y: 0.4}, {X: 1.2, Y: 1.2}}))
	return []*panel{a, b}, nil
}

func (s *source) sizeColour(states int) color.Color {
	switch states {
	case 4:
		return s.colour(experiment.PolicyAttention)
	case 8:
		return s.colour(experiment.PMDTarget)
	}
	return s.colour(experiment.Mixture)
}

func closedFigure(s *source) ([]*panel, error) {
	const horizon = 20
	a := newPanel("(a) S = 4 runs, exact critic", "run", "loss / exact PMD at T = 20")
	b := newPanel("(b) shifts without retraining", "", "loss / exact PMD at T = 20")
	for _, p := range []*panel{a, b} {
		p.Y.Min, p.Y.Max = 0, 2
	}
	rows, err := s.Confirmation()
	if err != nil {
		return nil, err
	}
	var names []string
	var quotes, xy plotter.XYs
	for j, row := range rows[:len(experiment.PaperProtocol.Sizes[4].Runs)] {
		names = append(names, strconv.Itoa(j+1))
		quotes = append(quotes, plotter.XY{X: float64(j), Y: row.Estimate.Paper.Value})
		if row.Estimate.Runs > 0 {
			xy = append(xy, plotter.XY{X: float64(j), Y: row.Estimate.Value})
		}
	}
	a.Legend.Add("paper's runs", points(a, grey, false, quotes))
	if len(xy) == 0 {
		empty(a)
	} else {
		a.Legend.Add("ours", points(a, s.colour(experiment.PolicyAttention), true, xy))
	}
	a.NominalX(names...)
	if err := s.shiftsPanel(b, horizon); err != nil {
		return nil, err
	}
	for p, n := range map[*panel]int{a: len(experiment.PaperProtocol.Sizes[4].Runs), b: len(mdp.Shifts)} {
		for _, y := range []float64{1, experiment.PaperProtocol.Margin} {
			line(p, grey, true, plotter.XYs{{X: -0.4, Y: y}, {X: float64(n) - 0.6, Y: y}})
		}
		if p.Y.Max > 4 { // far from the margin: show it all the same
			p.Y.Min = 0.5
			LogScale(&p.Y)
		}
	}
	return []*panel{a, b}, nil
}

// massFigure draws the study of package lockup that lies beside the presets.
func massFigure(s *source) ([]*panel, error) {
	study, err := lockup.Read(filepath.Join(filepath.Dir(s.Store.Root()), "lockup", "lockup.json"))
	if errors.Is(err, fs.ErrNotExist) {
		p := newPanel("lock-up", "", "")
		empty(p)
		return []*panel{p}, nil
	}
	if err != nil {
		return nil, err
	}
	all := newPanel("(a) median over problems", "mass of the best action in π₀", fmt.Sprintf("loss at T = %d", study.Rounds))
	worst := newPanel("(b) worst problem", "mass of the best action in π₀", fmt.Sprintf("loss at T = %d", study.Rounds))
	// Exact PMD is the first curve, and drawn last: others lie under it.
	for i := len(study.Curves) - 1; i >= 0; i-- {
		c, colour := study.Curves[i], color.Color(color.Black)
		if i > 0 {
			colour = palette[i-1]
		}
		var medians, tops plotter.XYs
		for j, median := range c.Medians() {
			medians = append(medians, plotter.XY{X: study.Masses[j], Y: median})
			tops = append(tops, plotter.XY{X: study.Masses[j], Y: slices.Max(c.Loss[j])})
		}
		for p, xy := range map[*panel]plotter.XYs{all: medians, worst: tops} {
			l := line(p, colour, i == 0, xy)
			if p == all {
				p.Legend.Add(c.Actor, l) // all lines end at one point
			}
		}
	}
	logLog(all, worst)
	headroom(all, len(study.Curves))
	return []*panel{all, worst}, nil
}

// shiftsPanel draws the ratios to exact PMD on the families without retraining.
func (s *source) shiftsPanel(b *panel, horizon int) error {
	var names []string
	missing := false
	for i, family := range mdp.Shifts {
		names = append(names, strings.ReplaceAll(string(family), "-", "\n"))
		estimate, _, err := s.Shifted(experiment.Shift, family)
		if err != nil {
			return err
		}
		if estimate.Runs == 0 {
			missing = true
			continue
		}
		var xy plotter.XYs
		for _, r := range estimate.ByRun {
			xy = append(xy, plotter.XY{X: float64(i), Y: r})
		}
		median := points(b, s.colour(experiment.PolicyAttention), true, plotter.XYs{{X: float64(i), Y: estimate.Value}})
		each := points(b, color.Black, false, xy) // on the median, which would hide them
		if i == 0 {
			b.Legend.Add("ours, median", median)
			b.Legend.Add("each run", each)
		}
	}
	for i, family := range mdp.Shifts { // beside ours, which would hide it
		at := plotter.XYs{{X: float64(i) + 0.25, Y: results.Paper(results.Key{Block: experiment.Shift, Quantity: string(family), S: 4, T: horizon}).Value}}
		of := points(b, grey, true, at)
		of.Shape = draw.PyramidGlyph{}
		if i == 0 {
			b.Legend.Add("paper", of)
		}
	}
	if missing {
		empty(b)
	}
	b.NominalX(names...)
	return nil
}

// roundsFigure draws a row of panels a size: medians on the left, and on the right means,
// which show what medians hide.
func roundsFigure(s *source) ([]*panel, error) {
	var panels []*panel
	for _, x := range []struct {
		block  experiment.Block
		states int
	}{{experiment.Confirmation, 4}, {experiment.Benchmark, 8}, {experiment.Benchmark, 16}} {
		for _, of := range []struct {
			name    string
			summary func([]float64) float64
		}{{"median", stats.Median}, {"mean", stats.Mean}} {
			p := newPanel(fmt.Sprintf("S = %d", x.states), "round", of.name+" normalized loss")
			drawn, err := s.overRounds(p, x.block, x.states, of.summary, of.name == "mean")
			if err != nil {
				return nil, err
			}
			if !drawn {
				empty(p)
			} else {
				p.Y.Min = max(p.Y.Min, 1e-7) // what is below has no loss but for rounding
				LogScale(&p.Y)
			}
			panels = append(panels, p)
		}
	}
	return panels, nil
}

// overRounds draws a summary of the losses of every run of a block, and reports whether
// there are any. With names, the lines of the first run have the methods'.
func (s *source) overRounds(p *panel, block experiment.Block, states int, summary func([]float64) float64, names bool) (drawn bool, err error) {
	for _, method := range s.Store.Preset.Methods {
		runs, err := s.Find(results.Selection{Block: block, Method: method.Name, S: states})
		if err != nil {
			return false, err
		}
		for j, r := range runs.Found {
			var xy plotter.XYs
			for k := range r.Scored[0].Loss {
				if loss := summary(r.Losses(k)); loss > 0 {
					xy = append(xy, plotter.XY{X: float64(k), Y: loss})
				}
			}
			l := line(p, method.Colour, method.Name == experiment.ExactPMD, xy)
			if drawn = true; j == 0 && names {
				p.name(method.Label, l)
			}
		}
	}
	return drawn, nil
}

func frontierFigure(s *source) ([]*panel, error) {
	var panels []*panel
	for _, states := range []int{4, 8} {
		p := newPanel(fmt.Sprintf("S = %d", states), "mean ζ over rounds 0–19", "median loss at T = 20")
		all, err := s.Frontier(states)
		if err != nil {
			return nil, err
		}
		drawn := false
		for _, method := range []method.Name{experiment.PolicyAttention, experiment.PMDTarget} {
			var path, best plotter.XYs
			for _, x := range all {
				if x.Method == method && x.Loss.Runs > 0 {
					path = append(path, x.At())
					if x.Envelope {
						best = append(best, path[len(path)-1])
					}
				}
			}
			if len(path) == 0 {
				continue
			}
			drawn = true
			p.Legend.Add(s.Series(method, "").Label, line(p, s.colour(method), false, path))
			points(p, s.colour(method), false, path)
			if len(best) > 0 {
				points(p, s.colour(method), true, best)
			}
		}
		if !drawn {
			empty(p)
		} else {
			envelope(p, all)
			quotedFrontier(p, all)
			logLog(p)
			headroom(p, 4)
			p.Legend.Left = true
		}
		panels = append(panels, p)
	}
	p, key, err := endpointsPanel(s)
	return append(panels, p, key), err
}

// envelope joins the points that no other point of either objective beats in
// both coordinates.
func envelope(p *panel, all []results.Budget) {
	var xy plotter.XYs
	for _, x := range all {
		if x.Envelope {
			xy = append(xy, x.At())
		}
	}
	slices.SortFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	p.Legend.Add("not dominated", line(p, grey, true, xy))
}

// quotedFrontier adds the points that the paper prints.
func quotedFrontier(p *panel, all []results.Budget) {
	var xy plotter.XYs
	for _, x := range all {
		if x.Zeta.Paper != nil && x.Loss.Paper != nil {
			xy = append(xy, plotter.XY{X: x.Zeta.Paper.Value, Y: x.Loss.Paper.Value})
		}
	}
	if len(xy) > 0 {
		p.Legend.Add("PolicyAttention, paper", points(p, grey, true, xy))
	}
}

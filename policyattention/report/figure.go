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

// Figure is panels side by side, two in a row. Its bytes depend on the artifacts alone.
type Figure struct {
	Name   string
	Title  string
	panels []*panel
}

const (
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 7.5 * vg.Centimeter
)

type figureBuilder struct {
	name, title string
	build       func(*source) ([]*panel, error)
}

// figureBuilders lists the figures; those of methods' qualifications are the methods' own.
func figureBuilders(methods method.Registry) []figureBuilder {
	list := slices.Clone(figuresBefore)
	for _, m := range methods {
		if m.Figure.Name == "" {
			continue
		}
		list = append(list, figureBuilder{m.Figure.Name, m.Figure.Title, func(s *source) ([]*panel, error) {
			if m.Qualify != nil {
				return imitationFigure(s, m.Name)
			}
			return lifeFigure(s, m)
		}})
	}
	return append(list, figuresAfter...)
}

var figuresBefore = []figureBuilder{
	{"oracle", "Exact PMD in closed loop, its bound, and other fixed rules", oracleFigure},
	{"learning", "Training and distance to fixed rules by round", learningFigure},
	{"mech", "The learned actor against fixed update rules", mechanismFigure},
	{"closed", "Ratios to exact PMD in closed loop and under shift", closedFigure},
	{"rounds", "Median and mean loss over rounds", roundsFigure},
	{"lit", "Median T = 20 loss by method", methodsFigure},
	{"pareto", "Deviation from exact PMD and T = 20 loss along training", frontierFigure},
}

var figuresAfter = []figureBuilder{
	{"tuning", "Losses of the sampled methods by step size", tuningFigure},
	{"contrast", "One-step error and closed-loop loss by training recipe", contrastFigure},
	{"decoder-attention", "Attention of the fixed decoder in one round", attentionFigure},
	{"decoder-residuals", "The fixed decoder's residuals under their bounds", residualsFigure},
	{"decoder-audit", "Theorem 2 for the fixed decoder", auditFigure},
	{"decoder-carrier", "Normalized decoders against the carrier scale", carrierFigure},
	{"lock-up", "One-step fidelity without control", lockUpFigure},
	{"equal-transitions", "Loss against transitions with equal information", equalFigure("transitions", func(u equal.Use) float64 { return u.Transitions },
		equal.Condition{Information: equal.Generative, N: 144}, equal.Condition{Information: equal.Window, N: 20})},
	{"equal-operations", "Loss against floating-point operations with equal information", equalFigure("floating-point operations", func(u equal.Use) float64 { return u.Operations },
		equal.Condition{Information: equal.Model}, equal.Condition{Information: equal.Generative, N: 144})},
	{"lockup", "Loss by the mass that the best action begins with", massFigure},
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
			return &Figure{Name: name, Title: b.title, panels: panels}, nil
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

// PNG returns the figure as PNG at 192 dots an inch.
func (f *Figure) PNG() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.size()), vgimg.UseDPI(192))
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
	columns := min(len(f.panels), 2)
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
	rows := f.grid()
	return panelWidth*vg.Length(len(rows[0])) + f.beside(), panelHeight * vg.Length(len(rows))
}

// beside is the room right of the panels for legends that stand there.
func (f *Figure) beside() (width vg.Length) {
	for _, p := range f.panels {
		width = max(width, p.Legend.XOffs)
	}
	return width
}

func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	grid := f.grid()
	tiles := draw.Tiles{
		Rows: len(grid), Cols: len(grid[0]), PadX: 7 * vg.Millimeter, PadY: 8 * vg.Millimeter,
		PadTop: 2 * vg.Millimeter, PadBottom: 6 * vg.Millimeter, PadLeft: 6 * vg.Millimeter, PadRight: 4*vg.Millimeter + f.beside(),
	}
	// The axes' labels stand beside the tiles: within them, gonum leaves room at
	// the end of a logarithmic axis as if its label were centred there.
	labels := map[*plot.Plot][2]string{}
	for _, p := range f.panels {
		spread(&p.X)
		spread(&p.Y)
		labels[p.Plot] = [2]string{p.X.Label.Text, p.Y.Label.Text}
		p.X.Label.Text, p.Y.Label.Text = "", ""
	}
	for i, row := range plot.Align(grid, tiles, c) {
		for j, canvas := range row {
			if p := grid[i][j]; p != nil {
				p.Draw(canvas)
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
	c.FillText(beside, vg.Point{X: canvas.Min.X - 1*vg.Millimeter, Y: data.Center().Y}, y)
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
	grey  = color.RGBA{150, 150, 150, 255}
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
	p.Title.TextStyle.Font.Size, p.Title.Padding = 10, 6
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = 9, 8
		axis.Tick.Marker = plot.TickerFunc(even)
	}
	p.Legend.TextStyle.Font.Size, p.Legend.Top = 8, true
	p.Legend.Padding = 1 * vg.Millimeter
	return p
}

// panel is a plot of a figure, with what went wrong first in drawing it.
type panel struct {
	*plot.Plot
	err error
}

func newPanel(title, x, y string) *panel { return &panel{Plot: Panel(title, x, y)} }

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
	s.Color, s.Radius, s.Shape = c, 2.5, draw.RingGlyph{}
	if filled {
		s.Radius, s.Shape = 3.5, draw.CircleGlyph{}
	}
	p.Add(s)
	return s
}

// line adds a line, and returns it for the legend.
func line(p *panel, c color.Color, dashed bool, xy plotter.XYs) *plotter.Line {
	l, err := plotter.NewLine(xy)
	if err != nil {
		p.err = cmp.Or(p.err, err)
		return &plotter.Line{}
	}
	l.Color, l.Width = c, 1.2
	if dashed {
		l.Width, l.Dashes = 0.8, []vg.Length{3, 3}
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
	b.Legend.Left = true
	seen := map[int]bool{}
	for _, r := range runs {
		var xy plotter.XYs
		for i, eta := range r.OneStep.Supplied {
			xy = append(xy, plotter.XY{X: eta, Y: r.OneStep.Fitted[i]})
		}
		l := line(b, s.sizeColour(r.Cell.S), false, xy)
		if !seen[r.Cell.S] {
			seen[r.Cell.S] = true
			b.Legend.Add("S = "+strconv.Itoa(r.Cell.S), l)
		}
	}
	// Last, since actors that obey their η lie on it.
	b.Legend.Add("supplied", line(b, color.Black, true, plotter.XYs{{X: 0.4, Y: 0.4}, {X: 1.2, Y: 1.2}}))
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
				p.Legend.Add(c.Actor, l)
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
		names = append(names, string(family))
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
	b.X.Tick.Label.Rotation, b.X.Tick.Label.XAlign = 0.35, draw.XRight
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
			drawn, err := s.overRounds(p, x.block, x.states, of.summary, of.name == "median")
			if err != nil {
				return nil, err
			}
			if !drawn {
				empty(p)
			} else {
				p.Y.Min = max(p.Y.Min, 1e-7) // what is below has no loss but for rounding
				LogScale(&p.Y)
				if of.name == "median" {
					footroom(p, 2) // for the legend
				}
			}
			panels = append(panels, p)
		}
	}
	return panels, nil
}

// overRounds draws a summary of the losses of every run of a block, and reports whether
// there are any. A panel with a legend names the methods.
func (s *source) overRounds(p *panel, block experiment.Block, states int, summary func([]float64) float64, legend bool) (drawn bool, err error) {
	p.Legend.Top, p.Legend.Left = false, true
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
			if drawn = true; j == 0 && legend {
				p.Legend.Add(method.Label, l)
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
	p, err := endpointsPanel(s)
	return append(panels, p), err
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

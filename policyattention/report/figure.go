package report

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/lockup"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/plots"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

type figureBuilder struct {
	name, title string
	build       func(*source) ([]*plots.Panel, error)
	across      int // panels a row; 0 stands for two
}

// figureBuilders lists the figures; those of methods' qualifications are the methods' own.
func figureBuilders(methods method.Registry) []figureBuilder {
	list := slices.Clone(figuresBefore)
	for _, m := range methods {
		if m.Figure.Name == "" {
			continue
		}
		list = append(list, figureBuilder{name: m.Figure.Name, title: m.Figure.Title, build: func(s *source) ([]*plots.Panel, error) {
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
	{name: "lit", title: "Median T = 20 loss by method", build: methodsFigure, across: 1},
	{name: "time-to-quality", title: "Loss along training by recipe", build: qualityFigure, across: 3},
	{name: "pareto", title: "Deviation from exact PMD and T = 20 loss along training", build: frontierFigure},
}

var figuresAfter = []figureBuilder{
	{name: "stages", title: "Algorithm Distillation along its training", build: stagesFigure},
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

// FigureNames lists the figures of the methods of this repository.
func FigureNames() []string { return figureNames(all.Methods) }

func figureNames(methods method.Registry) (names []string) {
	for _, b := range figureBuilders(methods) {
		names = append(names, b.name)
	}
	return names
}

// BuildFigure returns the figure called name from the artifacts of a store.
// Panels of what has not been run stay empty and say so.
func BuildFigure(store *experiment.Store, name string) (*plots.Figure, error) {
	return newSource(store).figure(name)
}

func (s *source) figure(name string) (*plots.Figure, error) {
	for _, b := range figureBuilders(s.Store.Preset.Methods) {
		if b.name == name {
			panels, err := b.build(s)
			for _, p := range panels {
				err = cmp.Or(err, p.Err)
			}
			if err != nil {
				return nil, fmt.Errorf("report: figure %s: %w", name, err)
			}
			return &plots.Figure{Name: name, Title: b.title, Panels: panels, Across: b.across}, nil
		}
	}
	return nil, fmt.Errorf("report: no figure %q, want one of %q", name, figureNames(s.Store.Preset.Methods))
}

// colour returns the colour of a method, which stays apart from the others' for
// colour-blind readers.
func (s *source) colour(name method.Name) color.Color {
	if m := s.method(name); m.Name != "" {
		return m.Colour
	}
	return plots.Grey
}

// empty says that panels' data is missing.
func empty(panels ...*plots.Panel) {
	for _, p := range panels {
		p.Title.Text += " (" + NotRun + ")"
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	}
}

func mechanismFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) distance to fixed rules", "", "mean row-L1")
	b := plots.NewPanel("(b) refitted step size", "supplied η", "fitted η")
	found, err := s.Find(results.Selection{Block: experiment.Mechanism, Method: experiment.PolicyAttention})
	if err != nil {
		return nil, err
	}
	runs := found.Found
	if len(runs) == 0 {
		empty(a, b)
		return []*plots.Panel{a, b}, nil
	}
	var names []string
	for i, rule := range pmd.Rules {
		names = append(names, string(rule))
		for _, r := range runs {
			a.Points(s.sizeColour(r.Cell.S), false, plotter.XYs{{X: float64(i), Y: r.OneStep.MeanDistance(rule)}})
		}
	}
	a.NominalX(names...)
	a.X.Tick.Label.Rotation, a.X.Tick.Label.XAlign = 0.35, draw.XRight
	for _, q := range []struct {
		at       float64
		quantity string
	}{{0, "pmd"}, {1, "nearest alternative"}} {
		n := results.Paper(results.Key{Block: experiment.Mechanism, Quantity: q.quantity})
		l := a.Line(plots.Grey, true, plotter.XYs{{X: q.at - 0.3, Y: n.Value}, {X: float64(len(pmd.Rules)) - 0.7, Y: n.Value}})
		if q.at == 0 {
			a.Legend.Add("paper: PMD, nearest other", l)
			a.Legend.Left = true
		}
	}
	plots.LogScale(&a.Y)
	a.Headroom(2)
	seen := map[int]bool{}
	for _, r := range runs {
		var xy plotter.XYs
		for i, eta := range r.OneStep.Supplied {
			xy = append(xy, plotter.XY{X: eta, Y: r.OneStep.Fitted[i]})
		}
		l := b.Line(s.sizeColour(r.Cell.S), false, xy)
		if !seen[r.Cell.S] {
			seen[r.Cell.S] = true
			b.Name("S = "+strconv.Itoa(r.Cell.S), l)
		}
	}
	// Last, since actors that obey their η lie on it.
	b.Name("supplied", b.Line(color.Black, true, plotter.XYs{{X: 0.4, Y: 0.4}, {X: 1.2, Y: 1.2}}))
	return []*plots.Panel{a, b}, nil
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

func closedFigure(s *source) ([]*plots.Panel, error) {
	const horizon = 20
	a := plots.NewPanel("(a) S = 4 runs, exact critic", "run", "loss / exact PMD at T = 20")
	b := plots.NewPanel("(b) shifts without retraining", "", "loss / exact PMD at T = 20")
	for _, p := range []*plots.Panel{a, b} {
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
	a.Legend.Add("paper's runs", a.Points(plots.Grey, false, quotes))
	if len(xy) == 0 {
		empty(a)
	} else {
		a.Legend.Add("ours", a.Points(s.colour(experiment.PolicyAttention), true, xy))
	}
	a.NominalX(names...)
	if err := s.shiftsPanel(b, horizon); err != nil {
		return nil, err
	}
	for p, n := range map[*plots.Panel]int{a: len(experiment.PaperProtocol.Sizes[4].Runs), b: len(mdp.Shifts)} {
		for _, y := range []float64{1, experiment.PaperProtocol.Margin} {
			p.Line(plots.Grey, true, plotter.XYs{{X: -0.4, Y: y}, {X: float64(n) - 0.6, Y: y}})
		}
		if p.Y.Max > 4 { // far from the margin: show it all the same
			p.Y.Min = 0.5
			plots.LogScale(&p.Y)
		}
	}
	return []*plots.Panel{a, b}, nil
}

// massFigure draws the study of package lockup that lies beside the presets.
func massFigure(s *source) ([]*plots.Panel, error) {
	study, err := lockup.Read(lockup.Path(filepath.Dir(s.Store.Root())))
	if errors.Is(err, fs.ErrNotExist) {
		p := plots.NewPanel("lock-up", "", "")
		empty(p)
		return []*plots.Panel{p}, nil
	}
	if err != nil {
		return nil, err
	}
	all := plots.NewPanel("(a) median over problems", "mass of the best action in π₀", fmt.Sprintf("loss at T = %d", study.Rounds))
	worst := plots.NewPanel("(b) worst problem", "mass of the best action in π₀", fmt.Sprintf("loss at T = %d", study.Rounds))
	// Exact PMD is the first curve, and drawn last: others lie under it.
	for i := len(study.Curves) - 1; i >= 0; i-- {
		c, colour := study.Curves[i], color.Color(color.Black)
		if i > 0 {
			colour = plots.Palette[i-1]
		}
		var medians, tops plotter.XYs
		for j, median := range c.Medians() {
			medians = append(medians, plotter.XY{X: study.Masses[j], Y: median})
			tops = append(tops, plotter.XY{X: study.Masses[j], Y: slices.Max(c.Loss[j])})
		}
		for p, xy := range map[*plots.Panel]plotter.XYs{all: medians, worst: tops} {
			l := p.Line(colour, i == 0, xy)
			if p == all {
				p.Legend.Add(c.Actor, l) // all lines end at one point
			}
		}
	}
	plots.LogLog(all, worst)
	all.Headroom(len(study.Curves))
	return []*plots.Panel{all, worst}, nil
}

// shiftsPanel draws the ratios to exact PMD on the families without retraining.
func (s *source) shiftsPanel(b *plots.Panel, horizon int) error {
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
		median := b.Points(s.colour(experiment.PolicyAttention), true, plotter.XYs{{X: float64(i), Y: estimate.Value}})
		each := b.Points(color.Black, false, xy) // on the median, which would hide them
		if i == 0 {
			b.Legend.Add("ours, median", median)
			b.Legend.Add("each run", each)
		}
	}
	for i, family := range mdp.Shifts { // beside ours, which would hide it
		at := plotter.XYs{{X: float64(i) + 0.25, Y: results.Paper(results.Key{Block: experiment.Shift, Quantity: string(family), S: 4, T: horizon}).Value}}
		of := b.Points(plots.Grey, true, at)
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
func roundsFigure(s *source) ([]*plots.Panel, error) {
	var panels []*plots.Panel
	for _, x := range []struct {
		block  experiment.Block
		states int
	}{{experiment.Confirmation, 4}, {experiment.Benchmark, 8}, {experiment.Benchmark, 16}} {
		for _, of := range []struct {
			name    string
			summary func([]float64) float64
		}{{"median", stats.Median}, {"mean", stats.Mean}} {
			p := plots.NewPanel(fmt.Sprintf("S = %d", x.states), "round", of.name+" normalized loss")
			drawn, err := s.overRounds(p, x.block, x.states, of.summary, of.name == "mean")
			if err != nil {
				return nil, err
			}
			if !drawn {
				empty(p)
			} else {
				p.Y.Min = max(p.Y.Min, 1e-7) // what is below has no loss but for rounding
				plots.LogScale(&p.Y)
			}
			panels = append(panels, p)
		}
	}
	return panels, nil
}

// overRounds draws a summary of the losses of every run of a block but those that are parts of
// others, and reports whether there are any. With names, the line of a method's first run is
// named, and that of the first with tuned step sizes.
func (s *source) overRounds(p *plots.Panel, block experiment.Block, states int, summary func([]float64) float64, names bool) (drawn bool, err error) {
	for _, method := range s.Store.Preset.Methods {
		runs, err := s.Find(results.Selection{Block: block, Method: method.Name, S: states})
		if err != nil {
			return false, err
		}
		named := map[string]bool{}
		for _, r := range runs.Found {
			if method.Whole(r.Cell.Recipe) != r.Cell.Recipe {
				continue
			}
			label := method.Label
			if slices.Contains(method.Tuned, r.Cell.Recipe) {
				label += ", tuned"
			}
			var xy plotter.XYs
			for k := range r.Scored[0].Loss {
				if loss := summary(r.Losses(k)); loss > 0 {
					xy = append(xy, plotter.XY{X: float64(k), Y: loss})
				}
			}
			l := p.Line(method.Colour, method.Name == experiment.ExactPMD, xy)
			if drawn = true; names && !named[label] {
				named[label] = true
				p.Name(label, l)
			}
		}
	}
	return drawn, nil
}

func frontierFigure(s *source) ([]*plots.Panel, error) {
	var panels []*plots.Panel
	for _, states := range []int{4, 8} {
		p := plots.NewPanel(fmt.Sprintf("S = %d", states), "mean ζ over rounds 0–19", "median loss at T = 20")
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
			p.Legend.Add(s.Series(method, "").Label, p.Line(s.colour(method), false, path))
			p.Points(s.colour(method), false, path)
			if len(best) > 0 {
				p.Points(s.colour(method), true, best)
			}
		}
		if !drawn {
			empty(p)
		} else {
			envelope(p, all)
			quotedFrontier(p, all)
			plots.LogLog(p)
			p.Headroom(4)
			p.Legend.Left = true
		}
		panels = append(panels, p)
	}
	p, key, err := endpointsPanel(s)
	return append(panels, p, key), err
}

// envelope joins the points that no other point of either objective beats in
// both coordinates.
func envelope(p *plots.Panel, all []results.Budget) {
	var xy plotter.XYs
	for _, x := range all {
		if x.Envelope {
			xy = append(xy, x.At())
		}
	}
	slices.SortFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	p.Legend.Add("not dominated", p.Line(plots.Grey, true, xy))
}

// quotedFrontier adds the points that the paper prints.
func quotedFrontier(p *plots.Panel, all []results.Budget) {
	var xy plotter.XYs
	for _, x := range all {
		if x.Zeta.Paper != nil && x.Loss.Paper != nil {
			xy = append(xy, plotter.XY{X: x.Zeta.Paper.Value, Y: x.Loss.Paper.Value})
		}
	}
	if len(xy) > 0 {
		p.Legend.Add("PolicyAttention, paper", p.Points(plots.Grey, true, xy))
	}
}

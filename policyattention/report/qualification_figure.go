package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/plots"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// imitationFigure shows the training of a method that imitates a teacher, and the one in its
// source's own shape in closed loop beside its teacher.
func imitationFigure(s *source, name method.Name) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) training", "optimizer step", "squared error of an update")
	b := plots.NewPanel("(b) closed loop in the native shape", "updates", "mean exact value")
	found, err := s.Find(results.Selection{Block: experiment.Qualification, Method: name})
	if err != nil {
		return nil, err
	}
	var shapes []string
	native := false
	for _, r := range found.Found {
		run, err := s.Training(r.Config.Trainings()[0])
		if err != nil {
			return nil, err
		}
		if run != nil {
			losses, err := run.Losses()
			if err != nil {
				return nil, err
			}
			var c struct {
				States, Actions int
				Gamma           float64
			}
			if err := json.Unmarshal(run.Manifest.Get(run.Config.Key()), &c); err != nil {
				return nil, err
			}
			shape := fmt.Sprintf("S = %d, A = %d, γ = %v", c.States, c.Actions, c.Gamma)
			at := slices.Index(shapes, shape)
			added := at < 0
			if added {
				at, shapes = len(shapes), append(shapes, shape)
			}
			l := a.Line(plots.Palette[at], false, blockMeans(losses, 1))
			if added {
				a.Legend.Add(shape, l)
			}
		}
		if r.Cell.Recipe != "native" {
			continue
		}
		native = true
		var learned, teacher plotter.XYs
		for k, n := range results.Imitation(r).Updates {
			learned = append(learned, plotter.XY{X: float64(n), Y: results.Imitation(r).Learned[k]})
			teacher = append(teacher, plotter.XY{X: float64(n), Y: results.Imitation(r).Teacher[k]})
		}
		l := b.Line(plots.Grey, false, teacher)
		dots := plots.Mark(s.colour(name), draw.RingGlyph{}, learned...)
		b.Add(dots)
		b.Legend.Add("teacher", l)
		b.Legend.Add("trained block", dots)
		b.Legend.Top = false
	}
	if len(shapes) == 0 {
		empty(a)
	} else {
		plots.LogScale(&a.Y)
	}
	if !native {
		empty(b)
	}
	return []*plots.Panel{a, b}, nil
}

// lifeFigure shows a method's losses over the rounds of a life, by recipe, and problem by
// problem.
func lifeFigure(s *source, m method.Method) ([]*plots.Panel, error) {
	var panels []*plots.Panel
	list := s.SampledSeries(experiment.Qualification)
	list = slices.DeleteFunc(list, func(x results.Series) bool { return x.Method != m.Name })
	for i, states := range []int{8, 16} {
		p := plots.NewPanel(fmt.Sprintf("(%c) S = %d", 'a'+i, states), "round", "median normalized loss")
		drawn := 0
		for j, x := range list {
			runs, err := s.Find(x.In(experiment.Qualification, states))
			if err != nil {
				return nil, err
			}
			for n, r := range runs.Found {
				var xy plotter.XYs
				for k, loss := range r.MedianLosses()[1:] {
					xy = append(xy, plotter.XY{X: float64(k + 1), Y: loss})
				}
				l := p.Line(plots.Palette[j%len(plots.Palette)], false, xy)
				if n == 0 {
					p.Legend.Add(x.Recipe, l)
					drawn++
				}
			}
		}
		if drawn == 0 {
			empty(p)
		} else {
			var quoted plotter.XYs
			for _, recipe := range m.Printed[:min(1, len(m.Printed))] {
				for _, round := range []int{1, 40} {
					if n := results.Paper(results.Key{Block: experiment.Qualification, Quantity: fmt.Sprintf("loss after round %d %s", round, recipe), S: states}); n != nil {
						quoted = append(quoted, plotter.XY{X: float64(round), Y: n.Value})
					}
				}
				dots := plots.Mark(plots.Grey, draw.CircleGlyph{}, quoted...)
				p.Add(dots)
				p.Legend.Add(recipe+", paper", dots)
			}
			p.Y.Min, p.Y.Max = 0, math.Max(1, p.Y.Max)
			p.Headroom(drawn + 1)
		}
		panels = append(panels, p)
	}
	p := plots.NewPanel("(c) S = 8, MDP by MDP", "loss after round 1", "loss after round 40")
	drawn, top := 0, 1.0
	for j, x := range list {
		runs, err := s.Find(x.In(experiment.Qualification, 8))
		if err != nil {
			return nil, err
		}
		for n, r := range runs.Found {
			var xy plotter.XYs
			for i, first := range r.Losses(1) {
				last := r.Losses(40)[i]
				xy = append(xy, plotter.XY{X: first, Y: last})
				top = max(top, first, last)
			}
			// Marks in outline: many lie on each other.
			shape := plots.Shapes[(len(plots.Shapes)/2+j)%len(plots.Shapes)]
			dots := plots.Mark(plots.Palette[j%len(plots.Palette)], shape, xy...)
			p.Add(dots)
			if n == 0 {
				p.Legend.Add(x.Recipe, dots)
				drawn++
			}
		}
	}
	if drawn == 0 {
		empty(p)
		return append(panels, p), nil
	}
	p.Line(plots.Grey, true, plotter.XYs{{X: 0, Y: 0}, {X: top, Y: top}})
	p.Headroom(drawn)
	p.Legend.Left = true
	return append(panels, p), nil
}

// tuningFigure shows the losses on calibration problems over step sizes, and where the
// paper's grids end: a panel a size for methods that are tuned on a grid, one for others.
func tuningFigure(s *source) ([]*plots.Panel, error) {
	var panels []*plots.Panel
	title := func(text string) string { return fmt.Sprintf("(%c) %s", 'a'+len(panels), text) }
	for _, m := range s.Store.Preset.Methods {
		if len(m.Tuning.Grids) > 0 {
			for _, states := range []int{8, 16} {
				p, err := gridPanel(s, m, states, title(fmt.Sprintf("%s, S = %d, %s", m.Label, states, m.Tuning.Says)))
				if err != nil {
					return nil, err
				}
				panels = append(panels, p)
			}
		} else if m.Tuning.Axis != "" {
			p, err := recipesPanel(s, m, title(fmt.Sprintf("%s, %s", m.Label, m.Tuning.Says)))
			if err != nil {
				return nil, err
			}
			panels = append(panels, p)
		}
	}
	return panels, nil
}

// gridPanel shows the best loss of each step size on a method's grids.
func gridPanel(s *source, m method.Method, states int, title string) (*plots.Panel, error) {
	p := plots.NewPanel(title, m.Tuning.Axis, "calibration loss at T = 20")
	lines := 0
	for _, g := range m.Tuning.Grids {
		grid, err := s.Grid(m.Name, g.Recipe, states)
		if err != nil {
			return nil, err
		}
		for _, start := range []baseline.Start{baseline.Initial, baseline.Uniform} {
			if len(grid.Found) == 0 {
				continue
			}
			var xy plotter.XYs
			for _, score := range results.Along(grid.Found[0], start) {
				xy = append(xy, plotter.XY{X: score.Alpha, Y: score.Loss[0]})
			}
			if len(xy) == 0 {
				continue
			}
			tuned(p, lines, "from "+results.StartNames[start]+g.Label, xy)
			lines++
		}
	}
	if lines == 0 {
		empty(p)
		return p, nil
	}
	steps, err := s.PrintedRates(m.Name, states)
	if err != nil {
		return nil, err
	}
	if n := results.InBenchmark(string(m.Name), states, 20); n != nil {
		dot := plots.Mark(plots.Grey, draw.CircleGlyph{}, plotter.XY{X: steps.Alpha, Y: n.Value})
		p.Add(dot)
		p.Legend.Add("paper's loss", dot)
	}
	gridEnd(p, steps.Alpha, lines+2)
	return p, nil
}

// recipesPanel shows the loss of each step size that a method has a recipe for.
func recipesPanel(s *source, m method.Method, title string) (*plots.Panel, error) {
	p := plots.NewPanel(title, m.Tuning.Axis, "calibration loss at T = 20")
	drawn := false
	for j, states := range []int{8, 16} {
		runs, err := s.Find(results.Selection{Block: experiment.Tuning, Method: m.Name, S: states})
		if err != nil {
			return nil, err
		}
		var xy plotter.XYs
		for _, r := range runs.Found {
			xy = append(xy, plotter.XY{X: results.Rates(r).Alpha, Y: stats.Median(r.Losses(20))})
		}
		if len(xy) == 0 {
			continue
		}
		drawn = true
		tuned(p, j, fmt.Sprintf("S = %d", states), xy)
	}
	if !drawn {
		empty(p)
		return p, nil
	}
	steps, err := s.PrintedRates(m.Name, 8)
	if err != nil {
		return nil, err
	}
	gridEnd(p, steps.Alpha, 3)
	return p, nil
}

// tuned adds a line of losses by step size, with its lowest point marked.
func tuned(p *plots.Panel, colour int, label string, xy plotter.XYs) {
	slices.SortFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	l := p.Line(plots.Palette[colour], false, xy)
	p.Points(plots.Palette[colour], false, xy)
	lowest := slices.MinFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.Y, b.Y) })
	p.Points(plots.Palette[colour], true, plotter.XYs{lowest})
	p.Legend.Add(label, l)
}

// gridEnd marks the step size that the paper chose, the last of its grid, and
// finishes the panel, whose legend then has n lines.
func gridEnd(p *plots.Panel, alpha float64, n int) {
	p.Legend.Add("paper's choice", p.Line(plots.Grey, true, plotter.XYs{{X: alpha, Y: p.Y.Min}, {X: alpha, Y: p.Y.Max}}))
	plots.LogLog(p)
	p.Headroom(n)
}

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// liangLaiFigure shows the training of the blocks, and the native one in closed
// loop beside its teacher.
func liangLaiFigure(s *source) ([]*plot.Plot, error) {
	a := Panel("(a) training", "optimizer step", "squared error of an update")
	b := Panel("(b) closed loop in the native shape", "updates", "mean exact value")
	found, err := s.Find(results.Selection{Block: experiment.Qualification, Method: experiment.LiangLai})
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
			l, err := line(a, palette[at], false, blockMeans(losses, 1))
			if err != nil {
				return nil, err
			}
			if added {
				a.Legend.Add(shape, l)
			}
		}
		if r.Cell.S != results.NativeStates {
			continue
		}
		native = true
		var learned, teacher plotter.XYs
		for k, n := range results.Imitation(r).Updates {
			learned = append(learned, plotter.XY{X: float64(n), Y: results.Imitation(r).Learned[k]})
			teacher = append(teacher, plotter.XY{X: float64(n), Y: results.Imitation(r).Teacher[k]})
		}
		l, err := line(b, grey, false, teacher)
		if err != nil {
			return nil, err
		}
		dots := mark(s.colour(experiment.LiangLai), draw.RingGlyph{}, learned...)
		b.Add(dots)
		b.Legend.Add("teacher", l)
		b.Legend.Add("trained block", dots)
		b.Legend.Top = false
	}
	if len(shapes) == 0 {
		empty(a)
	} else {
		LogScale(&a.Y)
	}
	if !native {
		empty(b)
	}
	return []*plot.Plot{a, b}, nil
}

// distillationFigure shows Algorithm Distillation's losses over the rounds of a
// life, by recipe, and problem by problem.
func distillationFigure(s *source) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	list := s.SampledSeries(experiment.Qualification)
	list = slices.DeleteFunc(list, func(x results.Series) bool { return x.Method != experiment.Distillation })
	for i, states := range []int{8, 16} {
		p := Panel(fmt.Sprintf("(%c) S = %d", 'a'+i, states), "round", "median normalized loss")
		drawn := 0
		for j, x := range list {
			runs, err := s.Find(x.In(experiment.Qualification, states))
			if err != nil {
				return nil, err
			}
			for _, r := range runs.Found {
				var xy plotter.XYs
				for k, loss := range r.MedianLosses()[1:] {
					xy = append(xy, plotter.XY{X: float64(k + 1), Y: loss})
				}
				l, err := line(p, palette[j%len(palette)], false, xy)
				if err != nil {
					return nil, err
				}
				p.Legend.Add(x.Recipe, l)
				drawn++
			}
		}
		if drawn == 0 {
			empty(p)
		} else {
			var quoted plotter.XYs
			for _, round := range []int{1, 40} {
				if n := results.Paper(results.Key{Block: experiment.Qualification, Quantity: fmt.Sprintf("loss after round %d full", round), S: states}); n != nil {
					quoted = append(quoted, plotter.XY{X: float64(round), Y: n.Value})
				}
			}
			dots := mark(grey, draw.CircleGlyph{}, quoted...)
			p.Add(dots)
			p.Legend.Add("full, paper", dots)
			p.Y.Min, p.Y.Max = 0, math.Max(1, p.Y.Max)
			headroom(p, drawn+1)
		}
		panels = append(panels, p)
	}
	p := Panel("(c) S = 8, MDP by MDP", "loss after round 1", "loss after round 40")
	drawn, top := 0, 1.0
	for j, x := range list {
		runs, err := s.Find(x.In(experiment.Qualification, 8))
		if err != nil {
			return nil, err
		}
		for _, r := range runs.Found {
			var xy plotter.XYs
			for i, first := range r.Losses(1) {
				last := r.Losses(40)[i]
				xy = append(xy, plotter.XY{X: first, Y: last})
				top = max(top, first, last)
			}
			dots, err := points(p, palette[j%len(palette)], false, xy)
			if err != nil {
				return nil, err
			}
			p.Legend.Add(x.Recipe, dots)
			drawn++
		}
	}
	if drawn == 0 {
		empty(p)
		return append(panels, p), nil
	}
	if _, err := line(p, grey, true, plotter.XYs{{X: 0, Y: 0}, {X: top, Y: top}}); err != nil {
		return nil, err
	}
	headroom(p, drawn)
	p.Legend.Left = true
	return append(panels, p), nil
}

// tuningFigure shows the losses on calibration problems over step sizes, and
// where the paper's grids end.
func tuningFigure(s *source) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	for i, states := range []int{8, 16} {
		p := Panel(fmt.Sprintf("(%c) Liang–Lai, S = %d, best β", 'a'+i, states), "actor step α", "calibration loss at T = 20")
		panels = append(panels, p)
		lines := 0
		for j, x := range []struct {
			recipe, label string
			start         baseline.Start
		}{{"", "from π₀", baseline.Initial}, {"", "from uniform", baseline.Uniform}, {"features", "from π₀, dense features", baseline.Initial}} {
			grid, err := s.Grid(x.recipe, states)
			if err != nil {
				return nil, err
			}
			if len(grid.Found) == 0 {
				continue
			}
			var xy plotter.XYs
			for _, score := range results.Along(grid.Found[0], x.start) {
				xy = append(xy, plotter.XY{X: score.Alpha, Y: score.Loss[0]})
			}
			if err := tuned(p, j, x.label, xy); err != nil {
				return nil, err
			}
			lines++
		}
		if lines == 0 {
			empty(p)
			continue
		}
		steps, err := s.PrintedRates(experiment.LiangLai, states)
		if err != nil {
			return nil, err
		}
		if n := results.Paper(results.Key{Block: experiment.Benchmark, Quantity: string(experiment.LiangLai), S: states, T: 20}); n != nil {
			dot := mark(grey, draw.CircleGlyph{}, plotter.XY{X: steps.Alpha, Y: n.Value})
			p.Add(dot)
			p.Legend.Add("paper's loss", dot)
		}
		if err := gridEnd(p, steps.Alpha, lines+2); err != nil {
			return nil, err
		}
	}
	p := Panel("(c) Algorithm Distillation, CPU budget", "actor step α of the source", "calibration loss at T = 20")
	drawn := false
	for j, states := range []int{8, 16} {
		runs, err := s.Find(results.Selection{Block: experiment.Tuning, Method: experiment.Distillation, S: states})
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
		if err := tuned(p, j, fmt.Sprintf("S = %d", states), xy); err != nil {
			return nil, err
		}
	}
	if panels = append(panels, p); !drawn {
		empty(p)
		return panels, nil
	}
	return panels, gridEnd(p, sourceRate, 3)
}

// sourceRate is the actor step of Algorithm Distillation's source in the paper, at which
// its grid ends.
const sourceRate = 4.

// tuned adds a line of losses by step size, with its lowest point marked.
func tuned(p *plot.Plot, colour int, label string, xy plotter.XYs) error {
	slices.SortFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	l, err := line(p, palette[colour], false, xy)
	if err != nil {
		return err
	}
	if _, err := points(p, palette[colour], false, xy); err != nil {
		return err
	}
	lowest := slices.MinFunc(xy, func(a, b plotter.XY) int { return cmp.Compare(a.Y, b.Y) })
	if _, err := points(p, palette[colour], true, plotter.XYs{lowest}); err != nil {
		return err
	}
	p.Legend.Add(label, l)
	return nil
}

// gridEnd marks the step size that the paper chose, the last of its grid, and
// finishes the panel, whose legend then has n lines.
func gridEnd(p *plot.Plot, alpha float64, n int) error {
	l, err := line(p, grey, true, plotter.XYs{{X: alpha, Y: p.Y.Min}, {X: alpha, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	p.Legend.Add("paper's choice", l)
	LogScale(&p.X)
	LogScale(&p.Y)
	headroom(p, n)
	return nil
}

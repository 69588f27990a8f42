package report

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/plots"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// Figures of the benchmark.

// methodsFigure shows the benchmark's losses at T = 20, a panel a size and a line
// a method.
func methodsFigure(s *source) ([]*plots.Panel, error) {
	const horizon = 20
	var panels []*plots.Panel
	for _, states := range []int{8, 16} {
		p := plots.NewPanel(fmt.Sprintf("S = %d, T = %d", states, horizon), "median normalized loss", "")
		var names []string
		quoted, drawn := false, false
		list := s.BenchmarkSeries()
		slices.Reverse(list) // the first at the top
		for _, x := range list {
			runs, err := s.Find(x.In(experiment.Benchmark, states))
			if err != nil {
				return nil, err
			}
			if runs.Planned == 0 {
				continue
			}
			n := results.InBenchmark(string(x.Method), states, horizon)
			if n != nil && !x.Quoted {
				n = nil
			}
			if n == nil && len(runs.Found) == 0 {
				continue
			}
			y := float64(len(names))
			names = append(names, x.String())
			if n != nil {
				p.Add(plots.Mark(plots.Grey, draw.PyramidGlyph{}, plotter.XY{X: n.Value, Y: y}))
				quoted = true
			}
			if len(runs.Found) == 0 {
				continue
			}
			medians := runs.Medians(horizon)
			for _, m := range medians {
				p.Add(plots.Mark(s.colour(x.Method), draw.RingGlyph{}, plotter.XY{X: m, Y: y}))
			}
			p.Add(plots.Mark(s.colour(x.Method), draw.CircleGlyph{}, plotter.XY{X: stats.Median(medians), Y: y}))
			drawn = true
		}
		if !drawn {
			empty(p)
		} else {
			p.Legend.Add("median of runs", plots.Mark(color.Black, draw.CircleGlyph{}))
			p.Legend.Add("single runs", plots.Mark(color.Black, draw.RingGlyph{}))
			if quoted {
				p.Legend.Add("paper", plots.Mark(plots.Grey, draw.PyramidGlyph{}))
			}
			plots.LogScale(&p.X)
			p.NominalY(names...)
			p.Y.Min, p.Y.Max = -.5, float64(len(names))-.5
			p.Headroom(2)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// endpointsPanel places every method of the benchmark on the plane of deviation
// from exact PMD and loss, with the non-dominated envelope of the sampled ones at
// each size. The key stands beside it.
func endpointsPanel(s *source) (p, key *plots.Panel, err error) {
	const horizon = 20
	p, key = plots.NewPanel("every method", "mean row-L1 to exact PMD, rounds 0–19", "median loss at T = 20"), plots.KeyPanel("")
	// A method's mark is filled at S = 8, in outline at 16, and larger with a tuned step size.
	const methods, tuned = 6, 1.6
	outline := map[int]int{8: 0, 16: methods}
	marks := map[method.Name]int{}
	var front *plotter.Line
	for _, states := range []int{8, 16} {
		var sampled plotter.XYs
		for _, x := range s.BenchmarkSeries() {
			if x.Method == experiment.ExactPMD {
				continue // at deviation zero
			}
			runs, err := s.Find(x.In(experiment.Benchmark, states))
			if err != nil {
				return nil, nil, err
			}
			if len(runs.Found) == 0 {
				continue
			}
			at := plotter.XY{X: stats.Median(runs.RowL1()), Y: stats.Median(runs.Medians(horizon))}
			n, named := marks[x.Method]
			if !named {
				n = len(marks) % methods
				marks[x.Method] = n
				key.Legend.Add(x.Label, plots.Mark(s.colour(x.Method), plots.Shapes[n]))
			}
			mark := plots.Mark(s.colour(x.Method), plots.Shapes[n+outline[states]], at)
			if x.Tuned {
				mark.Radius *= tuned
			}
			p.Add(mark)
			if x.Sampled {
				sampled = append(sampled, at)
			}
		}
		if envelope := results.NonDominated(sampled); len(envelope) > 1 {
			front = p.Line(plots.Grey, true, envelope)
		}
	}
	if len(marks) == 0 {
		empty(p)
		return p, key, nil
	}
	key.Legend.Add("S = 8", plots.Mark(plots.Grey, plots.Shapes[0]))
	key.Legend.Add("S = 16", plots.Mark(plots.Grey, plots.Shapes[methods]))
	larger := plots.Mark(plots.Grey, plots.Shapes[0])
	larger.Radius *= tuned
	key.Legend.Add("tuned", larger)
	if front != nil {
		key.Legend.Add("best sampled", front)
	}
	plots.LogLog(p)
	p.Y.Max *= 1.2
	return p, key, nil
}

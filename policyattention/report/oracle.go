package report

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// palette holds colours for what is no method, apart for colour-blind readers.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{0, 158, 115, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 0, 0, 255},
}

// oracleFigure shows exact PMD in closed loop: its loss beside the paper's,
// what Theorem 2 says of it, and the same loop with other fixed rules.
func oracleFigure(s *source) ([]*panel, error) {
	a := newPanel("(a) exact PMD", "round", "median normalized loss")
	drawn, quoted := false, false
	for i, states := range s.Sizes(experiment.Oracle) {
		found, err := s.Find(results.Selection{Block: experiment.Oracle, Method: experiment.ExactPMD, S: states})
		if err != nil {
			return nil, err
		}
		runs := found.Found
		if len(runs) == 0 {
			continue
		}
		l := line(a, palette[i], false, positive(runs[0].MedianLosses()))
		drawn = true
		a.name(fmt.Sprintf("S = %d", states), l)
		var quotes plotter.XYs
		for _, t := range horizons {
			if n := results.Paper(results.Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: states, T: t}); n != nil {
				quotes = append(quotes, plotter.XY{X: float64(t), Y: n.Value})
			}
		}
		if len(quotes) > 0 {
			paper := points(a, palette[i], false, quotes)
			if !quoted {
				a.Legend.Add("paper", paper)
				quoted = true
			}
		}
	}
	b := newPanel("(b) Theorem 2 for exact PMD", "horizon T", "median over MDPs, units of Q")
	c := newPanel("(c) fixed rules in the loop", "round", "median normalized loss")
	panels := []*panel{a, b, c}
	states := s.LectureSize(experiment.Oracle)
	found, err := s.Find(results.Selection{Block: experiment.Oracle, Method: experiment.ExactPMD, S: states})
	if err != nil {
		return nil, err
	}
	runs := found.Found
	if !drawn || len(runs) == 0 {
		empty(panels...)
		return panels, nil
	}
	b.Title.Text += fmt.Sprintf(", S = %d", states)
	c.Title.Text += fmt.Sprintf(", S = %d", states)
	if err := oracleBound(b, runs[0]); err != nil {
		return nil, err
	}
	if err := rulesInLoop(c, runs[0], s.Store.Preset.Problems); err != nil {
		return nil, err
	}
	for _, p := range panels {
		LogScale(&p.Y)
	}
	return panels, nil
}

// positive returns the points of a series that a logarithmic axis can show.
func positive(values []float64) plotter.XYs {
	var xy plotter.XYs
	for k, v := range values {
		if v > 0 {
			xy = append(xy, plotter.XY{X: float64(k), Y: v})
		}
	}
	return xy
}

// oracleBound draws the terms of the returned-policy bound and what is realized.
func oracleBound(p *panel, e *experiment.Evaluation) error {
	names := []string{"bound", "initial error", "greedy defects", "last defect", "realized"}
	series := make([][]float64, len(names))
	for t := 1; t < len(e.Scored[0].Loss); t++ {
		values := make([][]float64, len(names))
		for _, scored := range e.Scored {
			bound, slack, err := scored.Bound(t)
			if err != nil {
				return err
			}
			for i, v := range []float64{bound.Total(), bound.Initial, bound.Greedy, bound.Last, bound.Total() - slack} {
				values[i] = append(values[i], v)
			}
		}
		for i := range names {
			series[i] = append(series[i], stats.Median(values[i]))
		}
	}
	for i, name := range names {
		xy := positive(series[i])
		for j := range xy {
			xy[j].X++
		}
		p.name(name, line(p, palette[(i+5)%len(palette)], false, xy))
	}
	return nil
}

// rulesInLoop draws the loop of the exact critic with each fixed rule as actor.
func rulesInLoop(p *panel, e *experiment.Evaluation, n int) error {
	fixtures := e.Config.Fixtures
	fixtures.Problems = min(n, fixtures.Problems)
	problems, err := fixtures.Draw()
	if err != nil {
		return err
	}
	for i, rule := range pmd.Rules {
		loop := control.Loop{Actor: control.RuleActor(rule), Critic: control.ExactCritic{}, Eta: experiment.PaperProtocol.Eta}
		trajectories, err := loop.Run(problems, experiment.PaperProtocol.Rounds)
		if err != nil {
			return err
		}
		scored, err := control.Score(problems, trajectories)
		if err != nil {
			return err
		}
		p.name(string(rule), line(p, palette[i], false, positive((&experiment.Evaluation{Scored: scored}).MedianLosses())))
	}
	return nil
}

package report

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/plots"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// oracleFigure shows exact PMD in closed loop: its loss beside the paper's,
// what Theorem 2 says of it, and the same loop with other fixed rules.
func oracleFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) exact PMD", "round", "median normalized loss")
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
		l := a.Line(plots.Palette[i], false, positive(runs[0].MedianLosses()))
		drawn = true
		a.Name(fmt.Sprintf("S = %d", states), l)
		var quotes plotter.XYs
		for _, t := range horizons {
			if n := results.Paper(results.Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: states, T: t}); n != nil {
				quotes = append(quotes, plotter.XY{X: float64(t), Y: n.Value})
			}
		}
		if len(quotes) > 0 {
			paper := a.Points(plots.Palette[i], false, quotes)
			if !quoted {
				a.Legend.Add("paper", paper)
				quoted = true
			}
		}
	}
	b := plots.NewPanel("(b) Theorem 2 for exact PMD", "horizon T", "median over MDPs, units of Q")
	c := plots.NewPanel("(c) fixed rules in the loop", "round", "median normalized loss")
	panels := []*plots.Panel{a, b, c}
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
		plots.LogScale(&p.Y)
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
func oracleBound(p *plots.Panel, e *experiment.Evaluation) error {
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
		p.Name(name, p.Line(plots.Palette[(i+5)%len(plots.Palette)], false, xy))
	}
	return nil
}

// rulesInLoop draws the loop of the exact critic with each fixed rule as actor.
func rulesInLoop(p *plots.Panel, e *experiment.Evaluation, n int) error {
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
		p.Name(string(rule), p.Line(plots.Palette[i], false, positive((&experiment.Evaluation{Scored: scored}).MedianLosses())))
	}
	return nil
}

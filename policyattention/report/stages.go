package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/plots"
	"icrl/policyattention/results"
)

// stagesTable shows runs that are made in parts along their training.
func stagesTable(s *source) (Table, error) {
	t := Table{Title: "Runs made in parts: loss along training"}
	rows, err := s.Stages()
	type R = results.StageRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) any { return r.Label }},
			{"S", func(r R) any { return r.S }},
			{"steps", func(r R) any { return r.Steps }},
			{"of", func(r R) any { return r.Of }},
			{"training loss", func(r R) any { return when(r.TrainingLoss > 0, r.TrainingLoss) }},
			{"source's training loss", func(r R) any { return when(r.SourceLoss > 0, r.SourceLoss) }},
			{"CPU-hours", func(r R) any { return when(r.Hours > 0, tenths(r.Hours)) }},
			{"T", func(r R) any { return r.T }},
			{"paper, at the end", func(r R) any { return quoted(r.Loss.Paper) }},
		},
		estimated("here", "95% interval", func(r R) results.Estimate { return r.Loss }),
		estimated("source's loss", "95% interval of that", func(r R) results.Estimate { return r.Source }),
		estimated("above the source, paired", "95% interval of this", func(r R) results.Estimate { return r.Above }),
		tails(func(r R) results.Tail { return r.Tail }),
		[]column[R]{{"runs", func(r R) any { return ofRuns(r.Loss) }}},
	)...)
	t.Notes = []string{"Training loss: cross-entropy in nats, the mean over the last hundredth of the steps so far. Source's training loss: that of the policies of the algorithm that it imitates, on the same windows; nothing predicts fresh actions better. CPU-hours: processor time of the first run so far, of steps on a GPU that of its host.", tailNote}
	return t, err
}

// stagesFigure draws the losses along such runs, a panel for each method and size.
func stagesFigure(s *source) ([]*plots.Panel, error) {
	rows, err := s.Stages()
	if err != nil {
		return nil, err
	}
	var panels []*plots.Panel
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r results.StageRow) bool { return r.Method != rows[0].Method || r.S != rows[0].S })
		if n < 0 {
			n = len(rows)
		}
		own := rows[:n]
		rows = rows[n:]
		p := plots.NewPanel(fmt.Sprintf("%s, S = %d", own[0].Label, own[0].S), "optimizer steps", "median loss")
		panels = append(panels, p)
		for i, horizon := range results.Horizons {
			var xy plotter.XYs
			var source results.Estimate // the same in all rows
			colour := plots.Palette[i]
			for _, r := range own {
				if r.T != horizon {
					continue
				}
				source = r.Source
				x := float64(r.Steps)
				xy = append(xy, plotter.XY{X: x, Y: r.Loss.Value})
				p.Bar(colour, x, r.Loss.Lo, r.Loss.Hi)
				if n := r.Loss.Paper; n != nil && len(xy) == 1 {
					end := plotter.XY{X: float64(r.Of), Y: n.Value}
					p.Add(plots.Mark(colour, plots.Shapes[0], end))
					p.Ends = append(p.Ends, plots.End{Name: fmt.Sprintf("the paper, T = %d", horizon), Colour: colour, X: end.X, Y: end.Y})
				}
			}
			p.Points(colour, false, xy)
			p.Name(fmt.Sprintf("T = %d", horizon), p.Line(colour, false, xy))
			if source.Runs > 0 {
				p.Name(fmt.Sprintf("its source, T = %d", horizon), p.Line(colour, true, plotter.XYs{{X: xy[0].X, Y: source.Value}, {X: float64(own[0].Of), Y: source.Value}}))
			}
		}
		plots.LogScale(&p.X)
		p.Y.Min = 0
	}
	if len(panels) == 0 {
		panels = []*plots.Panel{plots.NewPanel("runs made in parts", "optimizer steps", "median loss")}
		empty(panels...)
	}
	return panels, nil
}

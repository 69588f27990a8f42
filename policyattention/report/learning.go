package report

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/experiment"
	"icrl/policyattention/plots"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
)

// learningFigure shows the actors' training and how far they are from each
// fixed rule at inputs of each round.
func learningFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) training", "optimizer step", "proximal loss")
	b := plots.NewPanel("(b) distance by round of the input", "round", "mean row-L1")
	panels := []*plots.Panel{a, b}
	found, err := s.Find(results.Selection{Block: experiment.Mechanism, Method: experiment.PolicyAttention})
	if err != nil {
		return nil, err
	}
	runs := found.Found
	if len(runs) == 0 {
		empty(panels...)
		return panels, nil
	}
	seen := map[int]bool{}
	for _, r := range runs {
		run, err := s.Training(r.Config.Trainings()[0])
		if err != nil {
			return nil, err
		}
		if run == nil {
			continue
		}
		losses, err := run.Losses()
		if err != nil {
			return nil, err
		}
		l := a.Line(s.sizeColour(r.Cell.S), false, blockMeans(losses, max(1, len(losses)/100)))
		if !seen[r.Cell.S] {
			seen[r.Cell.S] = true
			a.Name(fmt.Sprintf("S = %d", r.Cell.S), l)
		}
	}
	states := s.LectureSize(experiment.Mechanism)
	b.Title.Text += fmt.Sprintf(", S = %d", states)
	for i, rule := range pmd.Rules {
		sum, count := map[int]float64{}, map[int]int{}
		for _, r := range runs {
			if r.Cell.S != states {
				continue
			}
			for j, d := range r.OneStep.Distances {
				round := int(r.OneStep.Rounds[j])
				sum[round] += d[rule]
				count[round]++
			}
		}
		var xy plotter.XYs
		for round := range experiment.PaperProtocol.HeldOutRounds + 1 {
			if count[round] > 0 && sum[round] > 0 {
				xy = append(xy, plotter.XY{X: float64(round), Y: sum[round] / float64(count[round])})
			}
		}
		b.Name(string(rule), b.Line(plots.Palette[i], false, xy))
	}
	plots.LogScale(&b.Y)
	return panels, nil
}

// blockMeans returns the means of consecutive blocks of losses, each at its last
// step.
func blockMeans(losses []experiment.Loss, size int) plotter.XYs {
	var xy plotter.XYs
	for end := size; end <= len(losses); end += size {
		sum := 0.0
		for _, l := range losses[end-size : end] {
			sum += l.Mean
		}
		xy = append(xy, plotter.XY{X: float64(losses[end-1].Step), Y: sum / float64(size)})
	}
	return xy
}

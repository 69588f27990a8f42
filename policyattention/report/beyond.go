package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// What the ablation says, in words and as a figure.

// measuredBoth keeps the recipes that have been run in the loop and on static inputs.
func measuredBoth(list []results.Group) []results.Group {
	return slices.DeleteFunc(slices.Clone(list), func(g results.Group) bool { return g.Loss.Runs == 0 || len(g.Static) == 0 })
}

// outcome says what the ablation at a size has found: which recipe has the
// smaller error on static inputs, which the lower loss, and how well either error
// orders the losses.
func outcome(list []results.Group, states int) string {
	list = measuredBoth(list)
	if len(list) < 2 {
		return fmt.Sprintf("Outcome at S = %d: %s for two recipes or more.", states, NotRun)
	}
	var static, visited, loss []float64
	for _, a := range list {
		static, visited, loss = append(static, stats.Median(a.Static)), append(visited, stats.Median(a.RowL1)), append(loss, a.Loss.Value)
	}
	best := func(v []float64) int { return slices.Index(v, slices.Min(v)) }
	text := fmt.Sprintf("Outcome at S = %d over %d recipes: the smallest error on static inputs is that of %s (%s), whose loss at T = 40 is %s and ranks %d; the lowest loss is that of %s (%s), whose static error ranks %d.",
		states, len(list), list[best(static)].Name, number(slices.Min(static)), number(loss[best(static)]), stats.Ranks(loss)[best(static)],
		list[best(loss)].Name, number(slices.Min(loss)), stats.Ranks(static)[best(loss)])
	return text + fmt.Sprintf(" Rank correlation with the loss: %s of the error on static inputs, %s of the error in the loop; in brackets what leaving out any one recipe makes of it. Pairs of which the one with the smaller static error has the higher loss: %d of %d; with the smaller error in the loop: %d of %d.",
		jackknifed(static, loss), jackknifed(visited, loss),
		stats.Inversions(static, loss), len(list)*(len(list)-1)/2, stats.Inversions(visited, loss), len(list)*(len(list)-1)/2)
}

// jackknifed returns the rank correlation with its range over all ways of leaving
// one entry out.
func jackknifed(x, y []float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range x {
		r := stats.RankCorrelation(slices.Delete(slices.Clone(x), i, i+1), slices.Delete(slices.Clone(y), i, i+1))
		lo, hi = min(lo, r), max(hi, r)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", stats.RankCorrelation(x, y), lo, hi)
}

// contrastFigure sets the closed-loop loss of each recipe against its error on
// static one-step inputs and on the inputs of its own loop.
func contrastFigure(s *source) ([]*panel, error) {
	a := newPanel("(a) static one-step inputs", "mean row-L1 to exact PMD", "loss / exact PMD at T = 40")
	b := newPanel("(b) inputs of the actor's own loop", "mean row-L1 to exact PMD, rounds 0–19", "loss / exact PMD at T = 40")
	panels := []*panel{a, b}
	states := s.LectureSize(experiment.Ablation)
	list, err := s.Ablation(states, 40)
	if err != nil {
		return nil, err
	}
	list = measuredBoth(list)
	if len(list) == 0 || list[0].Ratio.Runs == 0 {
		empty(panels...)
		return panels, nil
	}
	legend := keyPanel("recipe")
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}}
	for i, x := range list {
		for p, deviation := range map[*panel]float64{a: stats.Median(x.Static), b: stats.Median(x.RowL1)} {
			dot := points(p, palette[(i+5)%len(palette)], true, plotter.XYs{{X: deviation, Y: x.Ratio.Value}})
			dot.Shape = shapes[i%len(shapes)]
			if p == a {
				legend.Legend.Add(x.Name, dot)
			}
		}
	}
	logLog(panels...)
	return append(panels, legend), nil
}

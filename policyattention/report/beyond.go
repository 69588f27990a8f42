package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/experiment"
	"icrl/policyattention/plots"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
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
	if len(list) < 3 {
		return fmt.Sprintf("Outcome at S = %d: %s for three recipes or more.", states, NotRun)
	}
	var static, loss []float64
	for _, a := range list {
		static, loss = append(static, stats.Median(a.Static)), append(loss, a.Loss.Value)
	}
	best := func(v []float64) int { return slices.Index(v, slices.Min(v)) }
	text := fmt.Sprintf("Outcome at S = %d over %d recipes: the smallest error on static inputs is that of %s (%s), whose loss at T = 40 is %s and ranks %d; the lowest loss is that of %s (%s), whose static error ranks %d.",
		states, len(list), list[best(static)].Name, tables.Number(slices.Min(static)), tables.Number(loss[best(static)]), stats.Ranks(loss)[best(static)],
		list[best(loss)].Name, tables.Number(slices.Min(loss)), stats.Ranks(static)[best(loss)])
	for _, o := range orders(list) {
		text += fmt.Sprintf(" Rank correlation of the loss with the error %s: %s, p = %s (two-sided, by Student's t); pairs of which the one with the smaller error has the higher loss: %d of %d.",
			o.Error, o.correlation(), tables.Number(o.P), o.Inverted, o.Pairs)
	}
	return text + " In brackets what leaving out any one recipe makes of it."
}

// order says how well an error of recipes orders their losses at T = 40.
type order struct {
	Error           string
	Rho, Lo, Hi     float64 // Spearman's coefficient, and its range with any one recipe left out
	P               float64 // two-sided, of all orders being equally likely
	Inverted, Pairs int     // pairs of recipes, the inverted ones in the wrong order
}

// orders returns those of both errors, medians over runs; they have no ties.
func orders(list []results.Group) []order {
	var static, visited, loss []float64
	for _, a := range list {
		static, visited, loss = append(static, stats.Median(a.Static)), append(visited, stats.Median(a.RowL1)), append(loss, a.Loss.Value)
	}
	n := len(list)
	all := []order{{Error: "on static inputs"}, {Error: "in the loop"}}
	for k, x := range [][]float64{static, visited} {
		o := &all[k]
		o.Rho, o.Lo, o.Hi = stats.RankCorrelation(x, loss), math.Inf(1), math.Inf(-1)
		for i := range x {
			r := stats.RankCorrelation(slices.Delete(slices.Clone(x), i, i+1), slices.Delete(slices.Clone(loss), i, i+1))
			o.Lo, o.Hi = min(o.Lo, r), max(o.Hi, r)
		}
		o.P, o.Inverted, o.Pairs = stats.RankP(o.Rho, n), stats.Inversions(x, loss), n*(n-1)/2
	}
	return all
}

// correlation prints the coefficient with its range.
func (o order) correlation() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", o.Rho, o.Lo, o.Hi) }

// orderExcerpt says how well either error orders the losses of the ablation's recipes.
func orderExcerpt(s *source) (Table, error) {
	var t Table
	list, err := s.Ablation(s.LectureSize(experiment.Ablation), 40)
	if err != nil {
		return t, err
	}
	if list = measuredBoth(list); len(list) > 2 {
		fill(&t, orders(list), column[order]{"error", func(o order) any { return o.Error }},
			column[order]{"rank correlation", func(o order) any { return o.correlation() }}, column[order]{"p", func(o order) any { return fmt.Sprintf("%.2f", o.P) }})
	}
	return t, nil
}

// contrastFigure sets the closed-loop loss of each recipe against its error on
// static one-step inputs and on the inputs of its own loop.
func contrastFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) static one-step inputs", "mean row-L1 to exact PMD", "loss / exact PMD at T = 40")
	b := plots.NewPanel("(b) inputs of the actor's own loop", "mean row-L1 to exact PMD, rounds 0–19", "loss / exact PMD at T = 40")
	panels := []*plots.Panel{a, b}
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
	legend := plots.KeyPanel("recipe")
	for i, x := range list {
		for p, deviation := range map[*plots.Panel]float64{a: stats.Median(x.Static), b: stats.Median(x.RowL1)} {
			dot := p.Points(plots.Palette[(i+5)%len(plots.Palette)], true, plotter.XYs{{X: deviation, Y: x.Ratio.Value}})
			dot.Shape = plots.Shapes[i%len(plots.Shapes)]
			if p == a {
				legend.Legend.Add(x.Name, dot)
			}
		}
	}
	plots.LogLog(panels...)
	return append(panels, legend), nil
}

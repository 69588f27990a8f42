package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/experiment"
	"icrl/policyattention/pmd"
	"icrl/policyattention/stats"
)

// Tables and figures of what goes beyond the paper.

// oracle returns exact PMD on the evaluation problems of a size, or nil where it
// has not been run. All blocks of a size share these problems.
func (s *source) oracle(states int) ([]*experiment.Evaluation, error) {
	for _, block := range []experiment.Block{experiment.Confirmation, experiment.Benchmark, experiment.ZeroShot} {
		runs, err := s.runs(block, experiment.ExactPMD, states)
		if err != nil || len(runs) > 0 {
			return runs, err
		}
	}
	return nil, nil
}

// retrained returns the plain PolicyAttention runs of a size in the paper's
// blocks.
func (s *source) retrained(states int) (found []*experiment.Evaluation, planned int, err error) {
	return s.find(func(c experiment.Cell) bool {
		return (c.Block == experiment.Confirmation || c.Block == experiment.Benchmark) &&
			c.Method == experiment.PolicyAttention && c.S == states
	})
}

// ratio prints the median ratio of two samples' medians at a horizon and its
// interval, or NotRun where one is missing.
func ratio(x, y []*experiment.Evaluation, horizon int) ([]string, error) {
	if len(x) == 0 || len(y) == 0 {
		return []string{NotRun, ""}, nil
	}
	reference := losses(y, horizon)
	if y[0].Cell.Seed == 0 {
		reference = against(y, len(x), horizon)
	}
	e, err := stats.Standard.Ratio(losses(x, horizon), reference)
	if err != nil {
		return nil, err
	}
	value, span := estimated(e)
	return []string{value, span}, nil
}

// changes says in what each recipe differs from the plain one.
var changes = map[string]string{
	"plain": "", "prior": "log π added to the logits", "log-input": "π enters as log π",
	"random-contexts": "contexts: random policies", "early-rounds": "contexts: first rounds only", "uniform-rounds": "contexts: all rounds alike",
	"fixed-names": "states and actions keep their names", "last-weights": "last iterate, no average",
	"nominal-eta": "η = 0.8 in training", "wide-eta": "η from 0.1 to 1.5 in training",
}

// ablated are the results of one recipe at one size.
type ablated struct {
	recipe         string
	runs, contrast []*experiment.Evaluation // closed loop; static one-step inputs
	planned        int
}

// static returns each run's mean row-L1 to exact PMD on static one-step inputs.
func (a ablated) static() []float64 {
	var values []float64
	for _, e := range a.contrast {
		values = append(values, e.OneStep.MeanDistance(pmd.PMD))
	}
	return values
}

// visited returns each run's row-L1 in the contexts of the closed loop, rounds 0–19.
func (a ablated) visited() []float64 { return runDeviations(a.runs) }

// runDeviations returns each run's median over problems of the mean row-L1 over
// rounds 0–19.
func runDeviations(runs []*experiment.Evaluation) []float64 {
	return runMeans(runs, (*experiment.Evaluation).Deviations)
}

// runMeans returns each run's median over problems of a mean over rounds 0–19.
func runMeans(runs []*experiment.Evaluation, mean func(e *experiment.Evaluation, horizon int) []float64) []float64 {
	var medians []float64
	for _, r := range runs {
		medians = append(medians, stats.Median(mean(r, 20)))
	}
	return medians
}

// ablation returns the recipes in their order, the plain one first.
func (s *source) ablation(states int) ([]ablated, error) {
	var list []ablated
	for _, recipe := range experiment.RecipeNames() {
		a := ablated{recipe: recipe}
		of := func(block experiment.Block) (found []*experiment.Evaluation, planned int, err error) {
			return s.find(func(c experiment.Cell) bool { return c.Block == block && c.Recipe == recipe && c.S == states })
		}
		var err error
		if a.contrast, _, err = of(experiment.Contrast); err != nil {
			return nil, err
		}
		if a.runs, a.planned, err = of(experiment.Ablation); err != nil {
			return nil, err
		}
		if a.planned > 0 {
			list = append(list, a)
		}
	}
	return list, nil
}

func ablationTable(s *source) (Table, error) {
	t := Table{
		Title: "Training recipes at a small budget: one-step error and closed-loop loss",
		Columns: []string{
			"recipe", "what differs from plain", "S", "steps", "row-L1, static inputs", "range over runs", "row-L1, in the loop", "range over runs",
			"T = 20 / oracle", "95% interval", "T = 40 / oracle", "95% interval", "T = 40 / plain", "95% interval", "runs",
		},
	}
	for _, states := range s.sizes(experiment.Ablation) {
		oracle, err := s.oracle(states)
		if err != nil {
			return t, err
		}
		list, err := s.ablation(states)
		if err != nil {
			return t, err
		}
		for _, a := range list {
			row := []string{a.recipe, changes[a.recipe], fmt.Sprint(states), fmt.Sprint(s.store.Preset.Ablation), NotRun, "", NotRun, ""}
			if len(a.contrast) > 0 {
				row[4], row[5] = number(stats.Median(a.static())), extent(a.static())
			}
			if len(a.runs) > 0 {
				row[6], row[7] = number(stats.Median(a.visited())), extent(a.visited())
			}
			for _, horizon := range horizons {
				cells, err := ratio(a.runs, oracle, horizon)
				if err != nil {
					return t, err
				}
				row = append(row, cells...)
			}
			versus := []string{"", ""}
			if a.recipe != "plain" {
				x, y := pair(a.runs, list[0].runs)
				if versus, err = ratio(x, y, 40); err != nil {
					return t, err
				}
			}
			t.Rows = append(t.Rows, append(append(row, versus...), fmt.Sprintf("%d of %d", len(a.runs), a.planned)))
		}
	}
	t.Notes = []string{
		"Every recipe is trained at the same identities and for the same steps, a tenth of the paper's at preset paper; \"plain\" stands for the paper.",
		"Of the optimizer the averaging of weights is varied (last-weights); its rates and decay are the paper's throughout.",
		"Static inputs: random policies with their own values, η = 0.8, which no algorithm has touched. In the loop: rounds 0–19 of each actor's own run.",
		"Ratios are of medians over the same MDPs; those to plain pair the identities as well. An interval that holds 1 is unresolved.",
	}
	for _, states := range s.sizes(experiment.Ablation) {
		list, err := s.ablation(states)
		if err != nil {
			return t, err
		}
		t.Notes = append(t.Notes, outcome(list, states))
	}
	return t, nil
}

// measured reports whether a recipe has been run in the loop and on static
// inputs.
func (a ablated) measured() bool { return len(a.runs) > 0 && len(a.contrast) > 0 }

// loss returns each run's median loss at T = 40.
func (a ablated) loss() []float64 { return stats.RunMedians(losses(a.runs, 40)) }

// outcome says what the ablation at a size has found: which recipe has the
// smaller error on static inputs, which the lower loss, and how well either error
// orders the losses.
func outcome(list []ablated, states int) string {
	list = slices.DeleteFunc(slices.Clone(list), func(a ablated) bool { return !a.measured() })
	if len(list) < 2 {
		return fmt.Sprintf("Outcome at S = %d: %s for two recipes or more.", states, NotRun)
	}
	values := func(f func(ablated) []float64) []float64 {
		var v []float64
		for _, a := range list {
			v = append(v, stats.Median(f(a)))
		}
		return v
	}
	static, visited, loss := values(ablated.static), values(ablated.visited), values(ablated.loss)
	best := func(v []float64) int { return slices.Index(v, slices.Min(v)) }
	text := fmt.Sprintf("Outcome at S = %d over %d recipes: the smallest error on static inputs is that of %s (%s), whose loss at T = 40 is %s and ranks %d; the lowest loss is that of %s (%s), whose static error ranks %d.",
		states, len(list), list[best(static)].recipe, number(slices.Min(static)), number(loss[best(static)]), ranks(loss)[best(static)],
		list[best(loss)].recipe, number(slices.Min(loss)), ranks(static)[best(loss)])
	return text + fmt.Sprintf(" Rank correlation with the loss: %s of the error on static inputs, %s of the error in the loop; in brackets what leaving out any one recipe makes of it. Pairs of which the one with the smaller static error has the higher loss: %d of %d; with the smaller error in the loop: %d of %d.",
		jackknifed(static, loss), jackknifed(visited, loss),
		inversions(static, loss), len(list)*(len(list)-1)/2, inversions(visited, loss), len(list)*(len(list)-1)/2)
}

// ranks returns the rank of each value, from 1.
func ranks(values []float64) []int {
	r := make([]int, len(values))
	for i, v := range values {
		r[i] = 1
		for _, w := range values {
			if w < v {
				r[i]++
			}
		}
	}
	return r
}

// rankCorrelation returns Spearman's coefficient of two lists without ties.
func rankCorrelation(x, y []float64) float64 {
	a, b, sum, n := ranks(x), ranks(y), 0.0, float64(len(x))
	for i := range a {
		d := float64(a[i] - b[i])
		sum += d * d
	}
	return 1 - 6*sum/(n*(n*n-1))
}

// jackknifed returns the rank correlation with its range over all ways of leaving
// one entry out.
func jackknifed(x, y []float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range x {
		r := rankCorrelation(slices.Delete(slices.Clone(x), i, i+1), slices.Delete(slices.Clone(y), i, i+1))
		lo, hi = min(lo, r), max(hi, r)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", rankCorrelation(x, y), lo, hi)
}

// inversions counts the pairs that two lists order differently.
func inversions(x, y []float64) (count int) {
	for i := range x {
		for j := range i {
			if (x[i]-x[j])*(y[i]-y[j]) < 0 {
				count++
			}
		}
	}
	return count
}

// contrastFigure sets the closed-loop loss of each recipe against its error on
// static one-step inputs and on the inputs of its own loop.
func contrastFigure(s *source) ([]*plot.Plot, error) {
	a := Panel("(a) static one-step inputs", "mean row-L1 to exact PMD", "loss / exact PMD at T = 40")
	b := Panel("(b) inputs of the actor's own loop", "mean row-L1 to exact PMD, rounds 0–19", "loss / exact PMD at T = 40")
	panels := []*plot.Plot{a, b}
	states := lectureSize(s, experiment.Ablation)
	oracle, err := s.oracle(states)
	if err != nil {
		return nil, err
	}
	list, err := s.ablation(states)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a ablated) bool { return !a.measured() })
	if len(list) == 0 || len(oracle) == 0 {
		for _, p := range panels {
			empty(p)
		}
		return panels, nil
	}
	legend := Panel("recipe", "", "")
	legend.HideAxes()
	legend.Legend.Left = true
	legend.X.Min, legend.X.Max, legend.Y.Min, legend.Y.Max = 0, 1, 0, 1
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}}
	for i, x := range list {
		ratios := runRatios(x.runs, oracle[0], 40)
		for p, deviation := range map[*plot.Plot]float64{a: stats.Median(x.static()), b: stats.Median(x.visited())} {
			dot, err := points(p, palette[(i+5)%len(palette)], true, plotter.XYs{{X: deviation, Y: stats.Median(ratios)}})
			if err != nil {
				return nil, err
			}
			dot.Shape = shapes[i%len(shapes)]
			if p == a {
				legend.Legend.Add(x.recipe, dot)
			}
		}
	}
	for _, p := range panels {
		LogScale(&p.X)
		LogScale(&p.Y)
	}
	return append(panels, legend), nil
}

func priorTable(s *source) (Table, error) {
	t, err := s.besidePlain(experiment.Prior, "prior")
	t.Title = "The same network with log π added to its logits, beside plain, at the full budget"
	t.Notes = []string{"This read-out gives the network the logarithm and the sum for nothing; it is reported beside the plain recipe, never in its place."}
	return t, err
}

func firstRoundsTable(s *source) (Table, error) {
	t, err := s.besidePlain(experiment.FirstRounds, "early-rounds")
	t.Title = "Trained on first rounds only, beside plain and the paper's, at the full budget"
	if len(t.Rows) == 0 {
		return t, err
	}
	for i, horizon := range horizons {
		own := []string{
			"the paper's", "8", fmt.Sprint(horizon), quoted(experiment.Benchmark, "policyattention", 8, horizon), "",
			quoted(experiment.Benchmark, "policyattention / exact-pmd", 8, horizon), "", "–", "3",
		}
		t.Rows = slices.Insert(t.Rows, i, own)
	}
	t.Notes = []string{"The paper does not say where the contexts of its training come from."}
	return t, err
}

// besidePlain sets the runs of another recipe, which a block holds, beside the
// plain ones.
func (s *source) besidePlain(block experiment.Block, recipe string) (Table, error) {
	t := Table{Columns: []string{"recipe", "S", "T", "here", "95% interval", "here / oracle", "95% interval of ratio", "row-L1, in the loop", "runs"}}
	for _, states := range s.sizes(block) {
		oracle, err := s.oracle(states)
		if err != nil {
			return t, err
		}
		plain, all, err := s.retrained(states)
		if err != nil {
			return t, err
		}
		runs, planned, err := s.find(func(c experiment.Cell) bool { return c.Block == block && c.S == states })
		if err != nil {
			return t, err
		}
		for _, x := range []ablated{{recipe: "plain", runs: plain, planned: all}, {recipe: recipe, runs: runs, planned: planned}} {
			for _, horizon := range horizons {
				row, err := lossRow(x, oracle, states, horizon)
				if err != nil {
					return t, err
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t, nil
}

// lossRow prints recipe, S, T, median loss, ratio to the oracle, each with its
// interval, deviation in the loop, and the number of runs.
func lossRow(x ablated, oracle []*experiment.Evaluation, states, horizon int) ([]string, error) {
	row := []string{x.recipe, fmt.Sprint(states), fmt.Sprint(horizon), NotRun, "", "", "", "", fmt.Sprintf("%d of %d", len(x.runs), x.planned)}
	if len(x.runs) == 0 {
		return row, nil
	}
	e, err := stats.Standard.Median(losses(x.runs, horizon))
	if err != nil {
		return nil, err
	}
	row[3], row[4] = estimated(e)
	to, err := ratio(x.runs, oracle, horizon)
	if err != nil {
		return nil, err
	}
	copy(row[5:], to)
	row[7] = number(stats.Median(x.visited()))
	return row, nil
}

func zeroShotTable(s *source) (Table, error) {
	z := experiment.Protocol.ZeroShot
	t := Table{
		Title:   fmt.Sprintf("One network trained on S = %v, run on other sizes without retraining", z.Train),
		Columns: []string{"S", "seen in training", "T", "loss / oracle", "95% interval", "retrained / oracle", "95% interval", "runs"},
	}
	for _, states := range s.sizes(experiment.ZeroShot) {
		oracle, err := s.oracle(states)
		if err != nil {
			return t, err
		}
		runs, planned, err := s.find(func(c experiment.Cell) bool {
			return c.Block == experiment.ZeroShot && c.Method == experiment.PolicyAttention && c.S == states
		})
		if err != nil {
			return t, err
		}
		retrained, trained, err := s.retrained(states)
		if err != nil {
			return t, err
		}
		if planned == 0 {
			continue
		}
		seen := "no"
		if slices.Contains(z.Train, states) {
			seen = "yes"
		}
		for _, horizon := range horizons {
			here, err := ratio(runs, oracle, horizon)
			if err != nil {
				return t, err
			}
			own := []string{"–", ""} // no network is trained on this size
			if trained > 0 {
				if own, err = ratio(retrained, oracle, horizon); err != nil {
					return t, err
				}
			}
			row := append([]string{fmt.Sprint(states), seen, fmt.Sprint(horizon)}, append(here, own...)...)
			t.Rows = append(t.Rows, append(row, fmt.Sprintf("%d of %d", len(runs), planned)))
		}
	}
	t.Notes = []string{fmt.Sprintf("States are named by %d slots, drawn at random in training, so that every slot has been seen. The paper retrains at every size and does not claim this.", z.Slots)}
	return t, nil
}

func replicationTable(s *source) (Table, error) {
	t := Table{
		Title:   "More identities than the paper has: run-level spread of the ratio to exact PMD",
		Columns: []string{"S", "T", "paper's identities", "95% interval", "runs", "further identities", "95% interval", "runs", "range over all runs", fmt.Sprintf("at most %v", experiment.Protocol.Margin)},
	}
	for _, states := range s.sizes(experiment.Replication) {
		oracle, err := s.oracle(states)
		if err != nil {
			return t, err
		}
		first, firstPlanned, err := s.retrained(states)
		if err != nil {
			return t, err
		}
		more, morePlanned, err := s.find(func(c experiment.Cell) bool { return c.Block == experiment.Replication && c.S == states })
		if err != nil {
			return t, err
		}
		for _, horizon := range horizons {
			a, err := ratio(first, oracle, horizon)
			if err != nil {
				return t, err
			}
			b, err := ratio(more, oracle, horizon)
			if err != nil {
				return t, err
			}
			row := []string{fmt.Sprint(states), fmt.Sprint(horizon)}
			row = append(append(row, a...), fmt.Sprintf("%d of %d", len(first), firstPlanned))
			row = append(append(row, b...), fmt.Sprintf("%d of %d", len(more), morePlanned), "", "")
			if all := slices.Concat(first, more); len(all) > 0 && len(oracle) > 0 {
				ratios := runRatios(all, oracle[0], horizon)
				row[8], row[9] = extent(ratios), fmt.Sprintf("%d of %d", meeting(ratios), len(all))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = []string{"The paper has five identities at S = 4 and three at S = 8 and 16; the two groups are kept apart and never pooled into its numbers."}
	return t, nil
}

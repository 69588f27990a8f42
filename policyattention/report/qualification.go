package report

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// Tables on whether the sampled methods do what their sources say,
// and with which step sizes.

// qualificationTable shows that the sampled methods behave as their sources say.
func qualificationTable(s *source) (Table, error) {
	t := Table{
		Title:   "Qualification of the sampled methods",
		Columns: []string{"method", "S", "quantity", "paper", "here", "runs"},
	}
	var unqualified []string
	for _, x := range s.sampledSeries(experiment.Qualification) {
		for _, states := range []int{8, nativeStates, 16} {
			runs, planned, err := s.find(x.cells(experiment.Qualification, states))
			if err != nil {
				return t, err
			}
			if planned == 0 {
				continue
			}
			add := func(quantity, here string, n int) {
				row := []string{x.String(), fmt.Sprint(states), quantity, quoted(experiment.Qualification, quantity+" "+x.recipe, states, 0), here, ""}
				if n > 0 {
					row[5] = fmt.Sprintf("%d of %d", n, planned)
				}
				t.Rows = append(t.Rows, row)
			}
			for _, q := range qualities {
				if q.method != x.method {
					continue
				}
				var values []float64
				for _, r := range runs {
					v, err := q.of(r)
					if err != nil {
						return t, err
					}
					values = append(values, v)
				}
				here := NotRun
				if len(values) > 0 {
					here = number(stats.Median(values))
				}
				add(q.quantity, here, len(values))
			}
			if x.method == experiment.Distillation && !strings.HasSuffix(x.recipe, "-short") && len(runs) > 0 {
				q, err := distill.Qualify(runs[0].Scored)
				if err != nil {
					return t, err
				}
				if q.Last > hardly*q.First {
					unqualified = append(unqualified, fmt.Sprintf("%s at S = %d (%.3f to %.3f)", x, states, q.First, q.Last))
				}
			}
			if err := s.addContextGap(x, states, runs, add); err != nil {
				return t, err
			}
			if err := s.addCosts(x, states, add); err != nil {
				return t, err
			}
		}
	}
	t.Notes = []string{
		"Liang–Lai: the native shape has A = 4 and γ = .5, the harness A = 3 and γ = .9; the update error is the median of ‖Δ − teacher's‖/‖teacher's‖ over held-out windows, the improvement and the gap of the learning curves are relative to the teacher's gain. With several runs: their median.",
		"Algorithm Distillation: median normalized loss of the policies returned on problems that nothing else uses; \"short\" has a context of one round, so that nothing is remembered between rounds.",
		"Costs are the processor time of a training run, or, where it has not been made, the estimate for one core with XLA's CPU backend.",
		s.howTo(experiment.Qualification),
	}
	if len(unqualified) > 0 {
		t.Notes = append(t.Notes, "Improve by less than a tenth over 40 rounds, and so have not learned to learn at their budget: "+strings.Join(unqualified, "; ")+". Their losses elsewhere are no evidence on Algorithm Distillation.")
	}
	return t, nil
}

// hardly is the share of its first loss above which a recipe's last one says
// that it did not learn to learn.
const hardly = 0.9

// addContextGap compares a recipe of Algorithm Distillation with its control of
// a context of one round, where it has one.
func (s *source) addContextGap(x series, states int, runs []*experiment.Evaluation, add func(quantity, here string, n int)) error {
	short, planned, err := s.find(series{x.method, x.recipe + "-short"}.cells(experiment.Qualification, states))
	if err != nil || planned == 0 {
		return err
	}
	const quantity = "its loss after round 40 minus the short context's"
	if runs, short = pair(runs, short); len(runs) == 0 {
		add(quantity, NotRun, 0)
		return nil
	}
	e, err := stats.Standard.Difference(losses(runs, 40), losses(short, 40))
	if err != nil {
		return err
	}
	value, span := estimated(e)
	add(quantity, value+" "+span, len(runs))
	return nil
}

// addCosts adds what the training runs of a series take.
func (s *source) addCosts(x series, states int, add func(quantity, here string, n int)) error {
	var sizes, spent []float64
	estimate := 0.0
	for _, cell := range s.store.Preset.Plan() {
		if !x.cells(experiment.Qualification, states)(cell) {
			continue
		}
		trainings, err := cell.Trainings()
		if err != nil {
			return err
		}
		for _, c := range trainings {
			sizes = append(sizes, float64(c.Parameters()))
			run, err := s.store.FindTraining(c)
			switch {
			case errors.Is(err, experiment.ErrMissing):
				estimate = experiment.EstimateSeconds(c) / 60
			case err != nil:
				return err
			default:
				spent = append(spent, run.Manifest.Cost.CPUSeconds/60)
			}
		}
	}
	add("parameters", number(stats.Median(sizes)), 0)
	here := NotRun + ", about " + number(math.Round(estimate))
	if len(spent) > 0 {
		here = number(math.Round(10*stats.Median(spent)) / 10)
	}
	add("CPU min of training", here, len(spent))
	return nil
}

// qualities are the quantities of the qualification table.
var qualities = []struct {
	method   experiment.Method
	quantity string
	of       func(*experiment.Evaluation) (float64, error)
}{
	{experiment.LiangLai, "last/first training loss", func(e *experiment.Evaluation) (float64, error) { return e.Imitation.LossRatio, nil }},
	{experiment.LiangLai, "relative update error", func(e *experiment.Evaluation) (float64, error) { return e.Imitation.UpdateError, nil }},
	{experiment.LiangLai, "closed-loop improvement / teacher's", func(e *experiment.Evaluation) (float64, error) { return e.Imitation.Improvement(), nil }},
	{experiment.LiangLai, "mean curve gap", func(e *experiment.Evaluation) (float64, error) { return e.Imitation.Gap(), nil }},
	{experiment.Distillation, "loss after round 1", improvement(func(q distill.Qualification) float64 { return q.First })},
	{experiment.Distillation, "loss after round 40", improvement(func(q distill.Qualification) float64 { return q.Last })},
	{experiment.Distillation, "share of MDPs that improve", improvement(func(q distill.Qualification) float64 { return float64(q.Improved) / float64(q.Problems) })},
}

func improvement(of func(distill.Qualification) float64) func(*experiment.Evaluation) (float64, error) {
	return func(e *experiment.Evaluation) (float64, error) {
		q, err := distill.Qualify(e.Scored)
		return of(q), err
	}
}

// grid returns Liang–Lai's scores on a grid of step sizes, nil where they have
// not been made, and whether the preset has them.
func (s *source) grid(recipe string, states int) (e *experiment.Evaluation, planned bool, err error) {
	runs, n, err := s.find(func(c experiment.Cell) bool {
		return c.Block == experiment.Tuning && c.Method == experiment.LiangLai && c.Recipe == recipe && c.S == states
	})
	if err != nil || len(runs) == 0 {
		return nil, n > 0, err
	}
	return runs[0], true, nil
}

// tuningTable shows what the grids found on calibration problems.
func tuningTable(s *source) (Table, error) {
	t := Table{
		Title:   "Step sizes of the sampled methods, on calibration problems",
		Columns: []string{"method", "S", "setting", "α", "β", "T = 20", "T = 40", "inside the grid"},
	}
	add := func(method string, states int, setting string, score *baseline.Score, inside string) {
		row := []string{method, fmt.Sprint(states), setting, "", "", NotRun, "", ""}
		if score != nil {
			row = []string{method, fmt.Sprint(states), setting, number(score.Alpha), number(score.Beta), number(score.Loss[0]), number(score.Loss[1]), inside}
		}
		t.Rows = append(t.Rows, row)
	}
	for _, x := range []struct{ recipe, label string }{{"", ""}, {"features", ", dense features"}} {
		for _, states := range []int{8, 16} {
			grid, planned, err := s.grid(x.recipe, states)
			if err != nil {
				return t, err
			}
			if !planned {
				continue
			}
			steps, err := lianglai.PaperSteps(states)
			if err != nil {
				return t, err
			}
			for _, start := range []baseline.Start{baseline.Initial, baseline.Uniform} {
				setting := "from " + startNames[start] + x.label
				var papers, best *baseline.Score
				mark := "no"
				if grid != nil {
					for _, score := range grid.Tuning {
						if score.Start == start && score.Steps == steps {
							papers = &score
						}
					}
					b, inside, err := experiment.BestFrom(grid.Tuning, start)
					if err != nil {
						return t, err
					}
					if best = &b; inside {
						mark = "yes"
					} else if len(grid.Config.Tuning.Grid.Betas) == 1 {
						mark = "β not tried"
					}
				}
				if papers != nil || grid == nil {
					add(string(experiment.LiangLai), states, "paper's choice, "+setting, papers, "")
				}
				add(string(experiment.LiangLai), states, "best, "+setting, best, mark)
			}
		}
	}
	for _, states := range []int{8, 16} {
		for _, recipe := range experiment.Sources() {
			runs, planned, err := s.find(series{experiment.Distillation, recipe}.cells(experiment.Tuning, states))
			if err != nil {
				return t, err
			}
			if planned == 0 {
				continue
			}
			var score *baseline.Score
			if len(runs) > 0 {
				source := runs[0].Config.Loop.Distill.Training.Source
				score = &baseline.Score{Steps: source, Loss: []float64{stats.Median(runs[0].Losses(20)), stats.Median(runs[0].Losses(40))}}
			}
			add(string(experiment.Distillation), states, strings.ReplaceAll(recipe, "-", " "), score, "")
		}
	}
	t.Notes = []string{
		"Liang–Lai's teacher makes the same updates as the trained block, so its scores stand for it; from the uniform policy it is Algorithm Distillation's source. Algorithm Distillation itself is trained at the CPU budget for each source rate. The paper's grids end at its choices: α = 2, and source rate 4.",
		"The paper says neither from which policy Liang–Lai starts nor in which features it is linear. Its losses are .4535 and .2812 at S = 8, .4817 and .3307 at S = 16. No start gives both with one-hot features, whose step for a state falls as 1/S. Features of S·A numbers a pair and S a state, uniform on [0, 1), do, from π₀ and at the paper's step sizes; a feature's length grows with S and makes up for the rarer visits. One-hot features from π₀ are what the benchmark calls the paper's choice, the others stand beside it; tuned, one-hot features are the better ones.",
		s.howTo(experiment.Tuning),
	}
	return t, nil
}

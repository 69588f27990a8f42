package report

import (
	"fmt"
	"math"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// Section 8.3 and Appendix F: may the adaptations enter?
func qualificationClaims() []claim {
	const evaluate = "evaluate qualification"
	summary := func(group, name string) func(*experiment.Evaluation) float64 {
		return func(e *experiment.Evaluation) float64 { return e.Manifest.Summary[group][name] }
	}
	native := sample{experiment.Qualification, experiment.LiangLai, results.NativeStates, "native"}
	harness := sample{experiment.Qualification, experiment.LiangLai, 8, "harness"}
	nativeKey := func(quantity string) key {
		return key{experiment.Qualification, quantity + " native", results.NativeStates, 0}
	}
	list := []claim{
		{
			section: "App. F", says: "Liang–Lai in its native shape: last over first training loss", number: nativeKey("last/first training loss"), make: evaluate,
			measure: native.values(summary("training", "loss_ratio")), judge: atMost,
		},
		{
			section: "App. F", says: "Liang–Lai in its native shape: median relative error of an update", number: nativeKey("relative update error"), make: evaluate,
			measure: native.values(summary("update", "median_relative_error")), judge: atMost,
		},
		{
			section: "App. F", says: "Liang–Lai in its native shape: improvement over 3,000 updates, relative to its teacher's", number: nativeKey("closed-loop improvement / teacher's"), make: evaluate,
			measure: native.values(summary("closed_loop", "improvement_ratio")),
			judge:   &judge{name: "within .01 of 1", ok: func(m *measured, _ Number) bool { return math.Abs(m.value.Value-1) <= .01 }},
		},
		{
			section: "App. F", says: "Liang–Lai in its native shape: mean gap between its curve and its teacher's", number: nativeKey("mean curve gap"), make: evaluate,
			measure: native.values(summary("closed_loop", "mean_gap")), judge: atMost,
		},
		{
			section: "App. F", says: "Liang–Lai in the harness's shape, S = 8: median relative error of an update", number: key{experiment.Qualification, "relative update error harness", 8, 0}, make: evaluate,
			measure: harness.values(summary("update", "median_relative_error")), judge: atMost,
		},
		{
			section: "Section 8.2", says: "Liang–Lai has 10,952 parameters at S = 8, Algorithm Distillation about 1.14 million", printed: "10,952; 1.14M", make: "table claims",
			measure: func(*source) (*measured, error) {
				ll, ad := lianglai.Harness(1, 8).Parameters(), distill.Paper(1, 8).Network().Size()
				return &measured{text: fmt.Sprintf("%d; %d", ll, ad), ok: ll == 10_952 && math.Round(float64(ad)/1e4) == 114}, nil
			},
			judge: holds,
		},
		{
			section: "Table 4", says: "training Liang–Lai at S = 8 takes about 17 CPU-minutes", number: key{experiment.Qualification, "CPU min of training harness", 8, 0}, make: evaluate,
			measure: func(s *source) (*measured, error) {
				runs, planned, err := harness.find(s)
				if err != nil || len(runs) == 0 {
					return nil, err
				}
				var minutes []float64
				for _, r := range runs {
					run, err := s.Store.FindTraining(r.Config.Trainings()[0])
					if err != nil {
						return nil, err
					}
					minutes = append(minutes, run.Manifest.Cost.CPUSeconds/60)
				}
				return &measured{value: stats.Estimate{Value: stats.Median(minutes)}, runs: len(runs), planned: planned, used: runs}, nil
			},
			why: "machines differ",
		},
	}
	for _, x := range []struct{ recipe, label, printed string }{
		{"first", "its first recipe, which fails", "0.928 to 0.937"},
		{"full", "its repaired recipe", "0.821 to 0.395, 64 of 64 MDPs"},
		{"cpu", "a CPU budget", "0.821 to 0.395, 64 of 64 MDPs"},
		{"cpu-tuned", "a CPU budget with a tuned source", "0.821 to 0.395, 64 of 64 MDPs"},
	} {
		c := claim{
			section: "App. F", says: "Algorithm Distillation from round 1 to round 40 on qualification problems, S = 8, at " + x.label, printed: x.printed, make: sample{experiment.Qualification, experiment.Distillation, 8, x.recipe}.command(),
			measure: sample{experiment.Qualification, experiment.Distillation, 8, x.recipe}.improvement(), judge: improves,
		}
		if x.recipe == "first" {
			c.judge = &judge{name: "the median does not fall by a tenth", ok: func(m *measured, _ Number) bool { return !m.ok }}
		}
		list = append(list, c)
	}
	for _, x := range []struct{ recipe, label string }{{"full", ""}, {"cpu-tuned", " (a CPU budget with a tuned source)"}} {
		list = append(list, claim{
			section: "App. F", says: "Algorithm Distillation beats its control of a short context after round 40, S = 8" + x.label, printed: "by the registered gap", make: sample{experiment.Qualification, experiment.Distillation, 8, x.recipe}.command(),
			measure: sample{experiment.Qualification, experiment.Distillation, 8, x.recipe}.versus(sample{experiment.Qualification, experiment.Distillation, 8, x.recipe + "-short"}, 40, differenceOf),
			judge:   below,
		})
	}
	for _, x := range []struct{ recipe, label, why string }{
		{"full", "", ""},
		{"cpu", " (a CPU budget)", "with the paper's source, 3,000 small steps are too few for in-context learning to set in at this size"},
		{"cpu-tuned", " (a CPU budget with a tuned source)", ""},
	} {
		list = append(list, claim{
			section: "Section 8.3", says: "Algorithm Distillation from round 1 to round 40 of the evaluation, S = 16" + x.label, printed: "0.923 to 0.373", make: sample{experiment.Benchmark, experiment.Distillation, 16, x.recipe}.command(),
			measure: sample{experiment.Benchmark, experiment.Distillation, 16, x.recipe}.improvement(), judge: improves, why: x.why,
		})
	}
	for _, states := range []int{8, 16} {
		list = append(list, claim{
			section: "Section 8.3", says: fmt.Sprintf("Liang–Lai's actor step 2 is the largest of its grid at S = %d, and a larger one could be better (calibration problems, T = 20)", states), printed: "could be", make: "evaluate tuning",
			measure: func(s *source) (*measured, error) {
				grid, err := s.grid("", states)
				if err != nil || grid == nil {
					return nil, err
				}
				steps, err := lianglai.PaperSteps(states)
				if err != nil {
					return nil, err
				}
				best, _, err := baseline.BestFrom(results.Scores(grid), baseline.Initial)
				if err != nil {
					return nil, err
				}
				m := &measured{used: []*experiment.Evaluation{grid}}
				for _, score := range results.Scores(grid) {
					if score.Start == baseline.Initial && score.Steps == steps {
						m.text = fmt.Sprintf("α = %v: %.3f; α = %v: %.3f", steps.Alpha, score.Loss[0], best.Alpha, best.Loss[0])
						m.ok = best.Loss[0] < score.Loss[0]
						return m, nil
					}
				}
				return nil, nil // a grid without the paper's choice
			},
			judge: holds,
		})
	}
	return append(list, claim{
		section: "Section 8.3", says: "Algorithm Distillation's source rate 4 is the largest of its grid at S = 8, and a larger one could be better (calibration problems, T = 20, a CPU budget)", printed: "could be", make: "evaluate tuning",
		measure: func(s *source) (*measured, error) {
			runs, planned, err := sample{experiment.Tuning, experiment.Distillation, 8, ""}.find(s)
			if err != nil {
				return nil, err
			}
			m := &measured{runs: len(runs), planned: planned, used: runs}
			papers, best, rate := math.NaN(), math.Inf(1), 0.0
			for _, r := range runs {
				loss, alpha := stats.Median(r.Losses(20)), results.Rates(r).Alpha
				if alpha == sourceRate {
					papers = loss
				}
				if loss < best {
					best, rate = loss, alpha
				}
			}
			if math.IsNaN(papers) {
				return nil, nil
			}
			m.text, m.ok = fmt.Sprintf("rate %v: %.3f; rate %v: %.3f", sourceRate, papers, rate, best), best < papers
			return m, nil
		},
		judge: holds,
	})
}

// improves is of what improvement measures.
var improves = &judge{name: "the median falls by a tenth or more", ok: holds.ok}

// improvement measures the fall of the median loss from round 1 to round 40, and
// whether it makes a difference.
func (x sample) improvement() func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		var first, last []float64
		improved, problems := 0, 0
		for _, r := range runs {
			q, err := distill.Qualify(r.Scored)
			if err != nil {
				return nil, err
			}
			first, last = append(first, q.First), append(last, q.Last)
			improved, problems = improved+q.Improved, problems+q.Problems
		}
		from, to := stats.Median(first), stats.Median(last)
		return &measured{
			text: fmt.Sprintf("%.3f to %.3f, %d of %d MDPs", from, to, improved, problems),
			ok:   to <= results.Hardly*from, runs: len(runs), planned: planned, used: runs,
		}, nil
	}
}

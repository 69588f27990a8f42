package report

import (
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// The baselines that the paper's own sentences name.
const (
	liangLai     method.Name = "liang-lai"
	distillation method.Name = "algorithm-distillation"
	nativeStates             = 9 // of the shape that Liang and Lai train in
)

// budgets holds a statement at a size to each budget of Algorithm Distillation.
func budgets(printed, command string, states int, of func(recipe string) measure) (checks []check) {
	m, _ := all.Methods.Find(distillation) // without it there are none
	for _, v := range variants(m) {
		checks = append(checks, check{variant: v.Label, printed: printed, command: command, measure: of(v.Recipe), judge: stated, budget: v.Budget, of: v.in(states)})
	}
	return checks
}

// budgetOf says how the budget of a recipe of Algorithm Distillation differs from the paper's.
func budgetOf(recipe string) string {
	m, _ := all.Methods.Find(distillation)
	for _, v := range m.Variants {
		if v.Recipe == recipe {
			return v.Budget
		}
	}
	return ""
}

// baselineTicks are the baselines' rows of Table 1, and what is said of S5RL beside them.
func baselineTicks(section string) []sentence {
	liang := sentence{section: section, says: "Table 1, Liang–Lai: linear attention, evaluation, control, learned", checks: []check{
		{at: "linear attention that evaluates and controls, learned", printed: "✓", command: "evaluate qualification",
			measure: values(selection(experiment.Qualification, liangLai, nativeStates), updateError), judge: judge{name: "an update error of at most 1e-5", of: func(m *measured, _ results.Number) (Verdict, string) {
				if m.value <= 1e-5 {
					return Holds, ""
				}
				return Differs, ""
			}}},
	}}
	distilled := sentence{section: section, says: "Table 1, Algorithm Distillation: softmax, implicit evaluation, control, learned",
		checks: slices.DeleteFunc(budgets("✓", "evaluate qualification", 8, func(recipe string) measure { return qualifies(distillation, recipe, 8) }),
			func(c check) bool { return c.variant == "a CPU budget" })} // its source tuned is nearer
	const less = "4.1 million steps in a small network, instead of 15 million"
	online := sentence{section: section, says: "S5RL, which the text sets beside them, learns in context: structured state-space models, trained online by PPO", checks: []check{
		{at: "S = 8", printed: "stated", command: "evaluate qualification", measure: qualifies(experiment.S5RL, "cpu", 8), judge: stated, budget: less},
		{at: "S = 16", printed: "stated", command: "evaluate qualification", measure: qualifies(experiment.S5RL, "cpu", 16), judge: stated, budget: less},
	}}
	return []sentence{liang, distilled, online}
}

// Section 8 on interfaces and resources, and Appendix F: may the adaptations enter?
func baselineSentences() []sentence {
	const section, qualification = "8 Comparison", "App. F Qualification"
	native := results.Selection{Block: experiment.Qualification, Method: liangLai, S: nativeStates}
	harness := selection(experiment.Qualification, liangLai, 8)
	first := results.Selection{Block: experiment.Qualification, Method: distillation, Recipe: "first", S: 8}
	one := func(section, says string, c check) sentence {
		if c.command == "" {
			c.command = "evaluate qualification"
		}
		return sentence{section: section, says: says, checks: []check{c}}
	}
	quality := func(says, quantity string, j judge, of func(*experiment.Evaluation) float64) sentence {
		return one(qualification, "Liang–Lai in its native shape: "+says, check{number: results.Key{Block: experiment.Qualification, Quantity: quantity + " native", S: nativeStates}, measure: values(native, of), judge: j})
	}
	lossRatio := quality("last over first training loss 4.9e-12", "last/first training loss", compared(lower), func(e *experiment.Evaluation) float64 { return e.Manifest.Summary["training"]["loss_ratio"] })
	lossRatio.note = "its optimizer is ours, the paper names none: this is no better fit of the same thing"
	return append(interfaceSentences(),
		lossRatio,
		quality("median relative error of an update 3.2e-6", "relative update error", compared(lower), updateError),
		quality("improvement over 3,000 updates, relative to its teacher's", "closed-loop improvement / teacher's", toward(1), func(e *experiment.Evaluation) float64 { return results.Imitation(e).Improvement() }),
		quality("mean gap between its curve and its teacher's", "mean curve gap", compared(lower), func(e *experiment.Evaluation) float64 { return results.Imitation(e).Gap() }),
		one(qualification, "Liang–Lai in the harness's shape, S = 8: median relative error of an update", check{number: results.Key{Block: experiment.Qualification, Quantity: "relative update error harness", S: 8}, measure: values(harness, updateError), judge: compared(lower)}),
		sentence{section: qualification, says: "Algorithm Distillation qualifies at S = 8: its loss falls from .821 to .395 over 40 rounds, and it beats its control of a short context by the registered gap", checks: budgets("qualifies", "evaluate qualification", 8, func(recipe string) measure { return qualifies(distillation, recipe, 8) }), note: "the rule is of 23 November 2026: a fall by a tenth and a gap to the recipe's own control with an interval below zero; before, a fall by a tenth alone, which a control passes too"},
		sentence{section: qualification, says: "Algorithm Distillation at S = 8: 64 of 64 MDPs improve over 40 rounds", checks: budgets("64 of 64", "evaluate qualification", 8, allImprove)},
		one(qualification, "the first recipe of Algorithm Distillation fails: .928 to .937", check{printed: "0.928 to 0.937", of: first, measure: improves(experiment.Qualification, distillation, "first", 8), judge: judge{name: "the median does not fall by a tenth", of: func(m *measured, _ results.Number) (Verdict, string) {
			if m.ok {
				return Differs, ""
			}
			return Holds, ""
		}}}),
		sentence{section: section, says: "8.3: Algorithm Distillation improves in context at S = 16, .923 to .373 from round 1 to round 40 of the evaluation", checks: budgets("0.923 to 0.373", "evaluate benchmark", 16, func(recipe string) measure {
			return improves(experiment.Benchmark, distillation, recipe, 16)
		})},
		sentence{section: section, says: "8.3: on the paper's range, calibration problems choose (α, β) = (2, .2) at S = 8 and (2, .8) at S = 16 for Liang–Lai", checks: []check{
			{at: "S = 8", printed: "(2, 0.2)", command: "evaluate tuning", measure: chosen(8), judge: stated, why: "with so small an actor step the loss hardly depends on β; the paper gives neither its grid nor its problems"},
			{at: "S = 16", printed: "(2, 0.8)", command: "evaluate tuning", measure: chosen(16), judge: stated, why: "with so small an actor step the loss hardly depends on β; the paper gives neither its grid nor its problems"},
		}},
		sentence{section: section, says: "8.2: the chosen rates are the largest of their grids, and larger ones could be better (calibration problems, T = 20)", checks: []check{
			{at: "Liang–Lai, S = 8", printed: "could be", command: "evaluate tuning", measure: tunedLarger(8), judge: stated},
			{at: "Liang–Lai, S = 16", printed: "could be", command: "evaluate tuning", measure: tunedLarger(16), judge: stated},
			{at: "Algorithm Distillation, S = 8", printed: "could be", command: "evaluate tuning", measure: sourceRates, judge: stated, budget: budgetOf("cpu")},
		}, note: "the source rates above 4 were added after the losses at 4 had been seen"},
	)
}

// interfaceSentences are what Section 8 and Table 4 say of interfaces and resources.
func interfaceSentences() []sentence {
	const section = "8 Comparison"
	in := func(m method.Name, recipe string) results.Selection {
		return results.Selection{Block: experiment.Benchmark, Method: m, Recipe: recipe, S: 8}
	}
	liang, full := in(liangLai, "paper"), in(distillation, "full")
	critic := in(experiment.LearnedCritic, "")
	const ll, ad = "loop.liang_lai.training.", "loop.distill.training."
	product := func(get func(string) any, paths ...string) float64 {
		p := 1.0
		for _, path := range paths {
			v, ok := get(path).(float64)
			if !ok {
				return math.NaN()
			}
			p *= v
		}
		return p
	}
	set := func(says, want string, x results.Selection, of func(func(string) any) string) sentence {
		return sentence{section: section, says: says, checks: []check{{printed: want, command: "evaluate " + string(x.Block), measure: configured(x, want, of), judge: stated, of: x}}}
	}
	list := []sentence{
		set("Table 4: Liang–Lai trains on 10,000 MDPs and 10⁷ windows", "10000, 1e+07", liang, func(get func(string) any) string {
			return fmt.Sprintf("%v, %.0e", get(ll+"mdps"), product(get, ll+"batch", ll+"steps"))
		}),
		set("Table 4: Algorithm Distillation learns from 2,000 histories of 1,000 steps, with a context of 200", "2000, 1000, 200", full, func(get func(string) any) string {
			return fmt.Sprintf("%v, %v, %v", get(ad+"histories"), get(ad+"length"), get(ad+"context"))
		}),
		set("8.2: the failed first attempt of Algorithm Distillation had context 800, batch 32, 20,000 steps", "800, 32, 20000", results.Selection{Block: experiment.Qualification, Method: distillation, Recipe: "first", S: 8}, func(get func(string) any) string {
			return fmt.Sprintf("%v, %v, %v", get(ad+"context"), get(ad+"batch"), get(ad+"steps"))
		}),
		set("8.1: the learned critic takes 144 generative transitions a round at S = 8, 7.2 times the 20 of the sampled methods", "144, 7.2", critic, func(get func(string) any) string {
			n := product(get, "loop.critic.training.samples", "loop.critic.training.slots", "loop.critic.training.actions")
			return fmt.Sprintf("%g, %.1f", n, n/20)
		}),
	}
	list[3].line, list[3].checks[0].fitted = 6, "six packets a pair were chosen from these numbers"
	return append(list,
		sentence{section: section, says: "8.2: parameters at S = 8", checks: []check{
			{at: "PolicyAttention, actor and critic", printed: "272451", command: "table resources", measure: parameters(experiment.LearnedCritic, "", 272451), judge: stated, why: "the paper does not say how it splits them between trunk, embeddings and heads"},
			{at: "Liang–Lai", printed: "10952", command: "table resources", measure: parameters(liangLai, "paper", 10952), judge: stated},
			{at: "Algorithm Distillation", printed: "1.14M", command: "table resources", measure: parameters(distillation, "full", 1.14e6), judge: stated, fitted: "width and depth were chosen from this number"},
		}},
		sentence{section: section, says: "Table 4: time of a training run at S = 8", checks: []check{
			{at: "PolicyAttention", printed: ".19–.24 GPU-h", command: "table cost", measure: trainingHours(in(experiment.PolicyAttention, "")), judge: bars("another machine")},
			{at: "PMD-target", printed: ".19–.24 GPU-h", command: "table cost", measure: trainingHours(in(experiment.PMDTarget, "")), judge: bars("another machine")},
			{at: "Liang–Lai", printed: "17 CPU-min", command: "table cost", measure: trainingHours(liang), judge: bars("another machine")},
			{at: "Algorithm Distillation", printed: ".63–.75 GPU-h", command: "table cost", measure: trainingHours(full), judge: bars("another machine"), of: full},
		}},
	)
}

// parameters compares the size of the networks of a method's first identity with the
// paper's, to three digits where it gives no more.
func parameters(m method.Name, recipe string, want float64) measure {
	return func(s *source) (*measured, error) {
		rows, err := s.Resources(8)
		at := slices.IndexFunc(rows, func(r results.Resource) bool { return r.Method == m && r.Recipe == recipe })
		if err != nil || at < 0 {
			return nil, err
		}
		n := float64(rows[at].Parameters)
		return &measured{text: fmt.Sprintf("%.0f", n), ok: n == want || want == 1.14e6 && math.Round(n/1e4) == 114}, nil
	}
}

// trainingHours measures what trainings took, the least and the most.
func trainingHours(x results.Selection) measure {
	return func(s *source) (*measured, error) {
		runs, err := s.Find(x)
		if err != nil || len(runs.Found) == 0 {
			return nil, err
		}
		var hours []float64
		for _, r := range runs.Found {
			run, err := s.Training(r.Config.Trainings()[0])
			if err != nil {
				return nil, err
			}
			if run != nil {
				hours = append(hours, run.Manifest.Cost.CPUSeconds/3600)
			}
		}
		if len(hours) == 0 {
			return nil, nil
		}
		return &measured{value: stats.Median(hours), text: fmt.Sprintf("%.2f–%.2f CPU-h", slices.Min(hours), slices.Max(hours)), runs: len(runs.Found), planned: runs.Planned, used: runs.Found}, nil
	}
}

// qualifies says whether a recipe beats its own control.
func qualifies(name method.Name, recipe string, states int) measure {
	return ofLives(experiment.Qualification, name, recipe, states, func(q results.Qualified) measured {
		return measured{text: verdictOf(q), ok: q.OK(), barred: undecided(q, "control of a short context")}
	})
}

// improves says how far the median loss falls from round 1 to round 40.
func improves(block experiment.Block, name method.Name, recipe string, states int) measure {
	return ofLives(block, name, recipe, states, func(q results.Qualified) measured {
		return measured{text: fmt.Sprintf("%s, %d of %d MDPs", fallOf(q), q.Improved, q.Problems), ok: q.Last <= results.Hardly*q.First}
	})
}

// allImprove asks whether Algorithm Distillation improves on every problem at S = 8.
func allImprove(recipe string) measure {
	return ofLives(experiment.Qualification, distillation, recipe, 8, func(q results.Qualified) measured {
		return measured{text: fmt.Sprintf("%d of %d", q.Improved, q.Problems), ok: q.Improved == q.Problems}
	})
}

// ofLives measures something of a recipe's lives, where they have been run.
func ofLives(block experiment.Block, name method.Name, recipe string, states int, of func(results.Qualified) measured) measure {
	return func(s *source) (*measured, error) {
		q, err := s.Qualify(block, name, recipe, states)
		if err != nil || q.Runs == 0 {
			return nil, err
		}
		m := of(q)
		m.runs, m.planned, m.used = q.Runs, q.Planned, q.Used
		return &m, nil
	}
}

// tunedLarger asks whether a larger step than the paper's is better on calibration
// problems.
func tunedLarger(states int) measure {
	return func(s *source) (*measured, error) {
		papers, best, m, err := s.tunedSteps(states, math.Inf(1))
		if err != nil || m == nil || papers == nil {
			return nil, err
		}
		m.text = fmt.Sprintf("α = %v: %.3f, worst problem %.2f; α = %v: %.3f, worst %.2f", papers.Alpha, papers.Loss[0], papers.Worst[0], best.Alpha, best.Loss[0], best.Worst[0])
		m.ok = best.Loss[0] < papers.Loss[0]
		return m, nil
	}
}

// tunedSteps returns Liang–Lai's scores at the paper's step sizes and at the best ones
// with an actor step of at most a limit, from π₀.
func (s *source) tunedSteps(states int, limit float64) (papers, best *baseline.Score, m *measured, err error) {
	grid, err := s.Grid(liangLai, "", states)
	if err != nil || len(grid.Found) == 0 {
		return nil, nil, nil, err
	}
	steps, err := s.PrintedRates(liangLai, states)
	if err != nil {
		return nil, nil, nil, err
	}
	within := slices.DeleteFunc(slices.Clone(results.Scores(grid.Found[0])), func(x baseline.Score) bool { return x.Alpha > limit || x.Start != baseline.Initial })
	b, _, err := baseline.Best(within)
	if at := slices.IndexFunc(within, func(x baseline.Score) bool { return x.StepSizes == steps }); at >= 0 {
		papers = &within[at]
	}
	return papers, &b, &measured{used: grid.Found}, err
}

// chosen asks whether calibration problems choose the paper's step sizes on its range.
func chosen(states int) measure {
	return func(s *source) (*measured, error) {
		papers, best, m, err := s.tunedSteps(states, 2)
		if err != nil || m == nil {
			return nil, err
		}
		m.text = fmt.Sprintf("(%g, %g): %s, worst problem %.2f", best.Alpha, best.Beta, tables.Number(best.Loss[0]), best.Worst[0])
		if papers != nil {
			m.ok = best.StepSizes == papers.StepSizes
			if !m.ok {
				m.text += fmt.Sprintf(", against %s, worst %.2f", tables.Number(papers.Loss[0]), papers.Worst[0])
			}
		}
		return m, nil
	}
}

// sourceRates asks whether a larger source rate than the paper's is better for
// Algorithm Distillation.
func sourceRates(s *source) (*measured, error) {
	runs, err := s.Find(selection(experiment.Tuning, distillation, 8))
	if err != nil {
		return nil, err
	}
	if len(runs.Found) == 0 {
		return nil, nil
	}
	printed, err := s.PrintedRates(distillation, 8)
	if err != nil {
		return nil, err
	}
	papers, best, rate := math.NaN(), math.Inf(1), 0.0
	worst := map[float64]float64{}
	for _, r := range runs.Found {
		losses, alpha := r.Losses(20), results.Rates(r).Alpha
		loss := stats.Median(losses)
		worst[alpha] = slices.Max(losses)
		if alpha == printed.Alpha {
			papers = loss
		}
		if loss < best {
			best, rate = loss, alpha
		}
	}
	if math.IsNaN(papers) {
		return nil, nil
	}
	return &measured{text: fmt.Sprintf("rate %v: %.3f, worst problem %.2f; rate %v: %.3f, worst %.2f", printed.Alpha, papers, worst[printed.Alpha], rate, best, worst[rate]), ok: best < papers, runs: len(runs.Found), planned: runs.Planned, used: runs.Found}, nil
}

package report

import (
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// variant is a sampled method as the paper has it, or with a choice of ours.
type variant struct {
	method         method.Name
	recipe, label  string
	budget         string // how its budget differs from the paper's
	fitted, closer string // what was chosen so that it agrees; why a lead over it is another
}

const smaller = "3,000 small steps and a context of 60, instead of 40,000 and 200"

// variants are the sampled methods.
var variants = []variant{
	{method: "liang-lai", recipe: "paper", label: "one-hot features", closer: "this copy of the baseline is weaker than the paper's, in features that the paper does not name"},
	{method: "liang-lai", recipe: "paper-features", label: "dense features",
		fitted: "of one-hot features from two starts and dense ones, dense ones from π₀ were chosen because they give the paper's losses"},
	{method: "liang-lai", recipe: "tuned", label: "step sizes tuned", closer: "with larger steps than the paper's grid has, the lead is smaller"},
	{method: "algorithm-distillation", recipe: "full", label: "the paper's budget"},
	{method: "algorithm-distillation", recipe: "cpu", label: "a CPU budget", budget: smaller},
	{method: "algorithm-distillation", recipe: "cpu-tuned", label: "a CPU budget, source tuned", budget: smaller},
}

// of lists the variants of a method.
func of(m method.Name) []variant {
	return slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return v.method != m })
}

func (v variant) in(states int) results.Selection {
	return results.Selection{Block: experiment.Benchmark, Method: v.method, Recipe: v.recipe, S: states}
}

// check is a check of the variant at a size, barred where its network has not learned.
func (v variant) check(states int, at string, n results.Key, m measure, j judge) check {
	return check{at: at, variant: v.label, number: n, command: "evaluate benchmark", measure: v.entitled(states, m), judge: j, why: v.closer, fitted: v.fitted, budget: v.budget}
}

// entitled bars what is measured of a network of Algorithm Distillation that did not
// qualify.
func (v variant) entitled(states int, measure measure) measure {
	if v.method != experiment.Distillation {
		return measure
	}
	return func(s *source) (*measured, error) {
		m, err := measure(s)
		if err != nil || m == nil {
			return nil, err
		}
		q, err := s.Qualify(experiment.Qualification, v.recipe, states)
		if err == nil && !q.OK() {
			m.barred = fmt.Sprintf("%s, S = %d, %s", v.label, states, verdictOf(q))
		}
		return m, err
	}
}

// Sections 8 and 10, and Appendix E.3: the common harness.
func benchmarkSentences() []sentence {
	const section = "8 Comparison"
	list := lossSentences()
	for _, m := range []struct {
		method method.Name
		label  string
	}{{experiment.LiangLai, "Liang–Lai"}, {experiment.Distillation, "Algorithm Distillation"}} {
		minus := sentence{section: section, says: fmt.Sprintf("PolicyAttention minus %s at T = 20, interval of medians", m.label)}
		times := sentence{section: "10 Discussion", line: 6, says: fmt.Sprintf("%s has 17.7 to 28.2 times PolicyAttention's loss at T = 20", m.label)}
		learned := sentence{section: section, line: 6, says: fmt.Sprintf("8.1: %s has 20.2 to 24.2 times the loss of the fully learned loop at S = 8, T = 20", m.label)}
		below := sentence{section: "10 Discussion", says: fmt.Sprintf("every PolicyAttention run has a lower median loss at T = 20 than every run of %s", m.label)}
		little := sentence{section: "10 Discussion", says: fmt.Sprintf("%s's raw loss at T = 20 changes little from S = 8 to 16 (.4535 to .4817, .5439 to .5723)", m.label)}
		for _, states := range []int{8, 16} {
			for _, v := range of(m.method) {
				pa, at := selection(experiment.Benchmark, experiment.PolicyAttention, states), fmt.Sprintf("S = %d", states)
				key := func(format string) results.Key {
					return results.Key{Block: experiment.Benchmark, Quantity: fmt.Sprintf(format, v.method), S: states, T: 20}
				}
				minus.checks = append(minus.checks, v.check(states, at, key("policyattention minus %s"), versus(results.Difference, pa, v.in(states), 20), differing(neither)))
				times.checks = append(times.checks, v.check(states, at, key("%s / policyattention"), versus(results.Ratio, v.in(states), pa, 20), compared(neither)))
				every := v.check(states, at, results.Key{}, apart(v.in(states), pa, 20), stated)
				every.printed = "every"
				below.checks = append(below.checks, every)
			}
		}
		full := selection(experiment.Benchmark, experiment.LearnedCritic, 8)
		for _, v := range of(m.method) {
			learned.checks = append(learned.checks, v.check(8, "", results.Key{Block: experiment.Benchmark, Quantity: string(v.method) + " / learned critic", S: 8, T: 20}, versus(results.Ratio, v.in(8), full, 20), compared(neither)))
			if v.recipe == "tuned" {
				continue // not the paper's setting
			}
			change := v.check(16, "", results.Key{Block: experiment.Benchmark, Quantity: string(v.method) + " growth", S: 16, T: 20}, growth(v.in(8), v.in(16), 20), compared(neither))
			if v.recipe == "paper" {
				change.why = "conjecture: one-hot features learn from a state's own visits, which fall as 1/S"
			}
			little.checks = append(little.checks, change)
		}
		// A larger lead than the paper's over the dense copy is PolicyAttention's own.
		for i, c := range times.checks {
			if c.fitted != "" {
				times.checks[i].fitted, times.checks[i].why = "", "a larger lead: PolicyAttention's loss is lower here, the baseline's is the paper's"
			}
		}
		list = append(list, minus, times, learned, below, little)
	}
	return slices.Concat(list, ratioSentences(), targetSentences())
}

// lossSentences are the rows of Table 3.
func lossSentences() (list []sentence) {
	const section = "8 Comparison"
	loop := func(m method.Name, says string, sizes ...int) sentence {
		x := sentence{section: section, says: "Table 3, " + says + ": median loss"}
		for _, states := range sizes {
			for _, t := range horizons {
				at, n := fmt.Sprintf("S = %d, T = %d", states, t), results.Key{Block: experiment.Benchmark, Quantity: string(m), S: states, T: t}
				x.checks = append(x.checks, check{at: at, variant: "three runs", number: n, command: "evaluate benchmark", measure: loss(selection(experiment.Benchmark, m, states), t), judge: compared(lower)})
				if m == experiment.PolicyAttention {
					x.checks = append(x.checks, check{at: at, variant: "five further runs", number: n, command: "evaluate replication", measure: loss(selection(experiment.Replication, m, states), t), judge: compared(lower)})
				}
			}
		}
		x.note = "exact PMD on these 64 problems has another loss than on the paper's: the ratios to it (Table 2) compare, the losses alone do not"
		return x
	}
	list = append(list, loop(experiment.PolicyAttention, "PolicyAttention", 8, 16), loop(experiment.PMDTarget, "PMD-target", 8, 16), loop(experiment.LearnedCritic, "PolicyAttention with a learned critic", 8))
	oracle := sentence{section: section, says: "Table 3, exact PMD: median loss"}
	liang := sentence{section: section, says: "Table 3, Liang–Lai: median loss"}
	distilled := sentence{section: section, says: "Table 3, Algorithm Distillation: median loss"}
	for _, states := range []int{8, 16} {
		for _, t := range horizons {
			at, n := fmt.Sprintf("S = %d, T = %d", states, t), results.Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: states, T: t}
			oracle.checks = append(oracle.checks, check{at: at, number: n, command: "evaluate oracle", measure: among(states, t, results.Paper(n)), judge: judge{"among our medians of 64 MDPs", stated.of},
				fitted: "γ, A, the distribution of problems, π₀ and Q₀ were found from these numbers; here over 1,000 MDPs"})
			for _, v := range variants {
				c := v.check(states, at, results.Key{Block: experiment.Benchmark, Quantity: string(v.method), S: states, T: t}, loss(v.in(states), t), compared(neither))
				if v.recipe == "tuned" {
					continue // not the paper's setting
				}
				if v.method == experiment.LiangLai {
					c.why = "one-hot features, since the paper names none"
					liang.checks = append(liang.checks, c)
				} else {
					distilled.checks = append(distilled.checks, c)
				}
			}
		}
	}
	return append(list, oracle, liang, distilled)
}

// ratioSentences compare PolicyAttention with exact PMD.
func ratioSentences() []sentence {
	ratio := sentence{section: "8 Comparison", line: 5, says: "PolicyAttention's ratio to exact PMD (Tables 2 and 3)"}
	pa := func(b experiment.Block, states int) results.Selection {
		return selection(b, experiment.PolicyAttention, states)
	}
	for _, states := range []int{8, 16} {
		for _, t := range horizons {
			for _, g := range []struct {
				experiment.Block
				label string
			}{{experiment.Benchmark, "three runs"}, {experiment.Replication, "five further runs"}} {
				ratio.checks = append(ratio.checks, check{at: fmt.Sprintf("S = %d, T = %d", states, t), variant: g.label, number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention / exact-pmd", S: states, T: t}, command: "evaluate benchmark",
					measure: versusOracle(results.Ratio, pa(g.Block, states), t), judge: compared(lower)})
			}
		}
	}
	full := selection(experiment.Benchmark, experiment.LearnedCritic, 8)
	return []sentence{ratio,
		{section: "8 Comparison", says: "8.1: the learned critic in place of the exact one: ratio of losses at S = 8, T = 20", checks: []check{{number: results.Key{Block: experiment.Benchmark, Quantity: "learned critic / policyattention", S: 8, T: 20}, command: "evaluate benchmark",
			measure: versus(results.Ratio, full, pa(experiment.Benchmark, 8), 20), judge: compared(lower)}}, note: "the interval is wide"},
		{section: "10 Discussion", says: "PolicyAttention's loss at T = 20 grows from S = 8 to S = 16", checks: []check{{number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention growth", S: 16, T: 20}, command: "evaluate benchmark",
			measure: growth(pa(experiment.Benchmark, 8), pa(experiment.Benchmark, 16), 20), judge: compared(lower), why: "it follows exact PMD on the same problems"},
			{at: "exact PMD on the same problems", printed: "–", command: "evaluate benchmark", measure: growth(selection(experiment.Benchmark, experiment.ExactPMD, 8), selection(experiment.Benchmark, experiment.ExactPMD, 16), 20), aside: true}}},
		{section: "10 Discussion", says: "exact PMD's loss at T = 20 grows from S = 8 to S = 16", checks: []check{{number: results.Key{Block: experiment.Benchmark, Quantity: "exact-pmd growth", S: 16, T: 20}, command: "evaluate oracle",
			measure: oracleGrowth, judge: judge{"among ratios of our medians of 64 MDPs", stated.of}, fitted: "the harness was found from the paper's medians of exact PMD; here over 1,000 MDPs a size"}}},
	}
}

// oracleGrowth measures exact PMD's growth, and asks whether the paper's lies among
// those of 64 MDPs a size.
func oracleGrowth(s *source) (*measured, error) {
	var medians [2][]float64
	m := &measured{value: 1}
	for i, states := range []int{8, 16} {
		runs, err := s.Find(selection(experiment.Oracle, experiment.ExactPMD, states))
		if err != nil || len(runs.Found) == 0 {
			return nil, err
		}
		for block := range slices.Chunk(runs.Found[0].Losses(20), 64) {
			medians[i] = append(medians[i], stats.Median(block))
		}
		m.value = runs.Medians(20)[0] / m.value
		m.used = append(m.used, runs.Found...)
	}
	n := results.Paper(results.Key{Block: experiment.Benchmark, Quantity: "exact-pmd growth", S: 16, T: 20}).Value
	m.ok = slices.Min(medians[1])/slices.Max(medians[0]) <= n && n <= slices.Max(medians[1])/slices.Min(medians[0])
	return m, nil
}

// targetSentences compare PolicyAttention with PMD-target.
func targetSentences() []sentence {
	in := func(m method.Name, states int) results.Selection {
		return selection(experiment.Benchmark, m, states)
	}
	unresolved := sentence{section: "8 Comparison", line: 7, says: "8.2: PolicyAttention minus PMD-target is unresolved at S = 8 and at S = 16, T = 20"}
	lowered := sentence{section: "8 Comparison", line: 7, says: "8.2: PMD-target is resolved lower at S = 16, T = 40"}
	ratios := sentence{section: "8 Comparison", says: "8.4: PolicyAttention's loss over PMD-target's at T = 20"}
	for _, x := range []struct{ states, t int }{{8, 20}, {8, 40}, {16, 20}, {16, 40}} {
		for _, f := range []struct {
			results.Estimator
			label string
		}{{results.Difference, "of medians"}, {results.PairedDifference, "problem by problem"}} {
			c := check{at: fmt.Sprintf("S = %d, T = %d", x.states, x.t), variant: f.label, printed: "unresolved", command: "evaluate benchmark", judge: zero(lower), why: resolves,
				measure: versus(f.Estimator, in(experiment.PolicyAttention, x.states), in(experiment.PMDTarget, x.states), x.t)}
			if x.states == 16 && x.t == 40 {
				c.printed, c.number, c.judge, c.why = "", results.Key{Block: experiment.Benchmark, Quantity: "policyattention minus pmd-target", S: 16, T: 40}, differing(neither), closer
				lowered.checks = append(lowered.checks, c)
				continue
			}
			unresolved.checks = append(unresolved.checks, c)
		}
	}
	lowered.checks = append(lowered.checks, check{at: "the order", variant: "problem by problem", printed: "PMD-target lower", command: "evaluate benchmark", judge: judge{"the interval lies above 0", func(m *measured, _ results.Number) (Verdict, string) {
		switch {
		case m.Lo > 0:
			return Holds, ""
		case m.Hi < 0:
			return Differs, ""
		}
		return Unresolved, ""
	}}, measure: versus(results.PairedDifference, in(experiment.PolicyAttention, 16), in(experiment.PMDTarget, 16), 40)})
	for _, states := range []int{8, 16} {
		ratios.checks = append(ratios.checks, check{at: fmt.Sprintf("S = %d", states), number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention / pmd-target", S: states, T: 20}, command: "evaluate benchmark", judge: compared(lower),
			measure: versus(results.Ratio, in(experiment.PolicyAttention, states), in(experiment.PMDTarget, states), 20)})
	}
	return []sentence{unresolved, lowered, ratios, {section: "App. E Evidence", says: "E.3: every PMD-target run is below every PolicyAttention run at S = 16, T = 40", checks: []check{{
		printed: "[.0208, .0249] above [.0105, .0158]", command: "evaluate benchmark", judge: stated, why: closer,
		measure: apart(in(experiment.PolicyAttention, 16), in(experiment.PMDTarget, 16), 40),
	}}}}
}

// qualifies says whether a recipe of Algorithm Distillation qualifies.
func qualifies(recipe string, states int) measure {
	return func(s *source) (*measured, error) {
		q, err := s.Qualify(experiment.Qualification, recipe, states)
		if err != nil || q.Runs == 0 {
			return nil, err
		}
		m := &measured{text: verdictOf(q), ok: q.OK(), runs: q.Runs, planned: q.Planned, used: q.Used}
		if !m.ok && !q.HasControl && q.Last <= results.Hardly*q.First {
			m.barred = "it has no control of a short context of its own"
		}
		return m, nil
	}
}

// improves says how far the median loss falls from round 1 to round 40.
func improves(block experiment.Block, recipe string, states int) measure {
	return func(s *source) (*measured, error) {
		q, err := s.Qualify(block, recipe, states)
		if err != nil || q.Runs == 0 {
			return nil, err
		}
		return &measured{text: fmt.Sprintf("%.3f to %.3f, %d of %d MDPs", q.First, q.Last, q.Improved, q.Problems), ok: q.Last <= results.Hardly*q.First, runs: q.Runs, planned: q.Planned, used: q.Used}, nil
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
		m.text = fmt.Sprintf("α = %v: %.3f; α = %v: %.3f", papers.Alpha, papers.Loss[0], best.Alpha, best.Loss[0])
		m.ok = best.Loss[0] < papers.Loss[0]
		return m, nil
	}
}

// tunedSteps returns Liang–Lai's scores at the paper's step sizes and at the best ones
// with an actor step of at most a limit, from π₀.
func (s *source) tunedSteps(states int, limit float64) (papers, best *baseline.Score, m *measured, err error) {
	grid, err := s.Grid("", states)
	if err != nil || len(grid.Found) == 0 {
		return nil, nil, nil, err
	}
	steps, err := s.PrintedRates(experiment.LiangLai, states)
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
		m.text = fmt.Sprintf("(%g, %g): %s", best.Alpha, best.Beta, number(best.Loss[0]))
		if papers != nil {
			m.ok = best.StepSizes == papers.StepSizes
			if !m.ok {
				m.text += fmt.Sprintf(", against %s", number(papers.Loss[0]))
			}
		}
		return m, nil
	}
}

// sourceRates asks whether a larger source rate than the paper's is better for
// Algorithm Distillation.
func sourceRates(s *source) (*measured, error) {
	runs, err := s.Find(selection(experiment.Tuning, experiment.Distillation, 8))
	if err != nil {
		return nil, err
	}
	papers, best, rate := math.NaN(), math.Inf(1), 0.0
	for _, r := range runs.Found {
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
	return &measured{text: fmt.Sprintf("rate %v: %.3f; rate %v: %.3f", sourceRate, papers, rate, best), ok: best < papers, runs: len(runs.Found), planned: runs.Planned, used: runs.Found}, nil
}

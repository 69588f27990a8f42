package report

import (
	"cmp"
	"fmt"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// variant is a recipe of a sampled method that sentences are held to.
type variant struct {
	method.Variant
	of method.Method
}

// variants lists those of a method.
func variants(m method.Method) (list []variant) {
	for _, v := range m.Variants {
		list = append(list, variant{v, m})
	}
	return list
}

func (v variant) in(states int) results.Selection {
	return results.Selection{Block: experiment.Benchmark, Method: v.of.Name, Recipe: v.Recipe, S: states}
}

// check is a check of the variant at a size, barred where its network has not learned.
func (v variant) check(states int, at string, n results.Key, m measure, j judge) check {
	return check{at: at, variant: v.Label, number: n, command: "evaluate benchmark", measure: v.entitled(states, m), judge: j, why: v.Lead, fitted: v.Fitted, budget: v.Budget, of: v.in(states)}
}

// entitled bars what is measured of a network that did not beat its own control.
func (v variant) entitled(states int, measure measure) measure {
	if v.of.Control == nil {
		return measure
	}
	return func(s *source) (*measured, error) {
		m, err := measure(s)
		if err != nil || m == nil {
			return nil, err
		}
		q, err := s.Qualify(experiment.Qualification, v.of.Name, v.Recipe, states)
		if err == nil && !q.OK() {
			m.barred = fmt.Sprintf("%s, S = %d, %s", v.Label, states, verdictOf(q))
		}
		return m, err
	}
}

// Sections 8 and 10, and Appendix E.3: the common harness.
func benchmarkSentences() []sentence {
	const section = "8 Comparison"
	list := lossSentences()
	for _, m := range all.Methods {
		if len(m.Variants) == 0 {
			continue
		}
		minus := sentence{section: section, says: fmt.Sprintf("PolicyAttention minus %s at T = 20, interval of medians", m.Label)}
		times := sentence{section: "10 Discussion", line: 6, says: fmt.Sprintf("%s has 17.7 to 28.2 times PolicyAttention's loss at T = 20", m.Label)}
		learned := sentence{section: section, line: 6, says: fmt.Sprintf("8.1: %s has 20.2 to 24.2 times the loss of the fully learned loop at S = 8, T = 20", m.Label)}
		below := sentence{section: "10 Discussion", says: fmt.Sprintf("every PolicyAttention run has a lower median loss at T = 20 than every run of %s", m.Label)}
		little := sentence{section: "10 Discussion", says: fmt.Sprintf("%s's raw loss at T = 20 changes little from S = 8 to 16 (.4535 to .4817, .5439 to .5723)", m.Label)}
		for _, states := range []int{8, 16} {
			for _, v := range variants(m) {
				pa, at := selection(experiment.Benchmark, experiment.PolicyAttention, states), fmt.Sprintf("S = %d", states)
				key := func(format string) results.Key {
					return results.Key{Block: experiment.Benchmark, Quantity: fmt.Sprintf(format, m.Name), S: states, T: 20}
				}
				minus.checks = append(minus.checks, v.check(states, at, key("policyattention minus %s"), versus(results.Difference, pa, v.in(states), 20), differing(neither)))
				times.checks = append(times.checks, v.check(states, at, key("%s / policyattention"), versus(results.Ratio, v.in(states), pa, 20), compared(neither)))
				every := v.check(states, at, results.Key{}, apart(v.in(states), pa, 20), stated)
				every.printed = "every"
				below.checks = append(below.checks, every)
			}
		}
		full := selection(experiment.Benchmark, experiment.LearnedCritic, 8)
		for _, v := range variants(m) {
			learned.checks = append(learned.checks, v.check(8, "", results.Key{Block: experiment.Benchmark, Quantity: string(m.Name) + " / learned critic", S: 8, T: 20}, versus(results.Ratio, v.in(8), full, 20), compared(neither)))
			if v.Tuned {
				continue // not the paper's setting
			}
			change := v.check(16, "", results.Key{Block: experiment.Benchmark, Quantity: string(m.Name) + " growth", S: 16, T: 20}, growth(v.in(8), v.in(16), 20), compared(neither))
			change.why = cmp.Or(v.Growth, change.why)
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
				x.checks = append(x.checks, check{at: at, variant: "three runs", number: n, command: "evaluate benchmark", measure: loss(selection(experiment.Benchmark, m, states), t), judge: compared(neither), why: otherProblems})
				if m == experiment.PolicyAttention {
					x.checks = append(x.checks, check{at: at, variant: "five further runs", number: n, command: "evaluate replication", measure: loss(selection(experiment.Replication, m, states), t), judge: compared(neither), why: otherProblems})
				}
			}
		}
		return x
	}
	list = append(list, loop(experiment.PolicyAttention, "PolicyAttention", 8, 16), loop(experiment.PMDTarget, "PMD-target", 8, 16), loop(experiment.LearnedCritic, "PolicyAttention with a learned critic", 8))
	oracle := sentence{section: section, says: "Table 3, exact PMD: median loss"}
	for _, states := range []int{8, 16} {
		for _, t := range horizons {
			at, n := fmt.Sprintf("S = %d, T = %d", states, t), results.Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: states, T: t}
			oracle.checks = append(oracle.checks, check{at: at, number: n, command: "evaluate oracle", measure: among(states, t, results.Paper(n)), judge: judge{name: "among our medians of 64 MDPs", of: stated.of},
				fitted: "γ, A, the distribution of problems, π₀ and Q₀ were found from these numbers; here over 1,000 MDPs"})
		}
	}
	list = append(list, oracle)
	for _, m := range all.Methods {
		if len(m.Variants) == 0 {
			continue
		}
		x := sentence{section: section, says: fmt.Sprintf("Table 3, %s: median loss", m.Label)}
		for _, states := range []int{8, 16} {
			for _, t := range horizons {
				for _, v := range variants(m) {
					if v.Tuned {
						continue // not the paper's setting
					}
					at, n := fmt.Sprintf("S = %d, T = %d", states, t), results.Key{Block: experiment.Benchmark, Quantity: string(m.Name), S: states, T: t}
					c := v.check(states, at, n, loss(v.in(states), t), compared(neither))
					c.why = cmp.Or(v.Loss, c.why)
					x.checks = append(x.checks, c)
				}
			}
		}
		list = append(list, x)
	}
	return list
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
				ratio.checks = append(ratio.checks, check{at: fmt.Sprintf("S = %d, T = %d", states, t), variant: g.label, number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention / exact-pmd", S: states, T: t}, command: "evaluate " + string(g.Block),
					measure: versusOracle(results.Ratio, pa(g.Block, states), t), judge: compared(lower)})
			}
		}
	}
	full := selection(experiment.Benchmark, experiment.LearnedCritic, 8)
	return []sentence{ratio,
		{section: "8 Comparison", says: "8.1: the learned critic in place of the exact one: ratio of losses at S = 8, T = 20", checks: []check{
			{at: "it costs loss", printed: "above 1", command: "evaluate benchmark", measure: versus(results.Ratio, full, pa(experiment.Benchmark, 8), 20), judge: above(1)},
			{at: "how much", number: results.Key{Block: experiment.Benchmark, Quantity: "learned critic / policyattention", S: 8, T: 20}, command: "evaluate benchmark",
				measure: versus(results.Ratio, full, pa(experiment.Benchmark, 8), 20), judge: compared(lower)},
			{at: "of means", printed: "–", command: "evaluate benchmark", measure: versus(results.RatioOfMeans, full, pa(experiment.Benchmark, 8), 20), aside: true},
			{at: "the mean of the samples instead, of means", printed: "–", command: "evaluate critics", aside: true,
				measure: versus(results.RatioOfMeans, selection(experiment.Critics, experiment.ActorSampleMean, 8), pa(experiment.Benchmark, 8), 20)},
		}},
		{section: "10 Discussion", says: "PolicyAttention's loss at T = 20 grows from S = 8 to S = 16", checks: []check{{number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention growth", S: 16, T: 20}, command: "evaluate benchmark",
			measure: growth(pa(experiment.Benchmark, 8), pa(experiment.Benchmark, 16), 20), judge: compared(lower), why: "it follows exact PMD on the same problems"},
			{at: "exact PMD on the same problems", printed: "–", command: "evaluate benchmark", measure: growth(selection(experiment.Benchmark, experiment.ExactPMD, 8), selection(experiment.Benchmark, experiment.ExactPMD, 16), 20), aside: true}}},
		{section: "10 Discussion", says: "exact PMD's loss at T = 20 grows from S = 8 to S = 16", checks: []check{{number: results.Key{Block: experiment.Benchmark, Quantity: "exact-pmd growth", S: 16, T: 20}, command: "evaluate oracle",
			measure: oracleGrowth, judge: judge{name: "among ratios of our medians of 64 MDPs", of: stated.of}, fitted: "the harness was found from the paper's medians of exact PMD; here over 1,000 MDPs a size"}}},
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
		for block := range blocks(runs.Found[0].Losses(20)) {
			medians[i] = append(medians[i], stats.Median(block))
		}
		m.value = runs.Medians(20)[0] / m.value
		m.used = append(m.used, runs.Found...)
	}
	n := results.InBenchmark("exact-pmd growth", 16, 20).Value
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
			c := check{at: fmt.Sprintf("S = %d, T = %d", x.states, x.t), variant: f.label, printed: "unresolved", command: "evaluate benchmark", judge: zero, why: resolves,
				measure: versus(f.Estimator, in(experiment.PolicyAttention, x.states), in(experiment.PMDTarget, x.states), x.t)}
			if x.states == 16 && x.t == 40 {
				c.printed, c.number, c.judge, c.why = "", results.Key{Block: experiment.Benchmark, Quantity: "policyattention minus pmd-target", S: 16, T: 40}, differing(neither), closer
				lowered.checks = append(lowered.checks, c)
				continue
			}
			unresolved.checks = append(unresolved.checks, c)
		}
	}
	lowered.checks = append(lowered.checks, check{at: "the order", variant: "problem by problem", printed: "PMD-target lower", command: "evaluate benchmark", judge: above(0), measure: versus(results.PairedDifference, in(experiment.PolicyAttention, 16), in(experiment.PMDTarget, 16), 40)})
	for _, states := range []int{8, 16} {
		ratios.checks = append(ratios.checks, check{at: fmt.Sprintf("S = %d", states), number: results.Key{Block: experiment.Benchmark, Quantity: "policyattention / pmd-target", S: states, T: 20}, command: "evaluate benchmark", judge: compared(lower),
			measure: versus(results.Ratio, in(experiment.PolicyAttention, states), in(experiment.PMDTarget, states), 20)})
	}
	return []sentence{unresolved, lowered, ratios, {section: "App. E Evidence", says: "E.3: every PMD-target run is below every PolicyAttention run at S = 16, T = 40", checks: []check{{
		printed: "[.0208, .0249] above [.0105, .0158]", command: "evaluate benchmark", judge: stated, why: closer,
		measure: apart(in(experiment.PolicyAttention, 16), in(experiment.PMDTarget, 16), 40),
	}}}}
}

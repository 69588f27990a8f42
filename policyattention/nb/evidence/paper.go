package evidence

import (
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/experiment"
	"icrl/policyattention/nb"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
)

// Table3 shows Table 3 of the paper in its own shape, a row for each method, with the
// results here beside the paper's numbers.
func (r *Results) Table3() { nb.Must(table3(r.Source())).Show() }

func table3(s *results.Source) (*nb.Sheet, error) {
	all, err := s.Benchmark()
	if err != nil {
		return nil, err
	}
	columns := []string{"method"}
	for _, states := range []int{8, 16} {
		for _, horizon := range results.Horizons {
			columns = append(columns, fmt.Sprintf("S = %d, T = %d", states, horizon))
		}
	}
	t := nb.NewTable("Table 3: median normalized returned-policy loss in the common harness (lower is better)", columns...)
	chosen := table3Rows(s, all)
	for _, series := range chosen {
		row := []any{series.String()}
		for _, states := range []int{8, 16} {
			for _, horizon := range results.Horizons {
				paper, here := "–", "–"
				if n := results.InBenchmark(string(series.Method), states, horizon); n != nil {
					paper = nb.Format(n.Value)
				}
				for _, x := range all {
					if x.Series == series && x.S == states && x.T == horizon && x.Loss.Runs > 0 {
						e := x.Loss.Estimate
						here = fmt.Sprintf("%s\n[%s, %s]", nb.Format(e.Value), nb.Format(e.Lo), nb.Format(e.Hi))
						if x.Tail.Runs > 0 {
							here += fmt.Sprintf("\nmeans %s\nworst %+.2g", nb.Format(x.Tail.RatioOfMeans.Value), x.Tail.Worst)
						}
					}
				}
				row = append(row, "paper "+paper+"\nhere "+here)
			}
		}
		t.Add(row...)
	}
	t.Note("In brackets 95%% intervals of the median. Means: the ratio of mean losses to exact PMD's; worst: the largest excess over exact PMD's loss on one problem of one run. Rows in the order of the paper. A dash: no number in the paper, or no results stored here. The sampled methods have the paper's step sizes; Algorithm Distillation has the budget in brackets, and the paper's numbers are for its full one.")
	return t, nil
}

// table3Rows are the paper's rows: a recipe for each sampled method, the largest budget
// that has results.
func table3Rows(s *results.Source, all []results.BenchmarkRow) (rows []results.Series) {
	for _, m := range s.Store.Preset.Methods {
		if results.InBenchmark(string(m.Name), 8, 20) == nil {
			continue
		}
		recipe := ""
		if m.Sampled {
			recipe = m.Printed[0]
		}
		for _, printed := range m.Printed {
			if slices.ContainsFunc(all, func(r results.BenchmarkRow) bool {
				return r.Method == m.Name && r.Recipe == printed && r.Loss.Runs > 0
			}) {
				recipe = printed
				break
			}
		}
		rows = append(rows, s.Series(m.Name, recipe))
	}
	return rows
}

// Table2 shows Table 2 of the paper, a question a row, with what is found here.
func (r *Results) Table2() { nb.Must(table2(r.Source())).Show() }

func table2(s *results.Source) (*nb.Sheet, error) {
	t := nb.NewTable("Table 2: claim-to-estimand map", "question", "coordinate", "paper", "here [95% interval]")
	mechanism, err := s.Mechanism()
	if err != nil {
		return nil, err
	}
	spread := func(quantity results.Quantity) (parts []string) {
		for _, m := range mechanism {
			if m.Method == experiment.PolicyAttention && m.Quantity == quantity && len(m.ByRun) > 0 {
				parts = append(parts, fmt.Sprintf("%s (S = %d)", nb.Format(m.Value()), m.S))
			}
		}
		return parts
	}
	t.Add("What actor rule was learned?", "same-context row-L1 to fixed rules", "PMD 0.0357, nearest alternative 0.1116",
		"PMD "+strings.ReplaceAll(list(spread(results.RowL1To(pmd.PMD))), "\n", " ")+";\nnearest alternative "+list(spread(results.NearestL1)))

	confirmation, err := s.Confirmation()
	if err != nil {
		return nil, err
	}
	here := func(quantity results.Quantity) string {
		for _, c := range confirmation {
			if c.Quantity == quantity && c.Estimate.Runs > 0 {
				return tailed(c.Estimate, c.Tail)
			}
		}
		return "–"
	}
	within, runs := 0, 0
	for _, c := range confirmation {
		if c.Run > 0 && c.Estimate.Runs > 0 {
			runs++
			if c.Estimate.Value <= experiment.PaperProtocol.Margin {
				within++
			}
		}
	}
	t.Add("Does local correspondence survive feedback?", "learned actor, exact critic / exact PMD, S = 4, T = 20", "ratio 1.052; all five runs at most 1.5",
		fmt.Sprintf("%s; %d of %d runs at most %g", here(results.MedianRatio), within, runs, experiment.PaperProtocol.Margin))
	t.Add("Does the fully learned loop remain near the oracle?", "learned actor, learned critic / exact PMD", "1.050", here(results.LearnedCriticRatio))

	shifts, err := s.Shifts()
	if err != nil {
		return nil, err
	}
	var theirs, ours []string
	for _, row := range shifts {
		if row.Further {
			continue // the paper has five
		}
		if row.Ratio.Paper != nil {
			theirs = append(theirs, fmt.Sprintf("%s %s", row.Family, nb.Format(row.Ratio.Paper.Value)))
		}
		if row.Ratio.Runs > 0 {
			ours = append(ours, fmt.Sprintf("%s %s", row.Family, tailed(row.Ratio, row.Tail)))
		}
	}
	t.Add("Does it survive a shift of the environment?", "the same actors on four families, no retraining", list(theirs), list(ours))
	t.Note(tailNote)
	return t, table2Benchmark(s, t, here)
}

// tailed prints an estimate of medians with what they hide.
func tailed(e results.Estimate, t results.Tail) string {
	if t.Runs == 0 {
		return nb.Format(e.Estimate)
	}
	return fmt.Sprintf("%s (in means %s times, worst %+.2g)", nb.Format(e.Estimate), nb.Format(t.RatioOfMeans.Value), t.Worst)
}

const tailNote = "In brackets after a median: the ratio of mean losses to what it is compared with (exact PMD, if nothing else is said), and the largest excess of loss on one problem of one run."

// table2Benchmark adds the questions that the common harness answers.
func table2Benchmark(s *results.Source, t *nb.Sheet, confirmed func(results.Quantity) string) error {
	benchmark, err := s.Benchmark()
	if err != nil {
		return err
	}
	var ratios []string
	for _, r := range benchmark {
		if r.Method == experiment.PolicyAttention && r.T == 20 && r.Ratio.Runs > 0 {
			ratios = append(ratios, fmt.Sprintf("%s (S = %d)", tailed(r.Ratio, r.Tail), r.S))
		}
	}
	t.Add("Does the phenomenon persist at larger size?", "retrained models / exact PMD, T = 20", "1.31 (S = 8), 1.64 (S = 16)", list(ratios))

	advantages, err := s.Advantages()
	if err != nil {
		return err
	}
	var ahead []string
	for _, a := range advantages {
		if a.T == 20 && a.AtPaper.Runs > 0 {
			text := fmt.Sprintf("%s, S = %d: %s", a.Paper, a.S, nb.Format(a.AtPaper.Estimate))
			if a.AtTuned.Runs > 0 {
				text += fmt.Sprintf(", tuned %s", nb.Format(a.AtTuned.Estimate))
			}
			ahead = append(ahead, text)
		}
	}
	t.Add("How does it compare with neighbouring learned methods?", "their loss / PolicyAttention's, T = 20", "17.7 to 28.2", list(ahead))

	differences, err := s.Differences()
	if err != nil {
		return err
	}
	matched := []string{"reward-only minus actor, S = 4: " + confirmed(results.RewardOnlyMinus)}
	for _, d := range differences {
		if d.Method == experiment.PMDTarget && d.OfMedians.Runs > 0 {
			matched = append(matched, fmt.Sprintf("PolicyAttention minus PMD-target, S = %d, T = %d: %s", d.S, d.T, nb.Format(d.OfMedians.Estimate)))
		}
	}
	t.Add("What do matched controls establish?", "PMD-target and reward-only controls", "PMD-target is competitive; reward-only has the lower loss at S = 4, T = 20", list(matched))
	return nil
}

// list joins what was found, a line each, or says that nothing was.
func list(parts []string) string {
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ";\n")
}

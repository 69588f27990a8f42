package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// headlineActor is the table of documents: the paper's actor, with as few columns as tell how it fails.
func (s *Store) headlineActor() Table {
	return s.headlineOf([]int{20, 40, 100}, Method.Is("policyattention"), Recipe.Is("plain")).
		short("S", "T", "means / reference", "range over runs", "99 %", "worst", "locked")
}

// headlineShort is the table of README, a row a size.
func (s *Store) headlineShort() (t Table) {
	all := s.headlineActor()
	t.err = all.err
	t.Columns = []string{"S", "mean loss / exact PMD's, T = 20", "T = 40", "T = 100", "99 %", "worst", "locked"}
	for at := range slices.Chunk(all.lines, 3) {
		first := at[0].entries
		t.Add(first[0], first[2], at[1].entries[2], at[2].entries[2], first[4], first[5], first[6])
	}
	return t
}

// headline compares on the problems of the headline block, thousands a size.
func (s *Store) headline() Table {
	ablated := Recipe.Not(seen[1].recipe, seen[2].recipe, seen[3].recipe)
	t := s.headlineOf([]int{20, 40, 100}, Method.Not("exact-pmd"), ablated).MeanOverProblems().
		short("method", "recipe", "S", "T", "runs", "mean loss", "means / reference", "range over runs",
			"ratio of medians", "95 %", "99 %", "worst", "locked")
	t.Columns[len(t.Columns)-1] = "above .05" // others cannot lock up
	return t
}

func (s *Store) headlineOf(horizons []int, filters ...Filter) Table {
	return s.Block("headline").Where(filters...).At(horizons...).By(Method, Recipe, S, T).Runs().
		Against(s.exact("headline").At(horizons...).By(S)).
		estimate("over-problems", "means / reference").ByRun().Ratio().WithTail().estimate("locked", "locked")
}

// seen are the recipes by which tokens see each other, and what a pair sees.
var seen = []struct{ recipe, pair string }{{"plain", "all before (paper)"},
	{"plain,attention=state", "its state"}, {"plain,attention=none", "itself"},
	{"plain,attention=equivariant", "all, without names"}}

// attention compares networks with attention and without: all training runs that there are.
func (s *Store) attention() (t Table) {
	for _, states := range []string{"4", "8", "16"} {
		trained := s.Block("headline").Where(S.Is(states)).Values(Recipe)
		for _, x := range seen {
			if !slices.Contains(trained, x.recipe) {
				continue
			}
			part := s.looped(x.recipe, states).with("a pair sees", func(line) any { return x.pair })
			part = part.with("one-step row-L1 [range over runs]", func(l line) any {
				c, err := s.oneStep(x.recipe, states)
				t.err = errors.Join(t.err, err)
				if x == seen[0] && len(c.ByRun) >= 10 {
					tau := stats.RankCorrelation(c.ByRun, l.last.ByRun)
					t.Notes = append(t.Notes, fmt.Sprintf("Kendall's τ of row-L1 and locked over runs, "+
						"all before, S = %s: %s.", states, tau.Text(report.Number)))
				}
				return c.shown()
			})
			t = t.Then(part.estimate("locking", "runs that lock up"))
		}
	}
	return t.short("a pair sees", "S", "one-step row-L1 [range over runs]", "runs", "means / reference", "99 %",
		"worst", "locked", "runs that lock up")
}

// looped are the loops of trained actors of one recipe and size at T = 40, with the share of locked problems last.
func (s *Store) looped(recipe, states string) Table {
	return s.headlineOf([]int{40}, Method.Is("policyattention"), Recipe.Is(recipe), S.Is(states))
}

// oneStep is the mean row-L1 of these actors to PMD's step, by run.
func (s *Store) oneStep(recipe, states string) (Cell, error) {
	return s.Ask("mean ablation method=policyattention of=row_l1 rule=pmd recipe=" + recipe + " s=" + states)
}

// sizes is how networks with attention and without do at sizes that they were not trained on.
func (s *Store) sizes() (t Table) {
	for _, x := range seen {
		cells := s.Block("sizes-numbers").Of("value").Where(Recipe.Is(x.recipe)).By(S, "x", "quantity").Mean().across()
		t = t.Then(cells.each(func(l *line) {
			l.entries = slices.Concat([]any{x.pair}, l.entries[:2], []any{len(l.group.sample)}, l.entries[2:])
		}))
	}
	t.Columns = []string{"a pair sees", "trained at S", "S", "runs", "one-step row-L1", "means / exact PMD", "locked"}
	return t.short(t.Columns...)
}

// heads is what attention does in trained actors, layer by layer, and what tokens hold with attention and without.
func (s *Store) heads() (t Table) {
	t.Columns = []string{"a pair sees", "S", "layer", "own pair", "its state's", "its action's", "others",
		"row-L1 without one head", "loss of the loop", "R² of log π", "R² of ηQ"}
	all := s.Block("heads-numbers")
	t.err = all.err
	for _, x := range seen {
		numbers := all.Where(Recipe.Is(x.recipe))
		for _, states := range numbers.Values(S) {
			for layer := range 5 {
				row, at := []any{x.pair, states, layer}, []any{layer} // and its heads
				for head := range 9 {
					at = append(at, float64(100*layer+head+1)/100)
				}
				for _, quantity := range []string{"own", "state", "action", "others", "without", "loop_without",
					"prior_r2", "gain_r2"} {
					of := numbers.Where(S.Is(states), Column("quantity").Is(quantity), Column("x").Is(at...))
					if v := of.Number("value"); len(v) > 0 {
						e := stats.Estimate{Value: stats.Mean(v), Lo: slices.Min(v), Hi: slices.Max(v)}
						row = append(row, e.Text(report.Number))
					} else {
						row = append(row, nil)
					}
				}
				t.Add(row...)
			}
		}
	}
	return t
}

// switched is how networks do whose attention is taken away after training: medians over runs and ranges.
func (s *Store) switched() Table {
	t := s.Block("heads-numbers").Of("value").Where(Column("quantity").Is("trained", "itself", "silent")).
		By(Method, Recipe, S, "quantity", "x").Mean().across()
	t.Columns = []string{"method", "recipe or read-out", "S", "heads", "one-step row-L1", "loss / exact PMD's, T = 20",
		"T = 40", "T = 100"}
	return t.short(t.Columns...)
}

// sharpness is the mean loss of policies of the benchmark's loops, run again, at T = 20 as they were returned, at the
// temperature with the least mean loss on calibration problems, and greedy.
func (s *Store) sharpness() (t Table) {
	t.Columns = []string{"method", "recipe", "S", "returned", "/ PA", "temperature", "at it", "at it / PA", "greedy",
		"greedy / PA"}
	best := s.Block("sharpness").At(20).By(S, Method, Recipe, "alpha").least(group.mean, Method, Recipe, S)
	best = best.match(best.keep(ofOurs), same(S))
	all := s.Block("sharpened").At(20).By(S, Method, Recipe, "alpha")
	t.err = cmp.Or(best.err, all.err)
	of := func(g group, temperature string) [][]float64 {
		i := slices.IndexFunc(all.lines, func(l line) bool {
			return same(S, Method, Recipe)(g, l.group) && l.group.key["alpha"] == temperature
		})
		return all.lines[i].group.sample
	}
	for _, l := range best.lines {
		own, ours := l.group.key["alpha"], l.reference.key["alpha"]
		row := []any{l.entries[1], l.entries[2], l.entries[0]}
		for _, at := range [][2]string{{"1", "1"}, {own, ours}, {"0", "0"}} {
			x := of(l.group, at[0])
			mean, err := meanOverProblems(x, nil)
			ratio, failed := stats.RatioOverProblems(x, of(l.reference, at[1]))
			t.err = errors.Join(t.err, err, failed)
			row = append(row, mean.Text(report.Number), ratio.Text(report.Number))
		}
		t.Add(slices.Insert(row, 5, any(own))...)
	}
	return t
}

// ofOurs reports whether a line is of PolicyAttention.
func ofOurs(l line) bool { return l.group.key[Method] == "policyattention" }

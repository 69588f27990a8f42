package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/stats"
)

// Tables of documents, which have room for less.

// allFindings are the findings of RESULTS, each with a number and the table that has more: README's five first.
func (s *Store) allFindings() (t Table) {
	t.Title, t.Columns = "Findings", []string{"finding", "number", "here [95 % interval]", "table"}
	of := func(table, column string, keys ...any) any {
		from := s.tables[table]()
		k := slices.Index(from.Columns, column)
		for _, row := range from.Rows {
			if k >= 0 && fmt.Sprintln(row[:len(keys)]...) == fmt.Sprintln(keys...) {
				return row[k]
			}
		}
		t.err = cmp.Or(t.err, from.err, fmt.Errorf("results: findings: no %v in table %s, %q", keys, table, column))
		return nil
	}
	const ours = "method=policyattention recipe=plain"
	ask := func(query string) string { return s.say(&t, "", query) }
	mean := func(states, horizon int) any { return of("headline-actor", "means / reference", states, horizon) }
	t.Add("For some forty rounds the learned actor follows exact PMD",
		"mean loss / exact PMD's, S = 8, T = 20; 40; 100",
		fmt.Sprintf("%v; %v; %v", mean(8, 20), mean(8, 40), mean(8, 100)), "headline-actor")
	t.Add("On a few problems it drops an action and never returns: it locks up",
		"share more than .05 behind exact PMD, S = 4, T = 40",
		of("headline-actor", "locked", 4, 40), "headline-actor")
	t.Add("The learned critic does worse than the plain mean of its samples", "ratio of mean losses, S = 4, T = 20",
		ask("ratio-of-means confirmation method=policyattention-learned-critic s=4 t=20 / block=critics "+
			"method=policyattention-sample-mean"), "critics-20")
	t.Add("Liang–Lai, fitted to the paper's losses, is far behind",
		"its median loss / PolicyAttention's, S = 16, T = 20",
		ask("ratio benchmark method=liang-lai recipe=paper-features s=16 t=20 / "+ours), "claims")
	distilled := []any{Label("algorithm-distillation"), "full"}
	t.Add("Most of the lead over Algorithm Distillation is sharper policies",
		"its mean loss / PolicyAttention's, S = 8, T = 20; both greedy",
		fmt.Sprintf("%v; %v", of("greedy-leads", "S = 8: as returned", distilled...),
			of("greedy-leads", "greedy", distilled...)), "greedy-leads")
	t.Add("After more rounds the actor falls behind", "mean loss / exact PMD's, S = 4, T = 100", mean(4, 100),
		"headline-actor")
	t.Add("PMD-target, trained on PMD's rows, locks up less", "share as in the second line",
		of("headline", "locked", Label("pmd-target"), "plain", 4, 40), "headline")
	t.Add("With the model and tuned steps the actor is far behind",
		"mean loss, S = 8, T = 20: actor; exact PMD",
		fmt.Sprintf("%.4g; %.4g", of("equal-model", "mean loss", Label("policyattention"), 8),
			of("equal-model", "mean loss", Label("exact-pmd"), 8)), "equal-model")
	t.Add("Larger step sizes bring Liang–Lai much closer", "tuned, median loss / PolicyAttention's, S = 16, T = 20",
		ask("ratio benchmark method=liang-lai recipe=tuned s=16 t=20 / "+ours), "claims")
	t.Add("From the same samples, methods that keep all of them do better",
		"certainty equivalence's mean loss less PolicyAttention's, S = 16, T = 20",
		of("lead", "update, both on 20 transitions", Label("certainty-equivalence"), 16, 20), "lead")
	seen := func(i int) any { return of("attention", "one-step row-L1 [range over runs]", seen[i].pair, 4) }
	t.Add("One step can be learned without attention", "row-L1 to the PMD step, S = 4: without attention; with it",
		fmt.Sprintf("%v; %v", seen(2), seen(0)), "attention")
	t.Add("With a model, value iteration is at least as good",
		"mean loss on a chain, 20 backups: value iteration; exact PMD",
		fmt.Sprintf("%.4g; %.4g", of("families", Label("value-iteration"), "chain", 20),
			of("families", Label("exact-pmd"), "chain", 20)), "families")
	t.Add("Every audited row meets the bound of Theorem 2", "violations among the rows of all learned loops",
		of("audit", "violations", "all learned closed loops"), "audit")
	return t
}

// findings are those of README.
func (s *Store) findings() Table {
	t := s.tables["all-findings"]()
	t.Rows = t.Rows[:min(5, len(t.Rows))]
	return t.short(t.Columns[:3]...)
}

// reproduced are the claims of README, the largest difference first.
func (s *Store) reproduced() (t Table) {
	t.Title, t.Columns = "Does it reproduce?", []string{"item", "paper", "here [95 % interval]", "verdict", "why"}
	for _, prefix := range []string{
		"ratio benchmark method=policyattention recipe=plain s=8 t=40",
		"ratio benchmark method=policyattention recipe=plain s=16 t=40",
		"median benchmark method=algorithm-distillation recipe=full s=8 t=20",
		"ratio benchmark method=liang-lai recipe=paper-features s=16 t=20",
		"ratio confirmation method=policyattention-learned-critic t=20",
		"ratio confirmation method=policyattention seed=14101 t=20",
		"ratio shift method=policyattention family=sparse-transitions t=20",
		"difference confirmation method=policyattention-mixture t=20",
	} {
		at := slices.IndexFunc(ThePaper.Claims, func(c Claim) bool { return strings.HasPrefix(c.Query, prefix) })
		if at < 0 {
			t.err = fmt.Errorf("results: no claim about %q", prefix)
			return t
		}
		j, err := s.Judge(ThePaper.Claims[at])
		if err != nil {
			t.err = err
			return t
		}
		t.Add(j.Sentence, j.Printed.Text, said(j.Here), string(j.Verdict), j.Reason)
	}
	return t
}

// greedyLeads is how the ratios to PolicyAttention's mean loss change when all policies are made greedy.
func (s *Store) greedyLeads() (t Table) {
	t.Columns = []string{"method", "recipe", "S = 8: as returned", "greedy", "S = 16: as returned", "greedy"}
	others := s.Block("benchmark").At(20).Where(S.Is(8), Method.Is("liang-lai", "algorithm-distillation",
		"actor-critic", "s5rl"), Recipe.Is("paper-features", "paper", "paper-uniform", "tuned", "full",
		"cpu-tuned", "source", "cpu")).By(Method, Recipe)
	temperatures := map[string]float64{}
	for _, states := range []string{" 8", " 16"} {
		temperatures["policyattention plain"+states] = 0
		for _, l := range others.lines {
			temperatures[l.group.key[Method]+" "+l.group.key[Recipe]+states] = 0
		}
	}
	losses, err := s.treatedLosses(temperatures)
	t.err = cmp.Or(others.err, err)
	for _, l := range others.lines {
		row := []any{l.entries[0], l.entries[1]}
		for _, states := range []string{" 8", " 16"} {
			theirs := losses[l.group.key[Method]+" "+l.group.key[Recipe]+states]
			for _, k := range []int{0, 2} { // as returned, greedy
				ratio, err := stats.RatioOverProblems(theirs[k], losses["policyattention plain"+states][k])
				t.err, row = cmp.Or(t.err, err), append(row, said(Cell{Estimate: ratio}))
			}
		}
		t.Add(row...)
	}
	return t.Titled("Mean loss over PolicyAttention's at T = 20, as returned and with both policies greedy",
		"Intervals are for other problems and the same networks; 64 problems are few for these.")
}

// equalModel is what methods with the model and tuned step sizes are left with.
func (s *Store) equalModel() Table {
	t := s.tables["equal"]()
	shown := []any{Label("policyattention"), Label("exact-pmd"), Label("liang-lai"), Label("value-iteration")}
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(row []any) bool {
		return row[0] != "model" || row[3] != 20 || !slices.Contains(shown, row[1])
	})
	t.Notes = nil
	return t.short("method", "S", "mean loss")
}

func (s *Store) critics20() Table {
	return s.tables["critics"]().keep(func(l line) bool { return l.group.key[T] == "20" }).
		short("method", "S", "error of a backup", "means / exact PMD", "worst", "means / mean of samples").
		noted("Means / mean of samples: over the loop of the same actor with the mean of the same samples. Worst: of " +
			"the loss less exact PMD's.")
}

func (s *Store) lead20() Table {
	t := s.tables["lead"]()
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(row []any) bool {
		return row[2] != "20" || row[0] == Label("q-learning") || row[0] == Label("sarsa")
	})
	return t.short("method", "S", "lead", "= update rule", "+ information", "+ tuning")
}

func (s *Store) qualified() Table {
	t := s.tables["qualification"]()
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows),
		func(row []any) bool { // of recipes that are controls themselves
			recipe := fmt.Sprint(row[1])
			return strings.HasSuffix(recipe, "-short") || strings.HasSuffix(recipe, "-cleared")
		})
	return t.short("method", "recipe", "S", "round 1", "round 40", "runs", "minus its control [95 % interval]",
		"qualifies")
}

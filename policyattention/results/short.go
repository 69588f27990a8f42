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
func (s *Store) allFindings() Table { return s.answered("Findings", findings) }

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

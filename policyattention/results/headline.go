package results

import "strings"

// headline compares on the problems of the headline block, thousands a size.
func (s *Store) headline() Table {
	horizons := append(append([]int{}, Horizons...), 100)
	rows := s.Block("headline").At(horizons...)
	t := rows.By(Method, Recipe, S, T).keep(func(g group) bool {
		return g.key[Method] != "exact-pmd" && !strings.Contains(g.key[Recipe], ",")
	}).Runs().Against(s.exact("headline").At(horizons...).By(S)).OverProblems().ByRun().Ratio()
	return t.WithTail().Locked().
		Titled("headline", "Losses against exact PMD's on 4,096, 2,048 and 1,024 problems (S = 4, 8, 16)", headlineNote).
		short("method", "recipe", "S", "T", "runs", "means / reference", "range over runs", "ratio of medians", "95 %",
			"99 %", "worst", "locked")
}

const headlineNote = "Means / reference: over all runs, with a 95 % interval for other problems and the same networks; " +
	"for other networks look at the range over runs. 95 %, 99 %, worst: of the excess, the loss less exact PMD's problem " +
	"by problem. Locked: the share of problems on which a run's loss is above exact PMD's by more than .05."

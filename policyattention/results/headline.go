package results

import "strings"

// headlineActor is the table of README: the paper's actor, with as few columns as tell how it fails.
func (s *Store) headlineActor() Table {
	t := s.headlineOf(Horizons, func(g group) bool { return g.key[Method] == "policyattention" && g.key[Recipe] == "plain" })
	t.Notes = []string{"Means / reference: mean loss over runs / exact PMD's, with intervals for other problems (RESULTS says " +
		"how far to trust them). 99 %, worst: of the loss less exact PMD's. Locked: the share of problems where that is above " +
		".05."}
	return t.short("S", "T", "means / reference", "range over runs", "99 %", "worst", "locked")
}

// headlineActors is the table of RESULTS.
func (s *Store) headlineActors() Table {
	t := s.headlineOf([]int{20, 40, 100}, func(g group) bool {
		return (g.key[Method] == "policyattention" || g.key[Method] == "pmd-target") && g.key[Recipe] == "plain"
	})
	return t.short("method", "S", "T", "means / reference", "range over runs", "99 %", "worst", "locked")
}

// headline compares on the problems of the headline block, thousands a size.
func (s *Store) headline() Table {
	t := s.headlineOf([]int{20, 40, 100}, func(g group) bool {
		return g.key[Method] != "exact-pmd" && !strings.Contains(g.key[Recipe], ",")
	})
	return t.short("method", "recipe", "S", "T", "runs", "means / reference", "range over runs", "ratio of medians", "95 %",
		"99 %", "worst", "locked")
}

func (s *Store) headlineOf(horizons []int, keep func(group) bool) Table {
	return s.Block("headline").At(horizons...).By(Method, Recipe, S, T).keep(keep).Runs().
		Against(s.exact("headline").At(horizons...).By(S)).OverProblems().ByRun().Ratio().WithTail().Locked().
		Titled("headline", "Losses against exact PMD's on 4,096, 2,048 and 1,024 problems (S = 4, 8, 16)", headlineNote)
}

const headlineNote = "Means / reference: over all runs, with an interval for other problems and the same networks; for " +
	"other networks look at the range over runs. Drawn again from these problems, it covers .95 at S = 4, .92 to .94 at " +
	"S = 8 and .83 to .95 at S = 16, where one problem in a thousand decides (TestCoverage). 95 %, 99 %, worst: of the excess, the loss less exact PMD's problem " +
	"by problem. Locked: the share of problems on which a run's loss is above exact PMD's by more than .05."

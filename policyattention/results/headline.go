package results

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// headlineActor is the table of README: the paper's actor, with as few columns as tell how it fails.
func (s *Store) headlineActor() Table {
	t := s.headlineOf(Horizons,
		func(g group) bool { return g.key[Method] == "policyattention" && g.key[Recipe] == "plain" })
	t.Notes = []string{"Means / reference: mean loss over runs / exact PMD's, with intervals for other problems " +
		"(RESULTS says how far to trust them). 99 %, worst: of the loss less exact PMD's. Locked: the share of " +
		"problems where that is above .05."}
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
	return t.short("method", "recipe", "S", "T", "runs", "means / reference", "range over runs",
		"ratio of medians", "95 %", "99 %", "worst", "locked")
}

func (s *Store) headlineOf(horizons []int, keep func(group) bool) Table {
	return s.Block("headline").At(horizons...).By(Method, Recipe, S, T).keep(keep).Runs().
		Against(s.exact("headline").At(horizons...).By(S)).OverProblems().ByRun().Ratio().WithTail().Locked().
		Titled("headline", "Losses against exact PMD's on 4,096, 2,048 and 1,024 problems (S = 4, 8, 16)", headlineNote)
}

const headlineNote = "Means / reference: over all runs, with an interval for other problems and the same networks; " +
	"for other networks look at the range over runs. Drawn again from these problems, it covers .95 at S = 4, .92 to " +
	".94 at S = 8 and .83 to .95 at S = 16, where one problem in a thousand decides (TestCoverage). 95 %, 99 %, " +
	"worst: of the excess, the loss less exact PMD's problem by problem. Locked: the share of problems on which a " +
	"run's loss is above exact PMD's by more than .05."

// attention compares networks of 1,600 steps by which tokens see each other.
func (s *Store) attention() Table {
	t := s.headlineOf(Horizons, func(g group) bool { return strings.HasSuffix(g.key[Recipe], "steps=1600") })
	names := map[string]string{
		"plain,steps=1600": "everything before, the paper's", "plain,attention=state,steps=1600": "pairs of its state",
		"plain,attention=none,steps=1600": "itself",
	}
	t = t.With("a pair sees", func(i int) any { return names[t.key(i, Recipe)] })
	t = t.With("one-step row-L1 [range over runs]", func(i int) any {
		return s.say(&t, "", "mean ablation method=policyattention s=4 of=row_l1 rule=pmd recipe="+t.key(i, Recipe))
	})
	t.Title = "Actors of 1,600 steps at S = 4, with attention and without"
	return t.short("a pair sees", "T", "one-step row-L1 [range over runs]", "means / reference", "range over runs",
		"locked")
}

// sharpness is the mean loss of the stored policies of the benchmark, as they were returned and greedy:
// each puts all mass on its likeliest action.
func (s *Store) sharpness() (t Table) {
	t.Title = "The benchmark's returned policies as they are, and greedy for themselves: mean loss at T = 20"
	t.Notes = []string{"Means over all runs, with intervals for other problems; 64 problems are few for these. The " +
		"ratios are of the method's mean to PolicyAttention's."}
	t.Columns = []string{"method", "recipe", "S", "returned", "/ PolicyAttention", "greedy", "greedy / PolicyAttention"}
	policies, err := rows.Read[rows.Policy](filepath.Join(s.Folder, "policies", "benchmark.parquet"))
	if t.err = err; err != nil {
		return t
	}
	type run struct {
		method, recipe string
		s              int32
	}
	losses, order, scales := map[run][2]map[int64][]float64{}, []run{}, map[int32][]*control.Scale{}
	problems, err := rows.Read[rows.Problem](filepath.Join(s.Folder, "problems.parquet"))
	for _, p := range problems {
		if p.Family != string(mdp.Random) || err != nil {
			continue
		}
		pairs := int(p.S * p.A)
		problem, e := mdp.NewProblem(p.Gamma, mat.NewDense(pairs, int(p.S), p.P), mat.NewDense(int(p.S), int(p.A), p.R),
			mat.NewDense(int(p.S), int(p.A), p.Pi0))
		var scale *control.Scale
		if e == nil {
			scale, e = control.NewScale(problem)
		}
		err, scales[p.S] = e, append(scales[p.S], scale)
	}
	for _, p := range policies {
		if p.Round != 20 || t.err != nil || err != nil {
			continue
		}
		key := run{p.Method, p.Recipe, p.S}
		if _, ok := losses[key]; !ok {
			order, losses[key] = append(order, key), [2]map[int64][]float64{{}, {}}
		}
		for k, pi := range [2]*mat.Dense{mat.NewDense(int(p.S), len(p.Policy)/int(p.S), p.Policy), greedy(p)} {
			loss, e := scales[p.S][p.Problem].Loss(pi)
			losses[key][k][p.Seed] = append(losses[key][k][p.Seed], loss)
			err = cmp.Or(err, e)
		}
	}
	if t.err = cmp.Or(t.err, err); t.err != nil {
		return t
	}
	sample := func(r run, k int) (all [][]float64) {
		for _, seed := range slices.Sorted(maps.Keys(losses[r][k])) {
			all = append(all, losses[r][k][seed])
		}
		return all
	}
	slices.SortStableFunc(order,
		func(a, b run) int { return cmp.Or(cmp.Compare(a.s, b.s), cmp.Compare(rank(a.method), rank(b.method))) })
	for _, r := range order {
		row := []any{Label(r.method), r.recipe, int(r.s)}
		for k := range 2 {
			x, y := sample(r, k), sample(run{"policyattention", "plain", r.s}, k)
			ones := [][]float64{slices.Repeat([]float64{1}, len(x[0]))}
			mean, err := stats.RatioOverProblems(x, ones)
			ratio, e := stats.RatioOverProblems(x, y)
			t.err = cmp.Or(t.err, err, e)
			row = append(row, Cell{Estimate: mean}, Cell{Estimate: ratio})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// greedy puts all mass of each state on its likeliest action.
func greedy(p rows.Policy) *mat.Dense {
	pi := mat.NewDense(int(p.S), len(p.Policy)/int(p.S), nil)
	_, actions := pi.Dims()
	for s := range int(p.S) {
		row := p.Policy[s*actions:][:actions]
		pi.Set(s, slices.Index(row, slices.Max(row)), 1)
	}
	return pi
}

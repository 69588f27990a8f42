package results

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// headlineActor is the table of README: the paper's actor, with as few columns as tell how it fails.
func (s *Store) headlineActor() Table {
	t := s.headlineOf(Horizons, Method.Is("policyattention"), Recipe.Is("plain"))
	t.Notes = []string{"Means / reference: mean loss over runs / exact PMD's, with intervals for other problems " +
		"(RESULTS says how far to trust them). 99 %, worst: of the loss less exact PMD's. Locked: the share of " +
		"problems where that is above .05."}
	return t.short("S", "T", "means / reference", "range over runs", "99 %", "worst", "locked")
}

// headlineActors is the table of RESULTS.
func (s *Store) headlineActors() Table {
	return s.headlineOf([]int{20, 40, 100}, Method.Is("policyattention", "pmd-target"), Recipe.Is("plain")).
		short("method", "S", "T", "means / reference", "range over runs", "99 %", "worst", "locked")
}

// headline compares on the problems of the headline block, thousands a size.
func (s *Store) headline() Table {
	return s.headlineOf([]int{20, 40, 100}, Method.Not("exact-pmd"), Recipe.Not(shortened...)).
		short("method", "recipe", "S", "T", "runs", "means / reference", "range over runs", "ratio of medians", "95 %",
			"99 %", "worst", "locked")
}

func (s *Store) headlineOf(horizons []int, filters ...Filter) Table {
	return s.Block("headline").Where(filters...).At(horizons...).By(Method, Recipe, S, T).Runs().
		Against(s.exact("headline").At(horizons...).By(S)).OverProblems().ByRun().Ratio().WithTail().Locked().
		Titled("Losses against exact PMD's on 4,096, 2,048 and 1,024 problems (S = 4, 8, 16)", headlineNote)
}

const headlineNote = "Means / reference: over all runs, with an interval for other problems and the same networks; " +
	"for other networks look at the range over runs. Drawn again from these problems, it covers .95 at S = 4, .92 to " +
	".94 at S = 8 and .83 to .95 at S = 16, where one problem in a thousand decides (TestCoverage). 95 %, 99 %, " +
	"worst: of the excess, the loss less exact PMD's problem by problem. Locked: the share of problems on which a " +
	"run's loss is above exact PMD's by more than .05."

// shortened are the recipes of 1,600 steps, by which tokens see each other.
var shortened = []any{"plain,steps=1600", "plain,attention=state,steps=1600", "plain,attention=none,steps=1600"}

// attention compares networks with attention and without.
func (s *Store) attention() Table {
	t := s.headlineOf(Horizons, Recipe.Is(shortened...))
	names := []string{"everything before, the paper's", "pairs of its state", "itself"}
	t = t.with("a pair sees", func(l line) any { return names[slices.Index(shortened, any(l.group.key[Recipe]))] })
	t = t.with("one-step row-L1 [range over runs]", func(l line) any {
		return s.say(&t, "", "mean ablation method=policyattention s=4 of=row_l1 rule=pmd recipe="+l.group.key[Recipe])
	})
	t.Title = "Actors of 1,600 steps at S = 4, with attention and without"
	return t.short("a pair sees", "T", "one-step row-L1 [range over runs]", "means / reference", "range over runs",
		"locked")
}

// sharpened are the methods of table sharpness-20, with their recipes.
var sharpened = []string{"policyattention plain", "liang-lai paper-features", "liang-lai paper-uniform",
	"liang-lai tuned", "algorithm-distillation full", "actor-critic source"}

// sharpness20 is the mean loss of the stored policies of the benchmark, as they were returned and greedy:
// each puts all mass on its likeliest action.
func (s *Store) sharpness20() (t Table) {
	t.Columns = []string{"method", "recipe", "S", "returned", "/ PolicyAttention", "greedy", "greedy / PolicyAttention"}
	losses, err := s.greedy()
	returned := s.Block("benchmark").At(20).By(S, Method, Recipe).keep(func(l line) bool {
		return slices.Contains(sharpened, l.group.key[Method]+" "+l.group.key[Recipe])
	})
	t.err = errors.Join(err, returned.err)
	ours := map[string][2][][]float64{} // by S
	for _, l := range returned.lines {
		key, x := l.group.key, [2][][]float64{l.group.sample}
		for _, seed := range l.group.runs {
			x[1] = append(x[1], losses[strings.Join([]string{key[Method], key[Recipe], key[S], seed}, " ")])
		}
		if key[Method] == "policyattention" {
			ours[key[S]] = x
		}
		row := []any{l.entries[1], l.entries[2], l.entries[0]}
		for k := range x {
			mean, err := stats.RatioOverProblems(x[k], [][]float64{slices.Repeat([]float64{1}, len(x[k][0]))})
			ratio, e := stats.RatioOverProblems(x[k], ours[key[S]][k])
			t.err = errors.Join(t.err, err, e)
			row = append(row, said(Cell{Estimate: mean}), said(Cell{Estimate: ratio}))
		}
		t.Add(row...)
	}
	return t.Titled("The benchmark's returned policies as they are, and greedy for themselves: mean loss at T = 20",
		"Means over all runs, with intervals for other problems; 64 problems are few for these. The ratios are of the "+
			"method's mean to PolicyAttention's.")
}

// greedy returns the losses of the greedy policies of the benchmark at T = 20, by method, recipe, S and
// seed.
func (s *Store) greedy() (losses map[string][]float64, err error) {
	policies, err := rows.Read[rows.Policy](filepath.Join(s.Folder, "policies", "benchmark.parquet"))
	problems, noProblems := rows.Read[rows.Problem](filepath.Join(s.Folder, "problems.parquet"))
	if err = errors.Join(err, noProblems); err != nil {
		return nil, err
	}
	scales := map[int32][]*control.Scale{}
	for i, p := range problems {
		if p.Family == string(mdp.Random) && (i == 0 || p.Root != problems[i-1].Root) {
			drawn, err := mdp.Random.Draw(uint64(p.Root), int(p.S), int(p.A), 64)
			if err != nil {
				return nil, err
			}
			if scales[p.S], err = control.NewScales(drawn); err != nil {
				return nil, err
			}
		}
	}
	losses = map[string][]float64{}
	for _, p := range policies {
		if p.Round != 20 {
			continue
		}
		actions := len(p.Policy) / int(p.S)
		pi := mat.NewDense(int(p.S), actions, nil)
		for state := range int(p.S) {
			pi.Set(state, floats.MaxIdx(p.Policy[state*actions:][:actions]), 1)
		}
		loss, err := scales[p.S][p.Problem].Loss(pi)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprintf("%s %s %d %d", p.Method, p.Recipe, p.S, p.Seed)
		losses[key] = append(losses[key], loss)
	}
	return losses, nil
}

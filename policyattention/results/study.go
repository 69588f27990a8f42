package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

func (s *Store) mechanism() Table {
	quantity := func(block string, of Column, name string) Table {
		return s.Block(block).Of(of).By(Method, S).with("rule", func(line) any { return name }).Mean().
			Beside(ThePaper).WithInterval()
	}
	t := s.Block("mechanism").Of("row_l1").By(Method, S, "rule").Mean().Beside(ThePaper).WithInterval().
		Then(quantity("mechanism-steps", "fitted_eta", "fitted η, mean")).
		Then(quantity("calibration-steps", "fitted_eta", "fitted η at .8")).
		Then(quantity("backups", "error", "error of a backup"))
	t.Columns = []string{"method", "S", "row-L1 to a rule, or quantity", "paper", "here", "range over runs"}
	return t
}

func (s *Store) frontier() Table {
	rows := s.Block("frontier").At(20)
	t, zeta, rowL1 := rows.By(S, Method, Step).Median(), rows.Of("zeta").By(S, Method, Step).Median(),
		rows.Of("row_l1").By(S, Method, Step).Median()
	if err := errors.Join(t.err, zeta.err, rowL1.err); err != nil {
		return Table{err: err}
	}
	for i := range t.lines { // zeta is in the same order
		x, y := zeta.lines[i].last, t.lines[i].last
		var front any = "yes"
		for k, other := range t.lines {
			if other.group.key[S] == t.lines[i].group.key[S] &&
				dominates(zeta.lines[k].last.Value, other.last.Value, x.Value, y.Value) {
				front = nil
			}
		}
		t.lines[i].entries = append(t.lines[i].entries[:3:3], ThePaper.Printed(y.Query), y,
			report.Interval{Lo: y.Lo, Hi: y.Hi}, ThePaper.Printed(x.Query), x, rowL1.lines[i].last, front)
	}
	t.Columns = append(t.Columns[:3:3], "paper", "median", "95 % interval", "ζ: paper", "ζ", "row-L1",
		"non-dominated")
	return t.Against(s.exact("confirmation").At(20).By(S).Then(s.exact("benchmark").At(20).By(S))).WithTail()
}

// dominates reports whether (x, y) is as low as (u, v) in both coordinates, and lower in one.
func dominates(x, y, u, v float64) bool { return x <= u && y <= v && (x < u || y < v) }

// audited are the horizons at which Theorem 2 is recomputed.
var audited = []int{1, 2, 5, 10, 20, 40}

// Audit recomputes the returned-policy inequality from the residuals of every closed loop of
// blocks but exact PMD's: how many rows, how many violate it, and their median slack in units of Q.
func (s *Store) Audit(blocks ...string) (rows, violations int, slack float64, err error) {
	var slacks []float64
	for _, block := range blocks {
		r := s.Block(block).Where(Method.Not("exact-pmd"))
		if r.err != nil {
			return 0, 0, 0, r.err
		}
		e0, gap, loss := r.Number("e0"), r.Number("gap"), r.Number("loss")
		round, delta, defect := r.Number("round"), r.Number("delta"), r.Number("defect")
		for i, end := 0, 0; i < len(round); i = end { // the rounds of a loop stand together
			for end = i + 1; end < len(round) && round[end] > round[end-1]; end++ {
			}
			if math.IsNaN(e0[i]) || math.IsNaN(defect[i]) { // no critic, so no residuals
				continue
			}
			for _, horizon := range audited {
				bound, err := pmd.ReturnedPolicyBound(mdp.Discount, e0[i], delta[i:i+horizon], defect[i:end], horizon)
				if err != nil {
					return 0, 0, 0, err
				}
				left := bound.Total() - loss[i+horizon]*gap[i]
				if rows++; !(left >= 0) {
					violations++
				}
				slacks = append(slacks, left)
			}
		}
	}
	return rows, violations, stats.Median(slacks), nil
}

func (s *Store) audit() (t Table) {
	t.Columns = []string{"loops", "rows", "violations", "median slack"}
	t.Add("paper", 69120, 0, 10.77)
	add := func(name string, blocks ...string) {
		rows, violations, slack, err := s.Audit(blocks...)
		t.err = errors.Join(t.err, err)
		t.Add(name, rows, violations, slack)
	}
	add("confirmation, shifts and reward-only", "confirmation", "shift")
	add("all learned closed loops", "confirmation", "shift", "benchmark", "frontier", "prior")
	return t
}

// learner returns the recipe that another is the control of, one that remembers nothing between rounds, trained so or
// cleared; a recipe that is no control is its own. Of several controls the first in recipes.tsv counts.
func learner(recipe string) string {
	return strings.TrimSuffix(strings.TrimSuffix(recipe, "-short"), "-cleared")
}

func (s *Store) qualification() (t Table) {
	t.Columns = []string{"method", "recipe", "S", "round 1: paper", "round 1", "round 40: paper", "round 40", "worst",
		"improve", "runs", "minus its control [95 % interval]", "qualifies"}
	rows := s.Block("qualification")
	first, last := rows.At(1).By(Method, Recipe, S).Median(), rows.At(40).By(Method, Recipe, S).Median()
	gap := last.match(last, func(g, o group) bool {
		return g.key[Method] == o.key[Method] && g.key[S] == o.key[S] && g.key[Recipe] != o.key[Recipe] &&
			g.key[Recipe] == learner(o.key[Recipe])
	}).Minus()
	if t.err = errors.Join(first.err, gap.err); t.err != nil {
		return t
	}
	for i, l := range last.lines { // first and gap are in the same order
		begin, control, qualifies := first.lines[i], gap.lines[i].last.shown(), "no"
		switch above := gap.lines[i].last; {
		case control == nil:
			qualifies = "no control"
		case l.last.Value <= .9*begin.last.Value && above.Hi < 0:
			qualifies = "yes"
		}
		t.Add(append(l.entries[:3:3], ThePaper.Printed(begin.last.Query), begin.last, ThePaper.Printed(l.last.Query),
			l.last, stats.TailOf(slices.Concat(l.group.sample...), 1).Worst, improved(begin.group, l.group),
			len(l.group.sample), said(control), qualifies)...)
	}
	return t
}

// improved says on how many of the problems of all runs the loss falls.
func improved(first, last group) string {
	n, before, after := 0, slices.Concat(first.sample...), slices.Concat(last.sample...)
	for m := range after {
		if after[m] < before[m] {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(after))
}

// printedSteps are the paper's step sizes α and β by S.
var printedSteps = map[string]string{"8": "2 0.2", "16": "2 0.8"}

func (s *Store) tuning() (t Table) {
	t.Columns = []string{"method", "S", "setting", "α", "β", "T = 20", "mean", "99 %", "worst", "T = 40"}
	by := []Column{Method, Recipe, S, "start", "alpha", "beta"}
	all := s.Block("tuning").At(20).By(by...).match(s.Block("tuning").At(40).By(by...), same(by...))
	t.err = all.err
	add := func(l line, which string) {
		recipe := l.group.key[Recipe]
		setting := strings.ReplaceAll(recipe, "-", " ")
		if which != "" {
			setting = which + ", from " + strings.ReplaceAll(l.group.key["start"], "initial", "π₀")
		}
		if which != "" && recipe != "" {
			setting += ", dense " + recipe
		}
		tail := stats.TailOf(l.group.sample[0], 1)
		t.Add(l.entries[0], l.entries[2], setting, l.entries[4], l.entries[5], l.group.median(),
			stats.Mean(l.group.sample[0]), tail.P99, tail.Worst, l.reference.median())
	}
	for _, l := range all.lines {
		if key := l.group.key; key[Method] != "liang-lai" {
			add(l, "")
		} else if key["alpha"]+" "+key["beta"] == printedSteps[key[S]] {
			add(l, "paper's")
		}
	}
	grid := all.keep(func(l line) bool { return l.group.key[Method] == "liang-lai" })
	for _, l := range grid.least(group.median, Recipe, S, "start").lines {
		add(l, "best")
	}
	return t
}

func (s *Store) critics() Table {
	of := func(block string, filters ...Filter) Table {
		return s.Block(block).Where(filters...).At(Horizons...).By(Method, S, T)
	}
	exact := func(block string) Table { return s.exact(block).At(Horizons...).By(S) }
	learned, loops := Method.Is("policyattention-learned-critic"), of("critics")
	return of("confirmation", learned, S.Is(4)).Then(of("benchmark", learned, S.Is(8))).Then(loops).
		match(s.Block("backups").Of("error").By(Method, S), same(Method, S)).
		with("error of a backup", func(l line) any {
			c, _ := estimate("mean", l.reference, group{}) // a mean has no error
			return c.shown()
		}).
		Against(exact("confirmation").Then(exact("benchmark"))).
		Ratio().WithInterval().estimate("ratio-of-means", "means / exact PMD").WithInterval().WithTail().
		match(loops, ofMean).estimate("ratio-of-means", "means / mean of samples").WithInterval().
		Paired().WithInterval()
}

// ofMean reports whether o is the loop of g's actor with the mean of the same samples, and g another.
func ofMean(g, o group) bool {
	mean := "sample-mean"
	if strings.HasPrefix(g.key[Method], "policyattention") {
		mean = "policyattention-sample-mean"
	}
	return o.key[Method] == mean && g.key[Method] != mean && same(S, T)(g, o)
}

// any sets the actor for any MDP beside the actors of fixed shape, on their problems.
func (s *Store) any() (t Table) {
	for _, states := range []int{4, 8, 16} {
		block := map[bool]string{true: "confirmation", false: "benchmark"}[states == 4]
		fixed := s.Block(block).Where(Method.Is("policyattention"), S.Is(states)).At(Horizons...).By()
		problems := Column("set").Is(fmt.Sprintf("benchmark, S = %d", states))
		q := s.Block("any").Where(problems, Recipe.Is(None), Column("readout").Is("prior", "network")).At(Horizons...).
			By(T, "readout").Against(fixed)
		for _, l := range q.lines {
			n := min(len(l.group.sample), len(l.reference.sample))
			x, y := l.group.sample[:n], l.reference.sample[:n]
			d, err := stats.Standard.Difference(x, y)
			t.err = errors.Join(t.err, err)
			tail := excess(x, y)
			t.Add(states, l.entries[0], l.entries[1], stats.Median(stats.RunMedians(y)),
				stats.Median(stats.RunMedians(x)), d.Value, report.Interval{Lo: d.Lo, Hi: d.Hi}, tail.P99, tail.Worst)
		}
		t.err = errors.Join(t.err, q.err)
	}
	t.Columns = []string{"S", "T", "read-out", "fixed shape", "any MDP", "difference of medians", "95 % interval",
		"by problem: 99 %", "worst"}
	return t
}

// anyCliffs are sets of problems with a cliff.
var anyCliffs = []any{"cliff, S = 4", "cliff, S = 8", "cliff, S = 16"}

// anySets pools the excess of the actor for any MDP over exact PMD over all sets of problems.
func (s *Store) anySets() (t Table) {
	t.Columns = []string{"read-out", "T", "problems", "median", "99 %", "worst", "above .02", "ratio of means"}
	all := s.Block("any").Where(Recipe.Is(None), Column("set").Not(anyCliffs...))
	for _, readout := range []string{"prior", "network", "mixed"} {
		for _, horizon := range []int{20, 40, 100} {
			rows := all.Where(Column("readout").Is(readout), Column("round").Is(horizon))
			excess, mean := rows.Number("excess"), stats.Mean(rows.Number("exact"))
			tail := spread(excess)
			t.Add(readout, horizon, len(excess), stats.Median(excess), tail.P99, tail.Worst, tail.Above,
				(mean+stats.Mean(excess))/mean)
		}
	}
	t.err = all.err
	return t
}

// spread is how values lie, and the share of them above .02; it is NaN of none.
func spread(values []float64) stats.Tail {
	if len(values) == 0 {
		values = []float64{math.NaN()}
	}
	return stats.TailOf(values, .02)
}

// cliffs is where the actor for any MDP might lock up.
func (s *Store) cliffs() (t Table) {
	t.Columns = []string{"S", "problems", "exact PMD: worst", "prior: worst excess", "above .02",
		"network: worst excess", "above .02"}
	all := s.Block("any").Where(Recipe.Is(None), Column("round").Is(40))
	for _, states := range []int{4, 8, 16} {
		set := all.Where(Column("set").Is(fmt.Sprintf("cliff, S = %d", states)))
		prior, network := set.Where(Column("readout").Is("prior")), set.Where(Column("readout").Is("network"))
		added, alone := spread(prior.Number("excess")), spread(network.Number("excess"))
		t.Add(states, len(prior.at), spread(prior.Number("exact")).Worst, added.Worst, added.Above, alone.Worst,
			alone.Above)
	}
	t.err = all.err
	return t
}

// anyAttention sets the actor for any MDP beside one whose actions do not see each other, on the same problems.
func (s *Store) anyAttention() (t Table) {
	t.Columns = []string{"problems", "number", "read-out", "an action sees", "99 % by run", "worst"}
	all := s.Block("any").Where(Column("round").Is(40))
	seeds := all.Where(Recipe.Is("attention=none")).Values(Seed)
	for i, set := range []Filter{Column("set").Not(anyCliffs...), Column("set").Is(anyCliffs...)} {
		for _, readout := range []string{"prior", "network"} {
			for j, recipe := range []string{None, "attention=none"} {
				rows := all.Where(set, Column("readout").Is(readout), Recipe.Is(recipe))
				var pooled, byRun []float64
				for _, seed := range seeds {
					excess := rows.Where(Seed.Is(seed)).Number("excess")
					pooled, byRun = append(pooled, excess...), append(byRun, spread(excess).P99)
				}
				t.Add([]string{"all", "cliffs"}[i], len(pooled), readout, []string{"its state", "itself"}[j],
					span(byRun), spread(pooled).Worst)
			}
		}
	}
	t.err = all.err
	return t
}

// families is where PMD by attention is the right tool, and where it is not: planners after equally many backups, with
// the model and on equally many samples.
func (s *Store) families() Table {
	t := s.Block("families").Where(S.Is(0)).At(20, 100).By(T, Method, Family).MeanOverProblems().across()
	t.Columns = append([]string{"backups"}, t.Columns[1:]...)
	return t.short(t.Columns...)
}

// planners are the means among these, as far as there is room: with the model after 20 backups, on samples after 100.
func (s *Store) planners() Table {
	means := func(backups int, methods ...any) Table {
		some := s.Block("families").Where(S.Is(0), Family.Not("garnet-64"), Method.Is(methods...))
		return some.At(backups).By(Method, Family).MeanOverProblems().across()
	}
	withModel := means(20, "exact-pmd", "any", "value-iteration", "policy-iteration", "policy-iteration-2",
		"greedy-step", "greedy-reward")
	return withModel.Then(means(100, "pmd-mean", "any-mean", "value-iteration-mean", "policy-iteration-mean",
		"pmd-all", "value-iteration-all"))
}

// familyMethods is how the benchmark's methods do in these families, at the size and discount of their training.
func (s *Store) familyMethods() Table {
	small := s.Block("families").Where(S.Is(16)).At(20, 40, 100)
	t := small.By(Method, Recipe, Family).Against(small.Where(Method.Is("exact-pmd")).By(Family)).MeanOverProblems().
		estimate("over-problems", "means / exact PMD").estimate("locked", "above .05").WithTail().
		short("method", "recipe", "family", "T", "mean loss", "means / exact PMD", "99 %", "worst", "above .05")
	t.Columns[1] = "is told"
	return t
}

// familyMethods40 are the mean losses among these at T = 40.
func (s *Store) familyMethods40() Table {
	return s.Block("families").Where(S.Is(16)).At(40).By(Method, Family).MeanOverProblems().across()
}

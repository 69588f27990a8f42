package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/pmd"
	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

func (s *Store) mechanism() Table {
	rules := s.Block("mechanism").Of("row_l1").By(Method, S, "rule").Mean().Beside(ThePaper).WithInterval()
	steps := s.Block("mechanism-steps").Of("fitted_eta").By(Method, S).Mean().Beside(ThePaper).WithInterval()
	nominal := s.Block("calibration-steps").Of("fitted_eta").By(Method, S).Mean().Beside(ThePaper).WithInterval()
	errors := s.Block("backups").Of("error").By(Method, S).Mean().Beside(ThePaper).WithInterval()
	t := rules
	for name, more := range map[string]Table{"fitted η, mean": steps, "fitted η at .8": nominal,
		"error of a backup": errors} {
		for i, row := range more.Rows {
			more.Rows[i] = slices.Insert(slices.Clone(row), 2, any(name))
		}
		more.Columns = t.Columns
	}
	return t.Then(steps.as(t)).Then(nominal.as(t)).Then(errors.as(t)).
		Named("rule", "row-L1 to a rule, or quantity", "mean", "here",
			"95 % interval", "range over runs").Titled("mechanism", "What learned actors and critics do in one step",
		"Inputs: rounds 0 to 8 of exact PMD on held-out problems, η uniform on [.4, 1.2]. The paper does not give its "+
			"inputs, on which distances depend.")
}

// as returns the table with another's columns.
func (t Table) as(other Table) Table {
	t.Columns = other.Columns
	return t
}

func (s *Store) frontier() Table {
	rows := s.Block("frontier").At(20)
	zeta, rowL1 := rows.Of("zeta").By(S, Method, Step).Median(), rows.Of("row_l1").By(S, Method, Step).Median()
	t := rows.By(S, Method, Step).Median()
	loss := t.last
	oracle := s.exact("confirmation").At(20).By(S).Then(s.exact("benchmark").At(20).By(S))
	t = t.Beside(ThePaper).WithInterval().
		With("ζ: paper", func(i int) any { return ThePaper.Printed(zeta.last[i].Query) }).
		With("ζ", func(i int) any { return zeta.last[i] }).
		With("row-L1", func(i int) any { return rowL1.last[i] }).
		With("non-dominated", func(i int) any {
			for k := range loss {
				same := t.groups[k].key[S] == t.groups[i].key[S]
				if same && dominates(zeta.last[k].Value, loss[k].Value, zeta.last[i].Value, loss[i].Value) {
					return nil
				}
			}
			return "yes"
		})
	return t.Against(oracle).WithTail().Titled("frontier", "Fidelity and loss at T = 20 along training",
		"ζ and row-L1: medians over runs and problems of the mean over rounds 0–19, in the contexts of the loop.",
		tailNote)
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
		r := s.Block(block)
		if r.err != nil {
			return 0, 0, 0, r.err
		}
		d, loops := r.data, map[string][]int{}
		for _, i := range r.at {
			if m := d.value(Method, i); m == "exact-pmd" || math.IsNaN(d.cell("e0", i)) {
				continue
			}
			key := ""
			for _, c := range []Column{Method, Recipe, S, Seed, Step, Family, "problem"} {
				key += d.value(c, i) + "\x00"
			}
			loops[key] = append(loops[key], i)
		}
		for _, at := range loops {
			delta, defect := make([]float64, len(at)), make([]float64, len(at))
			for k, i := range at {
				delta[k], defect[k] = d.cell("delta", i), d.cell("defect", i)
			}
			if math.IsNaN(defect[0]) { // no critic, so no residuals
				continue
			}
			for _, horizon := range audited {
				e0, gap := d.cell("e0", at[0]), d.cell("gap", at[0])
				bound, err := pmd.ReturnedPolicyBound(Discount, e0, delta[:horizon], defect, horizon)
				if err != nil {
					return 0, 0, 0, err
				}
				left := bound.Total() - d.cell("loss", at[horizon])*gap
				if rows++; !(left >= 0) {
					violations++
				}
				slacks = append(slacks, left)
			}
		}
	}
	return rows, violations, stats.Median(slacks), nil
}

// Discount is γ of the paper's harness.
const Discount = .9

func (s *Store) audit() (t Table) {
	t.Title, t.Columns = "Theorem 2 recomputed from realized residuals at T = 1, 2, 5, 10, 20, 40",
		[]string{"loops", "rows", "violations", "median slack"}
	t.Add("paper", 69120, 0, 10.77)
	for _, x := range []struct {
		name   string
		blocks []string
	}{
		{"confirmation, shifts and reward-only", []string{"confirmation", "shift"}},
		{"all learned closed loops", []string{"confirmation", "shift", "benchmark", "frontier", "prior"}},
	} {
		rows, violations, slack, err := s.Audit(x.blocks...)
		if err != nil {
			t.err = err
			return t
		}
		t.Add(x.name, rows, violations, slack)
	}
	t.Notes = []string{"How the scope that the paper names comes to 69,120 rows it does not say. The unit of its " +
		"slack is not given; ours is that of Q."}
	return t
}

// controls are the recipes that remember nothing between rounds, by the recipe that they control.
var controls = map[string]string{"cpu": "cpu-cleared", "cpu-tuned": "cpu-tuned-short", "full": "full-short"}

func (s *Store) qualification() Table {
	rows := s.Block("qualification")
	first, last := rows.At(1).By(Method, Recipe, S), rows.At(40).By(Method, Recipe, S)
	first, t := first.Median(), last.Median()
	end := t.last
	gap := last.against(func(g group) map[Column]string {
		return map[Column]string{Method: g.key[Method], Recipe: controls[g.key[Recipe]], S: g.key[S]}
	}).Minus()
	t.Columns = t.Columns[:3]
	t.Rows = without(t.Rows, 3)
	return t.With("round 1: paper", func(i int) any { return ThePaper.Printed(first.last[i].Query) }).
		With("round 1", func(i int) any { return first.last[i] }).
		With("round 40: paper", func(i int) any { return ThePaper.Printed(end[i].Query) }).
		With("round 40", func(i int) any { return end[i] }).
		With("worst", func(i int) any { return stats.TailOf(slices.Concat(last.groups[i].sample...), 1).Worst }).
		With("improve", func(i int) any { return improved(first.groups[i], last.groups[i]) }).
		With("runs", func(i int) any { return len(last.groups[i].sample) }).
		With("minus its control [95 % interval]", func(i int) any {
			if gap.err != nil || gap.last[i].Query == "" {
				return nil
			}
			return gap.last[i].String()
		}).
		With("qualifies", func(i int) any {
			learns := end[i].Value <= .9*first.last[i].Value
			switch {
			case gap.err != nil || gap.last[i].Query == "":
				return "no control"
			case learns && gap.last[i].Hi < 0:
				return "yes"
			}
			return "no"
		}).
		Titled("qualification", "Does it learn in context? Median loss on qualification problems after rounds 1 and 40",
			"The control of a recipe remembers nothing between rounds. A recipe qualifies if its loss falls by a "+
				"tenth or more and ends below its control's, with an interval below zero.")
}

// against compares each row with the row of the same table that has other keys.
func (t Table) against(other func(group) map[Column]string) Table {
	t.reference = make([]group, len(t.groups))
	for i, g := range t.groups {
		want := other(g)
		for _, o := range t.groups {
			if o.key[Method] == want[Method] && o.key[Recipe] == want[Recipe] && o.key[S] == want[S] {
				t.reference[i] = o
			}
		}
	}
	return t
}

// improved says on how many of the problems of all runs the loss falls.
func improved(first, last group) string {
	n, of := 0, 0
	for j := range last.sample {
		for m := range last.sample[j] {
			if of++; last.sample[j][m] < first.sample[j][m] {
				n++
			}
		}
	}
	return fmt.Sprintf("%d of %d", n, of)
}

// printedSteps are the paper's step sizes (α, β) by S.
var printedSteps = map[string][2]string{"8": {"2", "0.2"}, "16": {"2", "0.8"}}

func (s *Store) tuning() (t Table) {
	t.Title = "Step sizes on calibration problems: the paper's choice and the best of our grid"
	t.Columns = []string{"method", "S", "setting", "α", "β", "T = 20", "mean", "99 %", "worst", "T = 40"}
	rows := s.Block("tuning")
	loss := func(horizon int) []group {
		all, err := rows.At(horizon).groups([]Column{Method, Recipe, S, "start", "alpha", "beta"})
		if err != nil && t.err == nil {
			t.err = err
		}
		return all
	}
	at20, at40 := loss(20), loss(40)
	if t.err != nil {
		return t
	}
	add := func(setting string, i int) {
		g := at20[i]
		tail := stats.TailOf(g.sample[0], 1)
		t.Add(labelled(g.key[Method], ""), g.key[S], setting, g.key["alpha"], g.key["beta"],
			stats.Median(g.sample[0]), stats.Mean(g.sample[0]), tail.P99, tail.Worst, stats.Median(at40[i].sample[0]))
	}
	best, order := map[string]int{}, []string{}
	for i, g := range at20 {
		if g.key[Method] != "liang-lai" {
			add(strings.ReplaceAll(g.key[Recipe], "-", " "), i)
			continue
		}
		setting := "from " + strings.ReplaceAll(g.key["start"], "initial", "π₀")
		if g.key[Recipe] != "" {
			setting += ", dense " + g.key[Recipe]
		}
		if g.key["alpha"] == printedSteps[g.key[S]][0] && g.key["beta"] == printedSteps[g.key[S]][1] {
			add("paper's, "+setting, i)
		}
		key := g.key[S] + "\x00" + setting
		if k, seen := best[key]; !seen {
			best[key], order = i, append(order, key)
		} else if stats.Median(g.sample[0]) < stats.Median(at20[k].sample[0]) {
			best[key] = i
		}
	}
	for _, key := range order {
		_, setting, _ := strings.Cut(key, "\x00")
		add("best, "+setting, best[key])
	}
	return t
}

func (s *Store) critics() Table {
	oracle := s.exact("confirmation").At(Horizons...).By(S).
		Then(s.exact("benchmark").Where(S.Is(8)).At(Horizons...).By(S))
	learned := func(block string, states int) Table {
		return s.Block(block).Where(Method.Is("policyattention-learned-critic"), S.Is(states)).At(Horizons...).
			By(Method, S, T)
	}
	loops := s.Block("critics").At(Horizons...).By(Method, S, T)
	t := learned("confirmation", 4).Then(learned("benchmark", 8)).Then(loops)
	errors := map[string]Cell{}
	mae := s.Block("backups").Of("error").By(Method, S).Mean()
	for i, g := range mae.groups {
		errors[g.key[Method]+g.key[S]] = mae.last[i]
	}
	t = t.With("error of a backup", func(i int) any {
		if c, ok := errors[t.key(i, Method)+t.key(i, S)]; ok {
			return c
		}
		return nil
	}).Against(oracle).Ratio().WithInterval().RatioOfMeans().WithInterval().WithTail()
	mean := func(g group) map[Column]string {
		name := "sample-mean"
		if strings.HasPrefix(g.key[Method], "policyattention") {
			name = "policyattention-sample-mean"
		}
		return map[Column]string{Method: name, S: g.key[S], T: g.key[T]}
	}
	for i, g := range t.groups {
		t.reference[i] = group{}
		for _, o := range loops.groups {
			want := mean(g)
			if o.key[Method] == want[Method] && o.key[S] == want[S] && o.key[T] == want[T] &&
				o.key[Method] != g.key[Method] {
				t.reference[i] = o
			}
		}
	}
	return t.RatioOfMeans().Named("ratio of means", "means / exact PMD", "ratio of means", "means / mean of samples").
		WithInterval().Paired().WithInterval().Titled("critics", "Critics that see samples, six of every pair a round",
		"Means / mean of samples, and the difference by problem: beside the loop of the same actor with the mean of "+
			"the same samples.", tailNote)
}

// anyFixed sets the actor for any MDP beside the actors of fixed shape, on their problems.
func (s *Store) any() (t Table) {
	t.Title = "The actor for any MDP beside actors of fixed shape: median losses"
	t.Columns = []string{"S", "T", "read-out", "fixed shape", "any MDP", "difference of medians", "95 % interval",
		"by problem: 99 %", "worst"}
	for _, states := range []int{4, 8, 16} {
		block := "benchmark"
		if states == 4 {
			block = "confirmation"
		}
		for _, horizon := range Horizons {
			fixed, err := s.Block(block).Where(Method.Is("policyattention"), S.Is(states)).At(horizon).groups(nil)
			if err != nil {
				t.err = err
				return t
			}
			for _, readout := range []string{"prior", "network"} {
				x, err := s.anyLosses(fmt.Sprintf("benchmark, S = %d", states), readout, horizon)
				if err != nil {
					t.err = err
					return t
				}
				y := fixed[0].sample
				n := min(len(x), len(y))
				d, err := stats.Standard.Difference(x[:n], y[:n])
				if err != nil {
					t.err = err
					return t
				}
				tail := excess(x[:n], y[:n])
				t.Add(states, horizon, readout, stats.Median(stats.RunMedians(y[:n])),
					stats.Median(stats.RunMedians(x[:n])),
					d.Value, report.Interval{Lo: d.Lo, Hi: d.Hi}, tail.P99, tail.Worst)
			}
		}
	}
	return t
}

// anyLosses returns the losses [runs][problems] of the actor for any MDP on a set of problems.
func (s *Store) anyLosses(set, readout string, horizon int) (losses [][]float64, err error) {
	rows := s.Block("any").Where(Column("set").Is(set), Column("readout").Is(readout), Column("round").
		Is(strconv.Itoa(horizon)))
	exact, errE := rows.Of("exact").groups(nil)
	over, err := rows.Of("excess").groups(nil)
	if err = cmpErr(errE, err); err != nil {
		return nil, err
	}
	for j, run := range exact[0].sample {
		losses = append(losses, make([]float64, len(run)))
		for m := range run {
			losses[j][m] = run[m] + over[0].sample[j][m]
		}
	}
	return losses, nil
}

// anySets pools the excess of the actor for any MDP over exact PMD over all sets of problems.
func (s *Store) anySets() (t Table) {
	t.Title = "The actor for any MDP: excess over exact PMD, all sets of problems and runs"
	t.Columns = []string{"read-out", "T", "problems", "median", "99 %", "worst", "above .02", "ratio of means"}
	all := s.Block("any")
	for _, readout := range []string{"prior", "network", "mixed"} {
		for _, horizon := range []int{20, 40, 400} {
			rows := all.Where(Column("readout").Is(readout), Column("round").Is(horizon), Column("set").Unlike("cliff"))
			excess, exact := rows.Number("excess"), rows.Number("exact")
			if t.err = rows.err; t.err != nil || len(excess) == 0 {
				return t
			}
			tail, mean := stats.TailOf(excess, .02), stats.Mean(exact)
			t.Add(readout, horizon, len(excess), stats.Median(excess), tail.P99, tail.Worst, tail.Above,
				(mean+stats.Mean(excess))/mean)
		}
	}
	return t
}

// cliffs is where the actor for any MDP might lock up.
func (s *Store) cliffs() (t Table) {
	t.Title = "The actor for any MDP at a cliff, T = 100: one action worth −K, a thousandth of the mass on the best"
	t.Columns = []string{"K", "problems", "exact PMD: mean", "prior: worst excess", "network: worst excess"}
	all := s.Block("any").Where(Column("round").Is(100))
	for _, k := range []string{"1e+03", "1e+04", "1e+05"} {
		set := all.Where(Column("set").Is("cliff, K = " + k))
		prior := set.Where(Column("readout").Is("prior"))
		excess, other := prior.Number("excess"), set.Where(Column("readout").Is("network")).Number("excess")
		if t.err = prior.err; t.err != nil || len(excess) == 0 || len(other) == 0 {
			return t
		}
		t.Add(k, len(excess), stats.Mean(prior.Number("exact")), slices.Max(excess), slices.Max(other))
	}
	return t
}

// lockup is the study of starts that leave the best actions little mass.
func (s *Store) lockup() (t Table) {
	all := s.Block("lockup")
	t.Title = "Median loss after 40 rounds, by the mass that the best action of each state begins with"
	t.Columns = append([]string{"actor"}, all.Values("mass")...)
	t.err = all.err
	for _, part := range all.Values("part") {
		for _, actor := range all.Where(Column("part").Is(part)).Values("actor") {
			line := []any{actor}
			for _, mass := range all.Values("mass") {
				some := all.Where(Column("part").Is(part), Column("actor").Is(actor), Column("mass").Is(mass))
				line = append(line, stats.Median(some.Number("loss")))
			}
			t.Add(line...)
		}
	}
	return t
}

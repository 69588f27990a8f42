package results

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/stats"
)

// Ask answers a query such as
//
//	ratio benchmark method=policyattention s=8 t=20 / method=exact-pmd
//
// a statistic, a block, and values of its columns; after the slash, in what the rows that it is compared with differ
// (block= for another block, a column without a value for all of its values). The statistics are median, mean,
// mean-over-problems, ratio, difference, paired, ratio-of-means, and with intervals over problems alone over-problems
// (a ratio of means, of runs with the same seeds), over-all-runs, locked and improvement. The key of= names another
// column than the loss.
func (s *Store) Ask(question string) (Cell, error) {
	statistic, x, y, err := s.asked(question)
	if err != nil {
		return Cell{}, fmt.Errorf("results: query %q: %w", question, err)
	}
	return estimate(statistic, x, y)
}

// asked returns what a query names.
func (s *Store) asked(question string) (statistic string, x, y group, err error) {
	of, reference, compared := strings.Cut(question, " /")
	fields := strings.Fields(of)
	if len(fields) < 2 {
		return "", x, y, errors.New("want a statistic and a block")
	}
	keys := map[Column]string{"block": fields[1]}
	if x, err = s.groupOf(keys, fields[2:]); err == nil && compared {
		y, err = s.groupOf(keys, strings.Fields(reference))
	}
	return fields[0], x, y, err
}

// groupOf returns the one group of rows with some keys, which fields, as column=value, change.
func (s *Store) groupOf(keys map[Column]string, fields []string) (g group, err error) {
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return g, fmt.Errorf("%q is no column=value", f)
		}
		keys[Column(name)] = value
	}
	rows := s.Block(keys["block"])
	for _, c := range slices.Sorted(maps.Keys(keys)) {
		switch value := keys[c]; {
		case value == "" || c == "block":
		case c == "of":
			rows = rows.Of(Column(value))
		case c == T:
			t, err := strconv.Atoi(value)
			if err != nil || t < 1 {
				return g, fmt.Errorf("horizon %q, want a number from 1", value)
			}
			rows = rows.At(t)
		default:
			rows = rows.Where(c.Is(value))
		}
	}
	return rows.one()
}

// one returns the one group of rows.
func (r Rows) one() (g group, err error) {
	all, err := r.groups(nil)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d groups of rows, want one", len(all))
	}
	if err != nil {
		return g, err
	}
	return all[0], nil
}

// query writes what asks for a statistic of a group again.
func query(statistic string, g, reference group) string {
	text := statistic + " " + g.block + keys(g, nil)
	if reference.sample == nil || slices.Contains(alone, statistic) {
		return text
	}
	text += " /"
	if reference.block != g.block {
		text += " block=" + reference.block
	}
	return text + keys(reference, &g)
}

// keys writes a group's keys in one order, or those in which it differs from another's.
func keys(g group, from *group) (text string) {
	order := []Column{Method, Recipe, S, Family, Seed, Step, T}
	for _, c := range slices.Sorted(maps.Keys(g.key)) {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	for _, c := range order {
		if v := g.key[c]; from == nil && v != "" || from != nil && v != from.key[c] {
			text += fmt.Sprintf(" %s=%s", c, v)
		}
	}
	if g.of != "loss" && from == nil {
		text += " of=" + string(g.of)
	}
	return text
}

// alone are the statistics of a sample by itself.
var alone = []string{"median", "mean", "mean-over-problems"}

// statistics are what tables and queries estimate of a sample x [runs][problems], but for those above beside that of a
// reference y.
var statistics = map[string]func(x, y [][]float64) (stats.Estimate, error){
	"median":             func(x, _ [][]float64) (stats.Estimate, error) { return stats.Standard.Median(x) },
	"mean":               runMeans,
	"mean-over-problems": meanOverProblems,
	"ratio":              stats.Standard.Ratio,
	"difference":         stats.Standard.Difference,
	"paired":             stats.Standard.PairedDifference,
	"ratio-of-means":     stats.Standard.RatioOfMeans,
	"over-problems":      stats.RatioOverProblems, // of means, for other problems and the same networks
	"over-all-runs":      stats.RatioOverProblems, // that of runs whose seeds differ from the reference's
	"improvement":        stats.Improvement,
	"locked":             locked,
	// The share of runs of which more than the share Often is locked.
	"locking": func(x, y [][]float64) (stats.Estimate, error) {
		e, err := locked(x, y)
		often := slices.DeleteFunc(e.ByRun, func(share float64) bool { return share <= Often })
		return stats.Share(float64(len(often)), len(x)), err
	},
}

// locked is the share of problems that are more than Behind above the reference.
func locked(x, y [][]float64) (stats.Estimate, error) {
	e := stats.Share(excess(x, y).Above*float64(len(x[0])), len(x[0]))
	for j := range x {
		e.ByRun = append(e.ByRun, excess(x[j:j+1], y[j:j+1]).Above)
	}
	return e, nil
}

// meanOverProblems has an interval for other problems and the same networks.
func meanOverProblems(x, _ [][]float64) (stats.Estimate, error) {
	return stats.RatioOverProblems(x, [][]float64{slices.Repeat([]float64{1}, len(x[0]))})
}

func runMeans(x, _ [][]float64) (e stats.Estimate, err error) {
	for _, run := range x {
		sum := 0.0
		for _, v := range run {
			sum += v
		}
		e.ByRun = append(e.ByRun, sum/float64(len(run)))
	}
	e.Value, e.Lo, e.Hi = stats.Median(e.ByRun), slices.Min(e.ByRun), slices.Max(e.ByRun)
	return e, nil
}

// estimate estimates a statistic of a group, compared with a reference where the statistic needs
// one. Without results it is the zero Cell.
func estimate(statistic string, g, reference group) (c Cell, err error) {
	of, ok := statistics[statistic]
	if !ok {
		return c, fmt.Errorf("results: no statistic %q", statistic)
	}
	x, y := g.sample, reference.sample
	if statistic != "over-all-runs" && !slices.Contains(alone, statistic) {
		x, y = pair(g, reference)
	}
	if len(x) == 0 {
		return c, nil
	}
	c.Query = query(statistic, g, reference)
	if c.Estimate, err = of(x, y); err != nil {
		return c, fmt.Errorf("results: %s: %w", c.Query, err)
	}
	return c, nil
}

// Often is the share of problems locked above which a run counts as one that locks up. It was fixed when five actors
// of S = 4 had been seen, before the others were trained.
const Often = .01

// Behind is the excess above which a problem counts as far behind the reference.
const Behind = .05

func excess(x, y [][]float64) stats.Tail {
	all := slices.Concat(x...)
	floats.Sub(all, slices.Concat(y...))
	return stats.TailOf(all, Behind)
}

// pair keeps the runs whose seed both have. What is not trained has one run, with the seed 0, for
// the runs of all seeds.
func pair(x, y group) (a, b [][]float64) {
	for j, run := range x.runs {
		if k := slices.IndexFunc(y.runs, func(other string) bool { return other == "0" || other == run }); k >= 0 {
			a, b = append(a, x.sample[j]), append(b, y.sample[k])
		}
	}
	return a, b
}

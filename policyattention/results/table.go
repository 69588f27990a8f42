package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// Table is a table in the making. Verbs return it with columns added; an error that one of them
// meets is returned by Shown.
type Table struct {
	report.Table

	groups    []group // of each row, as long as rows are made by verbs
	reference []group // what each row is compared with; without a sample where there is nothing
	last      []Cell  // the last estimate of each row
	err       error
}

// Cell is an estimate in a table.
type Cell struct {
	stats.Estimate
	Query string    // asks for it again, see [Store.Ask]
	ByRun []float64 // the same of each run
}

// Float is the estimate's value.
func (c Cell) Float() float64 { return c.Value }

// String writes the value with its interval.
func (c Cell) String() string { return c.Text(report.Number) }

// Shown returns the finished table, or what went wrong while it was made.
func (t Table) Shown() (report.Table, error) { return t.Table, t.err }

// Titled names the table and adds notes.
func (t Table) Titled(name, title string, notes ...string) Table {
	t.Name, t.Title, t.Notes = name, title, append(slices.Clone(t.Notes), notes...)
	return t
}

// By groups rows by columns, one row of a table a group: its sample has a run a seed.
func (r Rows) By(columns ...Column) (t Table) {
	if len(r.horizons) > 1 && !slices.Contains(columns, T) {
		columns = append(slices.Clone(columns), T)
	}
	t.groups, t.err = r.groups(columns)
	for _, c := range columns {
		t.Columns = append(t.Columns, map[Column]string{S: "S", T: "T"}[c])
		if i := len(t.Columns) - 1; t.Columns[i] == "" {
			t.Columns[i] = string(c)
		}
	}
	for _, g := range t.groups {
		var row []any
		for _, c := range columns {
			row = append(row, keyCell(c, g.key[c]))
		}
		t.Rows = append(t.Rows, row)
	}
	t.reference = make([]group, len(t.groups))
	return t
}

// keyCell is a key as tables show it.
func keyCell(c Column, value string) any {
	if c == Method {
		return Label(value)
	}
	return value
}

// With appends a column whose entry of each row is made from the number of the row.
func (t Table) With(name string, entry func(row int) any) Table {
	rows := make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = append(slices.Clone(row), entry(i))
	}
	t.Rows, t.Columns = rows, append(slices.Clone(t.Columns), name)
	return t
}

// Against sets what the verbs after it compare each row with: the row of the other table that has
// the same values in the columns which both were grouped by.
func (t Table) Against(other Table) Table {
	if t.err == nil {
		t.err = other.err
	}
	t.reference = make([]group, len(t.groups))
	for i, g := range t.groups {
		for _, o := range other.groups {
			if agree(g, o, t.keys(), other.keys()) {
				t.reference[i] = o
				break
			}
		}
	}
	return t
}

// keys are the columns that a table was grouped by.
func (t Table) keys() map[string]bool {
	keys := map[string]bool{}
	for _, c := range t.Columns {
		keys[strings.ToLower(c)] = true
	}
	return keys
}

func agree(g, o group, mine, theirs map[string]bool) bool {
	for c := range mine {
		if theirs[c] && g.key[Column(c)] != o.key[Column(c)] {
			return false
		}
	}
	return g.key[T] == o.key[T]
}

// Median adds the median over runs of the median over problems.
func (t Table) Median() Table { return t.estimate("median", "median") }

// Mean adds the median over runs of the mean over problems, whose interval is the range over runs.
func (t Table) Mean() Table { return t.estimate("mean", "mean") }

// Ratio adds the median over runs of the ratio of medians to the reference, the paper's r_j.
func (t Table) Ratio() Table { return t.estimate("ratio", "ratio of medians") }

// Minus adds the median over runs of the difference of medians.
func (t Table) Minus() Table { return t.estimate("difference", "difference of medians") }

// Paired adds the median over runs of the median over problems of the difference.
func (t Table) Paired() Table { return t.estimate("paired", "difference by problem") }

// RatioOfMeans adds the median over runs of the ratio of mean losses.
func (t Table) RatioOfMeans() Table { return t.estimate("ratio-of-means", "ratio of means") }

// OverProblems adds the ratio of mean losses over all runs, whose interval is for other problems and
// the same trained networks.
func (t Table) OverProblems() Table { return t.estimate("over-problems", "means / reference") }

// Locked adds the share of problems on which a run's loss is above the reference's by more than
// Behind.
func (t Table) Locked() Table { return t.estimate("locked", "locked") }

// InterquartileMean adds the mean of the middle half of the losses of all runs.
func (t Table) InterquartileMean() Table {
	return t.With("interquartile mean", func(i int) any { return stats.InterquartileMean(t.groups[i].sample) })
}

// Improvement adds the probability that a run's loss is below the reference's.
func (t Table) Improvement() Table { return t.estimate("improvement", "P(below reference)") }

// ByRun adds the range over runs of the last estimate.
func (t Table) ByRun() Table {
	return t.With("range over runs", func(i int) any {
		if t.err != nil || len(t.last[i].ByRun) < 2 {
			return nil
		}
		return report.Interval{Lo: slices.Min(t.last[i].ByRun), Hi: slices.Max(t.last[i].ByRun)}
	})
}

func (t Table) estimate(statistic, name string) Table {
	if t.err != nil {
		return t
	}
	t.last = make([]Cell, len(t.groups))
	for i := range t.groups {
		c, err := estimate(statistic, t.groups[i], t.reference[i])
		if err != nil {
			t.err = err
			return t
		}
		t.last[i] = c
	}
	return t.With(name, func(i int) any {
		if t.last[i].Query == "" {
			return nil
		}
		return t.last[i]
	})
}

// WithInterval adds the 95 % interval of the last estimate.
func (t Table) WithInterval() Table {
	return t.With("95 % interval", func(i int) any {
		if t.err != nil || t.last[i].Query == "" {
			return nil
		}
		return report.Interval{Lo: t.last[i].Lo, Hi: t.last[i].Hi}
	})
}

// Runs adds the number of training runs.
func (t Table) Runs() Table {
	return t.With("runs", func(i int) any { return len(t.groups[i].sample) })
}

// WithTail adds what medians hide: the excess over the reference problem by problem, over all
// problems of all runs.
func (t Table) WithTail() Table {
	tails := make([]*stats.Tail, len(t.groups))
	for i := range tails {
		x, y := pair(t.groups[i], t.reference[i])
		if t.err == nil && len(x) > 0 {
			tail := excess(x, y)
			tails[i] = &tail
		}
	}
	for k, name := range []string{"excess: mean", "95 %", "99 %", "worst", "above .05"} {
		t = t.With(name, func(i int) any {
			if tails[i] == nil {
				return nil
			}
			return tailNumbers(*tails[i])[k]
		})
	}
	return t
}

func tailNumbers(t stats.Tail) []float64 { return []float64{t.Mean, t.P95, t.P99, t.Worst, t.Above} }

// Behind is the excess above which a problem counts as far behind the reference.
const Behind = .05

func excess(x, y [][]float64) stats.Tail {
	var all []float64
	for j := range x {
		for m := range x[j] {
			all = append(all, x[j][m]-y[j][m])
		}
	}
	return stats.TailOf(all, Behind)
}

// Beside puts the paper's number before the last estimate, where it prints one.
func (t Table) Beside(p *Paper) Table {
	if t.err != nil {
		return t
	}
	at := slices.IndexFunc(t.Columns, func(c string) bool { return c == "95 % interval" })
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if _, ok := firstCell(t.Rows, i); ok {
			at = i
			break
		}
	}
	if at < 0 {
		return t
	}
	t.Columns = slices.Insert(slices.Clone(t.Columns), at, "paper")
	rows := make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = slices.Insert(slices.Clone(row), at, any(p.Printed(t.last[i].Query)))
	}
	t.Rows = rows
	return t
}

// Because adds why the paper's number and ours differ, as its claims say.
func (t Table) Because(p *Paper) Table {
	return t.With("why they differ", func(i int) any {
		if t.err != nil {
			return nil
		}
		return p.Reason(t.last[i].Query)
	})
}

// firstCell returns the first estimate of a column.
func firstCell(rows [][]any, column int) (Cell, bool) {
	for _, row := range rows {
		if c, ok := row[column].(Cell); ok {
			return c, true
		}
	}
	return Cell{}, false
}

// keep keeps the rows whose group passes.
func (t Table) keep(test func(group) bool) Table {
	out := t
	out.Rows, out.groups, out.reference, out.last = nil, nil, nil, nil
	for i, g := range t.groups {
		if !test(g) {
			continue
		}
		out.Rows, out.groups = append(out.Rows, t.Rows[i]), append(out.groups, g)
		out.reference = append(out.reference, t.reference[i])
		if t.last != nil {
			out.last = append(out.last, t.last[i])
		}
	}
	return out
}

// key is the value of a row's key.
func (t Table) key(row int, c Column) string {
	if row >= len(t.groups) {
		return ""
	}
	return t.groups[row].key[c]
}

// swap compares the other table's row, which fits each row, with that row: the reverse of Against.
func (t Table) swap(other Table) Table {
	t = t.Against(other)
	groups := slices.Clone(t.groups)
	for i := range groups {
		groups[i], t.reference[i] = t.reference[i], groups[i]
	}
	t.groups = groups
	return t
}

// without leaves out an entry of each row.
func without(rows [][]any, column int) (out [][]any) {
	for _, row := range rows {
		out = append(out, slices.Concat(row[:column], row[column+1:]))
	}
	return out
}

// Wide writes the last estimate in one row a method, with a pair of columns for each combination of
// the columns named: what the paper prints, and what is found here.
func (t Table) Wide(p *Paper, columns ...Column) Table {
	if t.err != nil {
		return t
	}
	out := Table{}
	out.Digits = report.Decimals(4)
	kept := len(t.Columns) - len(columns) - 1 // keys that stay, as By and one estimate have left them
	out.Columns = slices.Clone(t.Columns[:kept])
	place, at := map[string]int{}, map[string]int{}
	for i, g := range t.groups {
		name, head := fmt.Sprint(t.Rows[i][:kept]), ""
		for _, c := range columns {
			head += fmt.Sprintf(", %s = %s", strings.ToUpper(string(c)), g.key[c])
		}
		if _, ok := at[head]; !ok {
			at[head] = len(out.Columns)
			out.Columns = append(out.Columns, head[2:]+": paper", "here")
		}
		if _, ok := place[name]; !ok {
			place[name] = len(out.Rows)
			out.Rows = append(out.Rows, slices.Clone(t.Rows[i][:kept]))
		}
		row := &out.Rows[place[name]]
		for len(*row) < at[head]+2 {
			*row = append(*row, nil)
		}
		(*row)[at[head]], (*row)[at[head]+1] = p.Printed(t.last[i].Query), t.last[i]
	}
	reasons := map[string]any{}
	for i := range t.groups {
		if r := p.Reason(t.last[i].Query); r != nil {
			reasons[fmt.Sprint(t.Rows[i][:kept])] = r
		}
	}
	out.Columns = append(out.Columns, "why they differ")
	for i, row := range out.Rows {
		for len(row) < len(out.Columns)-1 {
			row = append(row, nil)
		}
		out.Rows[i] = append(row, reasons[fmt.Sprint(row[:kept])])
	}
	return out
}

// Named renames columns, from and to in turn.
func (t Table) Named(names ...string) Table {
	t.Columns = slices.Clone(t.Columns)
	for k := 0; k+1 < len(names); k += 2 {
		for i, c := range t.Columns {
			if c == names[k] {
				t.Columns[i] = names[k+1]
				break
			}
		}
	}
	return t
}

// Then appends the rows of another table with the same columns.
func (t Table) Then(other Table) Table {
	if t.err == nil {
		t.err = other.err
	}
	if t.Columns == nil {
		t.Columns = other.Columns
	}
	if t.err == nil && !slices.Equal(t.Columns, other.Columns) {
		t.err = fmt.Errorf("results: tables with columns %q and %q", t.Columns, other.Columns)
	}
	t.Rows, t.groups = slices.Concat(t.Rows, other.Rows), slices.Concat(t.groups, other.groups)
	t.reference, t.last = slices.Concat(t.reference, other.reference), slices.Concat(t.last, other.last)
	return t
}

// estimate estimates a statistic of a group, compared with a reference where the statistic needs
// one. Without results it is the zero Cell.
func estimate(statistic string, g, reference group) (c Cell, err error) {
	x, y := g.sample, [][]float64(nil)
	if statistic != "median" && statistic != "mean" {
		if x, y = pair(g, reference); len(x) == 0 {
			return c, nil
		}
	}
	b := stats.Standard
	c.Query = query(statistic, g, reference)
	switch statistic {
	case "median":
		c.Estimate, err = b.Median(x)
		c.ByRun = stats.RunMedians(x)
		return c, named(c, err)
	case "mean":
		for _, run := range x {
			sum := 0.0
			for _, v := range run {
				sum += v
			}
			c.ByRun = append(c.ByRun, sum/float64(len(run)))
		}
		c.Estimate = stats.Estimate{Value: stats.Median(c.ByRun), Lo: slices.Min(c.ByRun), Hi: slices.Max(c.ByRun)}
		return c, nil
	case "ratio":
		c.Estimate, err = b.Ratio(x, y)
	case "difference":
		c.Estimate, err = b.Difference(x, y)
	case "paired":
		c.Estimate, err = b.PairedDifference(x, y)
	case "ratio-of-means":
		c.Estimate, err = b.RatioOfMeans(x, y)
	case "over-problems":
		c.Estimate, err = stats.RatioOverProblems(x, y)
	case "improvement":
		c.Estimate, err = stats.Improvement(x, reference.sample)
	case "locked":
		c.Estimate = stats.Share(excess(x, y).Above*float64(len(x[0])), len(x[0]))
	default:
		return c, fmt.Errorf("results: no statistic %q", statistic)
	}
	for j := range x {
		c.ByRun = append(c.ByRun, ofRun(statistic, x[j], y[j]))
	}
	return c, named(c, err)
}

func named(c Cell, err error) error {
	if err != nil {
		return fmt.Errorf("results: %s: %w", c.Query, err)
	}
	return nil
}

// ofRun is a comparison of one run.
func ofRun(statistic string, x, y []float64) float64 {
	switch statistic {
	case "ratio":
		return stats.Median(x) / stats.Median(y)
	case "difference":
		return stats.Median(x) - stats.Median(y)
	case "ratio-of-means", "over-problems":
		return stats.Mean(x) / stats.Mean(y)
	case "locked":
		return excess([][]float64{x}, [][]float64{y}).Above
	case "improvement":
		e, _ := stats.Improvement([][]float64{x}, [][]float64{y}) // samples that have been checked
		return e.Value
	}
	d := make([]float64, len(x))
	for m := range x {
		d[m] = x[m] - y[m]
	}
	return stats.Median(d)
}

// pair keeps the runs whose seed both have. What is not trained has one run, with the seed 0, for
// the runs of all seeds.
func pair(x, y group) (a, b [][]float64) {
	for j, run := range x.runs {
		for k, other := range y.runs {
			if other == "0" || other == run {
				a, b = append(a, x.sample[j]), append(b, y.sample[k])
				break
			}
		}
	}
	return a, b
}

// query writes what asks for a statistic of a group again.
func query(statistic string, g, reference group) string {
	text := statistic + " " + g.block + keys(g, nil)
	if reference.sample == nil || statistic == "median" {
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
		switch {
		case from != nil && g.key[c] == from.key[c]:
		case g.key[c] != "" || from != nil:
			text += fmt.Sprintf(" %s=%s", c, g.key[c])
		}
	}
	if g.of != "loss" && from == nil {
		text += " of=" + string(g.of)
	}
	return text
}

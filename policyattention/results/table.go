package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/stats"
)

// Table is a table of values, which package report writes. Verbs return it with columns added; an
// error that one of them meets ends up in Err.
type Table struct {
	Name, Title string
	Columns     []string
	Rows        [][]any // string, int, float64, Interval, Cell, or nil where there is nothing
	Notes       []string

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

// Interval is a confidence interval.
type Interval struct{ Lo, Hi float64 }

// Err returns what went wrong while the table was made, nil if nothing did.
func (t Table) Err() error { return t.err }

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

// Add appends a column whose entry of each row is made from the number of the row.
func (t Table) Add(name string, entry func(row int) any) Table {
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
	return t.Add(name, func(i int) any {
		if t.last[i].Query == "" {
			return nil
		}
		return t.last[i]
	})
}

// WithInterval adds the 95 % interval of the last estimate.
func (t Table) WithInterval() Table {
	return t.Add("95 % interval", func(i int) any {
		if t.err != nil || t.last[i].Query == "" {
			return nil
		}
		return Interval{t.last[i].Lo, t.last[i].Hi}
	})
}

// Runs adds the number of training runs.
func (t Table) Runs() Table { return t.Add("runs", func(i int) any { return len(t.groups[i].sample) }) }

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
		t = t.Add(name, func(i int) any {
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
	return t.Add("why they differ", func(i int) any {
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

// Keep keeps the rows for which a function of their entries holds.
func (t Table) Keep(keep func(row []any) bool) Table {
	var rows [][]any
	var groups, reference []group
	var last []Cell
	for i, row := range t.Rows {
		if !keep(row) {
			continue
		}
		rows, groups, reference = append(rows, row), append(groups, t.groups[i]), append(reference, t.reference[i])
		if t.last != nil {
			last = append(last, t.last[i])
		}
	}
	t.Rows, t.groups, t.reference, t.last = rows, groups, reference, last
	return t
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
	case "ratio-of-means":
		return stats.Mean(x) / stats.Mean(y)
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

// MarshalJSON writes all digits. A number that JSON lacks is null.
func (t Table) MarshalJSON() ([]byte, error) {
	rows := make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		for _, entry := range row {
			rows[i] = append(rows[i], plain(entry))
		}
	}
	return json.Marshal(map[string]any{
		"name": t.Name, "title": t.Title, "columns": t.Columns, "rows": rows, "notes": t.Notes,
	})
}

func plain(entry any) any {
	finite := func(v float64) any {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		return v
	}
	switch v := entry.(type) {
	case float64:
		return finite(v)
	case Interval:
		return []any{finite(v.Lo), finite(v.Hi)}
	case Cell:
		return map[string]any{"value": finite(v.Value), "lo": finite(v.Lo), "hi": finite(v.Hi), "query": v.Query}
	case Number:
		return v.Text
	}
	return entry
}

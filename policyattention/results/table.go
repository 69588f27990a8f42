package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// Table is a table in the making. Verbs return it with columns added; an error that one of them
// meets is returned by Shown.
type Table struct {
	report.Table          // without rows
	by           []Column // that it was grouped by
	at           int      // the column of the last estimate
	lines        []line
	err          error
}

// line is a row of a table, with its group where verbs made it.
type line struct {
	entries   []any
	group     group
	reference group // what it is compared with; without a sample where there is nothing
	last      Cell  // the last estimate
}

// Cell is an estimate in a table.
type Cell struct {
	stats.Estimate
	Query string // asks for it again, see [Store.Ask]
}

// Float is the estimate's value.
func (c Cell) Float() float64 { return c.Value }

// String writes the value with its interval.
func (c Cell) String() string { return c.Text(report.Number) }

// Shown returns the finished table, or what went wrong while it was made.
func (t Table) Shown() (report.Table, error) {
	for _, l := range t.lines {
		t.Rows = append(t.Rows, l.entries)
	}
	return t.Table, t.err
}

// Add adds a row, one entry a column.
func (t *Table) Add(entries ...any) { t.lines = append(t.lines, line{entries: entries}) }

// By groups rows by columns, one row of a table a group: its sample has a run a seed.
func (r Rows) By(columns ...Column) (t Table) {
	if len(r.horizons) > 1 && !slices.Contains(columns, T) {
		columns = append(slices.Clone(columns), T)
	}
	t.by = columns
	groups, err := r.groups(columns)
	t.err = err
	for _, c := range columns {
		name := string(c)
		if c == S || c == T {
			name = strings.ToUpper(name)
		}
		t.Columns = append(t.Columns, name)
	}
	for _, g := range groups {
		l := line{group: g}
		for _, c := range columns {
			value := g.key[c]
			if c == Method {
				value = r.label(value)
			}
			l.entries = append(l.entries, value)
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// each changes every row.
func (t Table) each(change func(*line)) Table {
	t.lines = slices.Clone(t.lines)
	for i := range t.lines {
		change(&t.lines[i])
	}
	return t
}

// with appends a column whose entry of each row is made from it.
func (t Table) with(name string, entry func(line) any) Table {
	t.Columns = append(slices.Clone(t.Columns), name)
	return t.each(func(l *line) { l.entries = append(slices.Clone(l.entries), entry(*l)) })
}

// Against sets what the verbs after it compare each row with: the row of the other table that has
// the same values in the columns which both were grouped by.
func (t Table) Against(other Table) Table {
	both := slices.DeleteFunc(slices.Clone(t.by), func(c Column) bool { return !slices.Contains(other.by, c) })
	return t.match(other, same(append(both, T)...))
}

// same reports whether groups have the same values in some columns.
func same(columns ...Column) func(g, o group) bool {
	return func(g, o group) bool {
		return !slices.ContainsFunc(columns, func(c Column) bool { return g.key[c] != o.key[c] })
	}
}

// match compares each row with the first of the other table that fits it.
func (t Table) match(other Table, fits func(g, o group) bool) Table {
	t.err = cmp.Or(t.err, other.err)
	return t.each(func(l *line) {
		l.reference = group{}
		if i := slices.IndexFunc(other.lines, func(o line) bool { return fits(l.group, o.group) }); i >= 0 {
			l.reference = other.lines[i].group
		}
	})
}

// Median adds the median over runs of the median over problems.
func (t Table) Median() Table { return t.estimate("median", "median") }

// Mean adds the median over runs of the mean over problems, whose interval is the range over runs.
func (t Table) Mean() Table { return t.estimate("mean", "mean") }

// MeanOverProblems adds the mean over all runs, whose interval is for other problems and the same networks.
func (t Table) MeanOverProblems() Table { return t.estimate("mean-over-problems", "mean loss") }

// Ratio adds the median over runs of the ratio of medians to the reference, the paper's r_j.
func (t Table) Ratio() Table { return t.estimate("ratio", "ratio of medians") }

// Minus adds the median over runs of the difference of medians.
func (t Table) Minus() Table { return t.estimate("difference", "difference of medians") }

// Paired adds the median over runs of the median over problems of the difference.
func (t Table) Paired() Table { return t.estimate("paired", "difference by problem") }

// RatioOfMeans adds the median over runs of the ratio of mean losses.
func (t Table) RatioOfMeans() Table { return t.estimate("ratio-of-means", "ratio of means") }

func (t Table) estimate(statistic, name string) Table {
	t.lines = slices.Clone(t.lines)
	for i, l := range t.lines {
		if t.err == nil {
			t.lines[i].last, t.err = estimate(statistic, l.group, l.reference)
		}
	}
	t.at = len(t.Columns)
	return t.with(name, func(l line) any { return l.last.shown() })
}

// shown is an entry: nothing where there was nothing to compare.
func (c Cell) shown() any {
	if c.Query == "" {
		return nil
	}
	return c
}

// WithInterval adds the 95 % interval of the last estimate.
func (t Table) WithInterval() Table {
	return t.with("95 % interval", func(l line) any {
		if l.last.Query == "" {
			return nil
		}
		return report.Interval{Lo: l.last.Lo, Hi: l.last.Hi}
	})
}

// ByRun adds the range over runs of the last estimate.
func (t Table) ByRun() Table {
	return t.with("range over runs", func(l line) any {
		if len(l.last.ByRun) < 2 {
			return nil
		}
		return span(l.last.ByRun)
	})
}

// span is the range of values, NaN of none.
func span(of []float64) report.Interval {
	if len(of) == 0 {
		return report.Interval{Lo: math.NaN(), Hi: math.NaN()}
	}
	return report.Interval{Lo: slices.Min(of), Hi: slices.Max(of)}
}

// InterquartileMean adds the mean of the middle half of the losses of all runs.
func (t Table) InterquartileMean() Table {
	return t.with("interquartile mean", func(l line) any { return stats.InterquartileMean(l.group.sample) })
}

// Runs adds the number of training runs.
func (t Table) Runs() Table { return t.with("runs", func(l line) any { return len(l.group.sample) }) }

// WithTail adds what medians hide: the excess over the reference problem by problem, over all problems of all runs.
func (t Table) WithTail() Table {
	t.Columns = append(slices.Clone(t.Columns), "excess: mean", "95 %", "99 %", "worst", "above .05")
	return t.each(func(l *line) {
		tail := make([]any, 5)
		if x, y := pair(l.group, l.reference); len(x) > 0 {
			e := excess(x, y)
			tail = []any{e.Mean, e.P95, e.P99, e.Worst, e.Above}
		}
		l.entries = slices.Concat(l.entries, tail)
	})
}

// Beside puts the paper's number before the last estimate, where it prints one.
func (t Table) Beside(p Paper) Table {
	at := t.at
	t.Columns, t.at = slices.Insert(slices.Clone(t.Columns), at, "paper"), at+1
	return t.each(func(l *line) {
		l.entries = slices.Insert(slices.Clone(l.entries), at, p.Printed(l.last.Query))
	})
}

// keep keeps the rows that pass.
func (t Table) keep(passes func(line) bool) Table {
	t.lines = slices.DeleteFunc(slices.Clone(t.lines), func(l line) bool { return !passes(l) })
	return t
}

// least keeps, of the rows that have the same values in some columns, the first with the least value.
func (t Table) least(value func(group) float64, columns ...Column) Table {
	all := t.lines
	t.lines = nil
	for _, l := range all {
		at := slices.IndexFunc(t.lines, func(o line) bool { return same(columns...)(o.group, l.group) })
		if at < 0 {
			t.lines = append(t.lines, l)
		} else if value(l.group) < value(t.lines[at].group) {
			t.lines[at] = l
		}
	}
	return t
}

// median is that over runs of the median over problems.
func (g group) median() float64 { return stats.Median(stats.RunMedians(g.sample)) }

// mean is that over all runs and problems.
func (g group) mean() float64 { return stats.Mean(slices.Concat(g.sample...)) }

// Wide writes the last estimate in one row for the columns that come first, with a pair of columns for
// each combination of the others, those named: what the paper prints, and what is found here.
func (t Table) Wide(p Paper, columns ...Column) Table {
	kept := len(t.by) - len(columns)
	out := Table{Table: report.Table{Columns: slices.Clone(t.Columns[:kept]), Digits: report.Decimals(4)}, err: t.err}
	places := make([]int, len(t.lines)) // of columns
	for i, l := range t.lines {
		var values []string
		for _, c := range columns {
			values = append(values, fmt.Sprintf("%s = %s", strings.ToUpper(string(c)), l.group.key[c]))
		}
		head := strings.Join(values, ", ") + ": paper"
		if places[i] = slices.Index(out.Columns, head); places[i] < 0 {
			places[i], out.Columns = len(out.Columns), append(out.Columns, head, "here")
		}
	}
	out.Columns = append(out.Columns, "why they differ")
	for i, l := range t.lines {
		row := out.row(l, kept)
		row[places[i]], row[places[i]+1] = p.Printed(l.last.Query), l.last
		if c := p.about(l.last.Query); c != nil && c.Reason != "" {
			row[len(row)-1] = c.Reason
		}
	}
	return out
}

// across writes the last estimates in one row for the columns that come first, a column for each value of the last.
func (t Table) across() Table {
	kept := len(t.by) - 1
	out := Table{Table: report.Table{Columns: slices.Clone(t.Columns[:kept])}, err: t.err}
	for _, l := range t.lines {
		if name := fmt.Sprint(l.entries[kept]); !slices.Contains(out.Columns, name) {
			out.Columns = append(out.Columns, name)
		}
	}
	for _, l := range t.lines {
		out.row(l, kept)[slices.Index(out.Columns, fmt.Sprint(l.entries[kept]))] = l.last.shown()
	}
	return out
}

// row is the row that begins with as many entries as are kept of a line. It is added where there is none.
func (t *Table) row(l line, kept int) []any {
	begins := func(o line) bool { return slices.Equal(o.entries[:kept], l.entries[:kept]) }
	at := slices.IndexFunc(t.lines, begins)
	if at < 0 {
		at, l.entries = len(t.lines), append(l.entries[:kept:kept], make([]any, len(t.Columns)-kept)...)
		t.lines = append(t.lines, l)
	}
	return t.lines[at].entries
}

// Then appends the rows of another table, which has as many columns.
func (t Table) Then(other Table) Table {
	if t.Columns == nil {
		t.Columns, t.by = other.Columns, other.by
	}
	if t.err = cmp.Or(t.err, other.err); t.err == nil && len(t.Columns) != len(other.Columns) {
		t.err = fmt.Errorf("results: tables with columns %q and %q", t.Columns, other.Columns)
	}
	t.lines = slices.Concat(t.lines, other.lines)
	return t
}

// short keeps some columns, and writes estimates with their intervals in one.
func (t Table) short(columns ...string) (out Table) {
	shown, err := t.Shown()
	out.Title, out.Notes, out.Columns, out.err = shown.Title, shown.Notes, columns, err
	for _, row := range shown.Rows {
		var kept []any
		for _, c := range columns {
			k := slices.Index(shown.Columns, c)
			if k < 0 {
				out.err = fmt.Errorf("results: no column %q, want one of %q", c, shown.Columns)
				return out
			}
			kept = append(kept, said(row[k]))
		}
		out.Add(kept...)
	}
	return out
}

// said writes an estimate with its interval.
func said(here any) any {
	if c, ok := here.(Cell); ok {
		return c.String()
	}
	return here
}

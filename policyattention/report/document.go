package report

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"icrl/policyattention/bench"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/tables"
)

// Documents hold tables between the markers
//
//	<!-- table: NAME -->
//	<!-- end -->
//
// and within sentences the cells of tables between the markers
//
//	<!-- value: NAME; COLUMN=CELL; …; COLUMN --><!-- end -->
//
// where the last column is the one shown and the others say in which row. NAME is a
// table of documents or of the command. [Fill] writes both.

const (
	opening, valued, closing = "<!-- table: ", "<!-- value: ", "<!-- end -->"
)

// excerpts are the tables of documents.
var excerpts = map[string]func(*source) (Table, error){
	"summary":         summaryExcerpt,
	"losses":          lossesExcerpt,
	"oracle":          whole(oracleTable, "S", "T", "paper", "here", "95% interval"),
	"tails":           tailsExcerpt,
	"s4":              whole(confirmationTable, append([]string{"quantity", "paper", "here+95% interval", "runs"}, tailNames...)...),
	"shifts":          whole(shiftTable, append([]string{"family", "identities", "paper", "here+95% interval"}, tailNames...)...),
	"sampled":         sampledExcerpt,
	"stages":          whole(stagesTable, slices.Concat([]string{"S", "steps", "training loss", "source's training loss", "CPU-hours", "T", "paper, at the end", "here+95% interval", "source's loss+95% interval of that"}, tailNames, []string{"runs"})...),
	"ablation":        whole(ablationTable, append([]string{"recipe", "what differs from plain", "row-L1, static inputs", "row-L1, in the loop", "T = 40 / oracle+95% interval", "T = 40 / plain+95% interval"}, tailNames...)...),
	"order":           orderExcerpt,
	"prior":           whole(priorTable, slices.Concat([]string{"recipe", "S", "T", "here / oracle+95% interval of ratio"}, tailNames, []string{"row-L1, in the loop", "runs"})...),
	"first":           whole(firstRoundsTable, slices.Concat([]string{"recipe", "T", "here", "here / oracle+95% interval of ratio"}, tailNames, []string{"runs"})...),
	"zero-shot":       whole(zeroShotTable, append([]string{"S", "seen in training", "T", "loss / oracle+95% interval"}, tailNames...)...),
	"mechanism":       mechanismExcerpt,
	"critics":         criticsExcerpt(20),
	"critics-late":    criticsExcerpt(40),
	"memory":          accuracyExcerpt,
	"qualifying":      qualifyingExcerpt(true),
	"imitation":       qualifyingExcerpt(false),
	"time-to-quality": whole(timeToQualityTable, append([]string{"recipe", "S", "T", "bar", "loss or ratio", "steps", "core-seconds", "reached", "slowest identity", "above again later"}, tailNames...)...),
	"models":          modelsExcerpt,
	"equal-lead":      equalExcerpt(publishedLeads),
	"any":             anyExcerpt,
	"any-beside":      besideExcerpt,
	"ways":            waysExcerpt,
	"equal":           equalExcerpt(func(e *equal.Evidence) (Table, error) { return ComparisonTable(e, shownConditions) }),
	"race":            measuredSpeed("bench.json", bench.ReadComparison, BenchTable),
	"profile":         measuredSpeed("profile.json", bench.ReadProfile, ProfileTable),
}

// measuredSpeed returns the table of a file of speed measurements.
func measuredSpeed[T any](file string, read func(path string) (*T, error), table func(*T) Table) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		x, err := read(filepath.Join(filepath.Dir(s.Store.Root()), "bench", file))
		if err != nil {
			return Table{}, err
		}
		return table(x), nil
	}
}

// quantity is a number of a method at a size, beside the paper's and with its tail.
type quantity struct {
	results.Spread
	cell any
	tail results.Tail
}

// across returns a table of a row a method and size and a column a quantity, in their order.
func across(all []quantity) (t Table) {
	type row struct {
		results.Series
		S     int
		cells map[results.Quantity]quantity
	}
	var rows []*row
	var columns []column[*row]
	for _, q := range all {
		at := slices.IndexFunc(rows, func(r *row) bool { return r.Series == q.Series && r.S == q.S })
		if at < 0 {
			at = len(rows)
			rows = append(rows, &row{q.Series, q.S, map[results.Quantity]quantity{}})
		}
		rows[at].cells[q.Quantity] = q
		if slices.ContainsFunc(columns, func(c column[*row]) bool { return c.name == string(q.Quantity) }) {
			continue
		}
		columns = append(columns, column[*row]{string(q.Quantity), func(r *row) any { return r.cells[q.Quantity].cell }})
		if q.tail.Runs > 0 {
			columns = append(columns, tailed("99 %, worst (above)", func(r *row) results.Tail { return r.cells[q.Quantity].tail })...)
		}
	}
	fill(&t, rows, slices.Concat([]column[*row]{
		{"method", func(r *row) any { return r.Series.String() }},
		{"S", func(r *row) any { return r.S }},
	}, columns)...)
	t.Values = nil
	return t
}

// besidePrinted adds the paper's number, if it has one.
func besidePrinted(here any, n *results.Number) any {
	if n == nil {
		return here
	}
	return Cell{tables.CellOf(here), " (paper ", quoted(n), ")"}
}

// mechanismExcerpt leaves out the single rules and what one row alone has.
func mechanismExcerpt(s *source) (Table, error) {
	rows, err := s.Mechanism()
	var all []quantity
	for _, r := range rows {
		if slices.Contains([]results.Quantity{results.RowL1To(pmd.PMD), results.NearestL1, results.MeanFittedEta}, r.Quantity) && len(r.ByRun) > 0 {
			all = append(all, quantity{Spread: r, cell: besidePrinted(Cell{middle(r), " ", extent(r.ByRun)}, r.Paper)})
		}
	}
	return across(all), err
}

// qualifyingExcerpt has the methods that are judged by what they learn within a life, or the
// others, without costs and what has not been run.
func qualifyingExcerpt(within bool) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		rows, err := s.Qualification()
		var all []quantity
		for _, r := range rows {
			known := len(r.ByRun) > 0 || r.Gap != nil && r.Gap.Runs > 0
			if known && r.Quantity != results.Parameters && r.Quantity != results.TrainingMinutes && within == (s.method(r.Method).Control != nil) {
				all = append(all, quantity{r.Spread, besidePrinted(qualificationValue(r), r.Paper), r.Tail})
			}
		}
		return across(all), err
	}
}

// keep returns the table with some of its rows, by their index.
func (t Table) keep(row func(i int) bool) Table {
	all := t.Rows
	t.Rows = nil
	for i := range all {
		if row(i) {
			t.Rows = append(t.Rows, all[i])
		}
	}
	return t
}

// tailNames are the columns of tails that documents show.
var tailNames = []string{"excess: 99 %", "excess: worst", "share behind by .05", "ratio of means+95% interval of that"}

// whole returns the named columns of a table, in their order there; a name may stand
// several times. "value+interval" puts two columns into one, which has the first name.
func whole(build func(*source) (Table, error), columns ...string) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		t, err := build(s)
		if err != nil {
			return t, err
		}
		out := Table{Rows: make([][]Cell, len(t.Rows))}
		next := 0
		for _, column := range columns {
			names := strings.Split(column, "+")
			out.Columns = append(out.Columns, names[0])
			cells := make([]Cell, len(t.Rows))
			for _, name := range names {
				i := slices.Index(t.Columns[next:], name)
				if i < 0 {
					return t, fmt.Errorf("no column %q in %q", name, t.Columns[next:])
				}
				next += i + 1
				for r, row := range t.Rows {
					if len(cells[r]) > 0 && row[next-1].String() != "" {
						cells[r] = append(cells[r], " ")
					}
					cells[r] = append(cells[r], row[next-1]...)
				}
			}
			for r, c := range cells {
				out.Rows[r] = append(out.Rows[r], c)
			}
		}
		return out, nil
	}
}

// controller is a row of the tables that set learned controllers beside the paper.
type controller struct {
	Label  string
	From   results.Selection
	T      int
	Paper  *results.Number // loss
	Ratio  *results.Number // to exact PMD, of the paper
	Here   results.Group
	Oracle results.Estimate // exact PMD's loss on the same problems
}

// besidePaper estimates controllers and sets them beside the paper.
func (s *source) besidePaper(rows []controller) (t Table, err error) {
	for i, c := range rows {
		oracle, err := s.Source.Oracle(c.From.S)
		if err != nil {
			return t, err
		}
		if rows[i].Here, err = s.Group(c.Label, c.From, oracle, c.T); err != nil {
			return t, err
		}
		if rows[i].Oracle, err = oracle.Median(c.T); err != nil {
			return t, err
		}
	}
	type R = controller
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"controller", func(r R) any { return r.Label }},
			{"S", func(r R) any { return r.From.S }},
			{"T", func(r R) any { return r.T }},
			{"paper", func(r R) any { return quoted(r.Paper) }},
			{"here", func(r R) any { return value(r.Here.Loss) }},
			{"exact PMD, same problems", func(r R) any { return value(r.Oracle) }},
			{"paper's ratio", func(r R) any { return quoted(r.Ratio) }},
		},
		joined("ratio of medians", func(r R) results.Estimate { return r.Here.Ratio }),
		joined("ratio of means", func(r R) results.Estimate { return r.Here.Tail.RatioOfMeans }),
		tailed(tailColumn, func(r R) results.Tail { return r.Here.Tail }),
	)...)
	return t, nil
}

// joined is a column of an estimate with its interval.
func joined[R any](name string, of func(R) results.Estimate) []column[R] {
	return []column[R]{{name, func(r R) any {
		e := of(r)
		if e.Runs == 0 {
			return NotRun
		}
		return tables.Estimate(e.Value, e.Lo, e.Hi)
	}}}
}

// summaryExcerpt is the README's table.
func summaryExcerpt(s *source) (Table, error) {
	confirmed := func(quantity string) *results.Number {
		return results.Paper(results.Key{Block: experiment.Confirmation, Quantity: quantity, S: 4, T: 20})
	}
	four := selection(experiment.Confirmation, experiment.PolicyAttention, 4)
	list := []controller{{Label: "PolicyAttention", From: four, T: 20, Ratio: confirmed("median ratio")}, {Label: "PolicyAttention", From: four, T: 40}}
	for _, states := range []int{8, 16} {
		list = append(list, besideBenchmark("PolicyAttention", selection(experiment.Benchmark, experiment.PolicyAttention, states))...)
	}
	learned := besideBenchmark("with a learned critic", selection(experiment.Benchmark, experiment.LearnedCritic, 8))
	return s.besidePaper(append(list,
		controller{Label: "with a learned critic", From: selection(experiment.Confirmation, experiment.LearnedCritic, 4), T: 20, Ratio: confirmed("learned critic ratio")},
		learned[0]))
}

// besideBenchmark returns the rows of a controller at the tables' horizons, with what the
// paper's benchmark has of its method.
func besideBenchmark(label string, from results.Selection) (list []controller) {
	for _, t := range horizons {
		list = append(list, controller{
			Label: label, From: from, T: t,
			Paper: results.InBenchmark(string(from.Method), from.S, t), Ratio: results.PaperRatio(from.Method, from.S, t),
		})
	}
	return list
}

// lossesExcerpt has every learned actor at the paper's sizes, and further identities.
func lossesExcerpt(s *source) (Table, error) {
	var list []controller
	for _, states := range []int{8, 16} {
		list = slices.Concat(list,
			besideBenchmark("PolicyAttention", selection(experiment.Benchmark, experiment.PolicyAttention, states)),
			besideBenchmark("the same, five further identities", selection(experiment.Replication, experiment.PolicyAttention, states)),
			besideBenchmark("PMD-target", selection(experiment.Benchmark, experiment.PMDTarget, states)))
		if states == 8 {
			list = append(list, besideBenchmark("with a learned critic", selection(experiment.Benchmark, experiment.LearnedCritic, states))...)
		}
	}
	return s.besidePaper(list)
}

// sampledExcerpt has the sampled methods of the common harness at T = 20.
func sampledExcerpt(s *source) (Table, error) {
	var t Table
	rows, err := s.Benchmark()
	rows = slices.DeleteFunc(rows, func(r results.BenchmarkRow) bool { return !r.Sampled || r.T != 20 || r.Loss.Runs == 0 })
	type R = results.BenchmarkRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) any { return r.Series.String() }},
			{"S", func(r R) any { return r.S }},
			{"paper", func(r R) any { return quoted(r.Loss.Paper) }},
		},
		joined("here", func(r R) results.Estimate { return r.Loss }),
		joined("ratio of means", func(r R) results.Estimate { return r.Tail.RatioOfMeans }),
		tailed(tailColumn, func(r R) results.Tail { return r.Tail }),
		[]column[R]{{"runs", func(r R) any { return ofRuns(r.Loss) }}},
	)...)
	return t, err
}

// tailsExcerpt has the tails that no other table of the documents has: at S = 4 beyond
// the paper's horizon of T = 20, and after the longest runs. Those of shifts stand apart.
func tailsExcerpt(s *source) (Table, error) {
	t, err := whole(tailsTable, slices.Concat([]string{"method", "S", "T", "ratio of medians+95% interval", "excess: mean", "excess: 95 %"}, tailNames, []string{"run with the worst tail"})...)(s)
	if err != nil {
		return t, err
	}
	rows, err := s.Tails()
	longest := slices.Max(experiment.PaperProtocol.Long)
	return t.keep(func(i int) bool {
		r := rows[i]
		return r.Tail.X.Family == "" && (r.S == 4 && r.T == 40 || r.T == longest)
	}), err
}

// criticsExcerpt has the critics at a horizon; at the later one those with a learned actor.
func criticsExcerpt(horizon int) func(*source) (Table, error) {
	columns := []string{"actor and critic", "S", "paper's ratio", "ratio of medians", "ratio of means", tailColumn, "means / mean of samples"}
	if horizon == 20 {
		columns = slices.Insert(columns, 2, "error of a backup", "/ mean of samples")
	}
	return func(s *source) (Table, error) {
		t, err := whole(criticsTable, columns...)(s)
		if err != nil {
			return t, err
		}
		rows, err := s.Critics()
		return t.keep(func(i int) bool {
			return rows[i].T == horizon && (horizon == 20 || rows[i].Learned)
		}), err
	}
}

// publishedLeads leaves out the methods of which nothing is published.
func publishedLeads(e *equal.Evidence) (Table, error) {
	t, err := LeadTable(e)
	if err != nil {
		return t, err
	}
	rows := t.Values.([]equal.Lead)
	return t.keep(func(i int) bool { return rows[i].Published }), nil
}

// Fill returns a document with its tables and values as the artifacts of a store give
// them. It returns an error if a marker is not closed, names no table, or no single cell.
func Fill(store *experiment.Store, document string) (string, error) {
	return newSource(store).fill(document)
}

func (s *source) fill(document string) (string, error) {
	f := filler{s, map[string]Table{}}
	var b strings.Builder
	for rest := document; ; {
		at, show := strings.Index(rest, opening), f.rows
		if v := strings.Index(rest, valued); v >= 0 && (at < 0 || v < at) {
			at, show = v, f.cell
		}
		if at < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		b.WriteString(rest[:at])
		marker, after, marked := strings.Cut(rest[at:], " -->")
		_, after, closed := strings.Cut(after, closing)
		if !marked || !closed {
			return "", fmt.Errorf("report: document: marker %.60q is not closed", rest[at:])
		}
		_, name, _ := strings.Cut(marker, ": ")
		text, err := show(name)
		if err != nil {
			return "", fmt.Errorf("report: document: marker %q: %w", marker, err)
		}
		b.WriteString(marker + " -->" + text + closing)
		rest = after
	}
}

// filler builds the tables of a document, each once.
type filler struct {
	*source
	built map[string]Table
}

// named returns a table of documents or, where they have none of the name, of the command.
func (f filler) named(name string) (Table, error) {
	t, ok := f.built[name]
	if ok {
		return t, nil
	}
	var err error
	if build := excerpts[name]; build != nil {
		t, err = build(f.source)
	} else if slices.Contains(TableNames(), name) {
		t, err = f.table(name)
	} else {
		err = fmt.Errorf("no table %q, want one of %q or %q", name, slices.Sorted(maps.Keys(excerpts)), TableNames())
	}
	f.built[name] = t
	return t, err
}

// rows returns a table of documents as text.
func (f filler) rows(name string) (string, error) {
	t, err := f.named(name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteByte('\n')
	t.lines(&b)
	return b.String(), nil
}

// cell returns the cell of a table that a marker names.
func (f filler) cell(marker string) (string, error) {
	parts := strings.Split(marker, "; ")
	t, err := f.named(parts[0])
	if err != nil {
		return "", err
	}
	at := func(column string) int { return slices.Index(t.Columns, column) }
	shown := at(parts[len(parts)-1])
	if shown < 0 {
		return "", fmt.Errorf("no column %q, want one of %q", parts[len(parts)-1], t.Columns)
	}
	rows := t.text()
	for _, condition := range parts[1 : len(parts)-1] {
		column, cell, _ := strings.Cut(condition, "=")
		i := at(column)
		if i < 0 {
			return "", fmt.Errorf("no column %q, want one of %q", column, t.Columns)
		}
		rows = slices.DeleteFunc(rows, func(row []string) bool { return row[i] != cell })
	}
	if len(rows) != 1 || rows[0][shown] == "" {
		return "", fmt.Errorf("it names %d rows, want one, with a cell that is not empty", len(rows))
	}
	return rows[0][shown], nil
}

// lines writes the table's columns and rows without alignment.
func (t Table) lines(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(t.Columns, " | "), strings.Repeat("|-", len(t.Columns)))
	for _, row := range t.text() {
		for _, cell := range row {
			fmt.Fprintf(b, "| %s ", escape(cell))
		}
		b.WriteString("|\n")
	}
}

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
)

// Documents hold tables between the markers
//
//	<!-- table: NAME -->
//	<!-- end -->
//
// which Fill writes. Their other text carries no result.

const (
	opening, closing = "<!-- table: ", "<!-- end -->"
)

// excerpts are the tables of documents.
var excerpts = map[string]func(*source) (Table, error){
	"summary":        summaryExcerpt,
	"losses":         lossesExcerpt,
	"oracle":         whole(oracleTable, "S", "T", "paper", "here", "95% interval"),
	"tails":          tailsExcerpt,
	"s4":             whole(confirmationTable, "quantity", "paper", "here", "95% interval", "runs"),
	"shifts":         whole(shiftTable, "family", "paper", "here", "95% interval", "further identities", "95% interval"),
	"sampled":        sampledExcerpt,
	"ablation":       whole(ablationTable, "recipe", "what differs from plain", "row-L1, static inputs", "row-L1, in the loop", "T = 20 / oracle", "95% interval", "T = 40 / oracle", "95% interval", "T = 40 / plain", "95% interval"),
	"prior":          whole(priorTable, "recipe", "S", "T", "here / oracle", "95% interval of ratio", "ratio of means", "row-L1, in the loop", "runs"),
	"first":          whole(firstRoundsTable, "recipe", "T", "here", "here / oracle", "95% interval of ratio", "runs"),
	"zero-shot":      whole(zeroShotTable, "S", "seen in training", "T", "loss / oracle", "95% interval", "retrained / oracle", "95% interval"),
	"mechanism":      mechanismExcerpt,
	"critics":        whole(criticsTable, "actor and critic", "S", "error of a backup", "/ mean of samples", "T", "runs", "ratio of medians", "ratio of means", "worst excess"),
	"memory":         accuracyExcerpt,
	"qualifying":     qualifyingExcerpt,
	"models":         modelsExcerpt,
	"equal-lead":     equalExcerpt(LeadTable),
	"equal-sentence": equalExcerpt(SentenceTable),
	"equal":          equalExcerpt(func(e *equal.Evidence) (Table, error) { return ComparisonTable(e, shownConditions) }),
	"race":           measuredSpeed("bench.json", bench.ReadComparison, BenchTable),
	"profile":        measuredSpeed("profile.json", bench.ReadProfile, ProfileTable),
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

// mechanismExcerpt leaves out the single rules.
func mechanismExcerpt(s *source) (Table, error) {
	t, err := whole(mechanismTable, "method", "S", "quantity", "paper", "here", "range over runs")(s)
	if err != nil {
		return t, err
	}
	rows, err := s.Mechanism()
	return t.keep(func(i int) bool {
		rule, ok := strings.CutPrefix(rows[i].Quantity, "row-L1 to ")
		return !ok || rule == string(pmd.PMD) || rule == "the nearest alternative"
	}), err
}

// qualifyingExcerpt leaves out costs and what has not been run.
func qualifyingExcerpt(s *source) (Table, error) {
	t, err := whole(qualificationTable, "method", "S", "quantity", "paper", "here")(s)
	if err != nil {
		return t, err
	}
	rows, err := s.Qualification()
	return t.keep(func(i int) bool {
		r := rows[i]
		return (len(r.ByRun) > 0 || r.Gap != nil && r.Gap.Runs > 0) && r.Quantity != "parameters" && r.Quantity != "CPU min of training"
	}), err
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

// whole returns the named columns of a table, in their order there; a name may stand
// several times.
func whole(build func(*source) (Table, error), columns ...string) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		t, err := build(s)
		if err != nil {
			return t, err
		}
		out := Table{Columns: columns}
		var at []int
		next := 0
		for _, name := range columns {
			i := slices.Index(t.Columns[next:], name)
			if i < 0 {
				return t, fmt.Errorf("no column %q in %q", name, t.Columns[next:])
			}
			next += i + 1
			at = append(at, next-1)
		}
		for _, row := range t.Rows {
			var cells []string
			for _, i := range at {
				cells = append(cells, row[i])
			}
			out.Rows = append(out.Rows, cells)
		}
		return out, nil
	}
}

// controller is a row of the tables that set learned controllers beside the paper.
type controller struct {
	Label  string
	S, T   int
	Paper  *results.Number // loss
	Ratio  *results.Number // to exact PMD, of the paper
	Here   results.Group
	Oracle results.Estimate // exact PMD's loss on the same problems
}

// controllers estimates the controllers of a list.
func (s *source) controllers(list []controller, in func(controller) results.Selection) ([]controller, error) {
	for i, c := range list {
		oracle, err := s.Source.Oracle(c.S)
		if err != nil {
			return nil, err
		}
		if list[i].Here, err = s.Group(c.Label, in(c), oracle, c.T); err != nil {
			return nil, err
		}
		if list[i].Oracle, err = oracle.Median(c.T); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// besidePaper prints controllers beside the paper.
func besidePaper(rows []controller) Table {
	var t Table
	type R = controller
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"", func(r R) string { return r.Label }},
			{"S", func(r R) string { return fmt.Sprint(r.S) }},
			{"T", func(r R) string { return fmt.Sprint(r.T) }},
			{"paper", func(r R) string { return quoted(r.Paper) }},
			{"here", func(r R) string { return value(r.Here.Loss) }},
			{"exact PMD, same problems", func(r R) string { return value(r.Oracle) }},
			{"paper's ratio", func(r R) string { return quoted(r.Ratio) }},
		},
		joined("ratio of medians", func(r R) results.Estimate { return r.Here.Ratio }),
		joined("ratio of means", func(r R) results.Estimate { return r.Here.Tail.RatioOfMeans }),
		[]column[R]{{"worst excess", func(r R) string { return number(r.Here.Tail.Worst) }}},
	)...)
	return t
}

// joined is a column of an estimate with its interval.
func joined[R any](name string, of func(R) results.Estimate) []column[R] {
	return []column[R]{{name, func(r R) string {
		e := of(r)
		if e.Runs == 0 {
			return NotRun
		}
		return number(e.Value) + " " + interval(e.Lo, e.Hi)
	}}}
}

func benchmarkKey(quantity string, states, t int) *results.Number {
	return results.Paper(results.Key{Block: experiment.Benchmark, Quantity: quantity, S: states, T: t})
}

// summaryExcerpt is the README's table.
func summaryExcerpt(s *source) (Table, error) {
	list := []controller{{Label: "PolicyAttention", S: 4, T: 20, Ratio: results.Paper(results.Key{Block: experiment.Confirmation, Quantity: "median ratio", S: 4, T: 20})}}
	list = append(list, controller{Label: "PolicyAttention", S: 4, T: 40})
	for _, states := range []int{8, 16} {
		for _, t := range horizons {
			list = append(list, controller{Label: "PolicyAttention", S: states, T: t, Paper: benchmarkKey("policyattention", states, t), Ratio: benchmarkKey("policyattention / exact-pmd", states, t)})
		}
	}
	list = append(list,
		controller{Label: "with a learned critic", S: 4, T: 20, Ratio: results.Paper(results.Key{Block: experiment.Confirmation, Quantity: "learned critic ratio", S: 4, T: 20})},
		controller{Label: "with a learned critic", S: 8, T: 20, Paper: benchmarkKey("policyattention-learned-critic", 8, 20)})
	list, err := s.controllers(list, func(c controller) results.Selection {
		method := experiment.PolicyAttention
		if c.Label != "PolicyAttention" {
			method = experiment.LearnedCritic
		}
		block := experiment.Benchmark
		if c.S == 4 {
			block = experiment.Confirmation
		}
		return selection(block, method, c.S)
	})
	return besidePaper(list), err
}

// lossesExcerpt has every learned actor at the paper's sizes, and further identities.
func lossesExcerpt(s *source) (Table, error) {
	var list []controller
	selections := map[string]results.Selection{}
	add := func(label string, x results.Selection, key string) {
		selections[label] = x
		for _, t := range horizons {
			list = append(list, controller{Label: label, S: x.S, T: t, Paper: benchmarkKey(key, x.S, t), Ratio: benchmarkKey(key+" / exact-pmd", x.S, t)})
		}
	}
	for _, states := range []int{8, 16} {
		at := fmt.Sprintf(" (S = %d)", states)
		add("PolicyAttention"+at, selection(experiment.Benchmark, experiment.PolicyAttention, states), "policyattention")
		add("the same, five further identities"+at, selection(experiment.Replication, experiment.PolicyAttention, states), "policyattention")
		add("PMD-target"+at, selection(experiment.Benchmark, experiment.PMDTarget, states), "pmd-target")
		if states == 8 {
			add("with a learned critic"+at, selection(experiment.Benchmark, experiment.LearnedCritic, states), "policyattention-learned-critic")
		}
	}
	list, err := s.controllers(list, func(c controller) results.Selection { return selections[c.Label] })
	for i := range list {
		list[i].Label, _, _ = strings.Cut(list[i].Label, " (S")
	}
	return besidePaper(list), err
}

// sampledExcerpt has the sampled methods of the common harness.
func sampledExcerpt(s *source) (Table, error) {
	var t Table
	rows, err := s.Benchmark()
	rows = slices.DeleteFunc(rows, func(r results.BenchmarkRow) bool { return !r.Sampled || r.Loss.Runs == 0 })
	type R = results.BenchmarkRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) string { return r.Series.String() }},
			{"S", func(r R) string { return fmt.Sprint(r.S) }},
			{"T", func(r R) string { return fmt.Sprint(r.T) }},
			{"paper", func(r R) string { return quoted(r.Loss.Paper) }},
		},
		joined("here", func(r R) results.Estimate { return r.Loss }),
		[]column[R]{{"runs", func(r R) string { return ofRuns(r.Loss) }}},
	)...)
	return t, err
}

// tailsExcerpt has the tails in fewer columns.
func tailsExcerpt(s *source) (Table, error) {
	return whole(tailsTable, "method", "S", "T", "ratio of medians", "excess over oracle: mean", "95 %", "99 %", "worst", "share behind by .05", "ratio of means", "95% interval of that", "run with the worst tail")(s)
}

// Fill returns a document with its tables as the artifacts of a store give them. It
// returns an error if a marker is not closed or names no table.
func Fill(store *experiment.Store, document string) (string, error) {
	return newSource(store).fill(document)
}

func (s *source) fill(document string) (string, error) {
	var b strings.Builder
	for rest := document; ; {
		before, after, found := strings.Cut(rest, opening)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, marked := strings.Cut(after, " -->\n")
		_, after, closed := strings.Cut(after, closing)
		build := excerpts[name]
		if !marked || !closed || build == nil {
			return "", fmt.Errorf("report: document: marker %q is not closed or names no table, want one of %q", name, slices.Sorted(maps.Keys(excerpts)))
		}
		t, err := build(s)
		if err != nil {
			return "", fmt.Errorf("report: document: table %s: %w", name, err)
		}
		b.WriteString(opening + name + " -->\n")
		t.lines(&b)
		b.WriteString(closing)
		rest = after
	}
}

// lines writes the table's columns and rows without alignment.
func (t Table) lines(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(t.Columns, " | "), strings.Repeat("|-", len(t.Columns)))
	for _, row := range t.Rows {
		for _, cell := range row {
			fmt.Fprintf(b, "| %s ", escape(cell))
		}
		b.WriteString("|\n")
	}
}

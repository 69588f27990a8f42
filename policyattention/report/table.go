// Package report turns artifacts into tables and figures with the paper's
// numbers beside ours. What has not been run says so and never stops the rest.
package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/artifact"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// Table is a table of values, which [Cell.Text] writes when it is shown.
type Table struct {
	Name    string
	Title   string
	Columns []string
	Rows    [][]Cell
	Notes   []string
	// Values are the rows as package results gives them, for those who want numbers.
	Values any `json:",omitempty"`
	// Evidence holds the estimates of the table's intervals as they are, for
	// those who want to make them again.
	Evidence []Evidence `json:",omitempty"`
	// Results are all results of the store that the table was made from, by folder,
	// with the seal of each one's manifest. Only the table of claims has them.
	Results map[string]string `json:",omitempty"`
	// Preset is the preset of the results, which the last note says too.
	Preset  string `json:"-"`
	summary string // stands above the table
	grouped bool   // the first column is the heading of a section
}

// NotRun stands where an artifact is missing.
const NotRun = "not yet run"

// column is a column of a table of rows R; nil is an empty entry.
type column[R any] struct {
	name string
	cell func(R) any
}

// fill appends columns and rows.
func fill[R any](t *Table, rows []R, columns ...column[R]) {
	t.Values = rows
	for _, c := range columns {
		t.Columns = append(t.Columns, c.name)
	}
	for _, r := range rows {
		var row []Cell
		for _, c := range columns {
			row = append(row, tables.CellOf(c.cell(r)))
		}
		t.Rows = append(t.Rows, row)
	}
}

// when returns a value that is there, and nothing if it is not.
func when(there bool, value any) any {
	if there {
		return value
	}
	return nil
}

// estimated returns columns of an estimate's value and interval.
func estimated[R any](name, span string, of func(R) results.Estimate) []column[R] {
	return []column[R]{
		{name, func(r R) any { return value(of(r)) }},
		{span, func(r R) any {
			e := of(r)
			return span95(e.Runs > 0, e.Estimate)
		}},
	}
}

// span95 is the interval of an estimate in a column of its own.
func span95(there bool, e stats.Estimate) Interval {
	if !there {
		return Interval{Lo: math.NaN(), Hi: math.NaN()}
	}
	return Interval{Lo: e.Lo, Hi: e.Hi}
}

// value is the value of an estimate, or says that it is missing.
func value(e results.Estimate) any {
	if e.Runs == 0 {
		return NotRun
	}
	return e.Value
}

// ofRuns prints a number of runs of those that are planned.
func ofRuns(e results.Estimate) string { return fmt.Sprintf("%d of %d", e.Runs, e.Planned) }

// shown returns a number of a tail, if there is one.
func shown[R any](of func(R) results.Tail, f func(results.Tail) float64) func(R) any {
	return func(r R) any { return when(of(r).Runs > 0, f(of(r))) }
}

// distribution returns columns of how values are distributed, see [results.Runs.Spread].
func distribution[R any](of func(R) results.Tail) []column[R] {
	return []column[R]{
		{"mean", shown(of, func(t results.Tail) float64 { return t.Mean })},
		{"95 %", shown(of, func(t results.Tail) float64 { return t.P95 })},
		{"99 %", shown(of, func(t results.Tail) float64 { return t.P99 })},
		{"worst", shown(of, func(t results.Tail) float64 { return t.Worst })},
		{"share above", shown(of, func(t results.Tail) float64 { return t.Behind })},
	}
}

// tails returns columns of a tail.
func tails[R any](of func(R) results.Tail) []column[R] {
	columns := distribution(of)
	for i, name := range []string{"excess: mean", "excess: 95 %", "excess: 99 %", "excess: worst", "share behind by .05"} {
		columns[i].name = name
	}
	return append(columns,
		column[R]{"ratio of means", shown(of, func(t results.Tail) float64 { return t.RatioOfMeans.Value })},
		column[R]{"95% interval of that", func(r R) any { return span95(of(r).Runs > 0, of(r).RatioOfMeans.Estimate) }},
	)
}

// tailed returns one column of a tail, for tables that have no room for [tails].
func tailed[R any](name string, of func(R) results.Tail) []column[R] {
	return []column[R]{{name, func(r R) any {
		t := of(r)
		return when(t.Runs > 0, fmt.Sprintf("%.2g, %.2g (%s)", t.P99, t.Worst, percent(t.Behind)))
	}}}
}

// percent prints a share in two digits.
func percent(share float64) string {
	if share >= .095 {
		return fmt.Sprintf("%.0f%%", 100*share)
	}
	return fmt.Sprintf("%.2g%%", 100*share)
}

// tailColumn is the usual name of that column.
const tailColumn = "excess: 99 %, worst (behind)"

// tailNote explains the columns of tails.
const tailNote = "Medians hide the problems on which an actor locks up. Excess: the loss less exact PMD's (or that of the method compared with), problem by problem, over all problems of all runs; behind: the share of problems whose excess is above .05; ratio of means: the median over runs of mean loss over exact PMD's."

// Markdown writes the table as GitHub Markdown: its columns aligned or, where its first
// column groups the rows, a section of unaligned rows a group.
func (t Table) Markdown(w io.Writer) error {
	var b strings.Builder
	if t.grouped {
		t.document(&b)
		_, err := io.WriteString(w, b.String())
		return err
	}
	width := make([]int, len(t.Columns))
	rows := t.text()
	for _, row := range append([][]string{t.Columns}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			fmt.Fprintf(&b, "| %s%s ", escape(cell), strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	fmt.Fprintf(&b, "### %s\n\n", t.Title)
	line(t.Columns)
	for _, n := range width {
		fmt.Fprintf(&b, "|%s", strings.Repeat("-", n+2))
	}
	b.WriteString("|\n")
	for _, row := range rows {
		line(row)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// document writes a section a group of rows, a line a row.
func (t Table) document(b *strings.Builder) {
	fmt.Fprintf(b, "# %s\n\n%s\n", t.Title, t.summary)
	group := ""
	for _, row := range t.text() {
		if row[0] != group {
			group = row[0]
			fmt.Fprintf(b, "\n## %s\n\n| %s |\n%s|\n", group, strings.Join(t.Columns[1:], " | "), strings.Repeat("|-", len(row)-1))
		}
		for _, cell := range row[1:] {
			fmt.Fprintf(b, "| %s ", escape(cell))
		}
		b.WriteString("|\n")
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

func escape(cell string) string { return strings.NewReplacer("|", `\|`, "\n", "<br>").Replace(cell) }

var fragment = template.Must(template.New("table").Parse(`<table>
<caption>{{.Title}}</caption>
<thead><tr>{{range .Columns}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody>
</table>
{{range .Notes}}<p>{{.}}</p>
{{end}}`))

// HTML writes the table as an HTML fragment.
func (t Table) HTML(w io.Writer) error { return fragment.Execute(w, t) }

// CSV writes the columns and rows.
func (t Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.WriteAll(append([][]string{t.Columns}, t.text()...)); err != nil {
		return err
	}
	return c.Error()
}

// builders are the tables in the order of the report.
var builders = []struct {
	name  string
	build func(*source) (Table, error)
}{
	{"oracle", oracleTable},
	{"confirmation", confirmationTable},
	{"shift", shiftTable},
	{"tails", tailsTable},
	{"benchmark", benchmarkTable},
	{"stages", stagesTable},
	{"differences", differencesTable},
	{"qualification", qualificationTable},
	{"tuning", tuningTable},
	{"resources", resourcesTable},
	{"mechanism", mechanismTable},
	{"critics", criticsTable},
	{"frontier", frontierTable},
	{"time-to-quality", timeToQualityTable},
	{"ablation", ablationTable},
	{"prior", priorTable},
	{"first-rounds", firstRoundsTable},
	{"zero-shot", zeroShotTable},
	{"replication", replicationTable},
	{"audit", auditTable},
	{"claims", claimsTable},
	{"decoder", decoderTable},
	{"cost", costTable},
}

// TableNames lists the tables.
func TableNames() []string {
	var names []string
	for _, b := range builders {
		names = append(names, b.name)
	}
	return names
}

// BuildTable returns the table called name from the artifacts of a store.
func BuildTable(store *experiment.Store, name string) (Table, error) {
	return newSource(store).table(name)
}

func (s *source) table(name string) (Table, error) {
	for _, b := range builders {
		if b.name == name {
			t, err := b.build(s)
			if err != nil {
				return Table{}, fmt.Errorf("report: table %s: %w", name, err)
			}
			t.Name = name
			t.Preset = s.Store.Preset.Name
			t.Notes = append(t.Notes, PresetNote(t.Preset))
			return t, nil
		}
	}
	return Table{}, fmt.Errorf("report: no table %q, want one of %q", name, TableNames())
}

// source makes tables and figures of results.
type source struct {
	*results.Source
	any   func() (*trial.Evidence, error) // of the actor for any MDP, nil where there is nothing
	equal func() (*equal.Evidence, error) // of what package equal has measured, nil likewise
}

func newSource(store *experiment.Store) *source {
	return &source{results.New(store), sync.OnceValues(func() (*trial.Evidence, error) {
		e, err := trial.Load(store.Root(), recipe.All())
		if errors.Is(err, artifact.ErrMissing) {
			return nil, nil
		}
		return e, err
	}), sync.OnceValues(func() (*equal.Evidence, error) {
		e, err := equal.Read(equal.Folder(filepath.Dir(store.Root())))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return e, err
	})}
}

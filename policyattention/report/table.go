// Package report turns artifacts into tables and figures with the paper's
// numbers beside ours. What has not been run says so and never stops the rest.
package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// Table is a table of text.
type Table struct {
	Name    string
	Title   string
	Columns []string
	Rows    [][]string
	Notes   []string
	// Evidence holds the estimates of the table's intervals as they are, for
	// those who want to make them again.
	Evidence []Evidence `json:",omitempty"`
	// Results are all results of the store that the table was made from, by folder,
	// with the seal of each one's manifest. Only the table of claims has them.
	Results map[string]string `json:",omitempty"`
	summary string            // stands above the table
}

// Evidence is one estimate with its origin.
type Evidence struct {
	Of        string   `json:"of"`
	Estimator string   `json:"estimator"` // median, ratio, difference or paired difference, see package stats
	Horizon   int      `json:"horizon"`
	X         []string `json:"x"`           // folders of the cells, by run
	Y         []string `json:"y,omitempty"` // compared with, by run
	stats.Estimate
}

// NotRun stands where an artifact is missing.
const NotRun = "not yet run"

// Markdown writes the table as GitHub Markdown, its columns aligned.
func (t Table) Markdown(w io.Writer) error {
	width := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			fmt.Fprintf(&b, "| %s%s ", strings.ReplaceAll(cell, "|", `\|`), strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	fmt.Fprintf(&b, "### %s\n\n", t.Title)
	if t.summary != "" {
		fmt.Fprintf(&b, "%s\n\n", t.summary)
	}
	line(t.Columns)
	for _, n := range width {
		fmt.Fprintf(&b, "|%s", strings.Repeat("-", n+2))
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// HTML writes the table as an HTML fragment.
func (t Table) HTML(w io.Writer) error {
	var b strings.Builder
	if t.summary != "" {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(t.summary))
	}
	fmt.Fprintf(&b, "<table>\n<caption>%s</caption>\n<thead><tr>", html.EscapeString(t.Title))
	for _, c := range t.Columns {
		fmt.Fprintf(&b, "<th scope=\"col\">%s</th>", html.EscapeString(c))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		for _, c := range row {
			fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n")
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes the columns and rows.
func (t Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.WriteAll(append([][]string{t.Columns}, t.Rows...)); err != nil {
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
	{"benchmark", benchmarkTable},
	{"differences", differencesTable},
	{"qualification", qualificationTable},
	{"tuning", tuningTable},
	{"resources", resourcesTable},
	{"mechanism", mechanismTable},
	{"frontier", frontierTable},
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
			t.Notes = append(t.Notes, fmt.Sprintf("Preset %s.", s.store.Preset.Name))
			return t, nil
		}
	}
	return Table{}, fmt.Errorf("report: no table %q, want one of %q", name, TableNames())
}

// source finds results for tables and figures.
type source struct {
	store *experiment.Store
	read  map[experiment.Cell]*experiment.Evaluation // so far, nil for what has not been run
}

func newSource(store *experiment.Store) *source {
	return &source{store, map[experiment.Cell]*experiment.Evaluation{}}
}

// evaluation returns the result of a cell, or nil.
func (s *source) evaluation(cell experiment.Cell) (*experiment.Evaluation, error) {
	if e, ok := s.read[cell]; ok {
		return e, nil
	}
	e, err := s.store.Find(cell)
	if errors.Is(err, experiment.ErrMissing) {
		e, err = nil, nil
	}
	if err == nil {
		s.read[cell] = e
	}
	return e, err
}

// find returns the results of the plan's cells that match, in the plan's order,
// without those that have not been run; planned counts both.
func (s *source) find(match func(experiment.Cell) bool) (found []*experiment.Evaluation, planned int, err error) {
	for _, cell := range s.store.Preset.Plan() {
		if !match(cell) {
			continue
		}
		planned++
		e, err := s.evaluation(cell)
		if err != nil {
			return nil, 0, err
		}
		if e != nil {
			found = append(found, e)
		}
	}
	return found, planned, nil
}

func (s *source) runs(block experiment.Block, method experiment.Method, states int) ([]*experiment.Evaluation, error) {
	found, _, err := s.find(func(c experiment.Cell) bool {
		return c.Block == block && c.Method == method && c.S == states
	})
	return found, err
}

// losses returns the sample [runs][problems] at a horizon.
func losses(runs []*experiment.Evaluation, horizon int) [][]float64 {
	sample := make([][]float64, len(runs))
	for j, e := range runs {
		sample[j] = e.Losses(horizon)
	}
	return sample
}

// against repeats the reference for each run; they share its problems.
func against(reference []*experiment.Evaluation, runs int, horizon int) [][]float64 {
	sample := make([][]float64, runs)
	for j := range sample {
		sample[j] = reference[0].Losses(horizon)
	}
	return sample
}

// runRatios returns the ratio of medians (equation 14) of each run to the reference.
func runRatios(runs []*experiment.Evaluation, reference *experiment.Evaluation, horizon int) []float64 {
	ratios := make([]float64, len(runs))
	for j, r := range runs {
		ratios[j] = stats.RatioOfMedians(r.Losses(horizon), reference.Losses(horizon))
	}
	return ratios
}

// meeting counts the ratios that meet the registered criterion.
func meeting(ratios []float64) int {
	met := 0
	for _, r := range ratios {
		if r <= experiment.Protocol.Margin {
			met++
		}
	}
	return met
}

// sizes lists the numbers of states that the plan has for a block, ascending.
func (s *source) sizes(block experiment.Block) []int {
	var sizes []int
	for _, n := range slices.Sorted(maps.Keys(experiment.Protocol.Sizes)) {
		for _, c := range s.store.Preset.Plan() {
			if c.Block == block && c.S == n {
				sizes = append(sizes, n)
				break
			}
		}
	}
	return sizes
}

// number prints four significant digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

func interval(lo, hi float64) string { return fmt.Sprintf("[%s, %s]", number(lo), number(hi)) }

// extent prints the least and the greatest of values, which must not be empty.
func extent(values []float64) string { return interval(slices.Min(values), slices.Max(values)) }

// quoted prints a number of the paper, or a dash where it has none.
func quoted(block experiment.Block, quantity string, s, t int) string {
	n, ok := paper[key{block, quantity, s, t}]
	switch {
	case !ok:
		return "–"
	case n.Lo < n.Hi:
		return number(n.Value) + " " + interval(n.Lo, n.Hi)
	}
	return number(n.Value)
}

func where(block experiment.Block, quantity string, s, t int) string {
	return paper[key{block, quantity, s, t}].Where
}

func estimated(e stats.Estimate) (value, span string) { return number(e.Value), interval(e.Lo, e.Hi) }

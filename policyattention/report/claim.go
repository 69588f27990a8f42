package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"icrl/policyattention/artifact"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// sentence is a statement of the paper that can be checked.
type sentence struct {
	section string // of the paper
	line    int    // of Table 2, the claim-to-estimand map, from 1; 0: none
	says    string
	note    string // said whatever the verdict
	checks  []check
}

// check is one thing that a sentence is held to: one size, horizon or variant.
type check struct {
	at      string // "S = 8, T = 20"
	variant string // of runs or of a method, where there are several
	number  results.Key
	printed string // the paper's, where number names none
	command string // arguments of the command that makes the evidence
	measure func(*source) (*measured, error)
	judge   judge
	why     string            // why ours differs: tested, or marked as a conjecture
	fitted  string            // what was chosen so that ours agrees
	budget  string            // how its budget differs from the paper's
	of      results.Selection // whose training it waits for where there is nothing to measure yet
	aside   bool              // told beside the others, without a verdict
}

// measured is what the artifacts say to a check; nil stands for nothing yet.
type measured struct {
	results.Estimate         // of runs; Runs 0: see value
	value            float64 // where there is no estimate
	lo, hi           float64 // its range over runs, where lo < hi
	text             string  // in place of a value
	ok               bool    // what the judge stated looks at
	barred           string  // why it is no evidence
	runs, planned    int     // behind it, where there is no estimate
	used             []*experiment.Evaluation
	tail             results.Tail // beside the medians that a text compares
}

// span returns the value, and its interval or range.
func (m *measured) span() (value, lo, hi float64) {
	switch {
	case m.Runs > 0:
		return m.Value, m.Lo, m.Hi
	case m.lo < m.hi:
		return m.value, m.lo, m.hi
	}
	return m.value, m.value, m.value
}

func (m *measured) String() string {
	value, lo, hi := m.span()
	switch {
	case m.text != "":
		return m.text
	case lo < hi:
		return tables.Estimate(value, lo, hi).String()
	}
	return tables.Number(value)
}

// Verdict is what became of a check or a sentence.
type Verdict string

const (
	Differs     Verdict = "differs"      // ours and the paper's do not agree, to the worse or without a better side
	Unresolved  Verdict = "unresolved"   // our interval holds what the paper's excludes, or is too wide to say
	Better      Verdict = "better"       // resolved on the favourable side of the paper's number
	Fitted      Verdict = "fitted"       // ours was chosen so that it agrees
	Holds       Verdict = "holds"        // our interval and the paper's number agree, or the statement is true here
	OtherBudget Verdict = "other budget" // measured at another budget than the paper's
	NoEvidence  Verdict = "no evidence"  // what was measured cannot bear on the sentence
	Missing     Verdict = "not yet run"
)

// verdicts are in the order in which they stand in the document. A sentence takes the
// first that one of its checks has.
var verdicts = []Verdict{Differs, Unresolved, Better, Fitted, Holds, OtherBudget, NoEvidence, Missing}

// judge decides whether what was measured agrees with the paper's number.
type judge struct {
	name string
	of   func(m *measured, n results.Number) (Verdict, string)
	// null is the value that an interval is held against, where the verdict hangs on
	// whether it excludes one.
	null func(n results.Number, value float64) float64
}

// side is the favourable side of a number.
type side int

const (
	neither side = iota
	lower
	higher
)

// wide is the factor between the ends of an interval from which on it agrees with too
// much to confirm a number.
const wide = 2

// compared holds the interval of a ratio or of a loss against the paper's number or
// interval, both ways: they agree, or ours is resolved on one side of the paper's. An
// interval that is wide agrees with no number.
func compared(good side) judge {
	return judge{
		name: map[side]string{neither: "two-sided", lower: "two-sided, lower is better", higher: "two-sided, higher is better"}[good],
		null: nearest,
		of: func(m *measured, n results.Number) (Verdict, string) {
			verdict, why := agreement(m, n, good)
			if _, lo, hi := m.span(); verdict == Holds && m.Runs > 0 && lo > 0 && hi >= wide*lo {
				return Unresolved, fmt.Sprintf("an interval whose ends differ by a factor of %.1f agrees with too much", hi/lo)
			}
			return verdict, why
		}}
}

// agreement holds an interval against the paper's number or interval, both ways.
func agreement(m *measured, n results.Number, good side) (Verdict, string) {
	_, lo, hi := m.span()
	from, to := n.Span()
	switch {
	case lo <= to && from <= hi:
		return Holds, ""
	case hi < from && good == lower || lo > to && good == higher:
		return Better, ""
	case hi < from:
		return Differs, "lower"
	}
	return Differs, "higher"
}

// nearest is the end of the paper's interval that is nearer to a value, or its number.
func nearest(n results.Number, value float64) float64 {
	from, to := n.Span()
	return min(max(value, from), to)
}

// differing holds the interval of a difference against the paper's, and looks at zero too:
// where one interval excludes it and the other does not, the two do not say the same.
func differing(good side) judge {
	null := func(n results.Number, value float64) float64 {
		if from, to := n.Span(); from <= 0 && 0 <= to {
			return 0 // within the paper's interval: whoever excludes that excludes 0
		}
		return nearest(n, value)
	}
	return judge{name: compared(good).name + ", and zero", null: null, of: func(m *measured, n results.Number) (Verdict, string) {
		from, to := n.Span()
		paper, ours := stats.Estimate{Lo: from, Hi: to}.Resolved(0), m.Resolved(0)
		verdict, why := agreement(m, n, good)
		switch {
		case verdict != Holds || paper == ours:
			return verdict, why
		case paper:
			return Unresolved, "our interval holds 0 as well as the paper's number"
		case good == lower && m.Hi < 0:
			return Better, ""
		}
		return Differs, "our interval excludes 0"
	}}
}

// zero judges a difference that the paper calls unresolved.
var zero = judge{name: "zero, two-sided", null: noDifference, of: func(m *measured, _ results.Number) (Verdict, string) {
	if m.Resolved(0) {
		return Differs, "our interval excludes 0"
	}
	return Holds, ""
}}

// above judges an order, by the value that separates the two sides.
func above(x float64) judge {
	return judge{name: fmt.Sprintf("the interval lies above %g", x), null: func(results.Number, float64) float64 { return x }, of: func(m *measured, _ results.Number) (Verdict, string) {
		switch {
		case m.Lo > x:
			return Holds, ""
		case m.Hi < x:
			return Differs, "our interval lies below"
		}
		return Unresolved, fmt.Sprintf("our interval holds %g", x)
	}}
}

func noDifference(results.Number, float64) float64 { return 0 }

// toward judges a number whose best value is known.
func toward(best float64) judge {
	return judge{name: fmt.Sprintf("two-sided, nearer to %g is better", best), of: func(m *measured, n results.Number) (Verdict, string) {
		value, lo, hi := m.span()
		switch {
		case lo <= n.Value && n.Value <= hi:
			return Holds, ""
		case math.Abs(value-best) < math.Abs(n.Value-best):
			return Better, ""
		}
		return Differs, ""
	}}
}

// within judges a ratio by the criterion that the protocol fixes.
var within = judge{name: fmt.Sprintf("at most %v", experiment.PaperProtocol.Margin), of: func(m *measured, _ results.Number) (Verdict, string) {
	if value, _, _ := m.span(); value <= experiment.PaperProtocol.Margin {
		return Holds, ""
	}
	return Differs, ""
}}

// stated judges a statement that is true here or not.
var stated = judge{name: "as stated", of: func(m *measured, _ results.Number) (Verdict, string) {
	if m.ok {
		return Holds, ""
	}
	return Differs, ""
}}

// bars is the judge of what cannot bear on a sentence, for a reason that is known
// before it is measured.
func bars(why string) judge {
	return judge{name: "–", of: func(*measured, results.Number) (Verdict, string) { return NoEvidence, why }}
}

// verdict says what became of a check, and why.
func (c check) verdict(s *source, m *measured) (v Verdict, why string) {
	if m == nil {
		return Missing, ""
	}
	var n results.Number
	if p := results.Paper(c.number); p != nil {
		n = *p
	}
	switch {
	case m.barred != "":
		return NoEvidence, m.barred
	case c.budget != "":
		return OtherBudget, c.budget
	}
	v, why = c.judge.of(m, n)
	switch {
	case c.fitted != "" && (v == Holds || v == Better):
		return Fitted, c.fitted
	case v == Differs && s.Store.Preset.Name != "paper":
		return v, "preset " + s.Store.Preset.Name
	case v == Differs && c.why != "":
		why = c.why
	}
	return v, why
}

// test returns the test that a check's verdict hangs on, nil if it hangs on no test.
func (c check) test(m *measured) *Test {
	if m == nil || m.Runs == 0 || m.barred != "" || c.budget != "" || c.judge.null == nil {
		return nil
	}
	var n results.Number
	if p := results.Paper(c.number); p != nil {
		n = *p
	}
	x := c.judge.null(n, m.Value)
	return &Test{Against: x, P: m.P(x)}
}

// Outcome is a check with its outcome, as claims.json holds it.
type Outcome struct {
	At       string  `json:"at,omitempty"`
	Variant  string  `json:"variant,omitempty"`
	Paper    string  `json:"paper"`
	Here     string  `json:"here"`
	Tail     string  `json:"tail,omitempty"` // of what a median hides, see tailOf
	Judged   string  `json:"judged"`
	Verdict  Verdict `json:"verdict,omitempty"` // none of what is told beside the others
	Why      string  `json:"why,omitempty"`
	Test     *Test   `json:"test,omitempty"`
	Command  string  `json:"command"`
	Seconds  float64 `json:"cpu_seconds,omitempty"` // of all runs behind it, shared ones too
	Machines []int   `json:"machines,omitempty"`    // indices of the document's
}

// of names the check of a sentence.
func (o Outcome) of(says string) string {
	return strings.Join(slices.DeleteFunc([]string{says, o.At, o.Variant}, func(t string) bool { return t == "" }), "; ")
}

// Test is the test behind a verdict that hangs on whether an interval excludes a value.
type Test struct {
	Against float64 `json:"against"` // the value
	P       float64 `json:"p"`       // two-sided, of the percentile bootstrap
	Holm    float64 `json:"holm"`    // adjusted for the number of tests of the document, see [stats.Holm]
	FDR     float64 `json:"fdr"`     // see [stats.BenjaminiHochberg]
}

// significance is the level of the intervals.
var significance = 1 - stats.Standard.Level

// byChance reports whether a value is excluded that would not be if the number of tests were
// taken into account.
func (t *Test) byChance() bool { return t != nil && t.P < significance && t.Holm >= significance }

// Multiple counts the tests of the document.
type Multiple struct {
	Tests    int `json:"tests"`
	Resolved int `json:"resolved"` // p below .05
	Holm     int `json:"holm"`     // after adjustment
	FDR      int `json:"fdr"`
}

// adjust adjusts all tests for their number.
func (a *Claims) adjust() {
	var tests []*Test
	var p []float64
	for _, c := range a.Claims {
		for _, k := range c.Checks {
			if k.Test != nil {
				tests, p = append(tests, k.Test), append(p, k.Test.P)
			}
		}
	}
	holm, fdr := stats.Holm(p), stats.BenjaminiHochberg(p)
	a.Multiple.Tests = len(tests)
	for i, t := range tests {
		t.Holm, t.FDR = holm[i], fdr[i]
		for count, q := range map[*int]float64{&a.Multiple.Resolved: t.P, &a.Multiple.Holm: t.Holm, &a.Multiple.FDR: t.FDR} {
			if q < significance {
				*count++
			}
		}
	}
}

// Claim is a sentence with its checks.
type Claim struct {
	Section string    `json:"section"`
	Line    int       `json:"line,omitempty"` // of Table 2
	Says    string    `json:"says"`
	Verdict Verdict   `json:"verdict"`
	Note    string    `json:"note,omitempty"`
	Checks  []Outcome `json:"checks"`
}

// Claims is the document of claims as data.
type Claims struct {
	Count    map[Verdict]int `json:"count"` // of sentences
	Checks   map[Verdict]int `json:"count_of_checks"`
	Multiple Multiple        `json:"multiple_comparisons"`
	Machines []string        `json:"machines"`
	Claims   []Claim         `json:"claims"`
}

func claimsTable(s *source) (Table, error) {
	t := Table{Title: "Claims", grouped: true, Columns: []string{"section", "claim", "paper", "here", "verdict"}}
	all := Claims{Count: map[Verdict]int{}, Checks: map[Verdict]int{}}
	for _, x := range sentences() {
		c := Claim{Section: x.section, Line: x.line, Says: x.says, Note: x.note, Verdict: Missing}
		for _, k := range x.checks {
			done, evidence, err := k.run(s, &all.Machines)
			if err != nil {
				return t, fmt.Errorf("%s, %s, %s: %w", x.section, x.says, k.at, err)
			}
			if evidence != nil {
				evidence.Of = done.of(x.says)
				t.Evidence = append(t.Evidence, *evidence)
			}
			c.Checks = append(c.Checks, done)
			if k.aside {
				continue
			}
			if slices.Index(verdicts, done.Verdict) < slices.Index(verdicts, c.Verdict) {
				c.Verdict = done.Verdict
			}
			all.Checks[done.Verdict]++
		}
		all.Count[c.Verdict]++
		all.Claims = append(all.Claims, c)
	}
	all.adjust()
	order := func(c Claim) int { return slices.Index(verdicts, c.Verdict) }
	slices.SortStableFunc(all.Claims, func(a, b Claim) int { return order(a) - order(b) })
	for _, section := range sections {
		for _, c := range all.Claims {
			if c.Section == section {
				t.Rows = append(t.Rows, c.row())
			}
		}
	}
	t.Values = all
	var err error
	t.Results, err = s.results()
	t.summary = all.summary()
	return t, err
}

// run measures a check, and returns the estimate that others can make again, if there
// is one.
func (c check) run(s *source, machines *[]string) (done Outcome, evidence *Evidence, err error) {
	m, err := c.measure(s)
	if err != nil {
		return done, nil, err
	}
	done = Outcome{At: c.at, Variant: c.variant, Paper: c.printed, Judged: c.judge.name, Command: c.command}
	if block, ok := strings.CutPrefix(c.command, "evaluate "); ok && c.of.Method != "" { // until there is evidence
		done.Command = "evaluate " + experiment.Cell{Block: experiment.Block(block), Method: c.of.Method, Recipe: c.of.Recipe, S: c.of.S}.Name()
	}
	if done.Paper == "" {
		done.Paper = quoted(results.Paper(c.number)).String()
	}
	if !c.aside {
		done.Verdict, done.Why = c.verdict(s, m)
		done.Test = c.test(m)
	}
	if m == nil {
		done.Why, err = s.waiting(c)
		return done, nil, err
	}
	done.Here = m.String()
	t, err := s.tailOf(m)
	if err != nil {
		return done, nil, err
	}
	if t.Runs > 0 {
		done.Tail = braces(t)
	}
	used := m.used
	if m.Runs > 0 {
		used = slices.Concat(m.Used[0], m.Used[1])
		m.runs, m.planned = m.Runs, m.Planned
		evidence = &Evidence{Estimator: m.Estimator, Horizon: m.T, X: s.folders(m.Used[0]), Y: s.folders(m.Used[1]), Estimate: stats.Estimate{Value: m.Value, Lo: m.Lo, Hi: m.Hi}}
	}
	if m.runs < m.planned {
		done.Here += fmt.Sprintf(" (%d of %d runs)", m.runs, m.planned)
	}
	if len(used) > 0 && strings.HasPrefix(c.command, "evaluate") {
		done.Command = evaluating(used)
	}
	done.Seconds, done.Machines, err = s.cost(used, machines)
	return done, evidence, err
}

// waiting says what a check without evidence waits for.
func (s *source) waiting(c check) (string, error) {
	p, ok, err := s.Progress(c.of)
	if err != nil || !ok {
		return "", err
	}
	return fmt.Sprintf("S = %d waits for training: %v", c.of.S, p), nil
}

// tailOf returns the tail that a measured median hides, if there is one: of the losses over
// those that it is compared with, or over exact PMD's.
func (s *source) tailOf(m *measured) (t results.Tail, err error) {
	against := results.Runs{Found: m.Used[1]}
	switch m.Estimator {
	case results.Median:
		if m.X.Method == experiment.ExactPMD {
			return t, nil
		}
		if against, err = s.Oracle(m.X.S); err != nil {
			return t, err
		}
	case results.Ratio, results.Difference, results.PairedDifference:
	default:
		return m.tail, nil
	}
	return s.Runs(m.X, m.Used[0], m.Planned).Tail(against, m.T)
}

// braces prints a tail in short.
func braces(t results.Tail) string {
	return fmt.Sprintf("{%.2g, %.2g, %s}", t.P99, t.Worst, percent(t.Behind))
}

// row prints a claim: section, what it says, the paper's numbers, ours, the verdict.
func (c Claim) row() []Cell {
	says := c.Says
	if c.Line > 0 {
		says += fmt.Sprintf(" (Table 2, line %d)", c.Line)
	}
	var papers, ours, why []string
	count, judged := map[Verdict]int{}, 0
	one := !slices.ContainsFunc(c.Checks, func(x Outcome) bool { return x.Verdict != "" && x.Paper != c.Checks[0].Paper })
	for i, k := range c.Checks {
		first := i == 0 || c.Checks[i-1].At != k.At
		here := cmp.Or(k.Here, "–")
		if k.Test.byChance() {
			here += " †"
		}
		if k.Tail != "" {
			here += " " + k.Tail
		}
		if k.Variant != "" {
			here = k.Variant + " " + here
		}
		if k.Verdict != "" && k.Verdict != c.Verdict {
			here += " (" + string(k.Verdict) + ")"
		}
		switch {
		case !first:
			ours[len(ours)-1] += "; " + here
		case k.At != "":
			ours = append(ours, k.At+": "+here)
		default:
			ours = append(ours, here)
		}
		if k.Why != "" && !slices.Contains(why, k.Why) {
			why = append(why, k.Why)
		}
		if k.Verdict == "" {
			continue
		}
		if first && !one {
			papers = append(papers, k.At+": "+k.Paper)
		}
		count[k.Verdict]++
		judged++
	}
	if one {
		papers = []string{c.Checks[0].Paper}
	}
	verdict := string(c.Verdict)
	if len(count) > 1 {
		verdict += fmt.Sprintf(" in %d of %d", count[c.Verdict], judged)
	}
	if c.Note != "" {
		why = append(why, c.Note)
	}
	if len(why) > 0 {
		verdict += ": " + strings.Join(why, "; ")
	}
	return tables.Cells(c.Section, says, strings.Join(papers, "\n"), strings.Join(ours, "\n"), verdict)
}

// summary counts the sentences by verdict, what differs first.
func (a Claims) summary() string {
	var counts []string
	checks := 0
	for _, v := range verdicts {
		counts = append(counts, fmt.Sprintf("| %s | %d | %d |", v, a.Count[v], a.Checks[v]))
		checks += a.Checks[v]
	}
	m := a.Multiple
	return fmt.Sprintf(`The paper's sentences that can be checked, by its sections, beside what the artifacts in this repository
give; in each section what differs comes first. There are %d sentences with %d checks: a sentence that is checked at two
sizes and in three variants counts as one sentence with six checks. If the checks of a sentence have different verdicts,
the sentence takes the one that is highest in this list.

| verdict | sentences | checks |
|-|-|-|
%s

- **differs**: our interval excludes the paper's number or interval, on the worse side or where neither side is
  better, or the statement is not true here.
- **unresolved**: our interval contains a value that the paper's excludes, or its ends differ by a factor of %d
  or more, so that it would agree with almost anything.
- **better**: our interval excludes the paper's number on the favourable side, and the two are like for like.
- **holds**: they agree, or the statement is true here.
- **fitted**: they agree because something was chosen so that they do. γ, A, the distribution of problems, π₀ and
  Q₀ of the harness were found from the paper's four medians of exact PMD.
- **other budget**: measured, at another budget than the paper's. **no evidence**: what was measured cannot bear
  on it.

Brackets hold 95 %% intervals of the hierarchical bootstrap, runs first and shared MDPs second, 10,000 replicates,
or, where single runs were not compared by a bootstrap, the range over runs. Intervals of three runs, at S = 8 and
16, cover less than 95 %% (80 to 89 %% in a simulation); where five further identities
(training runs that differ only in their seeds) exist, they stand beside the three. A row without a verdict is there for comparison. A reason that nothing here tests is called a conjecture.

Braces after medians of a learned method hold the **tail** that medians hide, over all problems of all runs: the 99th
percentile and the worst value of the excess, and the share of problems whose excess is above .05. The excess is the
loss minus exact PMD's on the same problem. In a row about a difference or a ratio, it is the first loss minus the one
that it is compared with. All runs meet the same problems, so their worst ones are not independent, and tails have no
intervals.

**Multiple comparisons.** %d verdicts depend on whether such an interval excludes a value. If all of these values were
right, about %.0f would still be excluded by chance. In fact %d are excluded. Of these, %d remain after the p-values are
adjusted for their number by Holm's method, which allows for any dependence, and %d after Benjamini and Hochberg's.
A † marks a value that is excluded before Holm's adjustment but not after it: take its verdict as unresolved. The
p-values are the bootstrap's, so those of three runs are too small, as their intervals are too narrow. Where the
paper gives no interval its number is taken as exact; with its own sampling error fewer would differ.

Commands, processor time, machines and p-values are in [artifacts/paper/claims.json](artifacts/paper/claims.json).
`+"`make claims`"+` writes both files.`, len(a.Claims), checks, strings.Join(counts, "\n"), wide,
		m.Tests, significance*float64(m.Tests), m.Resolved, m.Holm, m.FDR)
}

// Evidence is one estimate with its origin, for those who want to make it again.
type Evidence struct {
	Of        string            `json:"of"`
	Estimator results.Estimator `json:"estimator"` // see package stats
	Horizon   int               `json:"horizon"`
	X         []string          `json:"x"`           // folders of the cells, by run
	Y         []string          `json:"y,omitempty"` // compared with, by run
	stats.Estimate
}

// evaluating returns the command that makes evaluations again: by how their cells'
// names begin, or by blocks where that would be many.
func evaluating(used []*experiment.Evaluation) string {
	names, blocks := map[string]bool{}, map[string]bool{}
	for _, e := range used {
		all := e.Cell // identities
		all.Seed, all.Step = 0, 0
		names[all.Name()], blocks[string(all.Block)] = true, true
	}
	if len(names) > 4 {
		names = blocks
	}
	return "evaluate " + strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// results lists all training runs and evaluations of the store with their seals.
func (s *source) results() (map[string]string, error) {
	seals := map[string]string{}
	runs, err := s.Where(func(experiment.Cell) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, e := range runs.Found {
		seals[s.folder(e.Folder)] = e.Manifest.Seal
	}
	configs, err := s.Store.Preset.Trainings()
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		run, err := s.Training(c)
		if err != nil {
			return nil, err
		}
		if run != nil {
			seals[s.folder(run.Folder)] = run.Manifest.Seal
		}
	}
	return seals, nil
}

// cost returns the processor time of evaluations and of the training runs they need,
// and the machines that they were made on, as indices of a list that it adds to.
func (s *source) cost(used []*experiment.Evaluation, machines *[]string) (seconds float64, on []int, err error) {
	seen := map[string]bool{}
	add := func(m *artifact.Manifest) {
		if seen[m.Hash] {
			return
		}
		seen[m.Hash] = true
		seconds += m.Cost.CPUSeconds
		p := m.Produced
		name := fmt.Sprintf("%s, %d cores, %s", p.CPU, p.Cores, p.Go)
		if p.Backend != nil {
			name += ", " + p.Backend.Name
		}
		at := slices.Index(*machines, name)
		if at < 0 {
			at = len(*machines)
			*machines = append(*machines, name)
		}
		if !slices.Contains(on, at) {
			on = append(on, at)
		}
	}
	for _, e := range used {
		for _, c := range e.Config.Trainings() {
			run, err := s.Store.FindTraining(c)
			if errors.Is(err, artifact.ErrMissing) {
				continue // its evaluation is there all the same
			}
			if err != nil {
				return 0, nil, err
			}
			add(run.Manifest)
		}
		add(e.Manifest)
	}
	return math.Round(10*seconds) / 10, on, nil
}

// folders lists the cells' folders below the preset's.
func (s *source) folders(runs []*experiment.Evaluation) []string {
	var names []string
	for _, e := range runs {
		names = append(names, s.folder(e.Folder))
	}
	return names
}

// folder names a folder below the preset's.
func (s *source) folder(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, s.Store.Root()+string(filepath.Separator)))
}

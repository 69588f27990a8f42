package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// claim is a sentence of the paper that carries a number.
type claim struct {
	section string // of the paper
	line    int    // of Table 2, the claim-to-estimand map, from 1; 0: none
	says    string // the sentence in our words
	number  key    // its number, where the map paper has it
	printed string // otherwise, as it is printed
	make    string // arguments of the command that makes the evidence
	measure func(*source) (*measured, error)
	judge   *judge // nil: descriptive, nothing to hold or to differ
	why     string // why ours differs, where it does
	fitted  string // what was chosen so that ours agrees
}

// measured is what the artifacts say to a claim; nil stands for nothing yet.
type measured struct {
	value         stats.Estimate
	interval      bool // value has one, by evidence
	evidence      Evidence
	text          string // in place of a value
	ok            bool   // what the judge holds looks at
	barred        string // why it is no evidence on the claim
	runs, planned int    // learned runs behind it
	used          []*experiment.Evaluation
}

// judge decides whether what was measured supports the paper's number. A loss
// or an error below the paper's supports what the paper says with it.
type judge struct {
	name string
	ok   func(m *measured, paper Number) bool
	open func(m *measured, paper Number) bool   // too wide an interval to say; nil: never
	wide string                                 // how that is put
	why  func(m *measured, paper Number) string // before the claim's own reason; nil: none
}

var (
	holds  = &judge{name: "as stated", ok: func(m *measured, _ Number) bool { return m.ok }}
	atMost = &judge{name: "at most the paper's", ok: func(m *measured, n Number) bool { return m.value.Value <= n.Value }}
	agrees = &judge{name: "the intervals overlap", ok: overlap}
	// A wide interval does not make a number above the paper's agree with it.
	notAbove = &judge{
		name: "at most the paper's, or its upper end",
		ok: func(m *measured, n Number) bool {
			_, hi := n.Span()
			return m.value.Value <= hi
		},
		open: overlap,
		wide: "ours is higher, but its interval holds the paper's",
	}
	unresolved = &judge{name: "the interval holds 0", ok: func(m *measured, _ Number) bool { return !m.value.Resolved(0) }}
	below      = &judge{name: "the interval lies below 0", ok: func(m *measured, _ Number) bool { return m.value.Hi < 0 }}
	above      = &judge{name: "the interval lies above 0", ok: func(m *measured, _ Number) bool { return m.value.Lo > 0 }}
	// An interval of ours that holds 0 leaves open what the paper resolves.
	costs = &judge{
		name: "above 0, and the intervals overlap",
		ok:   func(m *measured, n Number) bool { return above.ok(m, n) && overlap(m, n) },
		open: func(m *measured, n Number) bool { return !m.value.Resolved(0) && overlap(m, n) },
		wide: "our interval holds 0 as well as the paper's",
		why: func(m *measured, n Number) string {
			if lo, _ := n.Span(); 0 < m.value.Lo && m.value.Hi < lo {
				return "a cost, but a smaller one"
			}
			return ""
		},
	}
	// Neither a smaller lead than the paper's supports its number nor a larger one: a
	// worse copy of a baseline is no merit.
	leads = &judge{
		name: "below 0, and the intervals overlap",
		ok:   func(m *measured, n Number) bool { return below.ok(m, n) && overlap(m, n) },
		why: func(m *measured, n Number) string {
			if lo, _ := n.Span(); m.value.Hi < lo {
				return "a larger lead: this copy of the baseline is weaker than the paper's"
			}
			return ""
		},
	}
	leadsTimes = &judge{
		name: "above 1, and the interval holds the paper's",
		ok:   func(m *measured, n Number) bool { return m.value.Lo > 1 && overlap(m, n) },
		why: func(m *measured, n Number) string {
			if _, hi := n.Span(); m.value.Lo > hi {
				return "a larger lead: PolicyAttention's loss is lower here than the paper's; how the baseline compares, its own row says"
			}
			return ""
		},
	}
)

func overlap(m *measured, n Number) bool {
	lo, hi := n.Span()
	return m.value.Lo <= hi && lo <= m.value.Hi
}

// The kinds of verdict.
const (
	holding      = "holds"
	differing    = "differs"
	undecided    = "unresolved"
	fitted       = "fitted"
	inadmissible = "no evidence"
	descriptive  = "descriptive"
	unrepeated   = "not repeated"
)

// verdict says what became of a claim: its kind, and why or how far.
func (c claim) verdict(s *source, m *measured) (kind, text string) {
	why := c.why
	switch {
	case c.measure == nil:
		return unrepeated, unrepeated + ": " + c.why
	case m == nil:
		return NotRun, NotRun
	case m.barred != "":
		kind, why = inadmissible, m.barred
	case c.judge == nil:
		kind = descriptive
	case c.fitted != "" && c.judge.ok(m, c.number.printed()):
		kind, why = fitted, c.fitted
	case c.judge.ok(m, c.number.printed()):
		kind, why = holding, ""
	case c.judge.open != nil && c.judge.open(m, c.number.printed()):
		kind, why = undecided, c.judge.wide
	default:
		kind = differing
		if s.Store.Preset.Name != "paper" {
			why = "preset " + s.Store.Preset.Name
		} else if c.judge.why != nil {
			if reason := c.judge.why(m, c.number.printed()); reason != "" {
				why = reason
			}
		}
	}
	text = kind
	if why != "" {
		text += ": " + why
	}
	if m.runs < m.planned {
		text += fmt.Sprintf(" (%d of %d runs so far)", m.runs, m.planned)
	}
	return kind, text
}

func claimsTable(s *source) (Table, error) {
	t := Table{
		Title: "The paper's numbers, one by one",
		Columns: []string{
			"in the paper", "what it says", "paper", "here", "95% interval", "judged by", "verdict", "command", "CPU time", "on",
		},
	}
	var machines []string
	count := map[string]int{}
	for _, c := range claims() {
		var m *measured
		if c.measure != nil {
			var err error
			if m, err = c.measure(s); err != nil {
				return t, fmt.Errorf("%s, %s: %w", c.section, c.says, err)
			}
		}
		kind, verdict := c.verdict(s, m)
		count[kind]++
		where := c.section
		if c.line > 0 {
			where += fmt.Sprintf(" (Table 2, line %d)", c.line)
		}
		row := []string{where, c.says, c.printed, "", "", "", verdict, c.make, "", ""}
		if c.printed == "" {
			row[2] = quoted(c.number.number())
		}
		if c.judge != nil {
			row[5] = c.judge.name
		}
		if m != nil {
			row[3] = m.text
			if m.text == "" {
				row[3] = number(m.value.Value)
			}
			if m.interval {
				row[4] = interval(m.value.Lo, m.value.Hi)
				m.evidence.Of, m.evidence.Estimate = c.says, m.value
				t.Evidence = append(t.Evidence, m.evidence)
			}
			if strings.HasPrefix(c.make, "evaluate") && len(m.used) > 0 {
				row[7] = evaluating(m.used)
			}
			spent, on, err := s.cost(m.used)
			if err != nil {
				return t, err
			}
			row[8] = spent
			var labels []string
			for _, machine := range on {
				at := slices.Index(machines, machine)
				if at < 0 {
					at = len(machines)
					machines = append(machines, machine)
				}
				labels = append(labels, string(rune('A'+at)))
			}
			row[9] = strings.Join(labels, ", ")
		}
		t.Rows = append(t.Rows, row)
	}
	var err error
	if t.Results, err = s.results(); err != nil {
		return t, err
	}
	t.summary = fmt.Sprintf("%d claims. Hold: %d. Differ: %d. Unresolved: %d. Fitted, ours having been chosen so that it agrees: %d. No evidence, since a baseline failed its qualification: %d. Descriptive, with nothing to hold: %d. Not yet run: %d. Not repeated: %d.",
		len(t.Rows), count[holding], count[differing], count[undecided], count[fitted], count[inadmissible], count[descriptive], count[NotRun], count[unrepeated])
	t.Notes = []string{
		"Commands are arguments of `go run ./policyattention/cmd/policyattention --preset paper`; evaluating prints what is stored and trains what is missing, with `--artifacts NEW` all of it; cells whose training would take a core more than a day it leaves out unless they are named, as `plan` lists them. The time is the processor time of all runs behind the number, shared ones counted in each row; none where the number needs no artifact and is computed with this table.",
		"Intervals: hierarchical bootstrap, runs first and shared MDPs second, 10,000 replicates. A row says how its verdict was reached: a loss or an error below the paper's supports what the paper says with it. Table 2 is the paper's map from claims to estimands; every one of its seven lines is named by the rows that are evidence on it.",
	}
	for i, machine := range machines {
		t.Notes = append(t.Notes, fmt.Sprintf("%c: %s.", 'A'+i, machine))
	}
	return t, nil
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
	add := func(folder string, m *experiment.Manifest) {
		seals[s.folder(folder)] = m.Seal
	}
	evaluations, _, err := s.find(func(experiment.Cell) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, e := range evaluations {
		add(e.Folder, e.Manifest)
	}
	configs, err := s.Store.Preset.Trainings()
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		run, err := s.Store.FindTraining(c)
		if errors.Is(err, experiment.ErrMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		add(run.Folder, run.Manifest)
	}
	return seals, nil
}

// cost returns the processor time of evaluations and of the training runs they
// need, and the machines that they were made on.
func (s *source) cost(used []*experiment.Evaluation) (spent string, machines []string, err error) {
	seconds := 0.0
	seen := map[string]bool{}
	add := func(m *experiment.Manifest) {
		if seen[m.Hash] {
			return
		}
		seen[m.Hash] = true
		seconds += m.Cost.CPUSeconds
		p := m.Produced
		on := fmt.Sprintf("%s, %d cores, %s", p.CPU, p.Cores, p.Go)
		if p.Backend != nil {
			on += ", " + p.Backend.Name
		}
		if !slices.Contains(machines, on) {
			machines = append(machines, on)
		}
	}
	for _, e := range used {
		for _, c := range e.Config.Trainings() {
			run, err := s.Store.FindTraining(c)
			if errors.Is(err, experiment.ErrMissing) {
				continue // its evaluation is there all the same
			}
			if err != nil {
				return "", nil, err
			}
			add(run.Manifest)
		}
		add(e.Manifest)
	}
	if len(used) == 0 {
		return "", nil, nil
	}
	return duration(seconds), machines, nil
}

// duration prints seconds, minutes or hours.
func duration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", seconds)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", seconds)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// The measures that claims share. Each returns nil where an artifact is missing.

// estimator is a comparison of two samples, with its name.
type estimator struct {
	name string
	f    func(x, y [][]float64) (stats.Estimate, error)
}

var (
	ratioOf      = estimator{"ratio", stats.Standard.Ratio}
	differenceOf = estimator{"difference", stats.Standard.Difference}
	pairedOf     = estimator{"paired difference", stats.Standard.PairedDifference}
)

// estimate compares runs with others, which are one for all or one for each, or
// takes the median where there are no others.
func (s *source) estimate(f estimator, horizon int, x, y []*experiment.Evaluation, planned int) (*measured, error) {
	m := &measured{interval: true, runs: len(x), planned: planned, used: slices.Concat(x, y)}
	m.evidence = Evidence{Estimator: f.name, Horizon: horizon, X: s.folders(x), Y: s.folders(y)}
	var err error
	switch {
	case len(y) == 0:
		m.value, err = stats.Standard.Median(losses(x, horizon))
	case len(y) < len(x):
		m.evidence.Y = slices.Repeat(m.evidence.Y, len(x))
		m.value, err = f.f(losses(x, horizon), against(y, len(x), horizon))
	default:
		m.value, err = f.f(losses(x, horizon), losses(y, horizon))
	}
	return m, err
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

var medianOf = estimator{name: "median"}

// sample selects the runs of a block, method and size, and of a recipe where
// the method has several there.
type sample struct {
	block  experiment.Block
	method experiment.Method
	states int
	recipe string
}

func (x sample) find(s *source) ([]*experiment.Evaluation, int, error) {
	return s.find(func(c experiment.Cell) bool {
		return c.Block == x.block && c.Method == x.method && c.S == x.states && (x.recipe == "" || c.Recipe == x.recipe)
	})
}

// loss measures the median loss.
func (x sample) loss(horizon int) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		return s.estimate(medianOf, horizon, runs, nil, planned)
	}
}

// versus compares with another sample of the same identities.
func (x sample) versus(y sample, horizon int, f estimator) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		a, planned, err := x.find(s)
		if err != nil {
			return nil, err
		}
		b, _, err := y.find(s)
		if err != nil {
			return nil, err
		}
		a, b = pair(a, b)
		if len(a) == 0 {
			return nil, nil
		}
		return s.estimate(f, horizon, a, b, planned)
	}
}

// command returns the arguments of the command that makes the runs.
func (x sample) command() string {
	cell := experiment.Cell{Block: x.block, Method: x.method, Recipe: x.recipe, S: x.states}
	return "evaluate " + cell.Name()
}

// versusOracle compares with exact PMD on the same problems.
func (x sample) versusOracle(horizon int, f estimator) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil {
			return nil, err
		}
		oracle, err := s.oracle(x.states)
		if err != nil || len(runs) == 0 || len(oracle) == 0 {
			return nil, err
		}
		return s.estimate(f, horizon, runs, oracle, planned)
	}
}

// criterion counts the runs whose ratio to exact PMD is within the margin.
func (x sample) criterion(horizon int) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		m, err := x.versusOracle(horizon, ratioOf)(s)
		if err != nil || m == nil {
			return nil, err
		}
		oracle := m.used[m.runs].Losses(horizon)
		ratios := results.Runs{Found: m.used[:m.runs]}.Values(func(e *experiment.Evaluation) float64 { return stats.RatioOfMedians(e.Losses(horizon), oracle) })
		var printed []string
		for _, r := range ratios {
			printed = append(printed, fmt.Sprintf("%.3f", r))
		}
		met := results.Meeting(ratios)
		m.text, m.ok, m.interval = fmt.Sprintf("%s: %d of %d", strings.Join(printed, ", "), met, m.runs), met == m.runs, false
		return m, nil
	}
}

// apart asks whether every run of x has a median above every run of y.
func (x sample) apart(y sample, horizon int) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		a, planned, err := x.find(s)
		if err != nil {
			return nil, err
		}
		b, _, err := y.find(s)
		if err != nil || len(a) == 0 || len(b) == 0 {
			return nil, err
		}
		high, low := stats.RunMedians(losses(a, horizon)), stats.RunMedians(losses(b, horizon))
		return &measured{
			text: fmt.Sprintf("%s against %s", extent(high), extent(low)),
			ok:   slices.Min(high) > slices.Max(low), runs: min(len(a), len(b)), planned: planned, used: slices.Concat(a, b),
		}, nil
	}
}

// values measures the median over runs of a number of each evaluation, with the
// range over runs as text.
func (x sample) values(f func(*experiment.Evaluation) float64) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		var values []float64
		for _, r := range runs {
			values = append(values, f(r))
		}
		m := &measured{value: stats.Estimate{Value: stats.Median(values)}, runs: len(runs), planned: planned, used: runs}
		if len(runs) > 1 {
			m.text = fmt.Sprintf("%s, runs %s", number(m.value.Value), extent(values))
		}
		return m, nil
	}
}

// every asks whether a predicate holds for all runs, and counts those for which it does.
func (x sample) every(f func(*experiment.Evaluation) bool) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		n := 0
		for _, r := range runs {
			if f(r) {
				n++
			}
		}
		return &measured{text: fmt.Sprintf("in %d of %d runs", n, len(runs)), ok: n == len(runs), runs: len(runs), planned: planned, used: runs}, nil
	}
}

// among asks whether the paper's number lies where medians of 64 of our MDPs,
// taken in turn, lie.
func among(states, horizon int, n Number) func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, _, err := sample{experiment.Oracle, experiment.ExactPMD, states, ""}.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		lo, hi := math.Inf(1), math.Inf(-1)
		for block := range slices.Chunk(runs[0].Losses(horizon), 64) {
			lo, hi = min(lo, stats.Median(block)), max(hi, stats.Median(block))
		}
		m, err := s.estimate(medianOf, horizon, runs, nil, len(runs))
		m.ok = lo <= n.Value && n.Value <= hi
		return m, err
	}
}

package results

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/stats"
)

// Number is a number as the paper prints it, with its interval where it gives one.
type Number struct {
	Value, Lo, Hi float64 // Lo = Hi = Value without an interval
	Text          string
}

func (n Number) String() string { return n.Text }

// Claim is a number or a statement of the paper that rows, or a test, are held against.
type Claim struct {
	Section  string // of the paper, such as "7" or "Table 3"
	Sentence string
	Printed  Number
	Query    string // see [Store.Ask]
	Rule     string // see [Store.Judge]
	Reason   string // why ours differs, or why nothing can be said
}

// Paper is the claims of the paper.
type Paper []Claim

// files are lines with fields between tabs: the claims, Tables 1, 2 and 4, the findings of documents, what stands above
// and below tables, and how they show methods.
//
//go:embed *.tsv
var files embed.FS

// content is that of a file of this package.
func content(file string) string { return string(must(files.ReadFile(file))) }

// must is what is made of a file of this package, which has no errors.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// ThePaper are the claims of the paper, claims.tsv.
var ThePaper = must(ReadPaper(content("claims.tsv")))

// ReadPaper reads lines of section, sentence, printed number, query, rule and reason, separated by
// tabs, below a line of headings. It returns an error if a line is malformed or asks a query again.
func ReadPaper(text string) (p Paper, err error) {
	for n, f := range fields(text) {
		if n == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("results: claim in line %d has %d fields, want 6", n+1, len(f))
		}
		c := Claim{Section: f[0], Sentence: f[1], Query: f[3], Rule: f[4], Reason: f[5]}
		if c.Printed, err = parseNumber(f[2]); err != nil {
			return nil, fmt.Errorf("results: claim in line %d: %w", n+1, err)
		}
		if c.Query != "" && p.Printed(c.Query) != nil {
			return nil, fmt.Errorf("results: claim in line %d asks %q again", n+1, c.Query)
		}
		p = append(p, c)
	}
	return p, nil
}

// fields are those of lines of text, between tabs.
func fields(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return all
}

// here heads the column of what is found here.
const here = "here [95 % interval]"

// answered makes a table of a file, where questions stand in the column of what is found here.
func answered(file string) func(*Store) Table {
	return func(s *Store) (t Table) {
		all := fields(content(file))
		t.Columns = all[0]
		for _, f := range all[1:] {
			var row []any
			for k, v := range f {
				if t.Columns[k] == here {
					var err error
					v, err = s.answer(v)
					t.err = errors.Join(t.err, err)
				}
				row = append(row, v)
			}
			t.Add(row...)
		}
		return t
	}
}

// answer answers questions between semicolons. One is a query, after a label and a colon if it has one, or an entry of
// a table as in "table NAME|COLUMN|KEY|KEY", whose row begins with the keys.
func (s *Store) answer(questions string) (string, error) {
	var answers []string
	for _, q := range strings.Split(questions, "; ") {
		if of, ok := strings.CutPrefix(q, "table "); ok {
			entry, err := s.entry(strings.Split(of, "|"))
			if err != nil {
				return "", err
			}
			answers = append(answers, entry)
			continue
		}
		label, query, ok := strings.Cut(q, ": ")
		if !ok {
			label, query = "", q
		}
		c, err := s.Ask(query)
		if err != nil {
			return "", err
		}
		answers = append(answers, strings.TrimSpace(label+" "+c.String()))
	}
	return strings.Join(answers, "; "), nil
}

// entry is one of a table, by the table's name, the column and the first entries of its row.
func (s *Store) entry(of []string) (string, error) {
	t, err := s.Table(of[0])
	k := slices.Index(t.Columns, of[1])
	for _, row := range t.Text() {
		if k >= 0 && slices.Equal(row[:min(len(of)-2, len(row))], of[2:]) {
			return row[k], err
		}
	}
	return "", cmp.Or(err, fmt.Errorf("results: no entry %q", of))
}

// parseNumber reads ".0193" or "1.05 [1.02, 1.1]". Other text has no value.
func parseNumber(text string) (n Number, err error) {
	n.Text = text
	value, interval, spans := strings.Cut(text, " [")
	if n.Value, err = strconv.ParseFloat(value, 64); err != nil {
		return Number{Text: text}, nil
	}
	n.Lo, n.Hi = n.Value, n.Value
	if spans {
		if _, err = fmt.Sscanf(interval, "%g, %g]", &n.Lo, &n.Hi); err != nil {
			return n, fmt.Errorf("interval in %q: %w", text, err)
		}
	}
	return n, nil
}

// Printed returns what the paper prints for a query, or nil.
func (p Paper) Printed(query string) any {
	if c := p.about(query); c != nil {
		return c.Printed
	}
	return nil
}

// about returns the claim that rests on a query, or nil.
func (p Paper) about(query string) *Claim {
	if at := slices.IndexFunc(p, func(c Claim) bool { return c.Query == query }); at >= 0 && query != "" {
		return &p[at]
	}
	return nil
}

// Verdict says what rows say of a claim.
type Verdict string

const (
	Holds      Verdict = "holds"
	Differs    Verdict = "differs"
	Better     Verdict = "better"     // than the paper's, like for like: our interval lies below its number
	Unresolved Verdict = "unresolved" // our interval is too wide to tell
	Fitted     Verdict = "fitted"     // agrees because something was chosen so that it does
	Budget     Verdict = "other budget"
	Tested     Verdict = "tested" // a test of the repository shows it
	NoEvidence Verdict = "no evidence"
)

// Judged is a claim with what rows say.
type Judged struct {
	Claim
	Here    any // Cell, text or nil
	Verdict Verdict
	P       float64 // that our value is the paper's; NaN without such a test
}

// Judge holds a claim against rows, by its rule:
//
//	agree        our interval holds the paper's number
//	lower        the same, where an interval below the number is better
//	fitted       the same, where something was chosen for it
//	sign         our interval lies on the same side of 0 as the paper's
//	zero         our interval holds 0, as the paper's does
//	each<=X      every run is at most X
//	budget       no verdict: another budget than the paper's
//	none         no verdict: nothing here bears on it
//	test NAME    a test shows it, such as control.TestProve
func (s *Store) Judge(c Claim) (j Judged, err error) {
	j.Claim, j.P = c, math.NaN()
	if name, ok := strings.CutPrefix(c.Rule, "test "); ok {
		j.Here, j.Verdict = "test "+name, Tested
		return j, nil
	}
	if c.Rule == "none" && c.Query == "" {
		j.Verdict = NoEvidence
		return j, nil
	}
	cell, err := s.Ask(c.Query)
	if err != nil {
		return j, err
	}
	if cell.Query == "" {
		return j, fmt.Errorf("results: query %q: no runs to compare", c.Query)
	}
	j.Here = cell
	j.Verdict, j.P, err = judge(c, cell)
	return j, err
}

func judge(c Claim, here Cell) (Verdict, float64, error) {
	in := here.Lo <= c.Printed.Hi && here.Hi >= c.Printed.Lo
	wide := here.Lo > 0 && here.Hi >= 2*here.Lo
	compared := c.Rule == "agree" || c.Rule == "lower"
	p := here.P(c.Printed.Value)
	switch {
	case c.Rule == "none":
		return NoEvidence, math.NaN(), nil
	case c.Rule == "budget":
		return Budget, math.NaN(), nil
	case compared && in && wide:
		return Unresolved, p, nil
	case c.Rule == "fitted" && in:
		return Fitted, p, nil
	case compared && in:
		return Holds, p, nil
	case c.Rule == "lower" && here.Hi < c.Printed.Lo:
		return Better, p, nil
	case compared || c.Rule == "fitted":
		return Differs, p, nil
	case c.Rule == "sign" && here.Resolved(0) && here.Lo*c.Printed.Value > 0, c.Rule == "zero" && !here.Resolved(0):
		return Holds, here.P(0), nil
	case c.Rule == "sign" && !here.Resolved(0):
		return Unresolved, here.P(0), nil
	case c.Rule == "sign" || c.Rule == "zero":
		return Differs, here.P(0), nil
	}
	limit, err := strconv.ParseFloat(strings.TrimPrefix(c.Rule, "each<="), 64)
	if err != nil {
		return "", 0, fmt.Errorf("results: claim %q has no rule %q", c.Sentence, c.Rule)
	}
	if slices.Max(here.ByRun) <= limit {
		return Holds, math.NaN(), nil
	}
	return Differs, math.NaN(), nil
}

// Claims judges all claims. A claim whose rows are missing is in the error, and stands without a verdict.
func (s *Store) Claims(p Paper) (all []Judged, err error) {
	for _, c := range p {
		j, e := s.Judge(c)
		err = errors.Join(err, e)
		all = append(all, j)
	}
	return all, err
}

func (s *Store) claimsTable() (t Table) {
	t.Columns = []string{"section", "claim", "paper", here, "verdict", "why"}
	all, err := s.claims()
	t.err = err
	for _, j := range all {
		t.Add(j.Section, j.Sentence, j.Printed.Text, said(j.Here), string(j.Verdict), j.Reason)
	}
	return t
}

func (s *Store) verdicts() (t Table) {
	t.Columns = []string{"verdict", "claims"}
	all, err := s.claims()
	t.err = err
	counts, p, excluded, remain := map[Verdict]int{}, []float64{}, 0, 0
	for _, j := range all {
		counts[j.Verdict]++
		if !math.IsNaN(j.P) {
			p = append(p, j.P)
		}
	}
	for _, v := range []Verdict{Differs, Unresolved, Better, Holds, Fitted, Tested, Budget, NoEvidence} {
		t.Add(string(v), counts[v])
	}
	for i, adjusted := range stats.Holm(p) {
		if p[i] < .05 {
			excluded++
		}
		if adjusted < .05 {
			remain++
		}
	}
	t.Notes = []string{fmt.Sprintf("%d verdicts rest on an interval. %d of these intervals exclude the value; %d "+
		"still do after Holm's adjustment for their number.", len(p), excluded, remain)}
	return t
}

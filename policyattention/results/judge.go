package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/stats"
)

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

// Claims judges all claims. A claim whose rows are missing is in the error, and stands without a
// verdict.
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

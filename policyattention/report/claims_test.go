package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// CLAIMS.md and claims.json are what the committed artifacts say; `make claims`
// writes them again.
func TestClaimsAreFresh(t *testing.T) {
	stored := stored(t)
	table := testkit.Must(stored.table("claims"))(t)
	var want bytes.Buffer
	testkit.Check(t, table.Markdown(&want))
	want.WriteByte('\n')
	if want.Len() > 60_000 {
		t.Errorf("CLAIMS.md has %d bytes, want at most 60 kB", want.Len())
	}
	compare := func(path string, want []byte) {
		got := testkit.Must(os.ReadFile(path))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%s): run make claims", path, difference(got, want))
		}
	}
	compare("../../CLAIMS.md", want.Bytes())
	text := testkit.Must(json.Marshal(table))(t)
	compare("../../artifacts/paper/claims.json", append(text, '\n'))
	// The recount of verdicts ends with today's.
	recount := string(testkit.Must(os.ReadFile("../../docs/evidence.md"))(t))
	for _, v := range []Verdict{Differs, Unresolved, Better, Fitted, Holds} {
		n := table.Values.(Claims).Checks[v]
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| \d+ \| %d \|`, v, n)).MatchString(recount) {
			t.Errorf("docs/evidence.md does not end with %d checks that are %q", n, v)
		}
	}
	// No median of a learned method stands without its tail.
	tails := map[string]string{}
	for _, c := range table.Values.(Claims).Claims {
		for _, k := range c.Checks {
			tails[k.of(c.Says)] = k.Tail
			if k.Verdict == Missing && !strings.Contains(k.Why, "steps, the rest takes about") {
				t.Errorf("%s: not yet run, and it waits for %q", k.of(c.Says), k.Why)
			}
			if k.Verdict == Differs && k.Why == "" {
				t.Logf("%s, %s: ours (%s) differs from the paper's (%s), and no reason is given yet", c.Says, k.At, k.Here, k.Paper)
			}
		}
	}
	medians := []results.Estimator{results.Median, results.Ratio, results.Difference, results.PairedDifference}
	for _, e := range table.Evidence {
		exact := strings.Contains(e.X[0], string(experiment.ExactPMD))
		if slices.Contains(medians, e.Estimator) && !exact && !strings.HasSuffix(tails[e.Of], "%}") {
			t.Errorf("%s: a median of %s with the tail %q", e.Of, e.X[0], tails[e.Of])
		}
	}
}

// Every sentence has checks, and every check its number, a command that exists, and a
// place of its own in the paper.
func TestClaimsAreWhole(t *testing.T) {
	seen, lines := map[string]bool{}, map[int]bool{}
	for _, x := range sentences() {
		lines[x.line] = true
		if len(x.checks) == 0 || !slices.Contains(sections, x.section) {
			t.Errorf("%q has %d checks, section %q", x.says, len(x.checks), x.section)
		}
		for _, c := range x.checks {
			name := x.says + "; " + c.at + "; " + c.variant
			if seen[name] {
				t.Errorf("%q stands twice", name)
			}
			seen[name] = true
			if (results.Paper(c.number) != nil) == (c.printed != "") {
				t.Errorf("%q: the paper's number is %v, printed %q: want one of them", name, c.number, c.printed)
			}
			command, argument, _ := strings.Cut(c.command, " ")
			known := map[string]bool{
				"evaluate": argument == "" || slices.Contains(experiment.Blocks, experiment.Block(argument)),
				"table":    slices.Contains(TableNames(), argument),
				"figure":   slices.Contains(FigureNames(), argument),
				"–":        true,
			}
			if !known[command] {
				t.Errorf("%q: no command %q", name, c.command)
			}
		}
	}
	for line := 1; line <= 7; line++ {
		if !lines[line] {
			t.Errorf("no claim is evidence on line %d of Table 2", line)
		}
	}
}

func TestJudges(t *testing.T) {
	at := func(value, lo, hi float64) *measured {
		return &measured{Estimate: results.Estimate{Runs: 3, Estimate: stats.Estimate{Value: value, Lo: lo, Hi: hi}}}
	}
	bare, spanned := results.Number{Value: 1}, results.Number{Value: 1, Lo: .9, Hi: 1.1}
	holdsZero, positive, below := results.Number{Value: .1, Lo: -.1, Hi: .3}, results.Number{Value: .2, Lo: .1, Hi: .3}, results.Number{Value: -.5, Lo: -.6, Hi: -.4}
	for i, c := range []struct {
		judge judge
		m     *measured
		paper results.Number
		want  Verdict
	}{
		{compared(lower), at(1.05, .9, 1.2), bare, Holds}, {compared(lower), at(.5, .4, .8), bare, Better}, {compared(lower), at(2, 1.5, 3), bare, Differs},
		{compared(higher), at(.5, .4, .8), bare, Differs}, {compared(higher), at(2, 1.5, 3), spanned, Better},
		{compared(neither), at(.5, .4, .8), spanned, Differs}, {compared(neither), at(2, 1.5, 3), spanned, Differs}, {compared(neither), at(1.2, 1.05, 1.4), spanned, Holds},
		// So wide that it could hardly fail to agree; where it does not, its width does not matter.
		{compared(lower), at(1.3, .7, 2), bare, Unresolved}, {compared(lower), at(.3, .1, .8), bare, Better}, {compared(neither), at(.1, -.1, 1.2), bare, Holds},
		{compared(lower), &measured{value: .5}, bare, Better}, {compared(lower), &measured{value: 1.5, lo: .9, hi: 1.6}, bare, Holds},
		{differing(lower), at(0, -.1, .1), holdsZero, Holds}, {differing(lower), at(-.05, -.08, -.01), holdsZero, Better},
		{differing(lower), at(.05, .01, .08), holdsZero, Differs}, {differing(neither), at(-.05, -.08, -.01), holdsZero, Differs},
		{differing(lower), at(.2, -.1, .4), positive, Unresolved}, {differing(lower), at(.2, .05, .4), positive, Holds},
		{differing(lower), at(.01, .005, .02), positive, Better}, {differing(neither), at(.01, .005, .02), positive, Differs},
		{differing(neither), at(-.9, -1, -.8), below, Differs}, {differing(neither), at(-.5, -.7, .1), below, Unresolved},
		{zero, at(0, -.1, .1), bare, Holds}, {zero, at(-1, -2, -.1), bare, Differs}, {zero, at(1, .1, 2), bare, Differs},
		{above(1), at(1.2, 1.1, 1.3), bare, Holds}, {above(1), at(1.2, .9, 1.3), bare, Unresolved}, {above(1), at(.8, .7, .9), bare, Differs},
		{toward(.8), at(.81, .79, .82), results.Number{Value: .784}, Better}, {toward(.8), at(.7, .69, .71), results.Number{Value: .784}, Differs}, {toward(.8), at(.78, .77, .79), results.Number{Value: .784}, Holds},
		{within, at(1.4, 1, 2), bare, Holds}, {within, at(1.6, 1, 2), bare, Differs},
		{stated, &measured{ok: true}, bare, Holds}, {stated, &measured{}, bare, Differs}, {bars("x"), &measured{ok: true}, bare, NoEvidence},
	} {
		if got, _ := c.judge.of(c.m, c.paper); got != c.want {
			t.Errorf("%d: %s is %s, want %s", i, c.judge.name, got, c.want)
		}
	}
}

// Verdicts that hang on an interval have a test, against the value that decides; those of
// what is barred, at another budget, or without a bootstrap have none. All are adjusted
// for their number.
func TestTests(t *testing.T) {
	x := [][]float64{{1, 2, 3, 4, 5, 6, 7}, {2, 4, 3, 6, 5, 9, 8}}
	e := testkit.Must(stats.Standard.Median(x))(t)
	estimated := &measured{Estimate: results.Estimate{Runs: 2, Estimate: e}}
	critic := results.Key{Block: experiment.Confirmation, Quantity: "learned critic minus exact-pmd", S: 4, T: 20} // .000518 [8e-6, .002155]
	actor := results.Key{Block: experiment.Confirmation, Quantity: "minus exact-pmd", S: 4, T: 20}                 // its interval holds 0
	for i, c := range []struct {
		check
		m    *measured
		want float64 // NaN: no test
	}{
		{check{judge: compared(lower), number: critic}, estimated, .002155},
		{check{judge: differing(neither), number: critic}, estimated, .002155},
		{check{judge: differing(neither), number: actor}, estimated, 0},
		{check{judge: zero}, estimated, 0}, {check{judge: above(1)}, estimated, 1},
		{check{judge: within}, estimated, math.NaN()}, {check{judge: zero, budget: "smaller"}, estimated, math.NaN()},
		{check{judge: zero}, &measured{value: 1}, math.NaN()}, {check{judge: zero}, nil, math.NaN()},
		{check{judge: zero}, &measured{Estimate: estimated.Estimate, barred: "it failed"}, math.NaN()},
	} {
		switch got := c.check.test(c.m); {
		case got == nil && !math.IsNaN(c.want):
			t.Errorf("%d: no test", i)
		case got != nil && (got.Against != c.want || got.P != e.P(c.want)):
			t.Errorf("%d: %+v, want against %v", i, got, c.want)
		}
	}
	checks := func(p ...float64) (list []Outcome) {
		for _, p := range p {
			list = append(list, Outcome{Test: &Test{P: p}})
		}
		return list
	}
	all := Claims{Claims: []Claim{{Checks: checks(.01, .03)}, {Checks: append(checks(.04), Outcome{})}}}
	all.adjust()
	if want := (Multiple{Tests: 3, Resolved: 3, Holm: 1, FDR: 3}); all.Multiple != want {
		t.Errorf("%+v, want %+v", all.Multiple, want)
	}
	if first, second := all.Claims[0].Checks[0].Test, all.Claims[0].Checks[1].Test; first.byChance() || !second.byChance() {
		t.Errorf("%+v, %+v", first, second)
	}
}

// What the paper states in passing stands among the sentences too.
func TestSentencesOfThePaper(t *testing.T) {
	all := sentences()
	for _, want := range []string{
		"two blocks of two heads", "a causal mask, no positions", "(10): ", "(11): ", "(12): ", "(13): ", "(23): ", "(27): ", "(28): ", "(30): ", "(31): ",
		"the resolvent step", "its proximal excess vanishes with ζ", "none of the five runs systematically stalls", "non-dominated", "changes little from S = 8 to 16",
		"Table 1, PolicyAttention: ", "Table 1, Liang–Lai: ", "Table 1, Algorithm Distillation: ", "Table 1, Wang et al. and Xie et al.: ",
	} {
		if !slices.ContainsFunc(all, func(x sentence) bool { return strings.Contains(x.says, want) }) {
			t.Errorf("no sentence says %q", want)
		}
	}
	if !slices.ContainsFunc(all, func(x sentence) bool { return x.section == "App. H Reproducibility" }) {
		t.Error("no sentence is of Appendix H")
	}
}

// What bars a check, a budget and a choice of ours come before or after the judge's
// verdict, and what is not there says so.
func TestVerdicts(t *testing.T) {
	store := testkit.Must(experiment.Open(t.TempDir(), "paper", "go"))(t)
	s := newSource(store)
	for i, x := range []struct {
		check
		m    *measured
		want Verdict
		why  string
	}{
		{check{}, nil, Missing, ""},
		{check{}, &measured{ok: true}, Holds, ""},
		{check{why: "of this"}, &measured{}, Differs, "of this"},
		{check{fitted: "chosen"}, &measured{ok: true}, Fitted, "chosen"},
		{check{fitted: "chosen"}, &measured{}, Differs, ""},
		{check{budget: "smaller"}, &measured{ok: true}, OtherBudget, "smaller"},
		{check{budget: "smaller"}, &measured{ok: true, barred: "it failed"}, NoEvidence, "it failed"},
	} {
		x.judge = stated
		if got, why := x.verdict(s, x.m); got != x.want || why != x.why {
			t.Errorf("%d: %q %q, want %q %q", i, got, why, x.want, x.why)
		}
	}
}

// A sentence takes the first verdict of the list that a check has, and its row says of
// how many checks.
func TestClaimRow(t *testing.T) {
	c := Claim{Section: "1", Line: 2, Says: "so", Verdict: Differs, Note: "note", Checks: []Outcome{
		{At: "a", Variant: "x", Paper: "1", Here: "2", Verdict: Differs, Why: "of this"}, {At: "a", Variant: "y", Paper: "1", Here: "3", Verdict: Better},
		{At: "b", Paper: "1", Here: "1", Verdict: Holds}, {At: "c", Paper: "–", Here: "9"},
	}}
	want := []string{"1", "so (Table 2, line 2)", "1", "a: x 2; y 3 (better)\nb: 1 (holds)\nc: 9", "differs in 1 of 3: of this; note"}
	if got := (Table{Rows: [][]Cell{c.row()}}).text()[0]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

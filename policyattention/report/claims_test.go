package report

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// CLAIMS.md and claims.json are what the committed artifacts say; `make claims`
// writes them again.
func TestClaimsAreFresh(t *testing.T) {
	store, err := experiment.Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := BuildTable(store, "claims")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := table.Markdown(&want); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	compare := func(path string, want []byte) {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%s): run make claims", path, difference(got, want))
		}
	}
	compare("../../CLAIMS.md", want.Bytes())
	text, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	compare("../../artifacts/paper/claims.json", append(text, '\n'))
	for _, row := range table.Rows {
		if verdict := row[6]; verdict == "differs" || strings.HasPrefix(verdict, "differs (") {
			t.Logf("%s, %s: ours (%s %s) differs from the paper's (%s), and claims gives no reason yet", row[0], row[1], row[3], row[4], row[2])
		}
	}
}

// Every claim has its number, a command that exists, and a sentence of its own.
func TestClaimsAreWhole(t *testing.T) {
	seen, lines := map[string]bool{}, map[int]bool{}
	for _, c := range claims() {
		lines[c.line] = true
		if seen[c.says] {
			t.Errorf("%q stands twice", c.says)
		}
		seen[c.says] = true
		if ok := c.number.number() != nil; ok == (c.printed != "") {
			t.Errorf("%q: the paper's number is %v, printed %q: want one of them", c.says, c.number, c.printed)
		}
		if c.measure == nil && c.why == "" {
			t.Errorf("%q is not measured without a reason", c.says)
		}
		command, argument, _ := strings.Cut(c.make, " ")
		known := map[string]bool{
			"evaluate": argument == "" || slices.Contains(experiment.Blocks, experiment.Block(argument)) || beginsCells(argument),
			"table":    slices.Contains(TableNames(), argument),
			"figure":   slices.Contains(FigureNames(), argument),
			"–":        c.measure == nil,
		}
		if !known[command] {
			t.Errorf("%q: no command %q", c.says, c.make)
		}
	}
	for line := 1; line <= 7; line++ {
		if !lines[line] {
			t.Errorf("no claim is evidence on line %d of Table 2", line)
		}
	}
}

// beginsCells reports whether names of cells of the paper begin so, and none of them
// has another recipe or size.
func beginsCells(name string) bool {
	return slices.ContainsFunc(experiment.Presets["paper"].Plan(), func(c experiment.Cell) bool {
		return strings.HasPrefix(c.Name(), name+"-")
	})
}

func TestJudges(t *testing.T) {
	at := func(value, lo, hi float64) *measured {
		return &measured{value: stats.Estimate{Value: value, Lo: lo, Hi: hi}}
	}
	bare, wide := Number{Value: 1}, Number{Value: 1, Lo: .9, Hi: 1.1}
	for _, c := range []struct {
		judge *judge
		m     *measured
		paper Number
		want  bool
	}{
		{atMost, at(1, 0, 2), bare, true}, {atMost, at(1.01, 0, 2), bare, false},
		{agrees, at(1.05, 1.01, 1.2), bare, false}, {agrees, at(1.05, 1.01, 1.2), wide, true}, {agrees, at(.5, .4, .8), wide, false},
		{notAbove, at(.5, .4, .8), wide, true}, {notAbove, at(1.3, 1.2, 1.4), wide, false}, {notAbove, at(1.3, 1, 1.4), bare, false}, {notAbove, at(1.05, .9, 1.4), wide, true},
		{unresolved, at(1, -1, 2), bare, true}, {unresolved, at(1, .1, 2), bare, false},
		{below, at(-1, -2, -.1), bare, true}, {below, at(-1, -2, .1), bare, false},
		{above, at(1, .1, 2), bare, true}, {above, at(1, -.1, 2), bare, false},
		{leads, at(-1, -2, -.1), Number{Value: -.5, Lo: -.6, Hi: -.4}, true}, {leads, at(-3, -4, -2), Number{Value: -.5, Lo: -.6, Hi: -.4}, false},
		{leads, at(-.2, -.3, -.1), Number{Value: -.5, Lo: -.6, Hi: -.4}, false}, {leads, at(-.2, -.7, .1), Number{Value: -.5, Lo: -.6, Hi: -.4}, false},
		{leadsTimes, at(20, 10, 30), Number{Value: 25}, true}, {leadsTimes, at(40, 30, 50), Number{Value: 25}, false},
		{leadsTimes, at(4, 2, 7), Number{Value: 25}, false}, {leadsTimes, at(4, .9, 30), Number{Value: 25}, false},
	} {
		if got := c.judge.ok(c.m, c.paper); got != c.want {
			t.Errorf("%q of %+v against %+v is %v", c.judge.name, c.m.value, c.paper, got)
		}
	}
}

// An unfinished claim says how far it is, and one that is not there says so.
func TestVerdicts(t *testing.T) {
	store, err := experiment.Open(t.TempDir(), "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(store)
	c := claim{measure: func(*source) (*measured, error) { return nil, nil }, judge: holds, why: "of this"}
	for _, x := range []struct {
		m    *measured
		want string
	}{
		{nil, NotRun},
		{&measured{ok: true}, "holds"},
		{&measured{ok: true, runs: 2, planned: 5}, "holds (2 of 5 runs so far)"},
		{&measured{}, "differs: of this"},
		{&measured{ok: true, barred: "it failed"}, "no evidence: it failed"},
	} {
		if _, got := c.verdict(s, x.m); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
	if _, got := (claim{why: "it is history"}).verdict(s, nil); got != "not repeated: it is history" {
		t.Error(got)
	}
}

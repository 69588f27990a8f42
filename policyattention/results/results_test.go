package results

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"icrl/internal/testkit"
	"icrl/policyattention/stats"
)

// row is a row of a small block of a test's own.
type row struct {
	Method  string  `parquet:"method,dict"`
	Recipe  string  `parquet:"recipe"`
	S       int32   `parquet:"s"`
	Seed    int64   `parquet:"seed"`
	Problem int32   `parquet:"problem"`
	Round   int32   `parquet:"round"`
	Loss    float64 `parquet:"loss"`
	Zeta    float64 `parquet:"zeta"`
}

// small stores a block of two runs of a method and exact PMD on three problems, two rounds each: the
// loss is seed·(problem+1)/round, ζ is the round.
func small(t *testing.T, change func([]row) []row) *Store {
	t.Helper()
	var rows []row
	for _, seed := range []int64{2, 1} {
		for problem := range int32(3) {
			for round := int32(0); round <= 2; round++ {
				loss := float64(seed) * float64(problem+1) / float64(max(round, 1))
				rows = append(rows, row{"policyattention", "plain", 8, seed, problem, round, loss, float64(round)})
				if seed == 1 {
					rows = append(rows, row{"exact-pmd", "", 8, 0, problem, round, loss / 4, 0})
				}
			}
		}
	}
	if change != nil {
		rows = change(rows)
	}
	folder := t.TempDir()
	testkit.Check(t, os.MkdirAll(filepath.Join(folder, "rows"), 0o755))
	testkit.Check(t, parquet.WriteFile(filepath.Join(folder, "rows", "b.parquet"), rows))
	return Open(folder)
}

// A chain of verbs gives what can be counted by hand.
func TestVerbs(t *testing.T) {
	s := small(t, nil)
	rows := s.Block("b").At(1, 2)
	exact := rows.Where(Method.Is("exact-pmd")).By(T)
	table := rows.Where(Method.Is("policyattention")).By(Method, S).Median().Against(exact).Ratio().WithTail().Runs()
	shown := testkit.Must(table.Shown())(t)
	want := [][]any{
		{"PolicyAttention", "8", "1", "3", "6", "2.5", "4.812", "5.163", "5.25", "1", "2"},
		{"PolicyAttention", "8", "2", "1.5", "6", "1.25", "2.406", "2.581", "2.625", "1", "2"},
	}
	for i, row := range shown.Text() {
		for k, entry := range row {
			if entry != want[i][k] {
				t.Errorf("row %d, %s is %s, want %v", i, shown.Columns[k], entry, want[i][k])
			}
		}
	}
	if runs := table.lines[0].group.runs; !slices.Equal(runs, []string{"1", "2"}) {
		t.Errorf("runs %v, want those of ascending seeds", runs)
	}
	for i, l := range rows.By(Method, T).MeanOverProblems().across().lines {
		for k, want := range [][]string{{"PolicyAttention", "3 [", "1.5 ["}, {"exact PMD", "0.5 [", "0.25 ["}}[i] {
			if !strings.HasPrefix(said(l.entries[k]).(string), want) {
				t.Errorf("row %d across is %q, want entry %d to begin with %s", i, l.entries, k, want)
			}
		}
	}
	c, err := s.Ask("mean b method=policyattention t=2 of=zeta")
	if err != nil || c.Value != .5 || len(c.ByRun) != 2 {
		t.Errorf("mean ζ of rounds 0 and 1 is %v, %v, want .5", c, err)
	}
	again, err := s.Ask(table.lines[1].last.Query)
	if err != nil || again.Estimate.Value != table.lines[1].last.Value || again.Lo != table.lines[1].last.Lo {
		t.Errorf("%s gives %v, %v, want %v", table.lines[1].last.Query, again, err, table.lines[1].last)
	}
}

// What cannot be answered says why.
func TestRefused(t *testing.T) {
	s := small(t, nil)
	for query, want := range map[string]string{
		"median":                        "statistic and a block",
		"median none t=1":               "no such file",
		"median b colour=red":           `no column "colour"`,
		"median b s=eight t=1":          "holds numbers",
		"median b t=0 method=exact-pmd": "horizon",
		"median b method":               "no column=value",
		"mode b method=exact-pmd t=1 / method=exact-pmd": "no statistic",
		"median b t=1": "group by method",
		"median b method=exact-pmd t=2 of=colour": "no column of numbers",
		"median b method=exact-pmd t=4 of=zeta":   "want 4",
	} {
		if c, err := s.Ask(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error about %q", query, c, err, want)
		}
	}
	broken := small(t, func(rows []row) []row { return rows[1:] }) // a problem of a run is missing
	if _, err := broken.Ask("median b method=policyattention t=0"); err == nil {
		t.Error("a missing problem is not noticed")
	}
	if _, err := s.Table("none"); err == nil || !strings.Contains(err.Error(), "want one of") {
		t.Errorf("unknown table: %v", err)
	}
	if _, err := s.Figure("none"); err == nil || !strings.Contains(err.Error(), "want one of") {
		t.Errorf("unknown figure: %v", err)
	}
	for name, text := range map[string]string{"cut": "PAR1", "text": "method,loss", "empty": ""} {
		folder := t.TempDir()
		testkit.Check(t, os.MkdirAll(filepath.Join(folder, "rows"), 0o755))
		testkit.Check(t, os.WriteFile(filepath.Join(folder, "rows", "b.parquet"), []byte(text), 0o644))
		if err := Open(folder).Block("b").err; err == nil || !strings.Contains(err.Error(), "b.parquet") {
			t.Errorf("%s file: %v", name, err)
		}
	}
}

func TestReadPaper(t *testing.T) {
	head := "section\tsentence\tpaper\tquery\trule\treason\n"
	for text, want := range map[string]string{
		head + "7\ts\t1\tq\tagree":                               "fields",
		head + "7\ts\t1 [a, b]\tq\tagree\t":                      "interval",
		head + "7\ts\t1\tq\tagree\t\n8\ts\t1\tq\tagree\tanother": "again",
	} {
		if _, err := ReadPaper(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error about %q", text, err, want)
		}
	}
	p, err := ReadPaper(head + "7\ts\t.000177 [-0.000137, 0.000748]\tq\tzero\twhy")
	if n, ok := p.Printed("q").(Number); err != nil || !ok || n.Value != .000177 || n.Lo != -.000137 ||
		n.Hi != .000748 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestJudge(t *testing.T) {
	number := func(text string) Number {
		n := testkit.Must(parseNumber(text))(t)
		return n
	}
	for _, x := range []struct {
		rule, printed string
		value, lo, hi float64
		byRun         []float64
		want          Verdict
	}{
		{"agree", "1.05", 1, .9, 1.1, nil, Holds}, {"agree", "1.05", 1, .6, 1.3, nil, Unresolved},
		{"agree", "1.2", 1, .9, 1.1, nil, Differs}, {"agree", ".8", 1, .9, 1.1, nil, Differs},
		{"lower", "1.2", 1, .9, 1.1, nil, Better}, {"lower", ".8", 1, .9, 1.1, nil, Differs},
		{"fitted", "1.05", 1, .9, 1.1, nil, Fitted}, {"fitted", "2", 1, .9, 1.1, nil, Differs},
		{"sign", "-.4", -1, -2, -.5, nil, Holds}, {"sign", "-.4", -1, -2, .5, nil, Unresolved},
		{"sign", "-.4", 1, .5, 2, nil, Differs},
		{"zero", "", .1, -1, 1, nil, Holds}, {"zero", "", 1, .5, 2, nil, Differs},
		{"each<=1.5", "1.4", 1, 0, 2, []float64{1, 1.5}, Holds}, {"each<=1.5", "1.4",
			1, 0, 2, []float64{1, 1.6}, Differs},
		{"budget", "2", 3, 3, 3, nil, Budget}, {"none", "2", 3, 3, 3, nil, NoEvidence},
	} {
		c := Cell{Estimate: stats.Estimate{Value: x.value, Lo: x.lo, Hi: x.hi, ByRun: x.byRun}}
		got, _, err := judge(Claim{Rule: x.rule, Printed: number(x.printed)}, c)
		if err != nil || got != x.want {
			t.Errorf("%s %s beside %v: %s, %v, want %s", x.rule, x.printed, c, got, err, x.want)
		}
	}
	if _, _, err := judge(Claim{Rule: "perhaps"}, Cell{}); err == nil {
		t.Error("an unknown rule is accepted")
	}
}

// Tests that claims rest on exist, and every claim can be judged.
func TestClaims(t *testing.T) {
	all, err := stored.Claims(ThePaper)
	if err != nil {
		t.Error(err)
	}
	for _, j := range all {
		name, ok := strings.CutPrefix(j.Rule, "test ")
		if !ok {
			continue
		}
		folder, function, _ := strings.Cut(name, ".")
		files := testkit.Must(filepath.Glob(filepath.Join("..", folder, "*_test.go")))(t)
		found := slices.ContainsFunc(files, func(f string) bool {
			text, err := os.ReadFile(f)
			return err == nil && regexp.MustCompile(`(?m)^func `+function+`\(t \*testing\.T\)`).Match(text)
		})
		if !found {
			t.Errorf("claim %q rests on %s, which is not there", j.Sentence, name)
		}
	}
}

// Every table and figure is made, has as many entries a row as columns, and no empty row.
func TestTablesAndFigures(t *testing.T) {
	s := stored
	for _, name := range TableNames() {
		table, err := s.Table(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(table.Rows) == 0 || table.Title == "" {
			t.Errorf("table %s has %d rows and the title %q", name, len(table.Rows), table.Title)
		}
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("table %s has %d entries in row %d, want %d", name, len(row), i, len(table.Columns))
			}
		}
	}
	for _, name := range FigureNames() {
		f, err := s.Figure(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range f.Panels {
			points := 0
			for _, series := range p.Series {
				points += len(p.Drawable(series).X)
			}
			if points == 0 {
				t.Errorf("figure %s, panel %q shows nothing", name, p.Title)
			}
		}
		if _, err := f.SVG(); err != nil {
			t.Errorf("figure %s: %v", name, err)
		}
	}
}

// From its name to the estimator a table's number goes through few places: see TestWay of package cli.
func TestWay(t *testing.T) {
	median := statistics["median"]
	defer func() { statistics["median"] = median }()
	var places []string
	returns := 0
	statistics["median"] = func(x, y [][]float64) (stats.Estimate, error) {
		places, returns = testkit.Way()
		return median(x, y)
	}
	testkit.Must(Open(stored.Folder).Table("benchmark"))(t)
	if t.Log(places); len(places) < 3 || len(places) > 6 || returns > 0 {
		t.Errorf("%q, with %d returns", places, returns)
	}
}

// What RESULTS says of planners: with the model none is ahead of value iteration, and PMD of policy iteration with two
// backups a round only on the chain. From samples that are not kept PMD has the lowest loss after 100 backups but in
// the deep sea, and value iteration where they are kept; after 20 backups others lead in some families. The learned
// actor is behind PMD on samples of two kinds of problems. One greedy step leaves most on the chain.
func TestPlanners(t *testing.T) {
	of := func(method, family string, backups int) float64 {
		rows := stored.Block("families").Where(S.Is(0), Method.Is(method), Family.Is(family)).At(backups)
		return testkit.Must(rows.one())(t).mean()
	}
	for _, family := range []string{"deep-sea", "chain", "garnet", "garnet-64", "maze", "anymdp"} {
		for _, backups := range []int{20, 100} {
			best := of("value-iteration", family, backups)
			for _, other := range []string{"exact-pmd", "any", "natural-gradient", "policy-iteration", "greedy-step"} {
				if loss := of(other, family, backups); loss < best-1e-15 {
					t.Errorf("%s, %d backups: %s has loss %v, value iteration %v", family, backups, other, loss, best)
				}
			}
		}
		two, pmd := of("policy-iteration-2", family, 20), of("exact-pmd", family, 20)
		if (pmd < two) != (family == "chain") {
			t.Errorf("%s: policy iteration with two backups a round has loss %v, PMD %v", family, two, pmd)
		}
		for _, backups := range []int{20, 100} {
			pmd, keeps := of("pmd-mean", family, backups), of("value-iteration-all", family, backups)
			for other, ahead := range map[string]map[int]string{"natural-gradient-mean": {},
				"value-iteration-mean":  {20: "deep-sea maze", 100: "deep-sea"},
				"policy-iteration-mean": {20: "maze anymdp", 100: "deep-sea"}} {
				if loss := of(other, family, backups); (loss < pmd) != strings.Contains(ahead[backups], family) {
					t.Errorf("%s, %d backups: %s has loss %v, PMD %v", family, backups, other, loss, pmd)
				}
			}
			best := min(pmd, of("pmd-all", family, backups))
			if (keeps > best) != (family == "chain" && backups == 20) {
				t.Errorf("%s, %d backups: value iteration on all samples has loss %v", family, backups, keeps)
			}
		}
		behind := of("any-mean", family, 100) > of("pmd-mean", family, 100)+1e-4
		if behind != slices.Contains([]string{"garnet", "garnet-64", "anymdp"}, family) {
			t.Errorf("%s: the actor on samples is behind PMD: %v", family, behind)
		}
		if loss := of("greedy-step", family, 20); (loss > .5) != (family == "chain") {
			t.Errorf("%s: a greedy step leaves %v", family, loss)
		}
	}
}

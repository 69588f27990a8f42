package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// paper is the source of the committed results, which tests share to read each once.
var paper = sync.OnceValues(func() (*source, error) {
	store, err := experiment.Open("../../artifacts", "paper", "go")
	if err != nil {
		return nil, err
	}
	return newSource(store), nil
})

// stored returns that source; with -short it skips the test.
func stored(t *testing.T) *source {
	t.Helper()
	if testing.Short() {
		t.Skip("it reads all committed results")
	}
	s := testkit.Must(paper())(t)
	return s
}

// open returns a store on a copy of the artifacts of preset smoke.
func open(t *testing.T) *experiment.Store {
	t.Helper()
	work := t.TempDir()
	testkit.Check(t, os.CopyFS(work, os.DirFS(testkit.Smoke(t))))
	store := testkit.Must(experiment.Open(work, "smoke", "go"))(t)
	return store
}

// Without any artifact every table and figure still comes out, and says so.
func TestNothingHasBeenRun(t *testing.T) {
	for _, preset := range []string{"smoke", "quick", "paper"} {
		store := testkit.Must(experiment.Open(t.TempDir(), preset, "go"))(t)
		for _, name := range TableNames() {
			table, err := BuildTable(store, name)
			if err != nil {
				t.Errorf("%s %s: %v", preset, name, err)
				continue
			}
			var b bytes.Buffer
			if err := table.Markdown(&b); err != nil {
				t.Error(err)
			}
			if name == "decoder" {
				continue // needs no artifact
			}
			if len(table.Rows) > 0 && !strings.Contains(b.String(), NotRun) {
				t.Errorf("%s %s does not say that it has not been run:\n%s", preset, name, &b)
			}
		}
		for _, name := range []string{"mech", "closed", "rounds", "lit", "pareto", "contrast", "liang-lai", "distillation", "tuning"} {
			if _, err := BuildFigure(store, name); err != nil {
				t.Errorf("%s %s: %v", preset, name, err)
			}
		}
	}
}

// The order of two methods is certain where the interval of their difference is
// on one side of zero.
// No table shows medians of learned methods without their tails: each has the worst problem and
// a mean, but those listed here, with what they hold instead.
func TestNoMedianStandsAlone(t *testing.T) {
	other := map[string]string{
		"oracle": "exact PMD alone", "order": "rank correlations", "audit": "violations of a bound", "decoder": "bounds", "mechanism": "distances of one step",
		"resources": "sizes", "cost": "times", "claims": "tails in braces, see TestClaimsAreFresh",
		"imitation": "errors of updates", "models": "words and tails in one cell", "memory": "errors of backups", "race": "speed", "profile": "speed",
		"equal": "means", "equal-lead": "means", "any": "the worst line of each group", "any-beside": "differences with tails", "ways": "the worst of eight problems in each cell",
	}
	s := stored(t)
	names := slices.Concat(TableNames(), slices.Collect(maps.Keys(excerpts)))
	for _, name := range names {
		if other[name] != "" {
			continue
		}
		build := excerpts[name]
		if build == nil {
			build = func(s *source) (Table, error) { return s.table(name) }
		}
		columns := strings.Join(testkit.Must(build(s))(t).Columns, "; ")
		if !strings.Contains(columns, "worst") || !strings.Contains(columns, "mean") && !strings.Contains(columns, "99 %") {
			t.Errorf("table %s shows no tail: %s", name, columns)
		}
	}
	for name := range other {
		if !slices.Contains(names, name) {
			t.Errorf("there is no table %q", name)
		}
	}
}

func TestOrder(t *testing.T) {
	for want, e := range map[string]stats.Estimate{
		"lower": {Value: -2, Lo: -3, Hi: -1}, "higher": {Value: 2, Lo: 1, Hi: 3}, "not told apart": {Value: -1, Lo: -2, Hi: 0},
	} {
		if got := Order(results.Estimate{Runs: 3, Estimate: e}); got != want {
			t.Errorf("%+v is %q, want %q", e, got, want)
		}
	}
}

// Liang–Lai's rows are what its artifacts hold: the tables of the sampled methods
// name what was run, and its figures are drawn.
func TestSampledMethods(t *testing.T) {
	store := open(t)
	for name, want := range map[string][]string{
		"qualification": {"Liang–Lai (native)", "last/first training loss"},
		"tuning":        {"paper's choice, from π₀, dense features"},
		"benchmark":     {"Liang–Lai (paper-features)"},
		"differences":   {"Liang–Lai (tuned)"},
	} {
		table := testkit.Must(BuildTable(store, name))(t)
		for _, text := range want {
			found := false
			for _, row := range table.text() {
				found = found || slices.Contains(row, text)
			}
			if !found {
				t.Errorf("table %s has no row with %q", name, text)
			}
		}
	}
	for _, name := range []string{"liang-lai", "tuning", "lit", "pareto"} {
		figure := testkit.Must(BuildFigure(store, name))(t)
		if strings.Contains(figure.Panels[0].Title.Text, NotRun) {
			t.Errorf("figure %s says that it has not been run", name)
		}
	}
}

func TestNumbersComeFromArtifacts(t *testing.T) {
	store := open(t)
	table := testkit.Must(BuildTable(store, "oracle"))(t)
	for _, cell := range store.Preset.Plan() {
		if cell.Block != experiment.Oracle {
			continue
		}
		e := testkit.Must(store.Find(cell))(t)
		if got, want := table.Rows[0][3][0], e.MedianLosses()[20]; got != want {
			t.Errorf("the oracle's T = 20 median is %v, want %v", got, want)
		}
	}
}

// What is written can be read, a fresh report has the bytes of one made again, and what is
// spoiled is named, that alone.
func TestCheck(t *testing.T) {
	store := open(t)
	testkit.Must(Write(store))(t)
	readable(t, Folder(store))
	check := func(want ...string) {
		t.Helper()
		var found []string
		for _, d := range testkit.Must(Check(store))(t) {
			found = append(found, filepath.Base(d.File))
		}
		if !slices.Equal(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
	check()
	path := func(name string) string { return filepath.Join(Folder(store), name) }
	tables := testkit.Must(os.ReadFile(path("tables.md")))(t)
	testkit.Check(t, os.WriteFile(path("tables.md"), bytes.Replace(tables, []byte("| 0.0"), []byte("| 0.1"), 1), 0o644))
	testkit.Check(t, os.Remove(path("benchmark.csv")))
	testkit.Check(t, os.WriteFile(path("more.md"), nil, 0o644))
	check("benchmark.csv", "more.md", "tables.md")

	testkit.Check(t, os.RemoveAll(filepath.Join(store.Root(), "oracle")))
	found := testkit.Must(Check(store))(t)
	if !slices.ContainsFunc(found, func(d experiment.Discrepancy) bool { return filepath.Base(d.File) == "oracle.csv" }) {
		t.Errorf("without its cell: found %v, want oracle.csv", found)
	}
}

// readable reads the files of a report, each in its format.
func readable(t *testing.T, folder string) {
	t.Helper()
	entries := testkit.Must(os.ReadDir(folder))(t)
	if len(entries) != 2+len(TableNames())+2*len(FigureNames()) {
		t.Errorf("%d files", len(entries))
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		switch filepath.Ext(e.Name()) {
		case ".png":
			_, err = png.Decode(bytes.NewReader(b))
		case ".svg":
			for d := xml.NewDecoder(bytes.NewReader(b)); err == nil; {
				_, err = d.Token()
			}
			if err == io.EOF {
				err = nil
			}
		case ".csv":
			_, err = csv.NewReader(bytes.NewReader(b)).ReadAll()
		}
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
	}
}

func TestCheckClaims(t *testing.T) {
	store := open(t)
	claims, err := BuildTable(store, "claims")
	if err != nil || len(claims.Evidence) == 0 {
		t.Fatalf("%d estimates, %v", len(claims.Evidence), err)
	}
	text := testkit.Must(json.Marshal(claims))(t)
	for name, c := range map[string]struct {
		plant func(t *Table)
		found string
	}{
		"nothing":             {func(*Table) {}, ""},
		"edited interval":     {func(t *Table) { t.Evidence[0].Lo *= 1 + 1e-12 }, "estimate 1 is"},
		"edited origin":       {func(t *Table) { t.Evidence[0].X[0] += "x" }, "estimate 1 is"},
		"edited verdict":      {func(t *Table) { t.Rows[3][4] = Cell{"holds beyond doubt"} }, "row 4: the claim is"},
		"swapped claims":      {func(t *Table) { t.Rows[0], t.Rows[1] = t.Rows[1], t.Rows[0] }, "row 1: the claim is"},
		"removed result":      {func(t *Table) { t.Results["train/gone"] = "" }, "made with the result train/gone, which is missing"},
		"another result":      {func(t *Table) { t.Results[slices.Sorted(maps.Keys(t.Results))[0]] = "" }, "made with another result"},
		"added result":        {func(t *Table) { delete(t.Results, slices.Sorted(maps.Keys(t.Results))[0]) }, "made without the result"},
		"removed claim":       {func(t *Table) { t.Rows = t.Rows[1:] }, "claims with"},
		"removed estimate":    {func(t *Table) { t.Evidence = t.Evidence[1:] }, "claims with"},
		"no claims, but JSON": {func(t *Table) { *t = Table{} }, "claims with"},
		"exchanged columns":   {func(t *Table) { t.Columns[2], t.Columns[3] = t.Columns[3], t.Columns[2] }, "is not what the artifacts give"},
		"edited note":         {func(t *Table) { t.Notes[0] = "All is well." }, "is not what the artifacts give"},
	} {
		var planted Table
		testkit.Check(t, json.Unmarshal(text, &planted))
		var as struct{ Values json.RawMessage } // read into an any, their members would be sorted
		testkit.Check(t, json.Unmarshal(text, &as))
		planted.Values = as.Values
		c.plant(&planted)
		b := append(testkit.Must(json.Marshal(planted))(t), '\n')
		found := testkit.Must(claimsDiffer("claims.json", b, claims))(t)
		if c.found == "" && len(found) > 0 || c.found != "" && (len(found) == 0 || !strings.Contains(found[0].String(), c.found)) {
			t.Errorf("%s: found %v, want %q", name, found, c.found)
		}
	}
	// A store's file is held against what its own artifacts give.
	path := filepath.Join(store.Root(), experiment.ClaimsFile)
	for written, want := range map[string]int{string(text) + "\n": 0, string(text): 1} {
		testkit.Check(t, os.WriteFile(path, []byte(written), 0o644))
		if found := testkit.Must(checkClaims(store))(t); len(found) != want {
			t.Errorf("found %v in its file, want %d", found, want)
		}
	}
}

// TestClaimsMissing wants claims.json with the results of the preset paper: it alone
// says which of them must be there.
func TestClaimsMissing(t *testing.T) {
	store := testkit.Must(experiment.Open(t.TempDir(), "paper", "go"))(t)
	if found, err := Check(store); err != nil || len(found) != 1 || !strings.Contains(found[0].String(), "claims.json: is missing") {
		t.Errorf("found %v, %v", found, err)
	}
}

// A figure names a font of the same widths for those who lack the one it was laid
// out with.
func TestFigureFonts(t *testing.T) {
	store := open(t)
	f := testkit.Must(BuildFigure(store, "closed"))(t)
	svg := testkit.Must(f.SVG())(t)
	texts, fallback := bytes.Count(svg, []byte("font-family:")), bytes.Count(svg, []byte("font-family:Liberation Sans,Arial"))
	if texts == 0 || fallback != texts {
		t.Errorf("%d of %d texts have a font to fall back to", fallback, texts)
	}
}

func TestFormats(t *testing.T) {
	table := Table{Title: "A < B", Columns: []string{"π", "x|y"}, Rows: [][]Cell{{{1}, {"<b>"}}}, Notes: []string{"n"}}
	var markdown, html, text bytes.Buffer
	testkit.Check(t, table.Markdown(&markdown))
	if want := "### A < B\n\n| π | x\\|y |\n|---|-----|\n| 1 | <b> |\n\nn\n"; markdown.String() != want {
		t.Errorf("Markdown %q, want %q", &markdown, want)
	}
	testkit.Check(t, table.HTML(&html))
	if !strings.Contains(html.String(), "<td>&lt;b&gt;</td>") || strings.Contains(html.String(), "<b>") {
		t.Errorf("HTML %s", &html)
	}
	testkit.Check(t, table.CSV(&text))
	if want := "π,x|y\n1,<b>\n"; text.String() != want {
		t.Errorf("CSV %q, want %q", &text, want)
	}
}

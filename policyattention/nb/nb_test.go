package nb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"icrl/policyattention/plots"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// A cell that asks for what does not exist says so and fails; the notebooks themselves, which
// the tests execute, are the test of the rest.
func TestRefused(t *testing.T) {
	cells := map[string]func(){
		"3 values":    func() { NewTable("t", "a", "b").Add(1, 2, 3) },
		"2 places":    func() { NewPlot("p", "x", "y").Line("l", []float64{1, 2}, []float64{1}) },
		"at most 200": func() { Move(nil, NewSlider("x", make([]float64, 201)...)) },
		"wrong input": func() { Must(1, errors.New("wrong input")) },
	}
	if cell := cells[os.Getenv("NB_TEST_CELL")]; cell != nil {
		cell()
		return
	}
	for want := range cells {
		c := exec.Command(os.Args[0], "-test.run=TestRefused")
		c.Env = append(os.Environ(), "NB_TEST_CELL="+want)
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%v with output %q, want status 1 and %s", err, out, want)
		}
	}
}

// TestMisspelt compiles a cell with a misspelt function within Must: the compiler must name
// it, and nothing else.
func TestMisspelt(t *testing.T) {
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(module, ".misspelt-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	program := "package main\n\nimport (\n\"icrl/policyattention/nb\"\n\"icrl/policyattention/pmd\"\n)\n\nfunc main() {\nx := nb.Must(pmd.Stepp(nil, nil, 1))\n_ = x\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "vet", "./"+filepath.Base(folder))
	c.Dir = module
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "undefined: pmd.Stepp") || strings.Contains(string(out), "not enough arguments") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestFormat(t *testing.T) {
	for want, value := range map[string]any{
		"0":                  0.0,
		"12":                 12.0,
		"0.0123":             0.012345,
		"0.5":                0.5,
		"0.95":               0.95,
		"1.23":               1.2345,
		"-123":               -123.4,
		"1234":               1234.4,
		"1.23e-05":           1.2345e-5,
		"NaN":                math.NaN(),
		"+Inf":               math.Inf(1),
		"7":                  7,
		"yes":                true,
		"[0.500 0.250]":      []float64{.5, .25},
		"1.02 [0.981, 1.07]": stats.Estimate{Value: 1.0203, Lo: .9812, Hi: 1.0701},
		"as it | is":         "as it | is",
	} {
		if got := Format(value); got != want {
			t.Errorf("Format(%v) = %q, want %q", value, got, want)
		}
	}
}

// Tables have the same entries in HTML and in text; what stands between backticks is code.
func TestSheet(t *testing.T) {
	s := NewTable("Losses <T = 20>", "method", "loss")
	s.Add("exact PMD", .0123)
	s.Add("`pmd-target`", .5)
	s.Note("Made by `policyattention`.")
	want := "Losses <T = 20>\nmethod        loss\n────────────  ──────\nexact PMD     0.0123\n`pmd-target`  0.5\nMade by `policyattention`."
	if got := s.text(); got != want {
		t.Errorf("text is\n%s\nwant\n%s", got, want)
	}
	got := s.HTML()
	for _, want := range []string{"Losses &lt;T = 20&gt;</figcaption>", "<code>pmd-target</code>", "Made by <code>policyattention</code>."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from %s", want, got)
		}
	}
	if strings.Contains(got, "`") || strings.Contains(got, "details") || !strings.Contains(s.Fold().HTML(), "<summary>") {
		t.Error("backticks are shown, or the table is folded where it should not be")
	}
	if got := s.Only("loss").text(); got != "Losses <T = 20>\nloss\n──────\n0.0123\n0.5\nMade by `policyattention`." {
		t.Errorf("one column is\n%s", got)
	}
}

// A table of the report takes less room in a notebook: three digits, intervals beside their
// values, and a count that never changes as a note. What is wider than a page goes on below.
func TestCompact(t *testing.T) {
	columns := []string{"method", "S", "here", "95% interval", "source", "runs"}
	rows := [][]tables.Cell{
		{{"exact PMD"}, {8}, {0.012345}, {tables.Interval{Lo: 0.012343, Hi: .7200123}}, {"arXiv 2605.05755"}, {"3 of 3"}},
		{{"PMD-target"}, {16}, {"–"}, {tables.Interval{Lo: math.NaN(), Hi: math.NaN()}}, {"1.2345 in words"}, {"3 of 3"}},
	}
	want := "Losses, 3 of 3 runs\nmethod      S   here [95% interval]    source\n──────────  ──  ─────────────────────  ────────────────\n" +
		"exact PMD   8   0.0123 [0.0123, 0.72]  arXiv 2605.05755\nPMD-target  16  –                      1.2345 in words\nA note."
	if got := Compact("Losses", columns, rows, []string{"A note."}).text(); got != want {
		t.Errorf("text is\n%s\nwant\n%s", got, want)
	}
	if rows[0][2][0] != 0.012345 || len(columns) != 6 {
		t.Error("the report's own table has changed")
	}
	if got := Compact("Losses", columns, rows, nil).Keep(func(row int) bool { return row == 1 }).Entries(); len(got) != 1 || got[0][0] != "PMD-target" {
		t.Errorf("the second row is %q", got)
	}
	wide := NewTable("Wide", "name", "a", "b", "c", "d", "e")
	text := strings.Repeat("x", 30)
	wide.Add("row", .5, text, text, text, text)
	if got, want := fmt.Sprint(wide.parts()), "[[0 1 2 3 4] [0 5]]"; got != want {
		t.Errorf("parts are %s, want %s", got, want)
	}
}

// A plot draws what can be drawn, and names each line where it ends.
func TestPlot(t *testing.T) {
	p := NewPlot("Loss", "round", "loss").LogY().Line("PMD", nil, []float64{1, .1, 0, math.NaN(), .001}).Dashed("bound", []float64{0, 4}, []float64{2, 2})
	if got, want := p.alt(), "Loss: loss against round; PMD ends at 0.001; bound ends at 2"; got != want {
		t.Errorf("alt is %q, want %q", got, want)
	}
	if q := NewPlot("Loss", "round", "loss").Line("PMD", nil, []float64{1, .1, 0}).LogY(); q.alt() != "Loss: loss against round; PMD ends at 0.1" {
		t.Errorf("made logarithmic afterwards: %q", q.alt())
	}
	c := vgsvg.New(plots.FigureWidth, plotHeight)
	Try(p.draw(draw.New(c)))
	var b bytes.Buffer
	Must(c.WriteTo(&b))
	svg := b.String()
	for _, want := range []string{">PMD<", ">bound<", ">round<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the drawing lacks %s", want)
		}
	}
	picture := Must(p.png())
	reduced := Must(small(picture))
	before, after := Must(png.Decode(bytes.NewReader(picture))), Must(png.Decode(bytes.NewReader(reduced)))
	if before.Bounds() != after.Bounds() || len(reduced) > len(picture) {
		t.Errorf("the small picture is %v of %d bytes, the whole one %v of %d", after.Bounds(), len(reduced), before.Bounds(), len(picture))
	}
	if w := after.Bounds().Dx(); w < 900 {
		t.Errorf("a plot is %d pixels wide, want 900", w)
	}
}

// The frames of a moving plot stand in the order in which its script counts them.
func TestMove(t *testing.T) {
	m, err := newMoving(func(v []float64) *Plot {
		return NewPlot("t", "x", "y").Line("l", []float64{0, 1}, []float64{v[0], v[1]}).Say("%g, %g", v[0], v[1])
	}, []Slider{NewSlider("a", 1, 2).At(1), NewSlider("b", 10, 20, 30)})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, f := range m.Frames {
		notes = append(notes, f.Notes...)
	}
	if got, want := strings.Join(notes, "; "), "1, 10; 1, 20; 1, 30; 2, 10; 2, 20; 2, 30"; got != want {
		t.Errorf("frames are %s, want %s", got, want)
	}
	if m.Range != [4]float64{0, 1, 1, 30} || m.first.notes[0] != "1, 20" {
		t.Errorf("range %v, first %v", m.Range, m.first.notes)
	}
	b := m.bundle()
	source := b["text/html"].(string)
	data := regexp.MustCompile(`(?s)"move-[0-9a-f]+", (\{.*\})\)</script>`).FindStringSubmatch(source)
	if data == nil {
		t.Fatalf("no data in %s", source)
	}
	var back moving
	if err := json.Unmarshal([]byte(data[1]), &back); err != nil || len(back.Frames) != 6 {
		t.Errorf("the data has %d frames: %v", len(back.Frames), err)
	}
	if strings.Count(source, "</script>") != 1 || !strings.Contains(source, "data:image/png") || len(b["image/png"].([]byte)) == 0 {
		t.Error("the output has more than one script or no picture")
	}
}

package report

import (
	"bytes"
	"encoding/json"
	"image/png"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"icrl/internal/testkit"
)

type estimate struct{ value float64 }

func (e estimate) Float() float64 { return e.value }

var example = Table{
	Name: "sample", Title: "A | title", Columns: []string{"method", "loss", "interval"},
	Rows: [][]any{
		{"a|b", 0.0123456, Interval{0.01, 0.02}},
		{"c", estimate{12345678}, nil},
		{"d", math.NaN(), Interval{1, math.Inf(1)}},
	},
	Notes: []string{"A note."},
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		"md": "### A | title\n\n| method | loss     | interval     |\n| ------ | -------- | ------------ |\n" +
			"| a\\|b   | 0.01235  | [0.01, 0.02] |\n",
		"csv":  "method,loss,interval\na|b,0.01235,\"[0.01, 0.02]\"\nc,12345678,\n",
		"html": "<td>12345678</td><td></td>",
		"json": `"rows":[["a|b",0.0123456,[0.01,0.02]],["c",12345678,null],["d",null,[1,null]]]`,
	} {
		var b bytes.Buffer
		if err := example.Write(&b, format); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s gives\n%s\n%v, want\n%s", format, b.String(), err, want)
		}
		if format == "json" && !json.Valid(b.Bytes()) {
			t.Error("no JSON")
		}
	}
	if err := example.Write(&bytes.Buffer{}, "pdf"); err == nil {
		t.Error("an unknown format is accepted")
	}
	want := "A | title\nmethod  loss      interval\n" +
		"──────  ────────  ────────────\n" +
		"a|b     0.01235   [0.01, 0.02]\n"
	if text := example.Plain(); !strings.HasPrefix(text, want) {
		t.Errorf("plain text is\n%s\nwant\n%s", text, want)
	}
}

func TestDecimals(t *testing.T) {
	for want, v := range map[string]float64{".0193": .01929, "-.4342": -.43416, "1.3100": 1.31, ".0000": .00001} {
		if got := Decimals(4)(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func figure() *Figure {
	return &Figure{Name: "f", Title: "Losses", Panels: []*Panel{
		{Title: "(a)", X: "round", Y: "loss", LogY: true, Series: []Series{
			{Name: "exact PMD", Y: []float64{1, .1, 0, .01}}, // 0 has no logarithm
			{Name: "dots", X: []float64{1, 2}, Y: []float64{.5, .2}, Lo: []float64{.4, .1},
				Hi:   []float64{.6, math.Inf(1)},
				Dots: true, Colour: "#0072b2"},
		}},
		{Title: "(b)", Y: "ratio", Ticks: []string{"run 1", "run 2"},
			Series: []Series{{X: []float64{0, 1}, Y: []float64{1, 1}, Dashed: true}}},
		{Title: "(c) empty", Series: []Series{{Name: "nothing", Y: []float64{math.NaN()}}}},
	}}
}

func TestFigure(t *testing.T) {
	svg, err := figure().SVG()
	if err != nil || !bytes.Contains(svg, []byte("exact PMD")) || !bytes.Contains(svg, []byte("Sans,Arial")) {
		t.Errorf("SVG of %d bytes: %v", len(svg), err)
	}
	if again, _ := figure().SVG(); !bytes.Equal(svg, again) {
		t.Error("two drawings differ")
	}
	picture := testkit.Must(figure().PNG())(t)
	if decoded, err := png.Decode(bytes.NewReader(picture)); err != nil || decoded.Bounds().Dx() < 1000 {
		t.Errorf("PNG: %v", err)
	}
	if paths, err := figure().Save(t.TempDir()); err != nil || len(paths) != 2 {
		t.Errorf("saved %v: %v", paths, err)
	}
	if alt := figure().Alt(); !strings.Contains(alt, "exact PMD ends at 0.01") {
		t.Errorf("alternative text %q", alt)
	}
	if _, err := (&Figure{Name: "none"}).SVG(); err == nil {
		t.Error("a figure without panels is drawn")
	}
	if _, err := (&Figure{Panels: []*Panel{{LogY: true, Series: []Series{{Y: []float64{-1}}}}}}).PNG(); err == nil {
		t.Error("a logarithmic axis without a point is drawn")
	}
}

// Labels keep their order, do not overlap, and stay between the two heights, and those that have
// room stay where they are.
func TestApart(t *testing.T) {
	for name, x := range map[string]struct{ lines, want []vg.Length }{
		"room":              {[]vg.Length{80, 20}, []vg.Length{20, 80}},
		"same":              {[]vg.Length{50, 50}, []vg.Length{45, 55}},
		"at the top":        {[]vg.Length{99, 98}, []vg.Length{85, 95}},
		"below the bottom":  {[]vg.Length{-9, 1}, []vg.Length{5, 15}},
		"three at a height": {[]vg.Length{50, 50, 50}, []vg.Length{40, 50, 60}},
	} {
		var labels []label
		for _, y := range x.lines {
			labels = append(labels, label{line: y, at: y, height: 10})
		}
		apart(labels, 0, 100)
		for i, l := range labels {
			if d := l.at - x.want[i]; d < -1e-6 || d > 1e-6 {
				t.Errorf("%s: label %d at %v, want %v", name, i, l.at, x.want[i])
			}
		}
	}
}

// Axes have few round ticks, whatever they span.
func TestTicks(t *testing.T) {
	for _, span := range [][2]float64{{0, 1}, {.4, 1.2}, {1e-9, 1}, {.3, .9}, {-2, 40}} {
		ticks := decades(span[0], span[1])
		labelled := 0
		for _, x := range ticks {
			if x.Label != "" {
				labelled++
			}
		}
		if labelled > 12 || labelled == 0 {
			t.Errorf("%v has %d labelled ticks", span, labelled)
		}
	}
}

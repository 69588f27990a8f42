package nb

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/stats"
)

// A cell that asks for what does not exist says so and ends with status 1.
func TestRefused(t *testing.T) {
	cells := map[string]func(){
		"3 values":        func() { NewTable("t", "a", "b").Add(1, 2, 3) },
		"no column":       func() { NewTable("t", "a").Only("b") },
		"2 places":        func() { NewPlot("p", "x", "y").Line("l", []float64{1, 2}, []float64{1}) },
		"needs a slider":  func() { Move(func([]float64) *Plot { return NewPlot("p", "x", "y") }) },
		"at most 200":     func() { Move(nil, NewSlider("s", make([]float64, 300)...)) },
		"without a point": func() { Move(func([]float64) *Plot { return NewPlot("p", "x", "y") }, NewSlider("s", 1)) },
		"no such":         func() { Must(os.Open("no such file")) },
	}
	if cell := os.Getenv("NB_CELL"); cell != "" {
		cells[cell]()
		return
	}
	for want := range cells {
		c := exec.Command(os.Args[0], "-test.run", "^TestRefused$")
		c.Env = append(os.Environ(), "NB_CELL="+want)
		if text, err := c.CombinedOutput(); err == nil || !strings.Contains(string(text), want) {
			t.Errorf("a cell printed %q and ended with %v, want %q and status 1", text, err, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, value := range map[string]any{
		"0.0123": 0.012345, "1.23e-05": 1.2345e-5, "3": 3.0, "1.23e+06": 1.23e6, "yes": true,
		"[0.500 0.250]": []float64{.5, .25}, "text": "text", "1.05 [0.900, " +
			"1.20]": stats.Estimate{Value: 1.05, Lo: .9, Hi: 1.2}, "123": 123.4,
	} {
		if got := Format(value); got != want {
			t.Errorf("Format(%v) = %q, want %q", value, got, want)
		}
	}
}

// A figure keeps its size with the colours that are seen.
func TestSmall(t *testing.T) {
	before := testkit.Must(NewPlot("p", "x", "y").Line("l", nil, []float64{1, 2, 4}).figure().PNG())(t)
	after := testkit.Must(small(before))(t)
	a, errA := png.Decode(bytes.NewReader(before))
	b, errB := png.Decode(bytes.NewReader(after))
	if errA != nil || errB != nil || a.Bounds() != b.Bounds() || len(after) >= len(before) {
		t.Errorf("%d bytes became %d: %v, %v", len(before), len(after), errA, errB)
	}
}

func TestMove(t *testing.T) {
	m, err := newMoving(func(v []float64) *Plot {
		return NewPlot("p", "x", "y").Line("l", nil, []float64{v[0], 2 * v[0]})
	}, []Slider{NewSlider("s", 1, 2, 3).At(2.9)})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Frames) != 3 || m.Sliders[0].Start != 2 || m.Range != [4]float64{0, 1, 1, 6} {
		t.Errorf("frames %d, start %d, range %v", len(m.Frames), m.Sliders[0].Start, m.Range)
	}
	if b := m.bundle(); !strings.Contains(b["text/html"].(string), "<script>") {
		t.Error("no script")
	}
}

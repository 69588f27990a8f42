package nb

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/report"
)

// Slider is a quantity that a reader of a plot sets.
type Slider struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Start  int       `json:"start"` // index of the value that is set first
}

// NewSlider returns a slider over values, set to the middle one.
func NewSlider(name string, values ...float64) Slider {
	return Slider{Name: name, Values: values, Start: len(values) / 2}
}

// At sets the slider to the value nearest to x.
func (s Slider) At(x float64) Slider {
	for i, v := range s.Values {
		if math.Abs(v-x) < math.Abs(s.Values[s.Start]-x) {
			s.Start = i
		}
	}
	return s
}

// Move shows a plot with sliders below it. Every setting's plot is drawn beforehand, by calls of frame with the
// sliders' values, and is part of the output. So it moves without a kernel, and also in a notebook that was saved as a
// web page. Where scripts do not run, the plot of the first setting stands still.
func Move(frame func(values []float64) *Plot, sliders ...Slider) {
	m, err := newMoving(frame, sliders)
	Try(err)
	m.bundle().described(m.first.figure().Alt(), "")
}

// moving is what the script in the page draws from.
type moving struct {
	Title   string        `json:"title"`
	X       string        `json:"x"`
	Y       string        `json:"y"`
	LogX    bool          `json:"logX"`
	LogY    bool          `json:"logY"`
	Range   [4]float64    `json:"range"` // of x and y over all frames
	Sliders []Slider      `json:"sliders"`
	Frames  []movingFrame `json:"frames"` // the last slider changes first
	Colours []string      `json:"colours"`
	Dashes  [][]float64   `json:"dashes"`
	first   *Plot         // the plot of the first setting
}

type movingFrame struct {
	Title  string          `json:"title"`
	Series []report.Series `json:"series"`
	Notes  []string        `json:"notes"`
}

// maxFrames keeps outputs small enough for a repository.
const maxFrames = 200

func newMoving(frame func([]float64) *Plot, sliders []Slider) (*moving, error) {
	if len(sliders) == 0 {
		return nil, errors.New("nb: a moving plot needs a slider")
	}
	count, start := 1, 0
	for _, s := range sliders {
		if len(s.Values) == 0 || s.Start < 0 || s.Start >= len(s.Values) {
			return nil, fmt.Errorf("nb: slider %q has %d values and starts at number %d",
				s.Name, len(s.Values), s.Start)
		}
		count, start = count*len(s.Values), start*len(s.Values)+s.Start
	}
	if count > maxFrames {
		return nil, fmt.Errorf("nb: the sliders have %d settings, want at most %d", count, maxFrames)
	}
	inf := math.Inf(1)
	m := &moving{Sliders: sliders, Range: [4]float64{inf, -inf, inf, -inf}, Colours: report.Palette,
		Dashes: report.Strokes}
	for n := range count {
		values := make([]float64, len(sliders))
		rest := n
		for i := len(sliders) - 1; i >= 0; i-- {
			values[i] = sliders[i].Values[rest%len(sliders[i].Values)]
			rest /= len(sliders[i].Values)
		}
		p := frame(values)
		if q := p.panel; n == start {
			m.first, m.Title, m.X, m.Y, m.LogX, m.LogY = p, q.Title, q.X, q.Y, q.LogX, q.LogY
		}
		f := movingFrame{Title: p.panel.Title, Notes: p.notes}
		for _, s := range p.panel.Series {
			s = p.panel.Drawable(s)
			s.X, s.Y = rounded(s.X), rounded(s.Y)
			f.Series = append(f.Series, s)
			for i := range s.X {
				m.Range[0], m.Range[1] = min(m.Range[0], s.X[i]), max(m.Range[1], s.X[i])
				m.Range[2], m.Range[3] = min(m.Range[2], s.Y[i]), max(m.Range[3], s.Y[i])
			}
		}
		m.Frames = append(m.Frames, f)
	}
	if m.Range[0] > m.Range[1] {
		return nil, errors.New("nb: a moving plot without a point")
	}
	return m, nil
}

// rounded keeps four significant digits, more than a plot shows.
func rounded(values []float64) []float64 {
	r := make([]float64, len(values))
	for i, v := range values {
		r[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	}
	return r
}

//go:embed move.js
var moveScript string

func (m *moving) bundle() bundle {
	data := Must(json.Marshal(m))
	still := Must(small(Must(m.first.figure().PNG())))
	id := fmt.Sprintf("move-%x", sha256.Sum256(data))[:13]
	var b strings.Builder
	fmt.Fprintf(&b, `<div id="%s"><img alt="%s" style="max-width:100%%" width="940" src="data:image/png;base64,%s">`,
		id, html.EscapeString(m.first.figure().Alt()), base64.StdEncoding.EncodeToString(still))
	for _, note := range m.first.notes {
		fmt.Fprintf(&b, "<p>%s</p>", code(html.EscapeString(note)))
	}
	fmt.Fprintf(&b, "</div>\n<script>(%s)(%q, %s)</script>", strings.TrimSpace(moveScript), id, data)
	text := "[figure with sliders] " + m.first.figure().Alt()
	for _, s := range m.Sliders {
		text += fmt.Sprintf("; %s = %s", s.Name, number(s.Values[s.Start]))
	}
	return bundle{
		protocol.MIMETextHTML: b.String(), protocol.MIMEImagePNG: still,
		protocol.MIMETextPlain: strings.Join(append([]string{text}, m.first.notes...), "\n"),
	}
}

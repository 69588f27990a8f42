package nb

import (
	"fmt"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/report"
)

// Plot is a panel that a cell draws line by line; names stand where the lines end.
//
//	nb.NewPlot("Loss by round", "round", "loss").LogY().Line("exact PMD", nil, losses).Show()
type Plot struct {
	panel report.Panel
	notes []string
}

// NewPlot returns an empty plot with the names of its axes.
func NewPlot(title, x, y string) *Plot { return &Plot{panel: report.Panel{Title: title, X: x, Y: y}} }

// LogX makes the horizontal axis logarithmic. Places that are not positive are left out.
func (p *Plot) LogX() *Plot { p.panel.LogX = true; return p }

// LogY makes the vertical axis logarithmic. Values that are not positive are left out.
func (p *Plot) LogY() *Plot { p.panel.LogY = true; return p }

// Line adds a line through (x, y); without x, through (0, y[0]), (1, y[1]), ….
func (p *Plot) Line(name string, x, y []float64) *Plot {
	return p.add(report.Series{Name: name, X: x, Y: y})
}

// Dashed adds a dashed line, for what others are compared with.
func (p *Plot) Dashed(name string, x, y []float64) *Plot {
	return p.add(report.Series{Name: name, X: x, Y: y, Dashed: true})
}

// Say adds a sentence below the plot.
func (p *Plot) Say(format string, args ...any) *Plot {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
	return p
}

func (p *Plot) add(s report.Series) *Plot {
	if s.X != nil && len(s.X) != len(s.Y) {
		check(fmt.Errorf("nb: line %q has %d places and %d values", s.Name, len(s.X), len(s.Y)))
	}
	p.panel.Series = append(p.panel.Series, s)
	return p
}

func (p *Plot) figure() *report.Figure {
	return &report.Figure{Title: p.panel.Title, Panels: []*report.Panel{&p.panel}}
}

// Show shows the plot.
func (p *Plot) Show() { p.show("") }

func (p *Plot) show(id string) {
	showFigure(p.figure(), id)
	if len(p.notes) > 0 {
		if id != "" {
			id += "-notes"
		}
		sentence(strings.Join(p.notes, "\n")).show(id)
	}
}

// Figure shows a figure, such as those of package results.
func Figure(f *report.Figure, errs ...error) {
	if !lacks(errs...) && !lacks(Must(f, errs...).Check()) {
		showFigure(f, "")
	}
}

// Screen is a place in a cell's output whose contents can be replaced while the cell runs.
type Screen struct{ id string }

// NewScreen returns a place below what the cell has shown so far.
func NewScreen() *Screen { return &Screen{gonbui.UniqueId()} }

// Show shows a plot in place of the last one.
func (s *Screen) Show(p *Plot) { p.show(s.id) }

// HTML shows HTML in place of what was there, and text where HTML cannot be shown.
func (s *Screen) HTML(source, text string) {
	bundle{protocol.MIMETextHTML: source, protocol.MIMETextPlain: text}.show(s.id)
}

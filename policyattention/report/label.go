package report

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figureWidth is that of 940 pixels. textSize is that of all text but titles: 11 points
// where a figure is scaled to 828 pixels, as JupyterLab does in a window of 1,280.
const (
	figureWidth vg.Length = 705 // points
	textSize    vg.Length = 12.5
	lineStep              = textSize + 1.5
	nameGap     vg.Length = 12 // between the data and the names
	longName              = 24 // letters from which a name takes two lines
)

// ending is a name that stands where a line of a panel ends.
type ending struct {
	plotter.XY
	Name   string
	Colour color.Color
}

// wrap breaks a long name in two, after a comma or before a bracket where it has one.
func wrap(name string) string {
	if utf8.RuneCountInString(name) < longName {
		return name
	}
	for _, at := range []string{", ", " (", " "} {
		if i := strings.Index(name, at); i > 0 {
			head := strings.TrimSpace(name[:i+1])
			return head + "\n" + strings.TrimSpace(name[i+1:])
		}
	}
	return name
}

func nameStyle(p *plot.Plot) text.Style {
	style := p.X.Label.TextStyle
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	return style
}

// nameRoom returns the room that names need right of a panel's data.
func nameRoom(p *plot.Plot, ends []ending) (room vg.Length) {
	style := nameStyle(p)
	for _, e := range ends {
		for line := range strings.SplitSeq(e.Name, "\n") {
			room = max(room, style.Width(line)+nameGap)
		}
	}
	return room
}

// label is a name that is to be written at a height, near that of its line.
type label struct {
	ending
	line, at, height vg.Length
}

// apart pushes labels that stand one above another apart, and leaves them between two heights.
func apart(labels []label, floor, ceiling vg.Length) {
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.line, b.line) })
	for range 100 { // neighbours push each other
		for i := range max(0, len(labels)-1) {
			low, high := &labels[i], &labels[i+1]
			if short := (low.height+high.height)/2 - (high.at - low.at); short > 0 {
				low.at, high.at = low.at-short/2, high.at+short/2
			}
		}
	}
	for i := range labels {
		labels[i].at = max(labels[i].at, floor+labels[i].height/2)
		floor = labels[i].at + labels[i].height/2
	}
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].at = min(labels[i].at, ceiling-labels[i].height/2)
		ceiling = labels[i].at - labels[i].height/2
	}
}

// nameLines writes each name right of the data, at the height where its line ends, apart from the others. The names'
// colours are those of the lines, dark enough to be read.
func nameLines(c draw.Canvas, p *plot.Plot, data draw.Canvas, ends []ending) {
	style := nameStyle(p)
	var names []label
	for _, e := range ends {
		y := data.Y(p.Y.Norm(e.Y))
		names = append(names, label{e, y, y, lineStep * vg.Length(1+strings.Count(e.Name, "\n"))})
	}
	apart(names, data.Min.Y-textSize/2, data.Max.Y+textSize/2)
	for _, l := range names {
		style.Color = dark(l.Colour)
		c.StrokeLine2(draw.LineStyle{Color: style.Color, Width: .6}, data.X(p.X.Norm(l.X))+1, l.line,
			data.Max.X+nameGap-3, l.at)
		c.FillText(style, vg.Point{X: data.Max.X + nameGap, Y: l.at}, l.Name)
	}
}

// dark returns a colour for text: of its hue, with a contrast to white of at least 4.5.
func dark(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	shade := func(v uint32) uint8 { return uint8(v >> 8 * 55 / 100) }
	return color.RGBA{shade(r), shade(g), shade(b), 255}
}

// decades ticks a logarithmic axis at powers of ten and, where there are few of them, labels their double and
// fivefold too. Axes that span less than a factor of six are ticked like linear ones.
func decades(lo, hi float64) (ticks []plot.Tick) {
	if !(lo > 0) || hi < 6*lo { // nothing to take logarithms of, or a short axis
		return even(lo, hi)
	}
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(lo/10, hi) { // of numbers below 1, gonum leaves a decade out
		if t.Value < lo || t.Value > hi {
			continue // gonum would leave room for its label
		}
		if digit := strconv.FormatFloat(t.Value, 'e', 0, 64)[0]; hi < 100*lo && (digit == '2' || digit == '5') {
			t.Label = strconv.FormatFloat(t.Value, 'g', 1, 64)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// even returns up to seven ticks, at multiples of 1, 2 or 5 times a power of ten: round ones, unlike gonum's.
func even(lo, hi float64) (ticks []plot.Tick) {
	unit := math.Pow(10, math.Floor(math.Log10((hi-lo)/5)))
	step := 10 * unit
	for _, k := range []float64{5, 2, 1} {
		if 5*k*unit >= hi-lo {
			step = k * unit
		}
	}
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		value := k*step + 0 // without the sign of a zero
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return ticks
}

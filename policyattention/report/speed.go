package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/bench"
	"icrl/policyattention/plots"
	"icrl/policyattention/tables"
)

// GrowthTable tables the growth study: for each axis the power laws at the
// upper end of what was measured, and where a run of the paper's budget stops
// fitting the machine.
func GrowthTable(g *bench.Growth) Table {
	t := Table{
		Name: "growth", Title: fmt.Sprintf("Growth of costs on one core (%s, %s)", g.Machine, g.Backend),
		Columns: []string{"work", "axis", "measured", "cost at the ends", "time grows like", "memory at the ends", "a run stops fitting at", "by"},
		Notes: []string{
			"Processor time; at each point the least of several measurements. Exponents are fitted to the three upper points.",
			fmt.Sprintf("A run fits as long as it needs at most %.0f GB and one core a day; the point where it stops is extrapolated by the power laws, so its order of magnitude is what counts. Around 100 MB are the program and XLA.", g.Memory/1024),
		},
	}
	if g.Note != "" {
		t.Notes = append(t.Notes, g.Note)
	}
	for _, s := range g.Series {
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		limit, by := s.Limit(g.Memory)
		reach := "no limit seen"
		if !math.IsInf(limit, 1) {
			reach = fmt.Sprintf("%s ≈ %s", s.Axis, about(limit))
		} else {
			by = ""
		}
		t.Rows = append(t.Rows, tables.Cells(
			s.Name, s.Axis, fmt.Sprintf("%g–%g", first.X, last.X),
			fmt.Sprintf("%s–%s %s", timespan(first.Seconds), timespan(last.Seconds), s.Unit),
			fmt.Sprintf("%s^%.1f", s.Axis, s.Time().P),
			fmt.Sprintf("%.0f–%.0f MB", first.Megabytes, last.Megabytes),
			reach, by,
		))
	}
	return t
}

// ScaleTable tables what grids of 100 and of 10,000 runs of the paper's budget
// cost: core-hours, and days on this machine and on 1,000 cores.
func ScaleTable(g *bench.Growth) Table {
	cores := fmt.Sprintf("%d cores", g.Cores)
	if g.Cores == 1 {
		cores = "1 core"
	}
	t := Table{
		Name: "scale", Title: "Grids of runs at the paper's budget",
		Columns: []string{"a run of", "core-hours a run", "100 runs, core-hours", "on this machine", "10,000 runs, core-hours", "on this machine", "on 1,000 cores"},
		Notes: []string{
			fmt.Sprintf("This machine has %s; each run has one, as the grid does it.", cores),
		},
	}
	for _, s := range g.Series {
		x := map[string]float64{"S": 8, "m": 6, "context": 200}[s.Axis]
		for _, p := range s.Points {
			if p.X != x || s.Unit == "a step of each" {
				continue
			}
			hours := p.Seconds * s.Budget / 3600
			t.Rows = append(t.Rows, tables.Cells(
				fmt.Sprintf("%s, %s=%g", s.Name, s.Axis, x), significant(hours),
				significant(100*hours), timespan(3600*100*hours/float64(g.Cores)),
				significant(10_000*hours), timespan(3600*10_000*hours/float64(g.Cores)), timespan(3600*10_000*hours/1000),
			))
		}
	}
	return t
}

// GrowthFigure draws the growth study: time and memory along each axis.
func GrowthFigure(g *bench.Growth) (*plots.Figure, error) {
	panel := func(title string, chosen func(s bench.Series) bool) *plots.Panel {
		p := plots.NewPanel(title, "size of the axis", "seconds a unit of work")
		plots.LogLog(p)
		p.Legend.Left = true
		shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}}
		n := 0
		for _, s := range g.Series {
			if !chosen(s) {
				continue
			}
			points := make(plotter.XYs, len(s.Points))
			for i, x := range s.Points {
				points[i] = plotter.XY{X: x.X, Y: x.Seconds}
			}
			line := p.Line(plots.Palette[n], false, points)
			marks := plots.Mark(line.Color, shapes[n%len(shapes)], points...)
			p.Add(marks)
			p.Legend.Add(fmt.Sprintf("%s, %s", s.Name, s.Axis), line, marks)
			n++
		}
		p.Headroom(n)
		return p
	}
	training := func(s bench.Series) bool {
		return s.Unit == "a step" || s.Unit == "a sequence" || s.Unit == "a step of each"
	}
	a, b := panel("(a) training", training), panel("(b) everything else", func(s bench.Series) bool { return !training(s) })
	return &plots.Figure{Name: "growth", Title: "Growth of costs on one core", Panels: []*plots.Panel{a, b}}, cmp.Or(a.Err, b.Err)
}

// timespan writes seconds with two significant digits and a fitting unit.
func timespan(seconds float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}} {
		if seconds >= unit.size {
			return significant(seconds/unit.size) + " " + unit.name
		}
	}
	return significant(seconds/1e-6) + " µs"
}

// significant writes a number with two significant digits, or as an integer.
func significant(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// about writes one significant digit.
func about(v float64) string {
	digits := math.Pow(10, math.Floor(math.Log10(v)))
	return strconv.FormatFloat(math.Round(v/digits)*digits, 'f', -1, 64)
}

// BenchTable tables the speed comparison: for each row and setting the fastest
// variant of each framework.
func BenchTable(c *bench.Comparison) Table {
	t := Table{
		Name: "bench", Title: fmt.Sprintf("Steps or loops per second (%s, %s)", c.Machine.CPU, c.Machine.Backend),
		Columns: []string{"work", "processes × threads"},
		Notes: []string{
			fmt.Sprintf("The best of several turns, summed over processes. In brackets the share of the machine's matmul peak, %.0f GFLOP/s (products of 2048² entries, the better of XLA and pure Go), and which variant of the framework it was, where it has several.", c.Peak),
		},
	}
	type place struct{ row, setting, family string }
	best := map[place]bench.Result{}
	var families []string
	var lines []place // without families
	for _, r := range c.Results {
		if r.Error != "" {
			continue
		}
		if !slices.Contains(families, r.Family()) {
			families = append(families, r.Family())
		}
		line := place{r.Row, r.Setting, ""}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		line.family = r.Family()
		if r.Best > best[line].Best {
			best[line] = r
		}
	}
	t.Columns = append(t.Columns, families...)
	var compared []string // with the peers
	if slices.ContainsFunc(families, peer) {
		compared = slices.DeleteFunc(slices.Clone(families), peer)
	}
	for _, family := range compared {
		t.Columns = append(t.Columns, family+" over the better peer")
	}
	for _, line := range lines {
		fastest := 0. // of the peers
		row := []Cell{{line.row}, {line.setting}}
		for _, family := range families {
			line.family = family
			r, ok := best[line]
			cell := NotRun
			if ok {
				cell = fmt.Sprintf("%s (%.0f %%", significant(r.Best), 100*r.Share)
				if r.Program != family {
					cell += "; " + r.Program
				}
				cell += ")"
			}
			row = append(row, Cell{cell})
			if peer(family) {
				fastest = max(fastest, r.Best)
			}
		}
		for _, family := range compared {
			line.family = family
			cell := NotRun
			if best[line].Best > 0 && fastest > 0 {
				cell = fmt.Sprintf("%.2f", best[line].Best/fastest)
			}
			row = append(row, Cell{cell})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// peer tells whether a framework is not one of ours.
func peer(family string) bool { return !strings.HasPrefix(family, "GoMLX") }

// ProfileTable tables where the time of a training step goes.
func ProfileTable(p *bench.Profile) Table {
	t := Table{
		Name: "profile", Title: fmt.Sprintf("Milliseconds of a training step on one core (%s, %s)", p.Machine.CPU, p.Machine.Backend),
		Columns: []string{"step of", "program", "linear layers", "attention", "LayerNorm", "AdamW", "rest", "whole step"},
		Notes: []string{
			fmt.Sprintf("Processor time, the least of several turns; the parts are measured by themselves, forward and backward. In brackets GFLOP/s and their share of the core's matmul peak, %.0f GFLOP/s.", p.Peak),
			"The rest is the whole step less the parts: gathering the batch, additions to the residual stream, the loss. It is negative where a program does together what the parts do apart.",
			"Operations are those of the whole network, in attention without regard to the mask. GoMLX's count LayerNorm's gains and biases to the linear layers, into whose weights they go, and leave out most of a critic's last block, of which only the queries' outputs are read.",
		},
	}
	for _, r := range p.Rows {
		for _, b := range r.Programs {
			row := []Cell{{r.Row}, {b.Program}}
			for _, part := range bench.Parts {
				cell := milliseconds(b.Milliseconds[part])
				if r.FLOPs[part] > 0 {
					rate := r.Rate(b, part)
					cell += fmt.Sprintf(" (%s, %.0f %%)", significant(rate), 100*rate/p.Peak)
				}
				if part == bench.Step {
					row = append(row, Cell{milliseconds(b.Rest())})
				}
				row = append(row, Cell{cell})
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// milliseconds writes a time, or a difference of times, to a hundredth.
func milliseconds(v float64) string { return fmt.Sprintf("%.2f", v) }

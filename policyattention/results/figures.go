package results

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// drawers are the figures: the paper's by number (Figure 1 is a drawing of the loop), then ours.
var drawers = []struct {
	name string
	draw func(*Store, *report.Figure) error
}{
	{"2", (*Store).figure2}, {"3", (*Store).figure3}, {"4", (*Store).figure4}, {"5", (*Store).figure5},
	{"oracle", (*Store).oracleFigure}, {"rounds", (*Store).rounds}, {"tuning", (*Store).tuningFigure},
	{"learning", (*Store).learning}, {"equal", (*Store).equalFigure},
}

// FigureNames lists the figures.
func FigureNames() (names []string) {
	for _, d := range drawers {
		names = append(names, d.name)
	}
	return names
}

// Figure returns the figure called name. It returns an error if there is no such figure or if rows
// that it shows are missing.
func (s *Store) Figure(name string) (*report.Figure, error) {
	for _, d := range drawers {
		if d.name == name {
			f := &report.Figure{Name: "figure-" + name}
			if err := d.draw(s, f); err != nil {
				return nil, fmt.Errorf("figure %s: %w", name, err)
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("results: no figure %q, want one of %q", name, FigureNames())
}

// number is a key as a number.
func (g group) number(c Column) float64 {
	v, err := strconv.ParseFloat(g.key[c], 64)
	if err != nil {
		return 0
	}
	return v
}

// sizeColours tell sizes apart, by S.
var sizeColours = map[string]string{"4": "#0072b2", "8": "#e69f00", "16": "#cc79a7"}

func (s *Store) figure2(f *report.Figure) error {
	f.Title = "The learned actor against fixed update rules"
	rules := s.Block("mechanism").Where(Method.Is("policyattention")).Of("row_l1")
	a := &report.Panel{Title: "(a) distance to fixed rules", Y: "mean row-L1", LogY: true, Ticks: rules.Values("rule")}
	t := rules.By(S, "rule").Mean()
	for i, g := range t.groups {
		at := float64(slices.Index(a.Ticks, g.key["rule"]))
		for _, v := range t.last[i].ByRun {
			a.Series = append(a.Series, report.Series{Colour: sizeColours[g.key[S]], X: []float64{at}, Y: []float64{v},
				Dots: true, Open: true})
		}
	}
	for rule, value := range map[string]float64{"pmd": .0357, "identity": .1116} { // the paper's
		at := slices.Index(a.Ticks, rule)
		a.Series = append(a.Series, report.Series{Colour: "#737373", Dashed: true,
			X: []float64{float64(at) - .4, float64(at) + .4}, Y: []float64{value, value}})
	}
	b := &report.Panel{Title: "(b) refitted step size", X: "supplied η", Y: "fitted η"}
	steps, err := s.Block("mechanism-steps").Where(Method.Is("policyattention")).Of("fitted_eta").
		groups([]Column{S, "eta"})
	if err != nil {
		return err
	}
	for states, colour := range sizeColours {
		line := report.Series{Name: "S = " + states, Colour: colour}
		for _, g := range steps {
			if g.key[S] == states {
				line.X, line.Y = append(line.X, g.number("eta")),
					append(line.Y, stats.Median(stats.RunMedians(g.sample)))
			}
		}
		b.Series = append(b.Series, line)
	}
	slices.SortFunc(b.Series, func(x, y report.Series) int { return len(x.Name) - len(y.Name) })
	b.Series = append(b.Series, report.Series{Name: "supplied", Dashed: true, Colour: "#000000", X: []float64{.4, 1.2},
		Y: []float64{.4, 1.2}})
	f.Panels = []*report.Panel{a, b}
	return t.err
}

func (s *Store) figure3(f *report.Figure) error {
	f.Title = "Ratios to exact PMD in closed loop and under shift"
	line := func(at, n float64) report.Series {
		return report.Series{Dashed: true, Colour: "#737373", X: []float64{-.5, n - .5}, Y: []float64{at, at}}
	}
	a := &report.Panel{Title: "(a) S = 4 runs, exact critic", Y: "loss / exact PMD at T = 20",
		Series: []report.Series{line(1, 5), line(1.5, 5)}}
	runs := s.Block("confirmation").At(20).Where(Method.Is("policyattention")).By(Seed).
		Against(s.exact("confirmation").At(20).By()).Ratio()
	for i, c := range runs.last {
		x := []float64{float64(i)}
		a.Ticks = append(a.Ticks, fmt.Sprintf("run %d", i+1))
		a.Series = append(a.Series, report.Series{Colour: Colour("policyattention"), X: x, Y: []float64{c.Value},
			Lo: []float64{c.Lo}, Hi: []float64{c.Hi}, Dots: true},
			report.Series{Colour: "#000000", X: x, Y: []float64{ThePaper.value(c.Query)}, Dots: true, Open: true})
	}
	b := &report.Panel{Title: "(b) shifts without retraining",
		Y: a.Y, Series: []report.Series{line(1, 4), line(1.5, 4)}}
	shifts := s.Block("shift").At(20).Where(Method.Is("policyattention")).By(Family).
		Against(s.exact("shift").At(20).By(Family)).Ratio()
	for i, c := range shifts.last {
		x := []float64{float64(i)}
		b.Ticks = append(b.Ticks, shifts.key(i, Family))
		b.Series = append(b.Series,
			report.Series{Colour: Colour("policyattention"), X: x, Y: []float64{c.Value}, Dots: true,
				Lo: []float64{slices.Min(c.ByRun)}, Hi: []float64{slices.Max(c.ByRun)}},
			report.Series{Colour: "#000000", X: x, Y: []float64{ThePaper.value(c.Query)}, Dots: true, Open: true})
	}
	f.Panels = []*report.Panel{a, b}
	return cmpErr(runs.err, shifts.err)
}

// value is the number that the paper prints for a query, NaN without one.
func (p *Paper) value(query string) float64 {
	if n, ok := p.Printed(query).(Number); ok {
		return n.Value
	}
	return nan
}

func (s *Store) figure4(f *report.Figure) error {
	f.Title = "Median T = 20 loss by method"
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d (rings: the paper)", states), Y: "median loss at T = 20",
			LogY: true}
		loss := s.Block("benchmark").At(20).Where(S.Is(states)).By(Method, Recipe, S, T).keep(func(g group) bool {
			return slices.Contains(ofTable3, g.key[Method]+" "+g.key[Recipe]) || g.key[Recipe] == "tuned"
		}).Median()
		if loss.err != nil {
			return loss.err
		}
		for i, c := range loss.last {
			x := []float64{float64(i)}
			p.Ticks = append(p.Ticks, labelled(loss.key(i, Method), loss.key(i, Recipe)))
			p.Series = append(p.Series, report.Series{Colour: Colour(loss.key(i, Method)), X: x, Y: []float64{c.Value},
				Lo: []float64{c.Lo}, Hi: []float64{c.Hi}, Dots: true},
				report.Series{Colour: "#000000", X: x, Y: []float64{ThePaper.value(c.Query)}, Dots: true, Open: true})
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

func (s *Store) figure5(f *report.Figure) error {
	f.Title = "Deviation from exact PMD and T = 20 loss along training"
	for _, states := range []int{4, 8} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d, 6,400 to 51,200 steps", states), X: "ζ in the loop",
			Y: "median loss at T = 20", LogX: true}
		for _, method := range []string{"policyattention", "pmd-target"} {
			rows := s.Block("frontier").At(20).Where(Method.Is(method), S.Is(states))
			loss, zeta := rows.By(Step).Median(), rows.Of("zeta").By(Step).Median()
			if err := cmpErr(loss.err, zeta.err); err != nil {
				return err
			}
			line := report.Series{Name: Label(method), Colour: Colour(method)}
			for i := range loss.last {
				line.X, line.Y = append(line.X, zeta.last[i].Value), append(line.Y, loss.last[i].Value)
			}
			p.Series = append(p.Series, line)
			dots := line
			dots.Name, dots.Dots = "", true
			p.Series = append(p.Series, dots)
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

// overRounds is a line of a summary of the losses after each round.
func overRounds(rows Rows, name, colour string, dashed bool, of func([]float64) float64) (report.Series, error) {
	line := report.Series{Name: name, Colour: colour, Dashed: dashed}
	var horizons []int
	for k := 1; k <= 40; k++ {
		horizons = append(horizons, k)
	}
	groups, err := rows.At(horizons...).groups(nil)
	for _, g := range groups {
		line.X, line.Y = append(line.X, g.number(T)), append(line.Y, of(slices.Concat(g.sample...)))
	}
	return line, err
}

// rounds draws what a median shows, and what it hides.
func (s *Store) rounds(f *report.Figure) error {
	f.Title = "Median and worst loss over rounds, all runs"
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d: median (lines), worst problem (dashes)", states), X: "round",
			Y: "normalized loss", LogY: true}
		for _, m := range [][2]string{{"policyattention", "plain"}, {"policyattention-learned-critic", "plain"},
			{"liang-lai", "tuned"}, {"exact-pmd", ""}} {
			rows := s.Block("benchmark").Where(Method.Is(m[0]), Recipe.Is(cmp.Or(m[1], None)), S.Is(states))
			if rows.Len() == 0 {
				continue
			}
			median, err := overRounds(rows, labelled(m[0], m[1]), Colour(m[0]), false, stats.Median)
			worst, errW := overRounds(rows, "", Colour(m[0]), true, func(v []float64) float64 { return slices.Max(v) })
			if err = cmpErr(rows.err, err, errW); err != nil {
				return err
			}
			p.Series = append(p.Series, median, worst)
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

func (s *Store) oracleFigure(f *report.Figure) error {
	f.Title = "Exact PMD in closed loop: median and 99th percentile over 1,000 problems"
	p := &report.Panel{Title: "exact PMD, η = .8", X: "round", Y: "normalized loss", LogY: true}
	for _, states := range []string{"4", "8", "16"} {
		rows := s.exact("oracle").Where(S.Is(states))
		median, err := overRounds(rows, "S = "+states, sizeColours[states], false, stats.Median)
		tail, errT := overRounds(rows, "", sizeColours[states], true,
			func(v []float64) float64 { return stats.TailOf(v, 1).P99 })
		if err = cmpErr(rows.err, err, errT); err != nil {
			return err
		}
		p.Series = append(p.Series, median, tail)
	}
	f.Panels = []*report.Panel{p}
	return nil
}

func (s *Store) tuningFigure(f *report.Figure) error {
	f.Title = "Liang–Lai on calibration problems: the best β of each actor step"
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d (the paper's grid ends at α = 2)", states), X: "actor step α",
			Y: "median loss at T = 20", LogX: true, LogY: true}
		for _, start := range []string{"initial", "uniform"} {
			groups, err := s.Block("tuning").At(20).
				Where(Method.Is("liang-lai"), Recipe.Is(None), S.Is(states), Column("start").Is(start)).
				groups([]Column{"alpha", "beta"})
			if err != nil {
				return err
			}
			line := report.Series{Name: "from " + start}
			for _, g := range groups {
				loss := stats.Median(g.sample[0])
				if n := len(line.X); n == 0 || line.X[n-1] != g.number("alpha") {
					line.X, line.Y = append(line.X, g.number("alpha")), append(line.Y, loss)
				} else {
					line.Y[n-1] = min(line.Y[n-1], loss)
				}
			}
			p.Series = append(p.Series, line)
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

// learning draws the loss of trainings by step.
func (s *Store) learning(f *report.Figure) error {
	f.Title = "Training loss by optimizer step"
	for _, states := range []int{4, 8} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d, first run", states), X: "step", Y: "loss"}
		for _, name := range []string{"proximal", "pmd-target"} {
			training := fmt.Sprintf("%s-plain-S%d-%d", name, states, 14100+1000*(states-4))
			rows := s.File("losses.parquet", "losses").Where(Column("training").Is(training))
			if rows.err != nil {
				return rows.err
			}
			p.Series = append(p.Series, report.Series{Name: name, X: rows.Number(Step), Y: rows.Number("loss")})
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

// equalFigure draws mean losses over rounds with equal information.
func (s *Store) equalFigure(f *report.Figure) error {
	f.Title = "Mean loss over rounds with equal information, S = 8"
	all, err := s.informedRows()
	if err != nil {
		return err
	}
	for _, x := range []struct {
		title, information string
		n                  int
		methods            []string
	}{
		{"with the model", "model", 0, []string{"policyattention", "exact-pmd", "liang-lai", "value-iteration",
			"policy-iteration"}},
		{"20 on-policy transitions a round", "window", 20,
			[]string{"policyattention-td", "liang-lai", "q-learning", "certainty-equivalence",
				"algorithm-distillation"}},
	} {
		p := &report.Panel{Title: x.title, X: "round", Y: "mean loss", LogX: true, LogY: true}
		for _, method := range x.methods {
			i, ok := find(all, method, x.information, x.n, 8, false)
			if !ok {
				continue
			}
			line := report.Series{Name: equalLabel(method)}
			for _, horizon := range []int{1, 2, 3, 5, 10, 20, 40} {
				losses, err := s.losses(i, horizon, 0)
				if err != nil {
					return err
				}
				line.X, line.Y = append(line.X, float64(horizon)),
					append(line.Y, max(stats.Mean(slices.Concat(losses...)), 1e-9))
			}
			p.Series = append(p.Series, line)
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

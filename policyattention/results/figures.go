package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// drawers are the figures: the paper's by number (Figure 1 is a drawing of the loop), then ours. Each
// returns a title and panels.
var drawers = []struct {
	name string
	draw func(*Store) (string, []*report.Panel, error)
}{
	{"2", (*Store).figure2}, {"3", (*Store).figure3}, {"4", (*Store).figure4}, {"5", (*Store).figure5},
	{"oracle", (*Store).oracleFigure}, {"rounds", (*Store).rounds}, {"tuning", (*Store).tuningFigure},
	{"learning", (*Store).learning}, {"equal", (*Store).equalFigure}, {"attention", (*Store).attentionFigure},
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
			title, panels, err := d.draw(s)
			if err != nil {
				return nil, fmt.Errorf("figure %s: %w", name, err)
			}
			return &report.Figure{Name: "figure-" + name, Title: title, Panels: panels}, nil
		}
	}
	return nil, fmt.Errorf("results: no figure %q, want one of %q", name, FigureNames())
}

// number is a key of a column of numbers, 0 where there is none.
func (g group) number(c Column) float64 {
	v, _ := strconv.ParseFloat(g.key[c], 64)
	return v
}

// sizeColours tell sizes apart, by S.
var sizeColours = map[string]string{"4": "#0072b2", "8": "#e69f00", "16": "#cc79a7"}

const black, grey = "#000000", "#737373"

// across is a dashed line at a height between two places.
func across(colour string, from, to, y float64) report.Series {
	return report.Series{Dashed: true, Colour: colour, X: []float64{from, to}, Y: []float64{y, y}}
}

// beside adds a tick with our estimate, its interval [lo, hi], and a ring where the paper's number is.
func beside(p *report.Panel, tick, method string, c Cell, lo, hi float64) {
	x := []float64{float64(len(p.Ticks))}
	p.Ticks = append(p.Ticks, tick)
	p.Series = append(p.Series, report.Series{Colour: Colour(method), X: x, Y: []float64{c.Value},
		Lo: []float64{lo}, Hi: []float64{hi}, Dots: true})
	if n, ok := ThePaper.Printed(c.Query).(Number); ok {
		p.Series = append(p.Series, report.Series{Colour: black, X: x, Y: []float64{n.Value}, Dots: true, Open: true})
	}
}

func (s *Store) figure2() (string, []*report.Panel, error) {
	rules := s.Block("mechanism").Where(Method.Is("policyattention")).Of("row_l1")
	a := &report.Panel{Title: "(a) distance to fixed rules", Y: "mean row-L1", LogY: true, Ticks: rules.Values("rule")}
	t := rules.By(S, "rule").Mean()
	for _, l := range t.lines {
		at := float64(slices.Index(a.Ticks, l.group.key["rule"]))
		for _, v := range l.last.ByRun {
			a.Series = append(a.Series, report.Series{Colour: sizeColours[l.group.key[S]], X: []float64{at},
				Y: []float64{v}, Dots: true, Open: true})
		}
	}
	for i, rule := range a.Ticks {
		if y, ok := map[string]float64{"pmd": .0357, "identity": .1116}[rule]; ok { // the paper's
			a.Series = append(a.Series, across(grey, float64(i)-.4, float64(i)+.4, y))
		}
	}
	b := &report.Panel{Title: "(b) refitted step size", X: "supplied η", Y: "fitted η"}
	steps := s.Block("mechanism-steps").Where(Method.Is("policyattention")).Of("fitted_eta")
	for _, states := range []string{"4", "8", "16"} {
		line := report.Series{Name: "S = " + states, Colour: sizeColours[states]}
		fitted := steps.Where(S.Is(states)).By("eta")
		for _, l := range fitted.lines {
			line.X, line.Y = append(line.X, l.group.number("eta")), append(line.Y, l.group.median())
		}
		t.err, b.Series = errors.Join(t.err, fitted.err), append(b.Series, line)
	}
	b.Series = append(b.Series, report.Series{Name: "supplied", Dashed: true, Colour: black, X: []float64{.4, 1.2},
		Y: []float64{.4, 1.2}})
	return "The learned actor against fixed update rules", []*report.Panel{a, b}, t.err
}

func (s *Store) figure3() (string, []*report.Panel, error) {
	a := &report.Panel{Title: "(a) S = 4 runs, exact critic", Y: "loss / exact PMD at T = 20",
		Series: []report.Series{across(grey, -.5, 4.5, 1), across(grey, -.5, 4.5, 1.5)}}
	runs := s.Block("confirmation").At(20).Where(Method.Is("policyattention")).By(Seed).
		Against(s.exact("confirmation").At(20).By()).Ratio()
	for i, l := range runs.lines {
		beside(a, fmt.Sprintf("run %d", i+1), "policyattention", l.last, l.last.Lo, l.last.Hi)
	}
	b := &report.Panel{Title: "(b) shifts without retraining", Y: a.Y,
		Series: []report.Series{across(grey, -.5, 3.5, 1), across(grey, -.5, 3.5, 1.5)}}
	shifts := s.tables["shift"]()
	for _, l := range shifts.lines {
		beside(b, l.group.key[Family], "policyattention", l.last, slices.Min(l.last.ByRun), slices.Max(l.last.ByRun))
	}
	err := errors.Join(runs.err, shifts.err)
	return "Ratios to exact PMD in closed loop and under shift", []*report.Panel{a, b}, err
}

func (s *Store) figure4() (title string, panels []*report.Panel, err error) {
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d (rings: the paper)", states), Y: "median loss at T = 20",
			LogY: true}
		loss := s.Block("benchmark").At(20).Where(S.Is(states)).By(Method, Recipe, S, T).keep(func(l line) bool {
			return inTable3(l) || l.group.key[Recipe] == "tuned"
		}).Median()
		for _, l := range loss.lines {
			method := l.group.key[Method]
			beside(p, labelled(method, l.group.key[Recipe]), method, l.last, l.last.Lo, l.last.Hi)
		}
		panels, err = append(panels, p), errors.Join(err, loss.err)
	}
	return "Median T = 20 loss by method", panels, err
}

func (s *Store) figure5() (title string, panels []*report.Panel, err error) {
	for _, states := range []int{4, 8} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d, 6,400 to 51,200 steps", states), X: "ζ in the loop",
			Y: "median loss at T = 20", LogX: true}
		for _, method := range []string{"policyattention", "pmd-target"} {
			rows := s.Block("frontier").At(20).Where(Method.Is(method), S.Is(states))
			loss, zeta := rows.By(Step).Median(), rows.Of("zeta").By(Step).Median()
			if err := errors.Join(loss.err, zeta.err); err != nil {
				return "", nil, err
			}
			line := report.Series{Name: Label(method), Colour: Colour(method)}
			for i, l := range loss.lines {
				line.X, line.Y = append(line.X, zeta.lines[i].last.Value), append(line.Y, l.last.Value)
			}
			dots := line
			dots.Name, dots.Dots = "", true
			p.Series = append(p.Series, line, dots)
		}
		panels = append(panels, p)
	}
	return "Deviation from exact PMD and T = 20 loss along training", panels, nil
}

// overRounds adds two lines to a panel, of summaries of the losses after each round: the first has the name,
// the second is dashed.
func overRounds(p *report.Panel, rows Rows, name, colour string, of ...func([]float64) float64) error {
	var horizons []int
	for _, round := range rows.Where(Column("round").Not(0)).Values("round") {
		k, _ := strconv.Atoi(round) // of a column of numbers
		horizons = append(horizons, k)
	}
	groups, err := rows.At(horizons...).groups(nil)
	for i, summary := range of {
		line := report.Series{Name: name, Colour: colour, Dashed: i > 0}
		name = "" // of the second
		for _, g := range groups {
			line.X, line.Y = append(line.X, g.number(T)), append(line.Y, summary(slices.Concat(g.sample...)))
		}
		p.Series = append(p.Series, line)
	}
	return err
}

// rounds draws what a median shows, and what it hides.
func (s *Store) rounds() (title string, panels []*report.Panel, err error) {
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d: median; worst problem, dashed", states), X: "round",
			Y: "normalized loss", LogY: true}
		for _, m := range [][2]string{{"policyattention", "plain"}, {"policyattention-learned-critic", "plain"},
			{"liang-lai", "tuned"}, {"exact-pmd", None}} {
			rows := s.Block("benchmark").Where(Method.Is(m[0]), Recipe.Is(m[1]), S.Is(states))
			if len(rows.at) == 0 && rows.err == nil {
				continue
			}
			name := labelled(m[0], m[1])
			err = errors.Join(err, overRounds(p, rows, name, Colour(m[0]), stats.Median, slices.Max[[]float64]))
		}
		panels = append(panels, p)
	}
	return "Median and worst loss over rounds, all runs", panels, err
}

func (s *Store) oracleFigure() (title string, panels []*report.Panel, err error) {
	p := &report.Panel{Title: "exact PMD, η = .8", X: "round", Y: "normalized loss", LogY: true}
	tail := func(v []float64) float64 { return stats.TailOf(v, 1).P99 }
	for _, states := range []string{"4", "8", "16"} {
		rows := s.exact("oracle").Where(S.Is(states))
		err = errors.Join(err, overRounds(p, rows, "S = "+states, sizeColours[states], stats.Median, tail))
	}
	return "Exact PMD in closed loop: median and 99th percentile over 1,000 problems", []*report.Panel{p}, err
}

func (s *Store) tuningFigure() (title string, panels []*report.Panel, err error) {
	for _, states := range []int{8, 16} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d (the paper's grid ends at α = 2)", states), X: "actor step α",
			Y: "median loss at T = 20", LogX: true, LogY: true}
		for _, start := range []string{"initial", "uniform"} {
			t := s.Block("tuning").Where(Method.Is("liang-lai"), Recipe.Is(None), S.Is(states)).
				Where(Column("start").Is(start)).At(20).By("alpha", "beta").least(group.median, "alpha")
			line := report.Series{Name: "from " + start}
			for _, l := range t.lines {
				line.X, line.Y = append(line.X, l.group.number("alpha")), append(line.Y, l.group.median())
			}
			p.Series, err = append(p.Series, line), errors.Join(err, t.err)
		}
		panels = append(panels, p)
	}
	return "Liang–Lai on calibration problems: the best β of each actor step", panels, err
}

// learning draws the loss of trainings by step.
func (s *Store) learning() (title string, panels []*report.Panel, err error) {
	for _, states := range []int{4, 8} {
		p := &report.Panel{Title: fmt.Sprintf("S = %d, first run", states), X: "step", Y: "loss"}
		for _, name := range []string{"proximal", "pmd-target"} {
			training := fmt.Sprintf("%s-plain-S%d-%d", name, states, 14100+1000*(states-4))
			rows := s.File("losses.parquet", "losses").Where(Column("training").Is(training))
			p.Series = append(p.Series, report.Series{Name: name, X: rows.Number(Step), Y: rows.Number("loss")})
			err = cmp.Or(err, rows.err)
		}
		panels = append(panels, p)
	}
	return "Training loss by optimizer step", panels, err
}

// equalFigure draws mean losses over rounds with equal information.
func (s *Store) equalFigure() (title string, panels []*report.Panel, err error) {
	for _, x := range []struct {
		title, information string
		n                  int
		methods            []string
	}{
		{"with the model", "model", 0, []string{"policyattention", "exact-pmd", "liang-lai", "value-iteration",
			"policy-iteration"}},
		{"20 on-policy transitions a round", "window", 20, []string{"policyattention-td", "liang-lai", "q-learning",
			"certainty-equivalence", "algorithm-distillation"}},
	} {
		p := &report.Panel{Title: x.title, X: "round", Y: "mean loss", LogX: true, LogY: true}
		rows := s.Block("equal").Where(S.Is(8), Column("information").Is(x.information), Column("n").Is(x.n),
			Column("untuned").Is(0))
		for _, method := range x.methods {
			mean := func(losses []float64) float64 { return max(stats.Mean(losses), 1e-9) }
			err = errors.Join(err, overRounds(p, rows.Where(Method.Is(method)), Label(method), "", mean))
		}
		panels = append(panels, p)
	}
	return "Mean loss over rounds with equal information, S = 8", panels, err
}

// attentionFigure draws what networks without attention lose, and what one token's values say layer by layer.
func (s *Store) attentionFigure() (string, []*report.Panel, error) {
	a := &report.Panel{Title: "(a) one dot per run", X: "row-L1 of one step", LogX: true,
		Y: "share of problems that lock up, T = 40", LogY: true}
	b := &report.Panel{Title: "(b) linear read-out of one token", X: "layer", Y: "R²"}
	numbers := s.Block("heads-numbers")
	err := numbers.err
	for k, states := range []string{"4", "8"} {
		for i, x := range seen {
			runs := s.looped(x.recipe, states)
			err = errors.Join(err, runs.err)
			for _, l := range runs.lines { // whose last estimate is the share
				oneStep, missing := s.oneStep(x.recipe, states)
				err = errors.Join(err, missing)
				a.Series = append(a.Series, report.Series{Colour: report.Palette[i], Dots: true, Open: k > 0,
					X: oneStep.ByRun, Y: l.last.ByRun})
			}
		}
		for _, i := range []int{0, 2} { // a pair sees all before, and itself alone
			for k, name := range []string{"ηQ", "log π"} {
				of := numbers.Where(S.Is(states), Recipe.Is(seen[i].recipe),
					Column("quantity").Is([]string{"gain_r2", "prior_r2"}[k]))
				if i > 0 {
					name += ", token-wise"
				}
				line := report.Series{Name: name + ", S = " + states, Colour: report.Palette[i], Dashed: k > 0}
				for layer := range 5 {
					line.Y = append(line.Y, stats.Mean(of.Where(Column("x").Is(layer)).Number("value")))
				}
				b.Series = append(b.Series, line)
			}
		}
	}
	return "What attention is for in trained actors", []*report.Panel{a, b}, err
}

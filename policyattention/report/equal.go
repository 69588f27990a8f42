package report

import (
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"icrl/policyattention/equal"
)

// equalEvidence reads what package equal has measured; nil where there is nothing.
func (s *source) equalEvidence() (*equal.Evidence, error) {
	e, err := equal.Read(equal.Folder(filepath.Dir(s.Store.Root())))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return e, err
}

// LeadTable takes PolicyAttention's lead over each method apart.
func LeadTable(e *equal.Evidence) (Table, error) {
	t := Table{
		Name:  "equal-lead",
		Title: "PolicyAttention's lead, as the paper compares, taken apart into factors of the loss",
		Notes: []string{"Lead: the method on a walk of 20 transitions a round with published numbers, over PolicyAttention with the model at η = .8. Lead = update rule × information × tuning, on every replicate of the bootstrap. Above 1 is in PolicyAttention's favour."},
	}
	var rows []equal.Lead
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			leads, err := e.Leads(states, horizon)
			if err != nil {
				return t, err
			}
			rows = append(rows, leads...)
		}
	}
	slices.SortStableFunc(rows, func(x, y equal.Lead) int { return leadOrder(x) - leadOrder(y) })
	type R = equal.Lead
	fill(&t, rows,
		column[R]{"method", func(r R) string { return labelOf(r.Row) }},
		column[R]{"S", func(r R) string { return fmt.Sprint(r.Row.States) }},
		column[R]{"T", func(r R) string { return fmt.Sprint(r.Horizon) }},
		column[R]{"lead", func(r R) string { return r.Lead.String() }},
		column[R]{"= update rule", func(r R) string { return r.Update.String() }},
		column[R]{"× information", func(r R) string { return r.Information.String() }},
		column[R]{"× tuning", func(r R) string { return r.Tuning.String() }},
		column[R]{"update, both on the walk", func(r R) string { return r.UpdateWalk.String() }},
		column[R]{"update, both with the model", func(r R) string {
			if !r.TwoWay {
				return "–"
			}
			return r.UpdateModel.String()
		}},
	)
	return t, nil
}

// leadOrder keeps the rows of a method together.
func leadOrder(l equal.Lead) int {
	all := equal.Methods(equal.Window)
	return slices.IndexFunc(all, func(m equal.Method) bool { return m.Name == l.Row.Method })
}

// labelOf returns how text writes a row's method.
func labelOf(r equal.Row) string {
	m, err := equal.Find(r.Information, r.Method)
	if err != nil {
		return r.Method
	}
	return m.Label
}

// quotientRow is a method in a condition over all sizes and horizons.
type quotientRow struct {
	Label, Condition string
	Cells            map[[2]int]equal.Quotient // by S and T
}

// QuotientTable compares every method with PolicyAttention where both are told the same, in
// the conditions that keep accepts; nil accepts all.
func QuotientTable(e *equal.Evidence, keep func(equal.Condition) bool) (Table, error) {
	t := Table{
		Name:  "equal",
		Title: "Losses over PolicyAttention's, told the same and tuned by the same rule",
		Notes: []string{"In brackets after the condition the estimate of Q that calibration chose for PolicyAttention, and after a number of runs below three their number. Losses below 1e-6 count as 1e-6. A dash: it cannot run there."},
	}
	var rows []*quotientRow
	found := map[string]*quotientRow{}
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			quotients, err := e.Quotients(states, horizon)
			if err != nil {
				return t, err
			}
			for _, q := range quotients {
				if keep != nil && !keep(q.Row.Condition) {
					continue
				}
				name := q.Row.Condition.String() + "/" + q.Row.Method
				r := found[name]
				if r == nil {
					r = &quotientRow{labelOf(q.Row), q.Row.Condition.String(), map[[2]int]equal.Quotient{}}
					found[name], rows = r, append(rows, r)
				}
				r.Cells[[2]int{states, horizon}] = q
			}
		}
	}
	columns := []column[*quotientRow]{
		{"told", func(r *quotientRow) string { return r.Condition }},
		{"method", func(r *quotientRow) string { return r.Label }},
	}
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			columns = append(columns, column[*quotientRow]{fmt.Sprintf("S = %d, T = %d", states, horizon), func(r *quotientRow) string {
				q, ok := r.Cells[[2]int{states, horizon}]
				switch {
				case !ok:
					return "–"
				case q.Row.Name() == q.Beside.Name():
					return fmt.Sprintf("loss %.3g", q.Loss.Value)
				}
				return q.Factor.String()
			}})
		}
	}
	fill(&t, rows, columns...)
	return t, nil
}

// equalExcerpt is a table of documents.
func equalExcerpt(build func(*equal.Evidence) (Table, error)) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		e, err := s.equalEvidence()
		if err != nil || e == nil {
			return Table{Columns: []string{NotRun}}, err
		}
		return build(e)
	}
}

// curve is a line of the figures: a method, or PolicyAttention with the estimate that
// calibration chose.
type curve struct {
	method string // "" for PolicyAttention's best
	colour color.RGBA
}

var equalCurves = map[equal.Information][]curve{
	equal.Model: {
		{"", color.RGBA{0, 114, 178, 255}}, {"exact-pmd", color.RGBA{0, 0, 0, 255}}, {"decoder", color.RGBA{150, 150, 150, 255}},
		{"liang-lai", color.RGBA{0, 158, 115, 255}}, {"natural-gradient", color.RGBA{86, 180, 233, 255}},
		{"value-iteration", color.RGBA{230, 159, 0, 255}}, {"policy-iteration", color.RGBA{204, 121, 167, 255}},
	},
	equal.Generative: {
		{"", color.RGBA{0, 114, 178, 255}}, {"policyattention-critic", color.RGBA{86, 180, 233, 255}}, {"decoder", color.RGBA{150, 150, 150, 255}},
		{"liang-lai", color.RGBA{0, 158, 115, 255}}, {"q-learning", color.RGBA{230, 159, 0, 255}}, {"sarsa", color.RGBA{240, 228, 66, 255}},
		{"certainty-equivalence", color.RGBA{204, 121, 167, 255}}, {"posterior-sampling", color.RGBA{0, 0, 0, 255}},
	},
	equal.Window: {
		{"", color.RGBA{0, 114, 178, 255}}, {"liang-lai", color.RGBA{0, 158, 115, 255}}, {"algorithm-distillation", color.RGBA{213, 94, 0, 255}},
		{"q-learning", color.RGBA{230, 159, 0, 255}}, {"sarsa", color.RGBA{240, 228, 66, 255}},
		{"certainty-equivalence", color.RGBA{204, 121, 167, 255}}, {"posterior-sampling", color.RGBA{0, 0, 0, 255}},
	},
}

// equalFigure draws losses in conditions, each at both sizes, against what was used.
func equalFigure(x string, use func(equal.Use) float64, conditions ...equal.Condition) func(*source) ([]*plot.Plot, error) {
	return func(s *source) ([]*plot.Plot, error) {
		e, err := s.equalEvidence()
		if err != nil {
			return nil, err
		}
		var panels []*plot.Plot
		for _, c := range conditions {
			for _, states := range equal.Sizes {
				p, err := EqualPanel(e, states, c, x, use)
				if err != nil {
					return nil, err
				}
				panels = append(panels, p)
			}
		}
		return panels, nil
	}
}

// EqualPanel draws the losses of a condition at a size against what was used, which use
// says. The evidence may be nil.
func EqualPanel(e *equal.Evidence, states int, c equal.Condition, x string, use func(equal.Use) float64) (*plot.Plot, error) {
	p := Panel(fmt.Sprintf("%s, S = %d", c, states), x, "median loss")
	if e == nil {
		empty(p)
		return p, nil
	}
	p.Legend.Top, p.Legend.Left = false, true
	for _, line := range equalCurves[c.Information] {
		row, err := e.Best(states, c)
		if err != nil {
			return nil, err
		}
		if line.method != "" {
			i := slices.IndexFunc(e.Rows, func(r equal.Row) bool {
				return r.States == states && r.Condition == c && r.Method == line.method && !r.Untuned
			})
			if i < 0 {
				continue // it cannot run here
			}
			row = e.Rows[i]
		}
		if err := equalLine(p, row, line.colour, use); err != nil {
			return nil, err
		}
	}
	LogScale(&p.X)
	LogScale(&p.Y)
	return p, nil
}

// equalLine draws a row with its intervals.
func equalLine(p *plot.Plot, row equal.Row, c color.RGBA, use func(equal.Use) float64) error {
	losses, err := row.Curve()
	if err != nil {
		return err
	}
	var xy plotter.XYs
	for h, l := range losses {
		at := use(row.Use[h])
		xy = append(xy, plotter.XY{X: at, Y: l.Value})
		bar, err := line(p, c, false, plotter.XYs{{X: at, Y: l.Lo}, {X: at, Y: l.Hi}})
		if err != nil {
			return err
		}
		bar.Width = .5
	}
	l, err := line(p, c, false, xy)
	if err != nil {
		return err
	}
	l.Width = vg.Points(1.2)
	p.Legend.Add(strings.TrimSuffix(labelOf(row), ", expectations"), l)
	return nil
}

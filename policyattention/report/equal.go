package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"icrl/policyattention/equal"
	"icrl/policyattention/method/all"
	"icrl/policyattention/plots"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// LeadTable takes PolicyAttention's lead over each method apart.
func LeadTable(e *equal.Evidence) (Table, error) {
	t := Table{
		Name:  "equal-lead",
		Title: "PolicyAttention's lead, as the paper compares, taken apart",
		Notes: []string{"Lead: the mean loss of the method on a walk of 20 transitions a round with published numbers, less that of PolicyAttention with the model at η = .8. Lead = update rule + information + tuning, on every replicate of the bootstrap too. Above 0 is in PolicyAttention's favour."},
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
		column[R]{"method", func(r R) any { return labelOf(r.Row) }},
		column[R]{"S", func(r R) any { return r.Row.States }},
		column[R]{"T", func(r R) any { return r.Horizon }},
		column[R]{"lead", func(r R) any { return signed(r.Lead) }},
		column[R]{"= update rule", func(r R) any { return signed(r.Update) }},
		column[R]{"+ information", func(r R) any { return signed(r.Information) }},
		column[R]{"+ tuning", func(r R) any { return signed(r.Tuning) }},
		column[R]{"update, both on the walk", func(r R) any { return signed(r.UpdateWalk) }},
		column[R]{"update, both with the model", func(r R) any {
			if !r.TwoWay {
				return "–"
			}
			return signed(r.UpdateModel)
		}},
	)
	return t, nil
}

// signed prints a difference of losses with its interval to three digits.
func signed(e stats.Estimate) string {
	return fmt.Sprintf("%+#.3g [%+#.3g, %+#.3g]", e.Value, e.Lo, e.Hi)
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

// comparisonRow is a method in a condition over all sizes and horizons.
type comparisonRow struct {
	Label, Condition string
	Cells            map[string]equal.Comparison // by column
}

// placeOf names the column of a size and horizon.
func placeOf(states, horizon int) string { return fmt.Sprintf("S = %d, T = %d", states, horizon) }

// ComparisonTable compares every method with PolicyAttention where both have the same information, in
// the conditions that keep accepts.
func ComparisonTable(e *equal.Evidence, keep func(equal.Condition) bool) (Table, error) {
	t := Table{
		Name:  "equal",
		Title: "Mean losses minus PolicyAttention's, with equal information and one rule of tuning",
		Notes: []string{"The row of PolicyAttention with the estimate of Q that calibration chose has the mean loss itself. Below 0 the method is better. A dash: it cannot run there."},
	}
	var rows []*comparisonRow
	found := map[string]*comparisonRow{}
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			comparisons, err := e.Compare(states, horizon, keep)
			if err != nil {
				return t, err
			}
			for _, q := range comparisons {
				name := q.Row.Condition.String() + "/" + q.Row.Method
				r := found[name]
				if r == nil {
					r = &comparisonRow{labelOf(q.Row), q.Row.Condition.String(), map[string]equal.Comparison{}}
					found[name], rows = r, append(rows, r)
				}
				r.Cells[placeOf(states, horizon)] = q
			}
		}
	}
	columns := []column[*comparisonRow]{
		{"information", func(r *comparisonRow) any { return r.Condition }},
		{"method", func(r *comparisonRow) any { return r.Label }},
	}
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			name := placeOf(states, horizon)
			columns = append(columns, column[*comparisonRow]{name, func(r *comparisonRow) any {
				q, ok := r.Cells[name]
				switch {
				case !ok:
					return "–"
				case q.Row.Name() == q.Beside.Name():
					return fmt.Sprintf("loss %#.3g", q.Loss)
				}
				return signed(q.Difference)
			}})
		}
	}
	fill(&t, rows, columns...)
	return t, nil
}

// AnswerTable shows rows of package equal as they are: what was chosen, the mean losses, and
// what was used.
func AnswerTable(rows []equal.Row) Table {
	t := Table{Name: "answer", Title: "Mean losses and what was used"}
	columns := []column[equal.Row]{
		{"information", func(r equal.Row) any { return fmt.Sprintf("%s, S = %d", r.Condition, r.States) }},
		{"method", func(r equal.Row) any { return labelOf(r) }},
		{"chosen", func(r equal.Row) any { return numbersOf(r) }},
	}
	for _, horizon := range []int{5, 10, 20, 40} {
		columns = append(columns, column[equal.Row]{fmt.Sprintf("T = %d", horizon), func(r equal.Row) any {
			return fmt.Sprintf("%#.3g", stats.Mean(slices.Concat(r.At(horizon)...)))
		}})
	}
	last := func(r equal.Row) equal.Use { return r.Use[len(r.Use)-1] }
	fill(&t, rows, append(columns,
		column[equal.Row]{"transitions", func(r equal.Row) any { return last(r).Transitions }},
		column[equal.Row]{"entries of P and r", func(r equal.Row) any { return last(r).Entries }},
		column[equal.Row]{"floating-point operations", func(r equal.Row) any { return fmt.Sprintf("%#.3g", last(r).Operations) }},
	)...)
	return t
}

// numbersOf prints the free numbers of a row.
func numbersOf(r equal.Row) string {
	m, err := equal.Find(r.Information, r.Method)
	if err != nil || len(m.Parameters) != len(r.Values) {
		return fmt.Sprint(r.Values)
	}
	var parts []string
	for i, p := range m.Parameters {
		switch {
		case !p.Choice:
			parts = append(parts, fmt.Sprintf("%s = %.3g", p.Name, r.Values[i]))
		case r.Values[i] == 0:
			parts = append(parts, "from π₀")
		default:
			parts = append(parts, "from uniform")
		}
	}
	return strings.Join(parts, ", ")
}

// walks accepts the walk that the paper's benchmark gives sampled methods.
func walks(c equal.Condition) bool { return c.Information == equal.Window && c.N == 20 }

// shownConditions accepts the conditions of the paper's comparison, and generative samples
// as many as its learned critic has.
func shownConditions(c equal.Condition) bool {
	return c.Information == equal.Model || c.Information == equal.Generative && c.N == 144 || walks(c)
}

// SentenceTable says in a sentence for each size and horizon what PolicyAttention's update is
// worth with equal information, and what beats it.
func SentenceTable(e *equal.Evidence) (Table, error) {
	t := Table{Name: "equal-sentence", Title: "What PolicyAttention's update is worth, in mean loss", Columns: []string{"S", "T", "with equal information and one rule of tuning"}}
	for _, states := range equal.Sizes {
		for _, horizon := range horizons {
			leads, err := e.Leads(states, horizon)
			if err != nil {
				return t, err
			}
			t.Rows = append(t.Rows, tables.Cells(states, horizon, worth(leads)))
		}
	}
	return t, nil
}

// worth says what PolicyAttention's update is worth over those of the registry's methods, and what
// references are ahead of it.
func worth(leads []equal.Lead) string {
	lead := func(name string) *equal.Lead {
		if i := slices.IndexFunc(leads, func(l equal.Lead) bool { return l.Row.Method == name }); i >= 0 {
			return &leads[i]
		}
		return nil
	}
	var over []string
	var model, apart string
	for _, m := range equal.Registered(equal.Window) {
		l := lead(m.Name)
		if l == nil {
			continue
		}
		over = append(over, fmt.Sprintf("%s over %s's", signed(l.UpdateWalk), m.Label))
		if l.TwoWay {
			share := func(part stats.Estimate) int { return int(math.Round(100 * part.Value / l.Lead.Value)) }
			model = fmt.Sprintf("; with the model %s over %s's expected update", signed(l.UpdateModel), m.Label)
			apart = fmt.Sprintf(" Of the lead over %s as published, %s, tuning is %d %%, information %d %%, the update rule %d %%.",
				m.Label, signed(l.Lead), share(l.Tuning), share(l.Information), share(l.Update))
		}
	}
	planner, bayes := lead("certainty-equivalence"), lead("posterior-sampling")
	return fmt.Sprintf("On a walk of 20 transitions a round PolicyAttention's update is worth %s%s. Certainty equivalence on the same walk is better than it by %s, posterior sampling by %s.%s",
		strings.Join(over, " and "), model, signed(minus(planner.UpdateWalk)), signed(minus(bayes.UpdateWalk)), apart)
}

// minus returns the estimate of the negative.
func minus(e stats.Estimate) stats.Estimate {
	return stats.Estimate{Value: -e.Value, Lo: -e.Hi, Hi: -e.Lo}
}

// EqualTables are all tables of methods with equal information.
func EqualTables(e *equal.Evidence) ([]Table, error) {
	sentences, err := SentenceTable(e)
	if err != nil {
		return nil, err
	}
	lead, err := LeadTable(e)
	if err != nil {
		return nil, err
	}
	all, err := ComparisonTable(e, func(equal.Condition) bool { return true })
	return []Table{sentences, lead, all}, err
}

// equalExcerpt is a table of documents.
func equalExcerpt(build func(*equal.Evidence) (Table, error)) func(*source) (Table, error) {
	return func(s *source) (Table, error) {
		e, err := s.equal()
		if err != nil || e == nil {
			return Table{Columns: []string{NotRun}}, err
		}
		return build(e)
	}
}

// ink is how a method is drawn everywhere: colours that colour-blind readers tell apart
// (Okabe and Ito, brown for their yellow), and dashes for print in grey.
type ink struct {
	colour color.RGBA
	dashes []vg.Length
}

var (
	blue   = ink{color.RGBA{0, 114, 178, 255}, nil}
	black  = ink{color.RGBA{0, 0, 0, 255}, []vg.Length{7, 2}}
	silver = ink{plots.Grey, nil}
	sky    = ink{color.RGBA{86, 180, 233, 255}, []vg.Length{4, 4}}
	orange = ink{color.RGBA{230, 159, 0, 255}, []vg.Length{9, 2, 1, 2, 1, 2}}
	brown  = ink{color.RGBA{120, 80, 20, 255}, []vg.Length{1, 2}}
	purple = ink{color.RGBA{204, 121, 167, 255}, []vg.Length{7, 2, 2, 2}}
)

// curve is a line of the figures: a method, or PolicyAttention with the estimate that
// calibration chose.
type curve struct {
	method string // "" for PolicyAttention's best
	ink    ink
}

// equalCurves are the lines of the methods that are no room of their own.
var equalCurves = map[equal.Information]struct{ first, last []curve }{
	equal.Model: {
		[]curve{{"", blue}, {"exact-pmd", black}, {"decoder", silver}},
		[]curve{{"natural-gradient", sky}, {"value-iteration", orange}, {"policy-iteration", purple}},
	},
	equal.Generative: {[]curve{{"", blue}, {"policyattention-residual-critic", sky}, {"decoder", silver}}, sampling},
	equal.Window:     {[]curve{{"", blue}}, sampling},
}

var sampling = []curve{{"q-learning", orange}, {"sarsa", brown}, {"certainty-equivalence", purple}, {"posterior-sampling", black}}

// curvesOf lists the lines of an information: those of the registry's methods stand before the
// references, in their own colours.
func curvesOf(i equal.Information) []curve {
	list := slices.Clone(equalCurves[i].first)
	for _, m := range all.Methods {
		if _, ok := m.Form(i); !ok {
			continue
		}
		c := curve{string(m.Name), ink{colour: m.Colour}}
		for _, d := range m.Dashes {
			c.ink.dashes = append(c.ink.dashes, vg.Length(d))
		}
		list = append(list, c)
	}
	return append(list, equalCurves[i].last...)
}

// equalFigure draws losses in conditions, each at both sizes, against what was used. The
// lines of a row have their names at its right, where the lines end or, as a key, in a list.
func equalFigure(x string, key bool, use func(equal.Use) float64, conditions ...equal.Condition) func(*source) ([]*plots.Panel, error) {
	return func(s *source) ([]*plots.Panel, error) {
		e, err := s.equal()
		if err != nil {
			return nil, err
		}
		var panels []*plots.Panel
		for _, c := range conditions {
			for _, states := range equal.Sizes {
				p, err := EqualPanel(e, states, c, x, use)
				if err != nil {
					return nil, err
				}
				panels = append(panels, p)
			}
			// The names of a row stand at its right, those of lines that only its left has in a list.
			left, right := panels[len(panels)-2], panels[len(panels)-1]
			for _, e := range left.Ends {
				if !slices.ContainsFunc(right.Ends, func(x plots.End) bool { return x.Name == e.Name }) {
					e.Key = true
					right.Ends = append(right.Ends, e)
				}
			}
			left.Ends = nil
			for i := range right.Ends {
				right.Ends[i].Key = right.Ends[i].Key || key
			}
		}
		return panels, nil
	}
}

// EqualPanel draws the losses of a condition at a size against what was used, which use
// says. The evidence may be nil.
func EqualPanel(e *equal.Evidence, states int, c equal.Condition, x string, use func(equal.Use) float64) (*plots.Panel, error) {
	p := plots.NewPanel(fmt.Sprintf("%s, S = %d", c, states), x, "mean loss")
	if e == nil {
		empty(p)
		return p, nil
	}
	for _, line := range curvesOf(c.Information) {
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
		if err := equalLine(p, row, line.ink, use); err != nil {
			return nil, err
		}
	}
	plots.LogLog(p)
	return p, nil
}

// equalLine draws a row with its intervals.
func equalLine(p *plots.Panel, row equal.Row, i ink, use func(equal.Use) float64) error {
	losses, err := row.Curve()
	if err != nil {
		return err
	}
	var xy plotter.XYs
	for h, l := range losses {
		at := use(row.Use[h])
		xy = append(xy, plotter.XY{X: at, Y: max(l.Value, equal.Floor)})
		p.Bar(i.colour, at, max(l.Lo, equal.Floor), max(l.Hi, equal.Floor))
	}
	l := p.Line(i.colour, false, xy)
	l.Dashes = i.dashes
	p.Name(labelOf(row), l)
	return nil
}

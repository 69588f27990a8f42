package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/report"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// The study with equal information compares mean losses, not medians: once step sizes are tuned,
// many methods solve more than half of the problems to the last digit.

// equalHorizons are those of its rows.
var equalHorizons = []int{1, 2, 3, 5, 10, 20, 40}

// informed names a row of that study: a method with an information.
type informed struct {
	method, information string
	n, states           int
	untuned             bool
}

// informedOf is a row by the values of columns.
func informedOf(value func(Column) string) informed {
	n, _ := strconv.Atoi(value("n")) // of a column of numbers, as the next
	states, _ := strconv.Atoi(value(S))
	return informed{value(Method), value("information"), n, states, value("untuned") == "1"}
}

// after names the losses of a row after T rounds or, for "chosen" and "greedy", after 20 rounds, of policies at the
// temperatures that calibration problems chose and greedy ones.
type after struct{ method, condition, states, t string }

func (i informed) after(t any) after {
	return after{i.method, rows.Condition(i.information, i.n, i.untuned), fmt.Sprint(i.states), fmt.Sprint(t)}
}

// study holds the rows in their order, and losses [runs][problems].
type study struct {
	rows   []informed
	losses map[after][][]float64
}

func (s *Store) readStudy() (*study, error) {
	x := &study{losses: map[after][][]float64{}}
	all := s.Block("equal")
	for _, at := range all.Where(Column("run").Is(0), Column("problem").Is(0), Column("round").Is(1)).at {
		x.rows = append(x.rows, informedOf(func(c Column) string { return all.data.value(c, at) }))
	}
	groups, noRows := all.At(equalHorizons...).groups([]Column{Method, "information", "n", "untuned", S})
	for _, g := range groups {
		x.losses[informedOf(func(c Column) string { return g.key[c] }).after(g.key[T])] = g.sample
	}
	sharper, none := s.Block("equal-sharpness").At(20).groups([]Column{Method, Recipe, S, "start"})
	for _, g := range sharper {
		x.losses[after{g.key[Method], g.key[Recipe], g.key[S], g.key["start"]}] = g.sample
	}
	return x, errors.Join(noRows, none)
}

// at returns a row's losses [runs][problems]: see after. What has one run, since nothing in it is random, is repeated
// where more runs are wanted.
func (x *study) at(i informed, horizon any, runs int) ([][]float64, error) {
	losses := x.losses[i.after(horizon)]
	if len(losses) == 0 {
		return nil, fmt.Errorf("results: no rows of %s, %s, S = %d, T = %v", i.method, i.words(), i.states, horizon)
	}
	if len(losses) == 1 {
		losses = slices.Repeat(losses, max(1, runs))
	}
	return losses, nil
}

// words is the information as tables write it; block equal calls on-policy transitions a window.
func (i informed) words() string {
	if i.n == 0 {
		return i.information
	}
	return fmt.Sprintf("%s, %d", strings.Replace(i.information, "window", "on-policy", 1), i.n)
}

// ours is PolicyAttention's row with the same information: on transitions of a walk with the estimate of Q that has the
// lower loss on calibration problems.
func (i informed) ours() informed {
	i.method, i.untuned = "policyattention", false
	if i.information == "window" {
		i.method = "policyattention-td"
	}
	return i
}

func (s *Store) equal() (t Table) {
	t.Columns = []string{"information", "method", "S", "T", "mean loss", "minus PolicyAttention's", "95 % interval"}
	x, err := s.study()
	if t.err = err; err != nil {
		return t
	}
	for _, i := range x.rows {
		if i.untuned || i.information == "window" && i.n != 20 {
			continue
		}
		for _, horizon := range Horizons {
			loss, d, err := x.besideOurs(i, horizon)
			t.err = errors.Join(t.err, err)
			row := []any{i.words(), equalLabel(i.method), i.states, horizon, loss, nil, nil}
			if i.information != "generative" && i != i.ours() {
				row[5], row[6] = d.Value, report.Interval{Lo: d.Lo, Hi: d.Hi}
			}
			t.Add(row...)
		}
	}
	return t
}

// greedy is what the first round of policy iteration leaves of the study's problems.
func (s *Store) greedy() (t Table) {
	t.Columns = []string{"S", "share solved"}
	rows := s.Block("equal").Where(Method.Is("policy-iteration"), Column("round").Is(1))
	t.err = rows.err
	for _, states := range rows.Values(S) {
		loss := rows.Where(S.Is(states)).Number("loss")
		solved := slices.DeleteFunc(slices.Clone(loss), func(x float64) bool { return x > 1e-9 })
		t.Add(states, float64(len(solved))/float64(len(loss)))
	}
	return t
}

// besideOurs returns a row's mean loss and, but for generative samples, how far it lies above PolicyAttention's with
// the same information.
func (x *study) besideOurs(i informed, horizon any) (loss float64, d stats.Estimate, err error) {
	runs := 0
	if i.information == "model" { // one run stands for all
		runs = 3
	}
	theirs, err := x.at(i, horizon, runs)
	if err == nil && i.information != "generative" {
		var ours [][]float64
		if ours, err = x.at(i.ours(), horizon, len(theirs)); err == nil {
			d, err = stats.Standard.Contrast([]float64{1, -1}, theirs, ours)
		}
	}
	return stats.Mean(slices.Concat(theirs...)), d, err
}

// withModel names what methods on the walk become where they can read the model.
var withModel = map[string]string{
	"liang-lai": "liang-lai", "q-learning": "value-iteration", "sarsa": "value-iteration",
	"certainty-equivalence": "policy-iteration", "posterior-sampling": "policy-iteration",
}

func equalLabel(method string) string {
	for suffix, words := range map[string]string{"-td": "TD estimate", "-all": "mean of all samples",
		"-mean": "mean of samples"} {
		if of, ok := strings.CutSuffix(method, suffix); ok {
			return Label(of) + ", " + words
		}
	}
	return Label(method)
}

// Lead takes PolicyAttention's lead over a method apart: the mean loss of the method with published
// step sizes on 20 on-policy transitions a round, less that of PolicyAttention with the model and
// η = .8. Lead = Update + Information + Tuning, on every replicate of the bootstrap too.
type Lead struct {
	Lead, Update, Information, Tuning stats.Estimate
	UpdateWindow, UpdateModel         stats.Estimate // at equal information; zero where it cannot read the model
}

// LeadOver takes the lead over a method at a size and horizon, or of policies that are "chosen" or "greedy" (see
// after), apart. With all step sizes tuned there is a two-way table of losses, update rule by information: Update is
// the mean of its two differences between rules, Information of those between informations.
func (s *Store) LeadOver(method string, states int, horizon any) (l Lead, err error) {
	x, err := s.study()
	if err != nil {
		return l, err
	}
	tuned := informed{method, "window", 20, states, false}
	published := informed{method, "window", 20, states, true}
	if x.losses[published.after(20)] == nil { // nothing is published
		published = tuned
	}
	rows := []informed{published, tuned, tuned.ours(), {"policyattention", "model", 0, states, false},
		{"policyattention", "model", 0, states, true}}
	name, twoWay := withModel[method]
	if twoWay {
		rows = append(rows, informed{name, "model", 0, states, false})
	}
	var samples [][][]float64
	for _, r := range rows {
		losses, err := x.at(r, horizon, 3)
		if err != nil {
			return l, err
		}
		samples = append(samples, losses)
	}
	parts := map[*stats.Estimate][]float64{
		&l.Lead: {1, 0, 0, 0, -1, 0}, &l.Tuning: {1, -1, 0, 1, -1, 0}, &l.UpdateWindow: {0, 1, -1, 0, 0, 0},
		&l.Update: {0, 1, -1, 0, 0, 0}, &l.Information: {0, 0, 1, -1, 0, 0},
	}
	if twoWay {
		parts[&l.UpdateModel] = []float64{0, 0, 0, -1, 0, 1}
		parts[&l.Update] = []float64{0, .5, -.5, -.5, 0, .5}
		parts[&l.Information] = []float64{0, .5, .5, -.5, 0, -.5}
	}
	for part, weights := range parts {
		if *part, err = stats.Standard.Contrast(weights[:len(rows)], samples...); err != nil {
			return l, err
		}
	}
	return l, nil
}

// leads are the methods of table lead.
var leads = []string{"liang-lai", "algorithm-distillation", "s5rl", "q-learning", "sarsa", "certainty-equivalence",
	"posterior-sampling"}

func (s *Store) lead() (t Table) {
	t.Columns = []string{"method", "S", "T", "lead", "= update rule", "+ information", "+ tuning",
		"update, both on 20 transitions", "update, both with the model"}
	for _, method := range leads {
		for _, states := range []int{8, 16} {
			for _, horizon := range Horizons {
				l, err := s.LeadOver(method, states, horizon)
				t.err = errors.Join(t.err, err)
				label := strings.Replace(Label(method), "Distillation", "Distillation (cpu)", 1)
				t.Add(label, fmt.Sprint(states), fmt.Sprint(horizon), signed(l.Lead), signed(l.Update),
					signed(l.Information), signed(l.Tuning), signed(l.UpdateWindow), signed(l.UpdateModel))
			}
		}
	}
	return t
}

// leadSharpness is the lead when every policy is sharpened, and its parts of greedy policies.
func (s *Store) leadSharpness() (t Table) {
	t.Columns = []string{"method", "S", "lead", "at temperatures", "greedy", "= update rule", "+ information",
		"+ tuning"}
	for _, method := range leads {
		for _, states := range []int{8, 16} {
			row := []any{Label(method), fmt.Sprint(states)}
			var last Lead
			for _, how := range []any{20, "chosen", "greedy"} { // see after
				var err error
				last, err = s.LeadOver(method, states, how)
				t.err = errors.Join(t.err, err)
				row = append(row, signed(last.Lead))
			}
			t.Add(append(row, signed(last.Update), signed(last.Information), signed(last.Tuning))...)
		}
	}
	return t
}

// signed writes a difference with its interval, nothing where none was estimated.
func signed(e stats.Estimate) any {
	if e.ByRun == nil {
		return nil
	}
	return fmt.Sprintf("%+#.3g [%+#.3g, %+#.3g]", e.Value, e.Lo, e.Hi)
}

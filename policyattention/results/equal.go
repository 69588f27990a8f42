package results

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/report"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// The study with equal information compares mean losses, not medians: once step sizes are tuned,
// many methods solve more than half of the problems to the last digit.

// informed names a row of that study: a method with an information.
type informed struct {
	method, information string
	n, states           int
	untuned             bool
}

// informed returns a row's losses [runs][problems] after T rounds or, for "chosen" and "greedy", after 20 rounds, of
// policies at the temperatures that calibration problems chose and greedy ones. What has one run, since nothing in it
// is random, is repeated where more runs are wanted.
func (s *Store) informed(i informed, horizon any, runs int) ([][]float64, error) {
	g, err := s.rowsOf(i, horizon).one()
	if err != nil {
		return nil, fmt.Errorf("results: %s, %s, S = %d, T = %v: %w", i.method, i.words(), i.states, horizon, err)
	}
	if len(g.sample) == 1 {
		g.sample = slices.Repeat(g.sample, max(1, runs))
	}
	return g.sample, nil
}

// rowsOf returns the rows behind these losses, none of a method that was not run so.
func (s *Store) rowsOf(i informed, horizon any) Rows {
	own := []Filter{Method.Is(i.method), S.Is(i.states)}
	t, ok := horizon.(int)
	if !ok {
		return s.Block("equal-sharpness").At(20).Where(append(own, Column("start").Is(horizon),
			Recipe.Is(rows.Condition(i.information, i.n, i.untuned)))...)
	}
	untuned := 0
	if i.untuned {
		untuned = 1
	}
	return s.Block("equal").At(t).Where(append(own, Column("information").Is(i.information), Column("n").Is(i.n),
		Column("untuned").Is(untuned))...)
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
	all := s.Block("equal").Where(Column("untuned").Is(0), Column("run").Is(0), Column("problem").Is(0),
		Column("round").Is(1))
	t.err = all.err
	for _, at := range all.at {
		i := informed{method: all.data.value(Method, at), information: all.data.value("information", at),
			n: int(all.data.cell("n", at)), states: int(all.data.cell(S, at))}
		if i.information == "window" && i.n != 20 {
			continue
		}
		for _, horizon := range Horizons {
			loss, d, err := s.besideOurs(i, horizon)
			t.err = errors.Join(t.err, err)
			row := []any{i.words(), Label(i.method), i.states, horizon, loss, nil, nil}
			if i.information != "generative" && i != i.ours() {
				row[5], row[6] = d.Value, report.Interval{Lo: d.Lo, Hi: d.Hi}
			}
			t.Add(row...)
		}
	}
	return t
}

// greedy is what the first round of policy iteration leaves of the study's problems.
func (s *Store) greedy() Table {
	return s.Block("equal").Where(Method.Is("policy-iteration")).At(1).By(S).with("share solved", func(l line) any {
		return 1 - stats.TailOf(slices.Concat(l.group.sample...), 1e-9).Above
	})
}

// besideOurs returns a row's mean loss and, but for generative samples, how far it lies above PolicyAttention's with
// the same information.
func (s *Store) besideOurs(i informed, horizon any) (loss float64, d stats.Estimate, err error) {
	runs := map[string]int{"model": 3}[i.information] // where one stands for all
	theirs, err := s.informed(i, horizon, runs)
	if err == nil && i.information != "generative" {
		var ours [][]float64
		if ours, err = s.informed(i.ours(), horizon, len(theirs)); err == nil {
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

// lead takes PolicyAttention's lead over a method apart: the mean loss of the method with published step sizes on 20
// on-policy transitions a round, less that of PolicyAttention with the model and η = .8. It is the sum of what update
// rule, information and tuning give, on every replicate of the bootstrap too. The last two are what the update rule
// gives at equal information, zero where the method cannot read the model.
type lead [len(partsOfLead)]stats.Estimate

var partsOfLead = [...]string{"lead", "= update rule", "+ information", "+ tuning", "update, both on 20 transitions",
	"update, both with the model"}

// leadOver takes the lead over a method at a size and horizon, or of policies that are "chosen" or "greedy", apart.
// With all step sizes tuned there is a two-way table of losses, update rule by information: the update rule's part is
// the mean of its two differences between rules, the information's of those between informations.
func (s *Store) leadOver(method string, states int, horizon any) (l lead, err error) {
	tuned := informed{method, "window", 20, states, false}
	published := informed{method, "window", 20, states, true}
	if r := s.rowsOf(published, 20); r.err == nil && len(r.at) == 0 { // nothing is published
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
		losses, err := s.informed(r, horizon, 3)
		if err != nil {
			return l, err
		}
		samples = append(samples, losses)
	}
	parts := [][]float64{{1, 0, 0, 0, -1}, {0, 1, -1, 0, 0}, {0, 0, 1, -1, 0}, {1, -1, 0, 1, -1}, {0, 1, -1, 0, 0}}
	if twoWay {
		parts = [][]float64{{1, 0, 0, 0, -1, 0}, {0, .5, -.5, -.5, 0, .5}, {0, .5, .5, -.5, 0, -.5},
			{1, -1, 0, 1, -1, 0}, {0, 1, -1, 0, 0, 0}, {0, 0, 0, -1, 0, 1}}
	}
	for k, weights := range parts {
		if l[k], err = stats.Standard.Contrast(weights, samples...); err != nil {
			return l, err
		}
	}
	return l, nil
}

// leads are the methods of table lead.
var leads = []string{"liang-lai", "algorithm-distillation", "s5rl", "q-learning", "sarsa", "certainty-equivalence",
	"posterior-sampling"}

func (s *Store) lead() (t Table) {
	t.Columns = append([]string{"method", "S", "T"}, partsOfLead[:]...)
	for _, method := range leads {
		for _, states := range []int{8, 16} {
			for _, horizon := range Horizons {
				l, err := s.leadOver(method, states, horizon)
				t.err = errors.Join(t.err, err)
				label := strings.Replace(Label(method), "Distillation", "Distillation (cpu)", 1)
				t.Add(append([]any{label, fmt.Sprint(states), fmt.Sprint(horizon)}, signed(l[:])...)...)
			}
		}
	}
	return t
}

// leadSharpness is the lead when every policy is sharpened, and its parts of greedy policies.
func (s *Store) leadSharpness() (t Table) {
	t.Columns = append([]string{"method", "S", "lead", "at temperatures", "greedy"}, partsOfLead[1:4]...)
	for _, method := range leads {
		for _, states := range []int{8, 16} {
			row := []any{Label(method), fmt.Sprint(states)}
			var last lead
			for _, how := range []any{20, "chosen", "greedy"} {
				var err error
				last, err = s.leadOver(method, states, how)
				t.err = errors.Join(t.err, err)
				row = append(row, signed(last[:1])...)
			}
			t.Add(append(row, signed(last[1:4])...)...)
		}
	}
	return t
}

// signed writes differences with their intervals, nothing where none was estimated.
func signed(differences []stats.Estimate) (written []any) {
	for _, e := range differences {
		if e.ByRun == nil {
			written = append(written, nil)
		} else {
			written = append(written, fmt.Sprintf("%+#.3g [%+#.3g, %+#.3g]", e.Value, e.Lo, e.Hi))
		}
	}
	return written
}

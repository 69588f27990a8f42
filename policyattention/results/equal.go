package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// The study with equal information compares mean losses, not medians: once step sizes are tuned,
// many methods solve more than half of the problems to the last digit.

// informed is a row of that study: a method with an information.
type informed struct {
	method, information string
	n, states           int
	untuned             bool
	score               float64 // on calibration problems, infinite where nothing was tuned
	tuned               bool
}

func (i informed) String() string {
	if i.n == 0 {
		return i.information
	}
	kind := i.information
	if kind == "window" { // as rows call it
		kind = "on-policy"
	}
	return fmt.Sprintf("%s, %d", kind, i.n)
}

// informedRows lists the study's rows in their order.
func (s *Store) informedRows() (all []informed, err error) {
	runs, err := s.list("runs.json")
	for _, r := range runs {
		if r.Equal == nil {
			continue
		}
		i := informed{method: r.Method, information: r.Equal.Information, n: r.Equal.N, states: r.S,
			untuned: r.Equal.Untuned}
		if i.tuned = r.Equal.Tuning != nil; i.tuned {
			i.score = r.Equal.Tuning.Score
		}
		all = append(all, i)
	}
	return all, err
}

// losses returns a row's losses [runs][problems] for so many runs. What has one run, since nothing
// in it is random, is repeated; 0 runs are as many as there are.
func (s *Store) losses(i informed, horizon, runs int) ([][]float64, error) {
	all, err := s.informedLosses()
	x := all[i.key(horizon)]
	if err == nil && len(x) == 0 {
		err = fmt.Errorf("results: no rows of %s with information %s at S = %d", i.method, i, i.states)
	}
	if err != nil {
		return nil, err
	}
	if len(x) == 1 && runs > 1 {
		x = slices.Repeat(x, runs)
	}
	if runs == 0 {
		return x, nil
	}
	return x[:runs], nil
}

func (i informed) key(horizon int) string {
	untuned := 0
	if i.untuned {
		untuned = 1
	}
	return fmt.Sprintf("%s/%s/%d/%d/%d/%d", i.method, i.information, i.n, untuned, i.states, horizon)
}

// informedLosses returns the losses of all rows of the study, which it sorts once.
func (s *Store) informedLosses() (map[string][][]float64, error) {
	s.sorted.Do(func() {
		columns := []Column{Method, "information", "n", "untuned", S}
		groups, err := s.Block("equal").At(1, 2, 3, 5, 10, 20, 40).groups(columns)
		s.equalErr, s.equalLosses = err, map[string][][]float64{}
		for _, g := range groups {
			key := []string{g.key[Method], g.key["information"], g.key["n"], g.key["untuned"], g.key[S], g.key[T]}
			s.equalLosses[strings.Join(key, "/")] = g.sample
		}
	})
	return s.equalLosses, s.equalErr
}

// find returns a row of a method.
func find(all []informed, method, information string, n, states int, untuned bool) (informed, bool) {
	k := slices.IndexFunc(all, func(i informed) bool {
		return i.method == method && i.information == information && i.n == n && i.states == states &&
			i.untuned == untuned
	})
	if k < 0 {
		return informed{}, false
	}
	return all[k], true
}

// best returns PolicyAttention's row with an information: of several estimates of Q, the one with
// the lower loss on calibration problems.
func best(all []informed, information string, n, states int) (b informed) {
	for _, i := range all {
		if i.information == information && i.n == n && i.states == states && i.tuned &&
			strings.HasPrefix(i.method, "policyattention") &&
			(!b.tuned || i.score < b.score) {
			b = i
		}
	}
	return b
}

func (s *Store) equal() (t Table) {
	t.Title = "Equal information: mean losses of methods tuned by one rule, and less PolicyAttention's"
	t.Columns = []string{"information", "method", "S", "T", "mean loss", "minus PolicyAttention's", "95 % interval"}
	t.Notes = []string{"Below 0 the method is better. Where only losses stand, information is generative samples, as " +
		"many a round as the number says."}
	all, err := s.informedRows()
	if err != nil {
		t.err = err
		return t
	}
	for _, i := range all {
		if i.untuned || i.information == "window" && i.n != 20 {
			continue
		}
		beside := best(all, i.information, i.n, i.states)
		for _, horizon := range Horizons {
			loss, d, err := s.besideOurs(i, beside, horizon)
			if err != nil {
				t.err = err
				return t
			}
			row := []any{i.String(), equalLabel(i.method), i.states, horizon, loss, nil, nil}
			if i.information != "generative" && i != beside {
				row[5], row[6] = d.Value, report.Interval{Lo: d.Lo, Hi: d.Hi}
			}
			t.Add(row...)
		}
	}
	return t
}

// besideOurs returns a row's mean loss, and how far it lies above PolicyAttention's.
func (s *Store) besideOurs(i, beside informed, horizon int) (loss float64, d stats.Estimate, err error) {
	runs := 0
	if i.information == "model" { // one run stands for all
		runs = 3
	}
	x, errX := s.losses(i, horizon, runs)
	y, errY := s.losses(beside, horizon, len(x))
	if err = errors.Join(errX, errY); err != nil {
		return 0, d, err
	}
	d, err = stats.Standard.Contrast([]float64{1, -1}, x, y)
	return stats.Mean(slices.Concat(x...)), d, err
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
	Method                            string
	Lead, Update, Information, Tuning stats.Estimate
	UpdateWindow, UpdateModel         stats.Estimate // at equal information
	TwoWay                            bool           // whether the method can read the model
}

// LeadOver takes the lead over a method at a size and horizon apart. With all step sizes tuned there
// is a two-way table of losses, update rule by information: Update is the mean of its two differences
// between rules, Information of those between informations.
func (s *Store) LeadOver(method string, states, horizon int) (l Lead, err error) {
	l.Method = method
	all, err := s.informedRows()
	if err != nil {
		return l, err
	}
	tuned, ok := find(all, method, "window", 20, states, false)
	if !ok {
		return l, fmt.Errorf("results: no rows of %s on 20 transitions at S = %d", method, states)
	}
	published, ok := find(all, method, "window", 20, states, true)
	if !ok {
		published = tuned // nothing is published
	}
	ours, _ := find(all, "policyattention", "model", 0, states, false)
	nominal, _ := find(all, "policyattention", "model", 0, states, true)
	rows := []informed{published, tuned, best(all, "window", 20, states), ours, nominal}
	if name := withModel[method]; name != "" {
		model, _ := find(all, name, "model", 0, states, false)
		rows, l.TwoWay = append(rows, model), true
	}
	var samples [][][]float64
	for _, r := range rows {
		x, err := s.losses(r, horizon, 3)
		if err != nil {
			return l, err
		}
		samples = append(samples, x)
	}
	parts := map[*stats.Estimate][]float64{
		&l.Lead: {1, 0, 0, 0, -1, 0}, &l.Tuning: {1, -1, 0, 1, -1, 0}, &l.UpdateWindow: {0, 1, -1, 0, 0, 0},
		&l.Update: {0, 1, -1, 0, 0, 0}, &l.Information: {0, 0, 1, -1, 0, 0},
	}
	if l.TwoWay {
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
	t.Title = "PolicyAttention's lead, as the paper compares, taken apart (mean losses)"
	t.Columns = []string{"method", "S", "T", "lead", "= update rule", "+ information", "+ tuning",
		"update, both on 20 transitions", "update, both with the model"}
	t.Notes = []string{"Above 0 is in PolicyAttention's favour."}
	for _, method := range leads {
		for _, states := range []int{8, 16} {
			for _, horizon := range Horizons {
				l, err := s.LeadOver(method, states, horizon)
				if err != nil {
					t.err = err
					return t
				}
				row := []any{Label(method), strconv.Itoa(states), strconv.Itoa(horizon)}
				for _, e := range []stats.Estimate{l.Lead, l.Update, l.Information, l.Tuning, l.UpdateWindow,
					l.UpdateModel} {
					row = append(row, fmt.Sprintf("%+#.3g [%+#.3g, %+#.3g]", e.Value, e.Lo, e.Hi))
				}
				if !l.TwoWay {
					row[8] = nil
				}
				t.Add(row...)
			}
		}
	}
	return t
}

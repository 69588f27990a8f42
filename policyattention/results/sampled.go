package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// Imitation returns the curves of a qualification by imitation.
func Imitation(e *experiment.Evaluation) *baseline.Curves { return e.Found.(*baseline.Curves) }

// Scores returns the result of a tuning on a grid, in the grid's order.
func Scores(e *experiment.Evaluation) []baseline.Score { return e.Found.([]baseline.Score) }

// Rates returns the step sizes that a deployed method, or its source, learns online with.
func Rates(e *experiment.Evaluation) baseline.StepSizes {
	return e.Config.Loop.Deployment.(method.Learner).StepSizes()
}

// Qualified says whether a network has learned to learn.
type Qualified struct {
	Series
	S            int      `json:"s"`
	First, Last  float64  // median losses after rounds 1 and 40
	Improved     int      // MDPs
	Problems     int      //
	Runs         int      `json:"runs"`
	Planned      int      `json:"planned"`
	HasControl   bool     // a control that remembers nothing between rounds is planned
	End          Tail     // of the losses after round 40, see [Runs.Spread]
	Gap          Estimate // loss after round 40 minus the control's
	GapTail      Tail     // of that, problem by problem
	FirstControl float64  // the control's
	LastControl  float64
	Used         []*experiment.Evaluation `json:"-"`
}

// Hardly is the share of its first loss above which a recipe's last one says that it
// did not learn to learn.
const Hardly = 0.9

// OK reports whether the recipe qualifies: its loss falls by a tenth or more, and ends
// below that of its own control, with an interval below zero.
func (q Qualified) OK() bool { return q.Last <= Hardly*q.First && q.Gap.Runs > 0 && q.Gap.Hi < 0 }

// Qualify says whether a recipe of a method with a control of its own qualifies at a size.
// The block is Qualification, or Benchmark for the same networks on evaluation problems.
func (s *Source) Qualify(block experiment.Block, name method.Name, recipe string, states int) (q Qualified, err error) {
	m, _ := s.Store.Preset.Methods.Find(name) // without it there are no runs
	x := s.Series(name, recipe)
	q.Series, q.S = x, states
	runs, err := s.Find(x.In(block, states))
	if err != nil {
		return q, err
	}
	q.First, q.Last, q.Improved, q.Problems = falls(runs)
	q.Runs, q.Planned, q.Used, q.End = len(runs.Found), runs.Planned, runs.Found, runs.Spread(40)
	own := m.Control.Of(recipe)
	if own == "" {
		return q, nil
	}
	control, err := s.Find(s.Series(name, own).In(block, states))
	if err != nil {
		return q, err
	}
	q.HasControl = control.Planned > 0
	q.FirstControl, q.LastControl, _, _ = falls(control)
	if q.Gap, err = runs.Compare(Difference, control, 40); err != nil {
		return q, err
	}
	q.GapTail, err = runs.Tail(control, 40)
	return q, err
}

// falls returns the medians over runs of the median losses after rounds 1 and 40, and
// how many problems of all runs improve.
func falls(runs Runs) (first, last float64, improved, problems int) {
	var from, to []float64
	for _, r := range runs.Found {
		before, after := r.Losses(1), r.Losses(40)
		for i := range before {
			if after[i] < before[i] {
				improved++
			}
		}
		from, to, problems = append(from, stats.Median(before)), append(to, stats.Median(after)), problems+len(before)
	}
	return stats.Median(from), stats.Median(to), improved, problems
}

// PrintedRates returns the step sizes that the paper chose at a size, of a method or of
// its source.
func (s *Source) PrintedRates(name method.Name, states int) (rates baseline.StepSizes, err error) {
	p := s.Store.Preset
	m, err := p.Methods.Find(name)
	if err != nil {
		return rates, err
	}
	runs := p.Protocol.Sizes[states].Runs
	if len(m.Printed) == 0 || len(runs) == 0 {
		return rates, fmt.Errorf("results: the paper prints no step sizes of %s at S=%d", name, states)
	}
	c, err := p.Config(experiment.Cell{Preset: p.Name, Block: experiment.Benchmark, Method: name, Recipe: m.Printed[0], S: states, Seed: runs[0].Model})
	if err != nil {
		return rates, err
	}
	return c.Loop.Deployment.(method.Learner).StepSizes(), nil
}

// QualificationRow is a quantity of a sampled method's qualification; what was
// estimated has an interval, other quantities a number of each run.
type QualificationRow struct {
	Spread
	Gap      *Estimate `json:"gap,omitempty"`
	Tail     Tail      `json:"tail"`               // of losses, see [Runs.Spread], or of the gap
	Expected float64   `json:"expected,omitempty"` // of a cost that was not measured
}

// Qualification returns what the sampled methods' qualifications measured, and costs.
func (s *Source) Qualification() (rows []QualificationRow, err error) {
	for _, x := range s.SampledSeries(experiment.Qualification) {
		for _, states := range s.Sizes(experiment.Qualification) {
			runs, err := s.Find(x.In(experiment.Qualification, states))
			if err != nil {
				return nil, err
			}
			if runs.Planned == 0 {
				continue
			}
			row := func(quantity Quantity, values []float64) QualificationRow {
				return QualificationRow{Spread: Spread{x, states, quantity, values, runs.Planned, Paper(Key{experiment.Qualification, string(quantity) + " " + x.Recipe, states, 0})}}
			}
			m, err := s.Store.Preset.Methods.Find(x.Method)
			if err != nil {
				return nil, err
			}
			for _, q := range m.Measures {
				var values []float64
				for _, r := range runs.Found {
					v, err := q.Of(r.Scored, r.Manifest.Summary)
					if err != nil {
						return nil, err
					}
					values = append(values, v)
				}
				measured := row(Quantity(q.Name), values)
				if q.Round > 0 {
					measured.Tail = runs.Spread(q.Round)
				}
				rows = append(rows, measured)
			}
			if m.Control.Of(x.Recipe) != "" {
				q, err := s.Qualify(experiment.Qualification, x.Method, x.Recipe, states)
				if err != nil {
					return nil, err
				}
				if q.HasControl {
					gap := row(Quantity("its loss after round 40 minus "+m.Control.Whose), q.Gap.ByRun)
					gap.Gap, gap.Tail = &q.Gap, q.GapTail
					rows = append(rows, gap)
				}
			}
			sizes, minutes, expected, err := s.costs(x.In(experiment.Qualification, states))
			if err != nil {
				return nil, err
			}
			rows = append(rows, row(Parameters, sizes))
			cost := row(TrainingMinutes, minutes)
			cost.Expected = expected
			rows = append(rows, cost)
		}
	}
	return rows, nil
}

// costs returns the parameters and CPU minutes of the training runs of a selection,
// and the estimate of one that has not been made.
func (s *Source) costs(x Selection) (sizes, minutes []float64, expected float64, err error) {
	for _, cell := range s.plan {
		if !x.Matches(cell) {
			continue
		}
		trainings, err := s.Store.Preset.Trainings(cell)
		if err != nil {
			return nil, nil, 0, err
		}
		for _, c := range trainings {
			sizes = append(sizes, float64(c.Parameters()))
			run, err := s.Training(c)
			if err != nil {
				return nil, nil, 0, err
			}
			if run == nil {
				expected = c.Seconds() / 60
			} else {
				minutes = append(minutes, run.Manifest.Cost.CPUSeconds/60)
			}
		}
	}
	return sizes, minutes, expected, nil
}

// Grid returns a method's scores on a grid of step sizes.
func (s *Source) Grid(name method.Name, recipe string, states int) (Runs, error) {
	x := Selection{Block: experiment.Tuning, Method: name, Recipe: recipe, S: states}
	runs, err := s.Where(func(c experiment.Cell) bool { return x.Matches(c) && c.Recipe == recipe })
	runs.Selection = x
	return runs, err
}

// TuningRow is a setting of a sampled method with its losses on calibration problems.
type TuningRow struct {
	Method  method.Name     `json:"method"`
	S       int             `json:"s"`
	Setting string          `json:"setting"`
	Score   *baseline.Score `json:"score,omitempty"`  // nil: not yet run
	Inside  string          `json:"inside,omitempty"` // is a best point inside its grid?
}

// StartNames are the starts of a learner as tables and figures call them.
var StartNames = map[baseline.Start]string{baseline.Initial: "π₀", baseline.Uniform: "uniform"}

// Tuning returns what was tried on calibration problems: the grids of methods that are tuned on
// one, the recipes of others.
func (s *Source) Tuning() (rows []TuningRow, err error) {
	for _, m := range s.Store.Preset.Methods {
		for _, g := range m.Tuning.Grids {
			for _, states := range tunedSizes {
				more, err := s.tuned(m.Name, g, states)
				if err != nil {
					return nil, err
				}
				rows = append(rows, more...)
			}
		}
		for _, states := range tunedSizes {
			for _, recipe := range m.Recipes {
				runs, err := s.Find(s.Series(m.Name, recipe).In(experiment.Tuning, states))
				if err != nil {
					return nil, err
				}
				if runs.Planned == 0 {
					continue
				}
				row := TuningRow{Method: m.Name, S: states, Setting: strings.ReplaceAll(recipe, "-", " ")}
				if len(runs.Found) > 0 {
					row.Score = &baseline.Score{StepSizes: Rates(runs.Found[0])}
					for _, horizon := range baseline.Horizons {
						row.Score.Take(runs.Found[0].Losses(horizon))
					}
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// tunedSizes are the sizes that step sizes are chosen at.
var tunedSizes = []int{8, 16}

// tuned returns a method's rows of one grid: the paper's choice and the best, from either
// start.
func (s *Source) tuned(name method.Name, g method.Grid, states int) (rows []TuningRow, err error) {
	runs, err := s.Grid(name, g.Recipe, states)
	if err != nil || runs.Planned == 0 {
		return nil, err
	}
	steps, err := s.PrintedRates(name, states)
	if err != nil {
		return nil, err
	}
	for _, start := range []baseline.Start{baseline.Initial, baseline.Uniform} {
		setting := "from " + StartNames[start] + g.Label
		papers := TuningRow{Method: name, S: states, Setting: "paper's choice, " + setting}
		best := TuningRow{Method: name, S: states, Setting: "best, " + setting}
		if len(runs.Found) == 0 {
			rows = append(rows, papers, best)
			continue
		}
		grid := runs.Found[0]
		scores := Scores(grid)
		if at := slices.IndexFunc(scores, func(x baseline.Score) bool { return x.Start == start && x.StepSizes == steps }); at >= 0 {
			papers.Score = &scores[at]
			rows = append(rows, papers)
		}
		b, inside, err := baseline.BestFrom(scores, start)
		if err != nil {
			return nil, err
		}
		best.Score, best.Inside = &b, "no"
		if inside {
			best.Inside = "yes"
		} else if !slices.ContainsFunc(scores, func(x baseline.Score) bool { return x.Beta != b.Beta }) {
			best.Inside = "β not tried"
		}
		rows = append(rows, best)
	}
	return rows, nil
}

// Along returns the best loss at T = 20 of each actor step α of a grid, ascending.
func Along(grid *experiment.Evaluation, start baseline.Start) (scores []baseline.Score) {
	best := map[float64]baseline.Score{}
	for _, x := range Scores(grid) {
		if b, seen := best[x.Alpha]; x.Start == start && (!seen || x.Loss[0] < b.Loss[0]) {
			best[x.Alpha] = x
		}
	}
	for _, x := range best {
		scores = append(scores, x)
	}
	slices.SortFunc(scores, func(a, b baseline.Score) int { return cmp.Compare(a.Alpha, b.Alpha) })
	return scores
}

// Resource says what the first identity of a method of the benchmark needs at S = 8.
type Resource struct {
	Series
	Config     experiment.Config `json:"-"`
	Trainings  int               `json:"trainings"`
	Parameters int               `json:"parameters"`
	Minutes    *float64          `json:"minutes,omitempty"` // processor time of training, nil where a run is missing
	Seconds    *float64          `json:"seconds,omitempty"` // of evaluation, nil where it is missing
	Backend    string            `json:"backend"`
}

// Resources returns the costs of the benchmark's methods at a size.
func (s *Source) Resources(states int) (rows []Resource, err error) {
	for _, x := range s.BenchmarkSeries() {
		in := x.In(experiment.Benchmark, states)
		at := slices.IndexFunc(s.plan, in.Matches)
		if at < 0 {
			continue
		}
		r := Resource{Series: x}
		if r.Config, err = s.Store.Preset.Config(s.plan[at]); err != nil {
			return nil, err
		}
		trainings := r.Config.Trainings()
		r.Trainings, r.Minutes = len(trainings), new(float64)
		for _, c := range trainings {
			r.Parameters += c.Parameters()
		}
		for _, c := range trainings {
			run, err := s.Training(c)
			if err != nil {
				return nil, err
			}
			if run == nil {
				r.Minutes = nil
				break
			}
			*r.Minutes += run.Manifest.Cost.CPUSeconds / 60
			r.Backend = BackendName(run)
		}
		e, err := s.Evaluation(s.plan[at])
		if err != nil {
			return nil, err
		}
		if e != nil {
			r.Seconds = &e.Manifest.Cost.CPUSeconds
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// BackendName names what a run was made on, in order, where its steps were made on several
// backends.
func BackendName(run *experiment.TrainingRun) string {
	if run.Manifest.Produced.Backend == nil {
		return "Go, float64"
	}
	var names []string
	for _, s := range run.Stretches() {
		if s.Backend != "" && !slices.Contains(names, s.Backend) {
			names = append(names, s.Backend)
		}
	}
	return strings.Join(names, ", then ")
}

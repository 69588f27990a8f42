// Package results selects stored results and estimates from them. Its functions
// return rows of values; package report prints them, package nb shows them. Nothing
// reads a number back from what was printed.
//
// A [Selection] names cells by typed fields, [Source.Find] returns their results as
// [Runs], and the methods of Runs return an [Estimate] with its interval or a [Tail]:
//
//	s := results.New(store)
//	actor, err := s.Find(results.Selection{Block: experiment.Benchmark, Method: experiment.PolicyAttention, S: 8})
//	oracle, err := s.Oracle(8)
//	ratio, err := actor.Ratio(oracle, 20)   // Estimate{Runs: 3, Planned: 3, Value: .962, Lo: .883, Hi: 1.013, …}
//	tail, err := actor.Tail(oracle, 20)     // Tail{Mean: …, P99: …, Worst: …, Behind: …}
//
// Functions such as [Source.Benchmark] and [Source.Differences] return the rows of
// whole tables. A notebook filters such rows by their fields:
//
//	for _, row := range nb.Must(results.New(store).Differences()) {
//		if row.Sampled && row.Recipe == "tuned" && row.OfMedians.Runs > 0 {
//			nb.Say("%s at S = %d, T = %d: %+.3f", row.Series, row.S, row.T, row.OfMedians.Value)
//		}
//	}
//
// An estimate whose results are missing has Runs 0, and zero for its numbers.
package results

import (
	"errors"
	"maps"
	"slices"

	"icrl/policyattention/artifact"
	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// Horizons are the tables' horizons T.
var Horizons = baseline.Horizons

// Source reads the results of a store and compares them, each once.
type Source struct {
	Store *experiment.Store
	plan  []experiment.Cell
	read  map[experiment.Cell]*experiment.Evaluation // so far, nil for what has not been run
	made  estimates

	sourceLosses map[experiment.Cell]float64 // see sourceLoss
}

// New returns a source of a store's results.
func New(store *experiment.Store) *Source {
	return &Source{store, store.Preset.Plan(), map[experiment.Cell]*experiment.Evaluation{}, estimates{}, map[experiment.Cell]float64{}}
}

// LectureSize is the size at which explaining figures are drawn: S = 8, or the
// preset's largest below it.
func (s *Source) LectureSize(block experiment.Block) int {
	size := 0
	for _, n := range s.Sizes(block) {
		if n <= 8 {
			size = n
		}
	}
	return size
}

// Selection selects cells of a preset's plan. A zero field selects all values.
type Selection struct {
	Block  experiment.Block `json:"block,omitempty"`
	Method method.Name      `json:"method,omitempty"`
	Recipe string           `json:"recipe,omitempty"`
	S      int              `json:"s,omitempty"`
	Family mdp.Family       `json:"family,omitempty"`
	Seed   uint64           `json:"seed,omitempty"`
	Step   int              `json:"step,omitempty"`
}

// Matches reports whether the cell has the selected fields.
func (x Selection) Matches(c experiment.Cell) bool {
	return (x.Block == "" || c.Block == x.Block) && (x.Method == "" || c.Method == x.Method) &&
		(x.Recipe == "" || c.Recipe == x.Recipe) && (x.S == 0 || c.S == x.S) &&
		(x.Family == "" || c.Family == x.Family) && (x.Seed == 0 || c.Seed == x.Seed) && (x.Step == 0 || c.Step == x.Step)
}

// Runs are the results of a selection, in the plan's order, without those that have
// not been run.
type Runs struct {
	Selection
	Found   []*experiment.Evaluation
	Planned int // with those that have not been run

	made estimates // of the source, which a bootstrap is taken from the second time
}

// Runs returns results that were found before, of so many that were planned.
func (s *Source) Runs(x Selection, found []*experiment.Evaluation, planned int) Runs {
	return Runs{x, found, planned, s.made}
}

// Evaluation returns the result of a cell, or nil where it has not been run.
func (s *Source) Evaluation(cell experiment.Cell) (*experiment.Evaluation, error) {
	if e, ok := s.read[cell]; ok {
		return e, nil
	}
	e, err := s.Store.Find(cell)
	if errors.Is(err, artifact.ErrMissing) {
		e, err = nil, nil
	}
	if err == nil {
		s.read[cell] = e
	}
	return e, err
}

// Find returns the results of the selected cells.
func (s *Source) Find(x Selection) (Runs, error) {
	runs, err := s.Where(x.Matches)
	runs.Selection = x
	return runs, err
}

// Where returns the results of the plan's cells that match.
func (s *Source) Where(match func(experiment.Cell) bool) (Runs, error) {
	runs := Runs{made: s.made}
	for _, cell := range s.plan {
		if !match(cell) {
			continue
		}
		runs.Planned++
		e, err := s.Evaluation(cell)
		if err != nil {
			return Runs{}, err
		}
		if e != nil {
			runs.Found = append(runs.Found, e)
		}
	}
	return runs, nil
}

// Oracle returns exact PMD on the evaluation problems of a size. All blocks of a
// size share these problems.
func (s *Source) Oracle(states int) (runs Runs, err error) {
	for _, block := range []experiment.Block{experiment.Confirmation, experiment.Benchmark, experiment.ZeroShot} {
		runs, err = s.Find(Selection{Block: block, Method: experiment.ExactPMD, S: states})
		if err != nil || len(runs.Found) > 0 {
			return runs, err
		}
	}
	return runs, nil
}

// Plain returns the plain PolicyAttention runs of a size in the paper's blocks.
func (s *Source) Plain(states int) (Runs, error) {
	runs, err := s.Where(func(c experiment.Cell) bool {
		return (c.Block == experiment.Confirmation || c.Block == experiment.Benchmark) && c.Method == experiment.PolicyAttention && c.S == states
	})
	runs.Selection = Selection{Method: experiment.PolicyAttention, S: states}
	return runs, err
}

// Sizes lists the numbers of states that the plan has for a block, ascending.
func (s *Source) Sizes(block experiment.Block) []int {
	sizes := map[int]bool{}
	for _, c := range s.plan {
		if c.Block == block {
			sizes[c.S] = true
		}
	}
	return slices.Sorted(maps.Keys(sizes))
}

// Training returns a training run, or nil where it has not been made.
func (s *Source) Training(c method.Training) (*experiment.TrainingRun, error) {
	run, err := s.Store.FindTraining(c)
	if errors.Is(err, artifact.ErrMissing) {
		return nil, nil
	}
	return run, err
}

// Losses returns the sample [runs][problems] of normalized losses at a horizon.
func (r Runs) Losses(horizon int) [][]float64 {
	sample := make([][]float64, len(r.Found))
	for j, e := range r.Found {
		sample[j] = e.Losses(horizon)
	}
	return sample
}

// Medians returns each run's median loss at a horizon.
func (r Runs) Medians(horizon int) []float64 { return stats.RunMedians(r.Losses(horizon)) }

// Values returns a number of each run.
func (r Runs) Values(of func(*experiment.Evaluation) float64) []float64 {
	values := make([]float64, len(r.Found))
	for j, e := range r.Found {
		values[j] = of(e)
	}
	return values
}

// RowL1 returns each run's median over problems of the mean row-L1 to exact PMD over
// rounds 0–19, in the contexts of its own loop; nil where a run's residuals are not stored.
func (r Runs) RowL1() []float64 {
	if slices.ContainsFunc(r.Found, func(e *experiment.Evaluation) bool { return !e.Measured() }) {
		return nil
	}
	return r.Values(func(e *experiment.Evaluation) float64 { return stats.Median(e.Deviations(20)) })
}

// Zetas returns the same of ζ, the largest row-L1 over states.
func (r Runs) Zetas() []float64 {
	return r.Values(func(e *experiment.Evaluation) float64 { return stats.Median(e.Residuals(20)) })
}

// Pair keeps the runs whose identity both have. Exact methods have one run for all
// identities, which is repeated.
func Pair(x, y Runs) (Runs, Runs) {
	px, py := x, y
	px.Found, py.Found = nil, nil
	for _, a := range x.Found {
		for _, b := range y.Found {
			if b.Cell.Seed == 0 || a.Cell.Seed == b.Cell.Seed {
				px.Found, py.Found = append(px.Found, a), append(py.Found, b)
				break
			}
		}
	}
	return px, py
}

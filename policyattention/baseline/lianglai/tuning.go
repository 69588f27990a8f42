package lianglai

import (
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// Tuning scores the teacher, which is the source of Algorithm Distillation too, on a
// grid of step sizes. Its problems are calibration problems.
type Tuning struct {
	Grid     baseline.Grid     `json:"grid"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// tune implements method.Method.
func tune(s method.Setting) (method.Study, error) {
	t := Tuning{Grid: baseline.Extended(), Root: s.Root}
	if n, ok := s.Limits["grid"]; ok {
		t.Grid.Alphas, t.Grid.Betas = t.Grid.Alphas[:min(n, len(t.Grid.Alphas))], t.Grid.Betas[:min(n, len(t.Grid.Betas))]
	}
	switch s.Recipe {
	case "":
	case "features":
		steps, err := PaperSteps(s.States)
		if err != nil {
			return nil, err
		}
		t.Grid.Betas, t.Features = []float64{steps.Beta}, baseline.Dense
	default:
		return nil, fmt.Errorf("no recipe %q of Liang–Lai's tuning", s.Recipe)
	}
	return t, nil
}

// Key implements method.Study.
func (t Tuning) Key() string { return "tuning" }

// Weights implements method.Study: it needs none.
func (t Tuning) Weights() []method.Weights { return nil }

// Tables implements method.Study; start counts the grid's starts from 0, loss is the median
// over problems.
func (t Tuning) Tables() []method.Table {
	return []method.Table{{File: "scores.csv.gz", Columns: []string{"start", "alpha", "beta", "loss_T20", "loss_T40", "mean_T20", "mean_T40", "p99_T20", "p99_T40", "worst_T20", "worst_T40"}}}
}

// Compute implements method.Study. Its summary is the best of each start.
func (t Tuning) Compute(_ *method.Models, problems []mdp.Problem) (*method.Result, error) {
	scores, err := baseline.Tune(problems, t.Features, t.Root, t.Grid)
	if err != nil {
		return nil, err
	}
	var rows [][]float64
	for i, s := range scores {
		start := i / (len(t.Grid.Alphas) * len(t.Grid.Betas))
		rows = append(rows, slices.Concat([]float64{float64(start), s.Alpha, s.Beta}, s.Loss, s.Mean, s.P99, s.Worst))
	}
	r := &method.Result{
		Rows: [][][]float64{rows}, Summary: map[string]map[string]float64{},
		Policies: len(scores) * len(problems) * len(baseline.Horizons),
	}
	for _, start := range t.Grid.Starts {
		best, inside, err := baseline.BestFrom(scores, start)
		if err != nil {
			return nil, err
		}
		v := map[string]float64{"alpha": best.Alpha, "beta": best.Beta, "loss_T20": best.Loss[0], "loss_T40": best.Loss[1], "inside": 0}
		if inside {
			v["inside"] = 1
		}
		r.Summary[string(start)] = v
	}
	return r, nil
}

// Read implements method.Study. It returns the scores as a []baseline.Score, in the
// grid's order.
func (t Tuning) Read(r method.Result) (any, error) {
	var scores []baseline.Score
	for i, row := range r.Rows[0] {
		start := int(row[0])
		if float64(start) != row[0] || start < 0 || start >= len(t.Grid.Starts) {
			return nil, fmt.Errorf("row %d: no start %v", i+1, row[0])
		}
		scores = append(scores, baseline.Score{
			Start: t.Grid.Starts[start], StepSizes: baseline.StepSizes{Alpha: row[1], Beta: row[2]},
			Loss: row[3:5], Mean: row[5:7], P99: row[7:9], Worst: row[9:11],
		})
	}
	if want := len(t.Grid.Starts) * len(t.Grid.Alphas) * len(t.Grid.Betas); len(scores) != want {
		return nil, fmt.Errorf("%d rows, want %d", len(scores), want)
	}
	return scores, nil
}

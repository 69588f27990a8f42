package experiment

import (
	"fmt"
	"path/filepath"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
)

const scoresFile = "scores.csv.gz"

// TuningConfig scores the teacher of Liang–Lai, which is the source of Algorithm
// Distillation too, on a grid of step sizes. Its fixtures are calibration
// problems.
type TuningConfig struct {
	Grid     baseline.Grid     `json:"grid"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// scoresHeader names the columns of scores.csv.gz; start counts the grid's
// starts from 0.
var scoresHeader = []string{"start", "alpha", "beta", "loss_T20", "loss_T40"}

func (c TuningConfig) rows(scores []baseline.Score) [][]float64 {
	var rows [][]float64
	for i, s := range scores {
		start := i / (len(c.Grid.Alphas) * len(c.Grid.Betas))
		rows = append(rows, append([]float64{float64(start), s.Alpha, s.Beta}, s.Loss...))
	}
	return rows
}

// scores is the inverse of rows.
func (c TuningConfig) scores(rows [][]float64) ([]baseline.Score, error) {
	var scores []baseline.Score
	for i, row := range rows {
		start := int(row[0])
		if float64(start) != row[0] || start < 0 || start >= len(c.Grid.Starts) {
			return nil, fmt.Errorf("row %d: no start %v", i+1, row[0])
		}
		scores = append(scores, baseline.Score{
			Start: c.Grid.Starts[start], Steps: baseline.Steps{Alpha: row[1], Beta: row[2]}, Loss: row[3:],
		})
	}
	if want := len(c.Grid.Starts) * len(c.Grid.Alphas) * len(c.Grid.Betas); len(scores) != want {
		return nil, fmt.Errorf("%d rows, want %d", len(scores), want)
	}
	return scores, nil
}

// BestFrom returns the best score among those with a start, and whether its
// step sizes lie strictly inside the grid.
func BestFrom(scores []baseline.Score, start baseline.Start) (best baseline.Score, inside bool, err error) {
	var of []baseline.Score
	for _, s := range scores {
		if s.Start == start {
			of = append(of, s)
		}
	}
	return baseline.Best(of)
}

// summary returns the best of each start.
func (c TuningConfig) summary(scores []baseline.Score) (map[string]Values, error) {
	summary := map[string]Values{}
	for _, start := range c.Grid.Starts {
		best, inside, err := BestFrom(scores, start)
		if err != nil {
			return nil, err
		}
		v := Values{"alpha": best.Alpha, "beta": best.Beta, "loss_T20": best.Loss[0], "loss_T40": best.Loss[1], "inside": 0}
		if inside {
			v["inside"] = 1
		}
		summary[string(start)] = v
	}
	return summary, nil
}

func (c TuningConfig) weights() needs { return nil }

func (c TuningConfig) compute(_ *Store, dir string, _ Cell, _ Fixtures, problems []mdp.Problem) (map[string]Values, error) {
	scores, err := baseline.Tune(problems, c.Features, c.Root, c.Grid)
	if err != nil {
		return nil, err
	}
	if err := writeCSV(filepath.Join(dir, scoresFile), scoresHeader, c.rows(scores)); err != nil {
		return nil, err
	}
	return c.summary(scores)
}

func (c TuningConfig) read(e *Evaluation) error {
	path := e.path(scoresFile)
	rows, err := readCSV(path, scoresHeader)
	if err != nil {
		return err
	}
	if e.Tuning, err = c.scores(rows); err != nil {
		return fmt.Errorf("experiment: %s: %w", path, err)
	}
	return nil
}

func (c TuningConfig) verify(_ *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	defer v.during(tuning)()
	scores, err := baseline.Tune(problems, c.Features, c.Root, c.Grid)
	if err != nil {
		return err
	}
	v.Rescored += len(scores) * len(problems) * len(baseline.Horizons)
	v.compareTable(e.path(scoresFile), scoresHeader, c.rows(scores))
	summary, err := c.summary(scores)
	if err != nil {
		return err
	}
	v.compareSummary(e, summary, scoreTolerance)
	return nil
}

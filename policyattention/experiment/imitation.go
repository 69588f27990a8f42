package experiment

import (
	"fmt"
	"path/filepath"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/mdp"
)

const curvesFile = "curves.csv.gz"

// ImitationConfig compares a trained block with its teacher, on MDPs that
// follow from the training's seed.
type ImitationConfig struct {
	Training lianglai.Training `json:"training"`
	Windows  int               `json:"windows"` // of the update error
	Steps    baseline.Steps    `json:"steps"`   // of the closed loop
	MDPs     int               `json:"mdps"`
	Updates  int               `json:"updates"`
	Every    int               `json:"every"` // updates between points of the curves
}

// Imitation is the result.
type Imitation struct {
	LossRatio   float64 // last training loss over the first
	UpdateError float64 // median relative error of an update
	*lianglai.ClosedLoop
}

var curvesHeader = []string{"updates", "learned", "teacher"}

func (c ImitationConfig) run(trained *lianglai.Trained) (*Imitation, error) {
	i := &Imitation{LossRatio: trained.LossRatio()}
	var err error
	if i.UpdateError, err = c.Training.UpdateError(trained.Block, c.Windows); err != nil {
		return nil, err
	}
	i.ClosedLoop, err = c.Training.CloseLoop(trained.Block, c.Steps, c.MDPs, c.Updates, c.Every)
	return i, err
}

func (i *Imitation) rows() [][]float64 {
	rows := make([][]float64, len(i.Updates))
	for k, n := range i.Updates {
		rows[k] = []float64{float64(n), i.Learned[k], i.Teacher[k]}
	}
	return rows
}

func (i *Imitation) summary() map[string]Values {
	return map[string]Values{
		"training":    {"loss_ratio": i.LossRatio},
		"update":      {"median_relative_error": i.UpdateError},
		"closed_loop": {"improvement_ratio": i.Improvement(), "mean_gap": i.Gap()},
	}
}

func (c ImitationConfig) weights() needs { return needs{{c.Training, c.Training.Steps}} }

// compute needs no problems: the MDPs follow from the training's seed.
func (c ImitationConfig) compute(s *Store, dir string, _ Cell, _ Fixtures, _ []mdp.Problem) (map[string]Values, error) {
	trained, err := s.block(c.Training)
	if err != nil {
		return nil, err
	}
	i, err := c.run(trained)
	if err != nil {
		return nil, err
	}
	return i.summary(), writeCSV(filepath.Join(dir, curvesFile), curvesHeader, i.rows())
}

func (c ImitationConfig) read(e *Evaluation) error {
	path := e.path(curvesFile)
	rows, err := readCSV(path, curvesHeader)
	if err != nil {
		return err
	}
	if len(rows) < 2 {
		return fmt.Errorf("experiment: %s has %d rows, want at least 2", path, len(rows))
	}
	summary := e.Manifest.Summary
	i := &Imitation{
		LossRatio: summary["training"]["loss_ratio"], UpdateError: summary["update"]["median_relative_error"],
		ClosedLoop: &lianglai.ClosedLoop{},
	}
	for _, row := range rows {
		i.Updates, i.Learned, i.Teacher = append(i.Updates, int(row[0])), append(i.Learned, row[1]), append(i.Teacher, row[2])
	}
	e.Imitation = i
	return nil
}

func (c ImitationConfig) verify(s *Store, v *Verification, e *Evaluation, _ []mdp.Problem) error {
	defer v.during(imitating)()
	trained, err := s.block(c.Training)
	var again *Imitation
	if err == nil {
		again, err = c.run(trained)
	}
	if err != nil {
		v.add(e.path(manifestFile), 0, "its block: %v", err)
		return nil
	}
	v.Replayed += 2 * c.MDPs * c.Updates
	v.compareTable(e.path(curvesFile), curvesHeader, again.rows())
	v.compareSummary(e, again.summary(), scoreTolerance)
	return nil
}

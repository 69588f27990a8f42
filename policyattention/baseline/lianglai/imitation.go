package lianglai

import (
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// ImitationConfig compares a trained block with its teacher, on MDPs that
// follow from the training's seed.
type ImitationConfig struct {
	Training Config             `json:"training"`
	Windows  int                `json:"windows"` // of the update error
	Steps    baseline.StepSizes `json:"steps"`   // of the closed loop
	MDPs     int                `json:"mdps"`
	Updates  int                `json:"updates"`
	Every    int                `json:"every"` // updates between points of the curves
}

// qualify implements method.Method.
func qualify(s method.Setting) (method.Study, error) {
	i := ImitationConfig{Windows: 1000, MDPs: 8, Updates: 3000}
	s.Limits.Bound(&i.Windows, "windows")
	s.Limits.Bound(&i.MDPs, "held-out mdps")
	s.Limits.Bound(&i.Updates, "updates")
	i.Every = max(1, i.Updates/60)
	var err error
	switch s.Recipe {
	case "native":
		i.Training, i.Steps = Native(s.Identity.Model), s.Tuned["native"]
	case "harness":
		i.Training = Harness(s.Identity.Model, s.States)
		i.Steps, err = PaperSteps(s.States)
	default:
		err = fmt.Errorf("no recipe %q of Liang–Lai's qualification", s.Recipe)
	}
	if err == nil && i.Training.States != s.States {
		err = fmt.Errorf("recipe %q is for S=%d", s.Recipe, i.Training.States)
	}
	i.Training = i.Training.bounded(s.Limits)
	return i, err
}

// Key implements method.Study.
func (c ImitationConfig) Key() string { return "imitation" }

// Weights implements method.Study.
func (c ImitationConfig) Weights() []method.Weights { return []method.Weights{method.Last(c.Training)} }

// Tables implements method.Study.
func (c ImitationConfig) Tables() []method.Table {
	return []method.Table{{File: "curves.csv.gz", Columns: []string{"updates", "learned", "teacher"}}}
}

// OwnProblems implements method.OwnProblems: the held-out MDPs belong to the training.
func (c ImitationConfig) OwnProblems() {}

// Compute implements method.Study.
func (c ImitationConfig) Compute(m *method.Models, _ []mdp.Problem) (*method.Result, error) {
	trained, err := c.Training.load(m)
	if err != nil {
		return nil, err
	}
	updateError, err := c.Training.UpdateError(trained.Block, c.Windows)
	if err != nil {
		return nil, err
	}
	loop, err := c.Training.CloseLoop(trained.Block, c.Steps, c.MDPs, c.Updates, c.Every)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(loop.Updates))
	for k, n := range loop.Updates {
		rows[k] = []float64{float64(n), loop.Learned[k], loop.Teacher[k]}
	}
	return &method.Result{
		Rows: [][][]float64{rows},
		Summary: map[string]map[string]float64{
			"training":    {"loss_ratio": trained.LossRatio()},
			"update":      {"median_relative_error": updateError},
			"closed_loop": {"improvement_ratio": loop.Improvement(), "mean_gap": loop.Gap()},
		},
		Updates: 2 * c.MDPs * c.Updates,
	}, nil
}

// Read implements method.Study. It returns a *baseline.Curves.
func (c ImitationConfig) Read(r method.Result) (any, error) {
	if len(r.Rows[0]) < 2 {
		return nil, fmt.Errorf("%d rows, want at least 2", len(r.Rows[0]))
	}
	curves := &baseline.Curves{}
	for _, row := range r.Rows[0] {
		curves.Updates = append(curves.Updates, int(row[0]))
		curves.Learned, curves.Teacher = append(curves.Learned, row[1]), append(curves.Teacher, row[2])
	}
	return curves, nil
}

package lianglai

import (
	"fmt"
	"math"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
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

// qualify is the study of the block "qualification".
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

// Weights implements method.Study.
func (c ImitationConfig) Weights() []method.Weights { return []method.Weights{method.Last(c.Training)} }

// OwnProblems implements method.Study: the held-out MDPs belong to the training.
func (c ImitationConfig) OwnProblems() bool { return true }

// Compute implements method.Study: the mean exact value of the block and of its teacher by number of
// updates, and four numbers.
func (c ImitationConfig) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	trained, err := c.Training.load(m)
	if err != nil {
		return all, err
	}
	updateError, err := c.Training.UpdateError(trained.Block, c.Windows)
	if err != nil {
		return all, err
	}
	loop, err := c.Training.CloseLoop(trained.Block, c.Steps, c.MDPs, c.Updates, c.Every)
	if err != nil {
		return all, err
	}
	add := func(quantity string, x, value float64) {
		all.Measures = append(all.Measures, rows.Measure{Quantity: quantity, X: x, Value: value})
	}
	for k, n := range loop.Updates {
		add("learned", float64(n), loop.Learned[k])
		add("teacher", float64(n), loop.Teacher[k])
	}
	add("loss_ratio", math.NaN(), trained.LossRatio())
	add("median_relative_error", math.NaN(), updateError)
	add("improvement_ratio", math.NaN(), loop.Improvement())
	add("mean_gap", math.NaN(), loop.Gap())
	return all, nil
}

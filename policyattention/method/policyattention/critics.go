package policyattention

import (
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// SampleMean is a critic without a network, as data: see train.SampleMean.
type SampleMean struct {
	Samples int     `json:"samples"`
	Weight  float64 `json:"weight"`
}

// Weights implements method.Critic; there are none.
func (c *SampleMean) Weights() []method.Weights { return nil }

// Critic implements method.Critic.
func (c *SampleMean) Critic(_ *method.Models, root uint64) (control.Critic, error) {
	return train.SampleMean{Samples: c.Samples, Weight: c.Weight, Root: root}, nil
}

// residualCritic adds to the mean of its samples. Every context is on a problem of its own,
// so that it learns none by heart, and one layer is enough for what it adds.
func residualCritic(t *train.Config) {
	t.Recipe, t.Layers, t.Batch, t.Steps = train.Residual(), 1, 32, max(1, t.Steps/32)
	t.MDPs, t.Examples = 16_384, 16_384
	t.Optimizer.LearningRate = 3e-3
}

// tablesCritic finds in its context what the others are given.
func tablesCritic(t *train.Config) {
	t.Recipe, t.Layers, t.Batch, t.Steps = train.Tables(), 3, 16, max(1, t.Steps/8)
	t.MDPs, t.Examples = 16_384, 16_384
	t.Optimizer.LearningRate = 1e-3
}

// ownCritic adds to a loop a critic that is trained in another way than the actor.
func ownCritic(change func(*train.Config)) func(*Loop, method.Setting) error {
	return func(l *Loop, s method.Setting) error {
		w, err := weights(train.Critic, s)
		if err != nil {
			return err
		}
		t := &w.Training
		change(t)
		s.Limits.Bound(&t.MDPs, "mdps")
		s.Limits.Bound(&t.Examples, "examples")
		s.Limits.Bound(&t.Batch, "batch")
		t.Snapshots, w.Step = nil, t.Steps
		l.Critic = w
		return nil
	}
}

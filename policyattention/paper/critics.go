package paper

import (
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// samples is m of the critics of a setting.
func samples(s method.Setting) int {
	return train.Standard(train.Critic, train.Plain(), 0, s.States).Samples
}

// SampleMean is a critic without a network, as data: see train.SampleMean.
type SampleMean struct {
	Samples int     `json:"samples"`
	Weight  float64 `json:"weight"` // 1
}

func sampleMean(l *Loop, s method.Setting) error {
	l.Critic = &SampleMean{Samples: samples(s), Weight: 1}
	return nil
}

// Weights implements method.Critic; there are none.
func (c *SampleMean) Weights() []method.Weights { return nil }

// Critic implements method.Critic.
func (c *SampleMean) Critic(_ *method.Models, root uint64) (control.Critic, error) {
	return train.SampleMean{Samples: c.Samples, Root: root}, nil
}

// MemoryCritic is the trained critic with memory, anchored, as data: see package critic.
type MemoryCritic struct {
	Samples  int           `json:"samples"`
	Training critic.Config `json:"memory_critic"`
	Anchored bool          `json:"anchored,omitempty"` // true
}

// anchoredCritic adds the critic of a setting's identity. One network serves all sizes, so
// that the first identities of all are the same weights.
func anchoredCritic(l *Loop, s method.Setting) error {
	const first = 32_000
	t := critic.Standard(first + s.Identity.Model%100)
	s.Limits.Bound("critic-steps", &t.Steps)
	s.Limits.Bound("critic-problems", &t.Problems)
	t.Optimizer.Cosine = t.Steps
	l.Critic = &MemoryCritic{samples(s), t, true}
	return nil
}

// Weights implements method.Critic.
func (c *MemoryCritic) Weights() []method.Weights { return []method.Weights{method.Last(c.Training)} }

// Critic implements method.Critic.
func (c *MemoryCritic) Critic(m *method.Models, root uint64) (control.Critic, error) {
	model, err := method.Network(m, c.Training)
	if err != nil {
		return nil, err
	}
	return &critic.Critic{Estimate: critic.Learned(model.Sequences), Samples: c.Samples, Root: root}, nil
}

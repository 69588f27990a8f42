package policyattention

import (
	"image/color"

	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/anymdp/critic/recipe"
	"icrl/policyattention/control"
	"icrl/policyattention/method"

	"github.com/gomlx/compute"
)

// Remembering is a critic with memory and without a network, as data: see [critic.Posterior].
type Remembering struct {
	Samples   int     `json:"samples"`
	Alpha     float64 `json:"alpha"`
	Corrected bool    `json:"corrected"`
	Anchored  bool    `json:"anchored,omitempty"`
}

// Weights implements method.Critic; there are none.
func (c *Remembering) Weights() []method.Weights { return nil }

// Critic implements method.Critic.
func (c *Remembering) Critic(_ *method.Models, root uint64) (control.Critic, error) {
	return &critic.Critic{Estimate: critic.Posterior(c.Alpha), Samples: c.Samples, Root: root, Corrected: c.Corrected, Anchored: c.Anchored}, nil
}

// memoryAccess says what critics with memory are told; memoryLimits names what bounds their
// training.
const memoryAccess = "144 generative transitions a round, remembered"

var memoryLimits = []string{"critic-steps", "critic-problems"}

// withMemory are the trained critic with the exact actor and with a trained one.
func withMemory(name, label string, anchored bool, exact, learned color.RGBA) []method.Method {
	return []method.Method{
		{
			Name: method.Name(name), Label: "exact PMD, " + label, Colour: exact,
			Signal: "sampled targets", Access: memoryAccess, Cost: "–", Limits: memoryLimits,
			Deploy: func(s method.Setting) (method.Deployment, error) {
				return &Loop{Critic: memoryCritic(s, anchored)}, nil
			},
		},
		actorOf(method.Method{
			Name: method.Name("policyattention-" + name), Label: "PolicyAttention, " + label, Colour: learned,
			Signal: "proximal loss; sampled targets", Access: memoryAccess, Cost: "–", Limits: memoryLimits,
		}, func(l *Loop, s method.Setting) error {
			l.Critic = memoryCritic(s, anchored)
			return nil
		}),
	}
}

// remembering are critics with memory and without a network, with the exact actor.
func remembering(name method.Name, label string, c color.RGBA, r Remembering) method.Method {
	return method.Method{
		Name: name, Label: label, Colour: c, Untrained: true,
		Signal: "none", Access: memoryAccess, Cost: "–",
		Deploy: func(s method.Setting) (method.Deployment, error) {
			own := r
			own.Samples = samples(s)
			return &Loop{Critic: &own}, nil
		},
	}
}

// MemoryCritic is the trained critic with memory, as data: see package critic.
type MemoryCritic struct {
	Samples  int           `json:"samples"`
	Training recipe.Config `json:"memory_critic"`
	Anchored bool          `json:"anchored,omitempty"`
}

// memoryCritic returns the critic of a setting's identity. One network serves all sizes, so
// that the first identities of all are the same weights.
func memoryCritic(s method.Setting, anchored bool) *MemoryCritic {
	const first = 32_000
	t := recipe.Standard(first + s.Identity.Model%100)
	s.Limits.Bound(&t.Steps, "critic-steps")
	s.Limits.Bound(&t.Problems, "critic-problems")
	t.Optimizer.Cosine = t.Steps
	return &MemoryCritic{samples(s), t, anchored}
}

// Weights implements method.Critic.
func (c *MemoryCritic) Weights() []method.Weights { return []method.Weights{method.Last(c.Training)} }

// Critic implements method.Critic.
func (c *MemoryCritic) Critic(m *method.Models, root uint64) (control.Critic, error) {
	model, err := method.Load(m, method.Last(c.Training), c.Training.Hash(), func(_ compute.Backend, path string) (*recipe.Model, error) { return recipe.Load(path) }, func(m *recipe.Model) (string, int) { return m.Hash, m.Step })
	if err != nil {
		return nil, err
	}
	return &critic.Critic{Estimate: critic.Learned(model.Forward), Samples: c.Samples, Root: root, Corrected: true, Anchored: c.Anchored}, nil
}

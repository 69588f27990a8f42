// Package policyattention registers the paper's learned controllers: a Transformer as
// the actor of the loop, with the exact critic or a learned one. Their networks and
// training are package train's.
package policyattention

import (
	"fmt"
	"image/color"
	"slices"

	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"

	"github.com/gomlx/compute"
)

// objectives are what the actors are trained for.
var objectives = map[method.Name]train.Objective{
	"policyattention": train.Proximal, "pmd-target": train.PMDTarget, "reward-only": train.RewardOnly,
	"policyattention-learned-critic": train.Proximal, "policyattention-residual-critic": train.Proximal,
	"policyattention-tables-critic": train.Proximal, "policyattention-sample-mean": train.Proximal,
	"policyattention-memory-critic": train.Proximal, "policyattention-anchored-critic": train.Proximal, "policyattention-mixture": train.Proximal,
}

const exactBackup = "exact one-step backup, no samples"

// Methods are the learned controllers, in the order of tables.
var Methods = slices.Concat([]method.Method{
	actorOf(method.Method{
		Name: "policyattention", Label: "PolicyAttention", Colour: color.RGBA{0, 114, 178, 255},
		Signal: "proximal loss", Access: exactBackup, Cost: ".19–.24 GPU-h",
	}, nil),
	actorOf(method.Method{
		Name: "pmd-target", Label: "PMD-target", Colour: color.RGBA{230, 159, 0, 255},
		Signal: "labels of exact PMD", Access: exactBackup, Cost: ".19–.24 GPU-h",
	}, nil),
	actorOf(method.Method{
		Name: "reward-only", Label: "reward-only", Colour: color.RGBA{213, 94, 0, 255},
		Signal: "proximal loss without its KL term", Access: exactBackup, Cost: "–",
		// Nothing bounds its logits: they span up to 200 nats, where others' span 20, and
		// float32 rounds them more. 1.8e-4 was seen with XLA on another processor, 2.3e-4 with
		// pure Go.
		Replay: 1e-3,
	}, nil),
	actorOf(method.Method{
		Name: "policyattention-learned-critic", Label: "PolicyAttention, learned critic", Colour: color.RGBA{86, 180, 233, 255},
		Signal: "proximal loss; backups from samples", Access: "144 generative transitions", Cost: "–",
	}, func(l *Loop, s method.Setting) (err error) {
		l.Critic, err = weights(train.Critic, s)
		return err
	}),
	untrained("sample-mean", "exact PMD, mean of samples", color.RGBA{127, 127, 127, 255}, func(method.Setting) float64 { return 1 }),
	untrained("shrunk-mean", "exact PMD, shrunk mean", color.RGBA{150, 75, 0, 255}, func(s method.Setting) float64 { return s.Shrinkage }),
	untrained("posterior-mean", "exact PMD, posterior mean", color.RGBA{70, 70, 160, 255}, func(s method.Setting) float64 { return train.PosteriorWeight(samples(s), s.States) }),
	actorOf(method.Method{
		Name: "policyattention-residual-critic", Label: "PolicyAttention, residual critic", Colour: color.RGBA{0, 158, 115, 255},
		Signal: "proximal loss; backups from samples", Access: "144 generative transitions", Cost: "–",
	}, ownCritic(residualCritic)),
	actorOf(method.Method{
		Name: "policyattention-tables-critic", Label: "PolicyAttention, critic of tables", Colour: color.RGBA{148, 103, 189, 255},
		Signal: "proximal loss; sampled targets", Access: "144 generative transitions", Cost: "–",
	}, ownCritic(tablesCritic)),
	actorOf(method.Method{
		Name: "policyattention-sample-mean", Label: "PolicyAttention, mean of samples", Colour: color.RGBA{160, 160, 160, 255},
		Signal: "proximal loss", Access: "144 generative transitions", Cost: "–",
	}, func(l *Loop, s method.Setting) error {
		l.Critic = &SampleMean{Samples: samples(s), Weight: 1}
		return nil
	}),
	remembering("all-samples-mean", "exact PMD, mean of all samples so far", color.RGBA{140, 86, 75, 255}, Remembering{}),
	remembering("all-samples-posterior-mean", "exact PMD, posterior mean of all so far", color.RGBA{188, 128, 189, 255}, Remembering{Alpha: 1}),
	remembering("corrected-posterior-mean", "exact PMD, corrected posterior mean", color.RGBA{27, 120, 55, 255}, Remembering{Alpha: 1, Corrected: true}),
	remembering("anchored-posterior-mean", "exact PMD, anchored posterior mean", color.RGBA{0, 68, 27, 255}, Remembering{Alpha: 1, Corrected: true, Anchored: true}),
},
	withMemory("memory-critic", "critic with memory", false, color.RGBA{227, 26, 28, 255}, color.RGBA{178, 24, 43, 255}),
	withMemory("anchored-critic", "anchored critic with memory", true, color.RGBA{251, 106, 74, 255}, color.RGBA{103, 0, 13, 255}),
	[]method.Method{
		actorOf(method.Method{
			Name: "policyattention-mixture", Label: "PolicyAttention, mixed", Colour: color.RGBA{204, 121, 167, 255},
			Signal: "proximal loss", Access: exactBackup, Cost: "–",
		}, func(l *Loop, s method.Setting) error {
			l.Phi = s.Mixture
			return nil
		}),
	})

// untrained are critics without a network, with the exact actor.
func untrained(name method.Name, label string, c color.RGBA, weight func(method.Setting) float64) method.Method {
	return method.Method{
		Name: name, Label: label, Colour: c, Untrained: true,
		Signal: "none", Access: "144 generative transitions", Cost: "–",
		Deploy: func(s method.Setting) (method.Deployment, error) {
			return &Loop{Critic: &SampleMean{Samples: samples(s), Weight: weight(s)}}, nil
		},
	}
}

// samples is m of the critics of a setting.
func samples(s method.Setting) int {
	return train.Standard(train.Critic, train.Plain(), 0, s.States).Samples
}

// actorOf completes a method whose loop has a trained actor; add, if not nil, adds to
// the loop.
func actorOf(m method.Method, add func(*Loop, method.Setting) error) method.Method {
	m.Recipes, m.Limits = RecipeNames(), append(m.Limits, "mdps", "examples", "batch")
	m.Deploy = func(s method.Setting) (method.Deployment, error) {
		l := &Loop{}
		var err error
		if l.Actor, err = weights(objectives[m.Name], s); err == nil && add != nil {
			err = add(l, s)
		}
		return l, err
	}
	return m
}

// Loop is a closed loop. An absent part is the exact one: the PMD step, the one-step
// backup.
type Loop struct {
	Phi    float64       `json:"phi,omitempty"` // mixture with the uniform policy
	Actor  method.Actor  `json:"actor,omitempty"`
	Critic method.Critic `json:"critic,omitempty"`
}

var _ method.Separable = (*Loop)(nil)

// Weights implements method.Deployment.
func (l *Loop) Weights() (all []method.Weights) {
	if l.Actor != nil {
		all = l.Actor.Weights()
	}
	if l.Critic != nil {
		all = append(all, l.Critic.Weights()...)
	}
	return all
}

// Parts implements method.Separable.
func (l *Loop) Parts() (method.Actor, method.Critic) { return l.Actor, l.Critic }

// Controller implements method.Deployment.
func (l *Loop) Controller(m *method.Models, eta float64, root uint64) (control.Controller, error) {
	loop := control.ExactPMD(eta)
	var err error
	if l.Actor != nil {
		if loop.Actor, err = l.Actor.Actor(m); err != nil {
			return nil, err
		}
	}
	if l.Phi > 0 {
		loop.Actor = control.MixedActor{Actor: loop.Actor, Phi: l.Phi}
	}
	if l.Critic != nil {
		if loop.Critic, err = l.Critic.Critic(m, root); err != nil {
			return nil, err
		}
	}
	return loop, nil
}

// Weights names the weights of an actor or a critic after some step of its training.
type Weights struct {
	Training train.Config `json:"training"`
	Step     int          `json:"step"`
}

// weights returns the weights of a setting's identity for an objective.
func weights(objective train.Objective, s method.Setting) (*Weights, error) {
	recipe, ok := findRecipe(s.Recipe)
	if !ok {
		return nil, fmt.Errorf("no recipe %q, want one of %q", s.Recipe, RecipeNames())
	}
	t := train.Standard(objective, recipe, s.Identity.Model, s.States)
	if s.Train != nil {
		t.Sizes, t.Slots = s.Train, s.Slots
	}
	t.Task, t.Actions = s.Identity.Task, s.Actions
	s.Limits.Bound(&t.MDPs, "mdps")
	s.Limits.Bound(&t.Examples, "examples")
	s.Limits.Bound(&t.Batch, "batch")
	t.Steps = s.Steps
	for name, steps := range s.Snapshots {
		if objectives[name] == objective {
			t.Snapshots = steps
		}
	}
	w := &Weights{t, t.Steps}
	if s.Step != 0 {
		w.Step = s.Step
	}
	return w, nil
}

// Weights implements method.Actor and method.Critic.
func (w *Weights) Weights() []method.Weights {
	return []method.Weights{{Training: w.Training, Step: w.Step}}
}

// model loads the weights.
func (w *Weights) model(m *method.Models) (*train.Model, error) {
	t := w.Training
	return method.Load(m, method.Weights{Training: t, Step: w.Step}, w.Training.Hash(), func(_ compute.Backend, path string) (*train.Model, error) { return train.Load(path) },
		func(m *train.Model) (string, int) { return m.Config.Hash(), m.Step })
}

// Actor implements method.Actor.
func (w *Weights) Actor(m *method.Models) (control.Actor, error) {
	model, err := w.model(m)
	if err != nil {
		return nil, err
	}
	return model.Actor()
}

// Critic implements method.Critic.
func (w *Weights) Critic(m *method.Models, root uint64) (control.Critic, error) {
	model, err := w.model(m)
	if err != nil {
		return nil, err
	}
	return model.Critic(root)
}

package paper

import (
	"cmp"
	"fmt"
	"strings"

	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// proposed are the paper's learned controllers, in the order of tables: a Transformer as the actor of
// the loop, with the exact critic or a learned one.
var proposed = []method.Method{
	loopOf(method.Method{Name: "policyattention", Label: "PolicyAttention",
		Studies: map[string]func(method.Setting) (method.Study, error){"heads": headsOf, "sizes": sizesOf}},
		train.Proximal, nil),
	loopOf(method.Method{Name: "pmd-target", Label: "PMD-target"}, train.PMDTarget, nil),
	// Nothing bounds its logits: they span up to 200 nats, where others' span 20, and
	// float32 rounds them more.
	loopOf(method.Method{Name: "reward-only", Label: "reward-only", Tolerance: 5e-3}, train.RewardOnly, nil),
	loopOf(method.Method{Name: "policyattention-learned-critic", Label: "PolicyAttention, learned critic",
		Tolerance: 5e-3}, train.Proximal,
		func(l *Loop, s method.Setting) (err error) {
			l.Critic, err = weights(train.Critic, s)
			return err
		}),
	loopOf(method.Method{Name: "sample-mean", Label: "exact PMD, mean of samples", Untrained: true}, "", sampleMean),
	loopOf(method.Method{Name: "policyattention-sample-mean", Label: "PolicyAttention, mean of samples"},
		train.Proximal, sampleMean),
	loopOf(method.Method{Name: "anchored-critic", Label: "exact PMD, anchored critic"}, "", anchoredCritic),
	loopOf(method.Method{Name: "policyattention-anchored-critic", Label: "PolicyAttention, anchored critic"},
		train.Proximal, anchoredCritic),
	loopOf(method.Method{Name: "policyattention-mixture", Label: "PolicyAttention, mixed"}, train.Proximal,
		func(l *Loop, s method.Setting) error {
			l.Phi = s.Mixture
			return nil
		}),
}

// objectives are what the weights along training are looked at of.
var objectives = map[method.Name]train.Objective{"policyattention": train.Proximal, "pmd-target": train.PMDTarget}

// loopOf completes a method whose loop has a trained actor, if there is an objective; add, if not nil, adds to
// the loop.
func loopOf(m method.Method, objective train.Objective, add func(*Loop, method.Setting) error) method.Method {
	m.Deploy = func(s method.Setting) (method.Deployment, error) {
		l := &Loop{}
		var err error
		if objective != "" {
			l.Actor, err = weights(objective, s)
		}
		if err == nil && add != nil {
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

// weights returns the weights of a setting's identity for an objective. Critics have no other read-out
// than the plain recipe's.
func weights(objective train.Objective, s method.Setting) (*Weights, error) {
	if objective == train.Critic {
		s.Recipe = strings.Replace(s.Recipe, train.Prior().Name, train.Plain().Name, 1)
	}
	recipe, changes, err := findRecipe(s.Recipe)
	if err != nil {
		return nil, err
	}
	t := train.Standard(objective, recipe, s.Identity.Model, s.States)
	t.Task, t.Actions, t.Steps = s.Identity.Task, s.Actions, s.Steps
	s.Limits.Bound("mdps", &t.MDPs)
	s.Limits.Bound("examples", &t.Examples)
	s.Limits.Bound("batch", &t.Batch)
	for name, steps := range s.Snapshots {
		if objectives[name] == objective {
			t.Snapshots = steps
		}
	}
	if err := vary(&t, changes); err != nil {
		return nil, err
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
	return method.Make(m, w.Weights()[0], func(params []float32) (*train.Model, error) {
		return train.NewModel(w.Training, params)
	})
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

// recipes are the ways to train. To vary one, name what changes behind it, as in "plain,width=32".
var recipes = []train.Recipe{train.Plain(), train.Prior()}

// findRecipe returns a recipe by its name, and what is to change of it.
func findRecipe(name string) (recipe train.Recipe, changes []string, err error) {
	parts := strings.Split(cmp.Or(name, train.Plain().Name), ",")
	for _, r := range recipes {
		if r.Name == parts[0] {
			r.Name = strings.Join(parts, ",")
			return r, parts[1:], nil
		}
	}
	return recipe, nil, fmt.Errorf("no recipe %q, want plain or prior, and changes of it as in plain,width=32", name)
}

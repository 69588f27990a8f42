// Package paper lists what the paper and this repository compare: methods, presets, which say what is
// run at which scale, studies besides the blocks of a preset, and systems that are no methods. Without its
// lines here a baseline's folder can be removed.
package paper

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Methods are all methods, in the order of tables. One that deploys nothing is exact policy mirror descent.
var Methods = method.Registry(slices.Concat(
	proposed,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{{Name: "exact-pmd", Label: "exact PMD", Untrained: true}},
))

// Systems are those of the paper's Table 1 that evaluate policies and return none, so that they are not among the
// methods.
var Systems = map[string]baseline.Trainer{
	"wang": wang.System,
	"xie":  xie.System,
}

// Presets are files of JSON beside this one. A row of theirs is a block, a method, a recipe, sizes and how
// many of the protocol's identities; the paper's are in the order of what is worth training first.
//
//go:embed smoke.json quick.json paper.json
var files embed.FS

// Presets are the names of the presets, by scale.
var Presets = []string{"smoke", "quick", "paper"}

// FindPreset returns the preset called name.
func FindPreset(name string) (experiment.Preset, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return experiment.Preset{}, fmt.Errorf("paper: no preset %q, want one of %q", name, Presets)
	}
	p := experiment.Embedded[experiment.Preset](text)
	if name != "paper" {
		return p.With(&experiment.PaperProtocol, Methods), nil
	}
	return p.With(&experiment.PaperProtocol, Methods, Equal, Any, Families), nil
}

// proposed are the paper's learned controllers, in the order of tables: a Transformer as the actor of
// the loop, with the exact critic or a learned one.
var proposed = []method.Method{
	loopOf(method.Method{Name: "policyattention", Label: "PolicyAttention",
		Studies: map[string]func(method.Setting) (method.Study, error){"heads": headsOf, "sizes": sizesOf}},
		train.Proximal, nil),
	loopOf(method.Method{Name: "pmd-target", Label: "PMD-target"}, train.PMDTarget, nil),
	// Nothing bounds its logits: they span up to 200 nats, where others' span 20, and float32 rounds them more.
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
	m.Deploy = func(s method.Setting) (_ method.Deployment, err error) {
		l := &Loop{}
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

// Loop is a closed loop. An absent part is the exact one: the PMD step, the one-step backup.
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
func (l *Loop) Controller(m *method.Models, eta float64, root uint64) (_ control.Controller, err error) {
	loop := control.ExactPMD(eta)
	if l.Actor != nil {
		loop.Actor, err = l.Actor.Actor(m)
	}
	if l.Phi > 0 {
		loop.Actor = control.MixedActor{Actor: loop.Actor, Phi: l.Phi}
	}
	if err == nil && l.Critic != nil {
		loop.Critic, err = l.Critic.Critic(m, root)
	}
	return loop, err
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
	return &Weights{t, cmp.Or(s.Step, t.Steps)}, nil
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

// findRecipe returns a way to train by its name, and what is to change of it: what is named behind it, as in
// "plain,width=32".
func findRecipe(name string) (recipe train.Recipe, changes []string, err error) {
	parts := strings.Split(cmp.Or(name, train.Plain().Name), ",")
	for _, r := range []train.Recipe{train.Plain(), train.Prior()} {
		if r.Name == parts[0] {
			r.Name = strings.Join(parts, ",")
			return r, parts[1:], nil
		}
	}
	return recipe, nil, fmt.Errorf("no recipe %q, want plain or prior, and changes of it as in plain,width=32", name)
}

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

// settings are what a recipe's name can change, and where it stands: an *int, a *float64, a *bool or a
// *train.Attention.
func settings(t *train.Config) map[string]any {
	return map[string]any{
		"width": &t.Width, "hidden": &t.Hidden, "layers": &t.Layers, "heads": &t.Heads, "attention": &t.Attention,
		"lr": &t.Optimizer.LearningRate, "decay": &t.Optimizer.WeightDecay, "beta1": &t.Optimizer.Beta1,
		"beta2": &t.Optimizer.Beta2, "cosine": &t.Optimizer.Cosine, "batch": &t.Batch, "mdps": &t.MDPs,
		"examples": &t.Examples, "steps": &t.Steps, "samples": &t.Samples, "rounds": &t.Recipe.Rounds,
		"early": &t.Recipe.Early, "eta-min": &t.Recipe.EtaMin, "eta-max": &t.Recipe.EtaMax,
		"relabel": &t.Recipe.Relabel, "average": &t.Recipe.Average,
	}
}

// Settings lists what can be changed behind the name of a recipe.
func Settings() []string { return slices.Sorted(maps.Keys(settings(&train.Config{}))) }

// vary changes a training as a recipe's name says. It returns an error for what is no setting,
// no number, or said twice; train.Config.Validate refuses what makes no sense.
func vary(t *train.Config, changes []string) error {
	all, seen := settings(t), map[string]bool{}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		var err error
		switch to := all[name].(type) {
		case *int:
			*to, err = strconv.Atoi(value)
		case *float64:
			*to, err = strconv.ParseFloat(value, 64)
		case *bool:
			*to, err = strconv.ParseBool(value)
		case *train.Attention:
			*to = train.Attention(value)
		default:
			return fmt.Errorf("no setting %q, want one of %s", name, strings.Join(Settings(), ", "))
		}
		if err == nil && value == "" {
			err = errors.New("it has no value")
		}
		if err != nil {
			return fmt.Errorf("setting %q: %w", change, err)
		}
		if seen[name] {
			return fmt.Errorf("setting %q stands twice", name)
		}
		seen[name] = true
	}
	return t.Validate()
}

package lianglai

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Method is Liang–Lai's block among the methods. All recipes of a closed loop share the trained block: its update is
// linear in the step sizes. "paper" has the paper's; "tuned" those of the extended grid, with the start that did better
// there; "paper-uniform" and "tuned-initial" have the other start, "paper-features" dense features.
//
// It is tuned by its teacher, on a grid of both step sizes, or with the recipe "features" of the actor's in dense
// features at the paper's β; and qualified by imitation of its teacher in Liang and Lai's shape, "native", or in the
// harness's.
var Method = method.Method{
	Name: name, Label: "Liang–Lai", Deploy: deploy,
	Informed: method.Informed{method.ByModel: informed, method.ByGenerative: informed, method.ByWindow: informed},
	Studies:  map[string]func(method.Setting) (method.Study, error){"tuning": tune, "qualification": qualify},
}

const name = "liang-lai"

func deploy(s method.Setting) (method.Deployment, error) {
	d := &Deployment{}
	l := &d.LiangLai
	l.Start = baseline.Initial
	if s.Recipe == "tuned" || s.Recipe == "paper-uniform" {
		l.Start = baseline.Uniform
	}
	if s.Recipe == "paper-features" {
		l.Features = baseline.Dense
	}
	var err error
	switch s.Recipe {
	case "paper", "paper-uniform", "paper-features":
		l.Steps, err = PaperSteps(s.States)
	case "tuned", "tuned-initial":
		l.Steps = s.Tuned[string(l.Start)]
	default:
		err = fmt.Errorf("no recipe %q of Liang–Lai", s.Recipe)
	}
	l.Training, l.Root = Harness(s.Identity.Model, s.States).bounded(s.Limits), s.Identity.Model
	return d, err
}

// PaperSteps returns the paper's choice for S states. It is stated for S=8 and
// S=16 only; both actor steps are the largest value of the paper's grid.
func PaperSteps(states int) (baseline.StepSizes, error) {
	beta, ok := map[int]float64{8: .2, 16: .8}[states]
	if !ok {
		return baseline.StepSizes{}, fmt.Errorf("lianglai: the paper states no step sizes for S=%d", states)
	}
	return baseline.StepSizes{Alpha: 2, Beta: beta}, nil
}

// bounded returns the training within limits.
func (t Config) bounded(l method.Limits) Config {
	l.Bound("mdps", &t.MDPs)
	l.Bound("batch", &t.Batch)
	l.Bound("steps", &t.Steps)
	return t
}

// Deployment deploys a trained block.
type Deployment struct {
	LiangLai struct {
		Training Config             `json:"training"`
		Steps    baseline.StepSizes `json:"steps"`
		Start    baseline.Start     `json:"start"`
		Features baseline.Features  `json:"features,omitempty"`
		Root     uint64             `json:"root"` // of the transitions and the features
	} `json:"liang_lai"`
}

// Weights and Controller implement method.Deployment.
func (d *Deployment) Weights() []method.Weights {
	return []method.Weights{method.Last(d.LiangLai.Training)}
}
func (d *Deployment) Controller(m *method.Models, _ float64, _ uint64) (control.Controller, error) {
	l := d.LiangLai
	trained, err := l.Training.load(m)
	if err != nil {
		return nil, err
	}
	walk := baseline.Walk(baseline.Window, l.Root)
	return trained.Block.WithSteps(l.Steps).on(walk, false, l.Start, l.Features, l.Root), nil
}

// informed returns the trained block in any condition. Its free numbers are both step sizes and the start.
func informed(c method.Case) (control.Controller, error) {
	d, err := c.Deploy(name, "tuned")
	if err != nil {
		return nil, err
	}
	trained, err := d.(*Deployment).LiangLai.Training.load(c.Models)
	if err != nil {
		return nil, err
	}
	block := trained.Block.WithSteps(baseline.StepSizes{Alpha: c.Values[0], Beta: c.Values[1]})
	start := method.StartOf(c.Values[2])
	if c.Information == method.ByModel {
		return expected{block, start}, nil
	}
	return block.on(c.Source(), c.Information == method.ByGenerative, start, baseline.OneHot, c.Root), nil
}

// load reads the trained block.
func (t Config) load(m *method.Models) (*Trained, error) {
	return method.Load(m, method.Last(t), func(path string) (*Trained, error) { return t.read(path, t.Steps) })
}

// Key, Name, Seconds and Job implement method.Training.
func (t Config) Key() string  { return "liang_lai" }
func (t Config) Name() string { return fmt.Sprintf("%s-S%d-%d", name, t.States, t.Seed) }
func (t Config) Seconds() float64 {
	const perWindow = 1.3e-7 // and coordinate of a column
	return float64(t.Steps) * float64(t.Batch) * float64(NewActorCriticPrompt(t.States, t.Actions).width) * perWindow
}

func (t Config) Job() (train.Job, error) {
	holds := func(path string, step int) error {
		_, err := t.read(path, step)
		return err
	}
	return train.Job{Config: t, Steps: t.Steps, Alone: t.run, Holds: holds}, t.Validate()
}

// run makes the job's run. It takes minutes, and interrupted starts again: the optimizer's second moments are most of
// its state, and a restart at half the rate would have to be part of it.
func (t Config) run(ctx context.Context, dir string, progress func(train.Progress)) (*train.Result, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lianglai: %w", err)
	}
	began, cpu, made := time.Now(), backend.ProcessorTime(), 0
	rate := func() float64 { return float64(made) / time.Since(began).Seconds() }
	trained, err := t.Train(ctx, func(step int, loss float64) {
		if made++; progress != nil {
			progress(train.Progress{Step: step + 1, Steps: t.Steps, Loss: loss, StepsPerSecond: rate()})
		}
	})
	if err != nil {
		return nil, err
	}
	r := &train.Result{Weights: filepath.Join(dir, "weights.safetensors"), StepsPerSecond: rate(),
		WallSeconds: time.Since(began).Seconds(), CPUSeconds: (backend.ProcessorTime() - cpu).Seconds()}
	for _, loss := range trained.Loss {
		r.Losses = append(r.Losses, float32(loss))
	}
	return r, t.write(r.Weights, trained)
}

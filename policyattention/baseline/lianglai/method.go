package lianglai

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
	"icrl/policyattention/train"
)

// Method is Liang–Lai's block among the methods. All recipes of a closed loop share the trained block: its update is
// linear in the step sizes. "paper" has the paper's; "tuned" those of the extended grid, with the start that did better
// there; "paper-uniform" and "tuned-initial" have the other start, "paper-features" dense features.
//
// It is tuned by its teacher, on a grid of both step sizes, or with the recipe "features" of the actor's in dense
// features at the paper's β; and qualified by imitation of it in Liang and Lai's shape, "native", or the harness's.
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

// PaperSteps returns the paper's choice, stated for S=8 and S=16 only; α is the largest value of the paper's grid.
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

// ImitationConfig compares a trained block with its teacher, on MDPs that follow from the training's seed.
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
	s.Limits.Bound("windows", &i.Windows)
	s.Limits.Bound("held-out mdps", &i.MDPs)
	s.Limits.Bound("updates", &i.Updates)
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

// Weights and OwnProblems implement method.Study: the held-out MDPs belong to the training.
func (c ImitationConfig) Weights() []method.Weights { return []method.Weights{method.Last(c.Training)} }
func (c ImitationConfig) OwnProblems() bool         { return true }

// Compute implements method.Study: the mean value of block and teacher by number of updates, and four numbers.
func (c ImitationConfig) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	trained, err := c.Training.load(m)
	if err != nil {
		return all, err
	}
	relative, err := c.updateError(trained.Block)
	if err != nil {
		return all, err
	}
	learned, teacher, err := c.closeLoop(trained.Block)
	if err != nil {
		return all, err
	}
	add := func(quantity string, x, value float64) {
		all.Measures = append(all.Measures, rows.Measure{Quantity: quantity, X: x, Value: value})
	}
	for k := range learned {
		add("learned", float64(k*c.Every), learned[k])
		add("teacher", float64(k*c.Every), teacher[k])
	}
	improvement, gap := likeness(learned, teacher)
	add("loss_ratio", math.NaN(), trained.LossRatio())
	add("median_relative_error", math.NaN(), relative)
	add("improvement_ratio", math.NaN(), improvement)
	add("mean_gap", math.NaN(), gap)
	return all, nil
}

// likeness returns the last point's gain and the mean distance of the curves, both relative to the teacher's gain.
func likeness(learned, teacher []float64) (improvement, gap float64) {
	last := len(teacher) - 1
	gain := teacher[last] - teacher[0]
	return (learned[last] - learned[0]) / gain, floats.Distance(learned, teacher, 1) / float64(len(learned)) / gain
}

// updateError returns the median over held-out windows, drawn as in training from fresh MDPs, of ‖increment −
// teacher's‖ / ‖teacher's‖ for a block with α = β = 1.
func (c ImitationConfig) updateError(block *Block) (float64, error) {
	t, rng := c.Training, seed.New(c.Training.Seed, "lianglai", "held-out windows")
	problems, err := t.problems(rng.Uint64(), c.Windows)
	if err != nil {
		return 0, err
	}
	b := newBatch(block.Prompt, c.Windows)
	b.draw(rng, problems, t.Gamma, 1)
	relative := make([]float64, c.Windows)
	for i := range relative {
		got, target := block.increment(b.learner(i), b.windows[i], nil, b.pi[i]), b.target.RawRowView(i)
		sa := t.States * t.Actions
		distance := math.Hypot(floats.Distance(got[:sa], target[:sa], 2), floats.Distance(got[sa:], target[sa:], 2))
		relative[i] = distance / floats.Norm(target, 2)
	}
	return stats.Median(relative), nil
}

// closeLoop runs block and teacher with the same step sizes on held-out MDPs, from the same policies and random
// numbers. It returns the mean over MDPs and states of V^π, exact, at every multiple of Every updates, 0 included.
func (c ImitationConfig) closeLoop(block *Block) (learned, teacher []float64, err error) {
	root := seed.New(c.Training.Seed, "lianglai", "held-out MDPs").Uint64()
	problems, err := c.Training.problems(root, c.MDPs)
	if err != nil {
		return nil, nil, err
	}
	var curves [2][]float64
	walk := baseline.Walk(baseline.Window, root)
	for i, controller := range []control.Controller{
		block.WithSteps(c.Steps).on(walk, false, baseline.Initial, baseline.OneHot, root),
		baseline.Teacher(c.Steps, baseline.Initial, baseline.OneHot, root)} {
		trajectories, err := controller.Run(problems, c.Updates/c.Every*c.Every)
		if err != nil {
			return nil, nil, err
		}
		for k := 0; k <= c.Updates; k += c.Every {
			mean := 0.0
			for j, problem := range problems {
				pi := trajectories[j].Policies[k]
				q, err := problem.MDP.PolicyValue(pi)
				if err != nil {
					return nil, nil, err
				}
				v := floats.Dot(pi.RawMatrix().Data, q.RawMatrix().Data) / float64(problem.MDP.States())
				mean += v / float64(len(problems))
			}
			curves[i] = append(curves[i], mean)
		}
	}
	return curves[0], curves[1], nil
}

// Tuning scores the teacher, which is the source of Algorithm Distillation too, on a grid of step sizes. Its problems
// are calibration problems, disjoint from those of training and evaluation. The analytic block makes the same updates,
// so the losses hold for it too; those that start from the uniform policy, in one-hot features, are the source's.
type Tuning struct {
	Grid struct {
		Starts []baseline.Start `json:"starts"`
		Alphas []float64        `json:"alphas"` // ascending
		Betas  []float64        `json:"betas"`
	} `json:"grid"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// tune is the study of the block "tuning". The paper's actor grids end at the chosen values, 2 for Liang–Lai and 4
// for the source of Algorithm Distillation; this one goes on until the loss rises again.
func tune(s method.Setting) (method.Study, error) {
	alphas, betas := 9, 8
	s.Limits.Bound("grid", &alphas, &betas)
	t := Tuning{Root: s.Root}
	t.Grid.Starts = []baseline.Start{baseline.Initial, baseline.Uniform}
	t.Grid.Alphas = []float64{0.5, 1, 2, 4, 8, 16, 32, 64, 128}[:alphas]
	t.Grid.Betas = []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4}[:betas]
	switch s.Recipe {
	case "":
	case "features":
		steps, err := PaperSteps(s.States)
		if err != nil {
			return nil, err
		}
		t.Grid.Betas, t.Features = []float64{steps.Beta}, baseline.Dense
	default:
		return nil, fmt.Errorf("no recipe %q of Liang–Lai's tuning", s.Recipe)
	}
	return t, nil
}

// Weights and OwnProblems implement method.Study.
func (t Tuning) Weights() []method.Weights { return nil }
func (t Tuning) OwnProblems() bool         { return false }

// Compute implements method.Study: the losses at every setting of the grid, in the order of its lists, β fastest.
func (t Tuning) Compute(_ *method.Models, problems []mdp.Problem) (all rows.Tables, err error) {
	scales, err := control.NewScales(problems)
	if err != nil {
		return all, err
	}
	for _, start := range t.Grid.Starts {
		for _, alpha := range t.Grid.Alphas {
			for _, beta := range t.Grid.Betas {
				steps := baseline.StepSizes{Alpha: alpha, Beta: beta}
				teacher := baseline.Teacher(steps, start, t.Features, t.Root)
				trajectories, err := teacher.Run(problems, slices.Max(baseline.Horizons))
				var some []rows.Tuned
				if err == nil {
					some, err = baseline.Score(trajectories, steps, start, scales)
				}
				if err != nil {
					return all, fmt.Errorf("lianglai: tuning at α=%v, β=%v: %w", alpha, beta, err)
				}
				all.Tuned = append(all.Tuned, some...)
			}
		}
	}
	return all, nil
}

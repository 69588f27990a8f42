package lianglai

import (
	"context"
	"fmt"
	"image/color"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// Method is Liang–Lai's block among the methods. All recipes of a closed loop share the
// trained block: its update is linear in the step sizes. "paper" has the paper's step
// sizes; "tuned" those of the extended grid, with the start that did better there;
// "paper-uniform" and "tuned-initial" are the same with the other start,
// "paper-features" with dense features.
//
// It is tuned by its teacher, on a grid of both step sizes, or with the recipe
// "features" of the actor's in dense features at the paper's β; and qualified by
// imitation of its teacher in the shape that Liang and Lai train in, "native", or in
// the harness's.
var Method = method.Method{
	Name: name, Label: "Liang–Lai", Colour: color.RGBA{0, 158, 115, 255}, Dashes: []float64{2, 2}, Sampled: true,
	Signal: "increments of its teacher", Access: "20 on-policy transitions", Cost: "17 CPU-min",
	Printed: []string{"paper", "paper-uniform", "paper-features"}, Tuned: []string{"tuned", "tuned-initial"},
	Variants: []method.Variant{
		{
			Recipe: "paper", Label: "one-hot features", Loss: unnamed,
			Growth: "conjecture: one-hot features learn from a state's own visits, which fall as 1/S",
			Lead:   "this copy of the baseline is weaker than the paper's, in features that the paper does not name",
		},
		{
			Recipe: "paper-features", Label: "dense features", Loss: unnamed,
			Fitted: "of one-hot features from two starts and dense ones, dense ones from π₀ were chosen because they give the paper's losses",
		},
		{Recipe: "tuned", Label: "step sizes tuned", Tuned: true, Lead: "with larger steps than the paper's grid has, the lead is smaller"},
	},
	Retuned: [][2]string{{"paper", "tuned"}},
	Tuning:  method.Tuning{Says: "best β", Axis: "actor step α", Grids: []method.Grid{{Recipe: ""}, {Recipe: "features", Label: ", dense features"}}},
	Figure:  method.Figure{Name: "liang-lai", Title: "Liang–Lai's block learns its teacher"},
	Notes: map[string][]string{
		"benchmark":     {"Liang–Lai: step sizes as in the paper or tuned on calibration problems, started from π₀ (paper, paper-features, tuned-initial) or from the uniform policy (paper-uniform, tuned), tabular or, as paper-features, linear in random features."},
		"qualification": {"Liang–Lai: the native shape has A = 4 and γ = .5, the harness A = 3 and γ = .9; the update error is the median of ‖Δ − teacher's‖/‖teacher's‖ over held-out windows, the improvement and the gap of the learning curves are relative to the teacher's gain. With several runs: their median. Its optimizer is ours; the paper does not give its own, so a smaller training loss than the paper's is no better fit of the same thing."},
		"tuning": {
			"Liang–Lai's teacher makes the same updates as the trained block, so its scores stand for it; from the uniform policy it is Algorithm Distillation's source. Algorithm Distillation itself is trained at the CPU budget for each source rate. The paper's grids end at its choices: α = 2, and source rate 4.",
			"The paper says neither from which policy Liang–Lai starts nor in which features it is linear. Its losses are .4535 and .2812 at S = 8, .4817 and .3307 at S = 16. No start gives both with one-hot features, whose step for a state falls as 1/S. Features of S·A numbers a pair and S a state, uniform on [0, 1), do, from π₀ and at the paper's step sizes; a feature's length grows with S and makes up for the rarer visits. One-hot features from π₀ are what the benchmark calls the paper's choice, the others stand beside it; tuned, one-hot features are the better ones.",
		},
	},
	Measures: []method.Measure{
		method.Summarized("last/first training loss", "training", "loss_ratio"),
		method.Summarized("relative update error", "update", "median_relative_error"),
		method.Summarized("closed-loop improvement / teacher's", "closed_loop", "improvement_ratio"),
		method.Summarized("mean curve gap", "closed_loop", "mean_gap"),
	},
	Limits: []string{"mdps", "batch", "steps", "grid", "windows", "held-out mdps", "updates"},
	Deploy: deploy, Tune: tune, Qualify: qualify, Informed: informed(),
}

const name = "liang-lai"

// unnamed is why its loss is not the paper's.
const unnamed = "one-hot features, since the paper names none"

func deploy(s method.Setting) (method.Deployment, error) {
	d := &Deployment{}
	l := &d.LiangLai
	var err error
	switch s.Recipe {
	case "paper":
		l.Start = baseline.Initial
		l.Steps, err = PaperSteps(s.States)
	case "paper-uniform":
		l.Start = baseline.Uniform
		l.Steps, err = PaperSteps(s.States)
	case "paper-features":
		l.Start, l.Features = baseline.Initial, baseline.Dense
		l.Steps, err = PaperSteps(s.States)
	case "tuned":
		l.Start, l.Steps = baseline.Uniform, s.Tuned["uniform"]
	case "tuned-initial":
		l.Start, l.Steps = baseline.Initial, s.Tuned["initial"]
	default:
		err = fmt.Errorf("no recipe %q of Liang–Lai", s.Recipe)
	}
	l.Training, l.Root = Harness(s.Identity.Model, s.States).bounded(s.Limits), s.Identity.Model
	return d, err
}

// bounded returns the training within limits.
func (t Config) bounded(l method.Limits) Config {
	l.Bound(&t.MDPs, "mdps")
	l.Bound(&t.Batch, "batch")
	l.Bound(&t.Steps, "steps")
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

var _ method.Learner = (*Deployment)(nil)

// Weights implements method.Deployment.
func (d *Deployment) Weights() []method.Weights {
	return []method.Weights{method.Last(d.LiangLai.Training)}
}

// StepSizes implements method.Learner.
func (d *Deployment) StepSizes() baseline.StepSizes { return d.LiangLai.Steps }

// Controller implements method.Deployment.
func (d *Deployment) Controller(m *method.Models, _ float64, _ uint64) (control.Controller, error) {
	l := d.LiangLai
	trained, err := l.Training.load(m)
	if err != nil {
		return nil, err
	}
	prompt, err := NewActorCriticPrompt(l.Training.States, l.Training.Actions)
	if err != nil {
		return nil, err
	}
	return Controller{Prompt: prompt, Block: prompt.WithSteps(trained.Block, l.Steps), Start: l.Start, Features: l.Features, Root: l.Root}, nil
}

// load reads the trained block.
func (t Config) load(m *method.Models) (*Trained, error) {
	path, err := m.Path(method.Last(t))
	if err != nil {
		return nil, err
	}
	stored, trained, err := Read(path)
	if err != nil {
		return nil, err
	}
	if stored != t {
		return nil, fmt.Errorf("lianglai: %s holds configuration %.12s, want %.12s", path, stored.Hash(), t.Hash())
	}
	return trained, nil
}

// Key implements method.Training.
func (t Config) Key() string { return "liang_lai" }

// Name implements method.Training.
func (t Config) Name() string { return fmt.Sprintf("%s-S%d-%d", name, t.States, t.Seed) }

// Data implements method.Training.
func (t Config) Data() string {
	return fmt.Sprintf("%d MDPs, %g windows", t.MDPs, float64(t.Batch)*float64(t.Steps))
}

// Seconds implements method.Training.
func (t Config) Seconds() float64 {
	const perWindow = 1.3e-7 // and coordinate of a column
	width := float64(2*t.States*t.Actions + 3*t.States + 2)
	return float64(t.Steps) * float64(t.Batch) * width * perWindow
}

// Shape implements method.Training.
func (t Config) Shape() string { return name }

// Kept implements method.Training.
func (t Config) Kept() []int { return nil }

// Read implements method.Training.
func (t Config) Read(path string) (hash string, step int, err error) {
	stored, _, err := Read(path)
	return stored.Hash(), stored.Steps, err
}

// TrainAt implements method.Alone. It takes minutes, and interrupted starts again: the
// optimizer's second moments are most of its state, and a restart at half the rate would
// have to be part of it.
func (t Config) TrainAt(ctx context.Context, at method.Place) (losses []float64, err error) {
	trained, err := t.Train(ctx, at.Progress)
	if err != nil {
		return nil, err
	}
	return trained.Loss, t.Write(at.Weights, trained)
}

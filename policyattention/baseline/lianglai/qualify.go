package lianglai

import (
	"fmt"
	"math"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"

	"gonum.org/v1/gonum/floats"
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
	relative, err := c.Training.updateError(trained.Block, c.Windows)
	if err != nil {
		return all, err
	}
	learned, teacher, err := c.Training.closeLoop(trained.Block, c.Steps, c.MDPs, c.Updates, c.Every)
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

// likeness returns the last point's gain over the start and the mean distance of the curves, both relative to the
// teacher's gain.
func likeness(learned, teacher []float64) (improvement, gap float64) {
	last := len(teacher) - 1
	gain := teacher[last] - teacher[0]
	return (learned[last] - learned[0]) / gain, floats.Distance(learned, teacher, 1) / float64(len(learned)) / gain
}

// updateError returns the median over held-out windows, drawn as in training
// from fresh MDPs, of ‖increment − teacher's‖ / ‖teacher's‖ for a block with
// α = β = 1.
func (t Config) updateError(block *Block, windows int) (float64, error) {
	prompt := NewActorCriticPrompt(t.States, t.Actions)
	rng := seed.New(t.Seed, "lianglai", "held-out windows")
	problems, err := drawProblems(rng.Uint64(), t.States, t.Actions, t.Gamma, windows)
	if err != nil {
		return 0, err
	}
	b := newBatch(prompt, windows)
	b.draw(rng, problems, t.Gamma, 1)
	relative := make([]float64, windows)
	query := make([]float64, prompt.width)
	for i := range relative {
		copy(query[prompt.theta.from:], b.query.RawRowView(i))
		dTheta, dW := prompt.Increment(block.Attend(prompt.Context(b.windows[i], b.pi[i]), query))
		target := b.target.RawRowView(i)
		distance := math.Hypot(floats.Distance(dTheta, target[:len(dTheta)], 2),
			floats.Distance(dW, target[len(dTheta):], 2))
		relative[i] = distance / floats.Norm(target, 2)
	}
	return stats.Median(relative), nil
}

// closeLoop runs block and teacher with the same step sizes on held-out MDPs,
// from the same policies and random numbers. It returns the mean over MDPs and states of V^π, exact, at every
// multiple of every updates, 0 included.
func (t Config) closeLoop(
	block *Block, steps baseline.StepSizes, mdps, updates, every int,
) (learned, teacher []float64, err error) {
	root := seed.New(t.Seed, "lianglai", "held-out MDPs").Uint64()
	problems, err := drawProblems(root, t.States, t.Actions, t.Gamma, mdps)
	if err != nil {
		return nil, nil, err
	}
	prompt, walk := NewActorCriticPrompt(t.States, t.Actions), baseline.Walk{N: baseline.Window, Root: root}
	u := Update{prompt, prompt.WithSteps(block, steps)}
	learned, err = curve(u.on(walk, baseline.Initial, baseline.OneHot, root), problems, updates, every)
	if err != nil {
		return nil, nil, err
	}
	source := baseline.Teacher{Steps: steps, Start: baseline.Initial, Root: root}
	teacher, err = curve(source, problems, updates, every)
	return learned, teacher, err
}

// curve runs a controller and takes its curve.
func curve(c control.Controller, problems []mdp.Problem, updates, every int) (curve []float64, err error) {
	trajectories, err := c.Run(problems, updates/every*every)
	if err != nil {
		return nil, err
	}
	for k := 0; k <= updates; k += every {
		mean := 0.0
		for i, problem := range problems {
			pi := trajectories[i].Policies[k]
			q, err := problem.MDP.PolicyValue(pi)
			if err != nil {
				return nil, err
			}
			v := floats.Dot(pi.RawMatrix().Data, q.RawMatrix().Data) / float64(problem.MDP.States())
			mean += v / float64(len(problems))
		}
		curve = append(curve, mean)
	}
	return curve, nil
}

package lianglai

import (
	"fmt"
	"math"
	"slices"

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
	s.Limits.Bound(&i.Windows, "windows")
	s.Limits.Bound(&i.MDPs, "held-out mdps")
	s.Limits.Bound(&i.Updates, "updates")
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
	loop, err := c.Training.closeLoop(trained.Block, c.Steps, c.MDPs, c.Updates, c.Every)
	if err != nil {
		return all, err
	}
	add := func(quantity string, x, value float64) {
		all.Measures = append(all.Measures, rows.Measure{Quantity: quantity, X: x, Value: value})
	}
	for k, n := range loop.updates {
		add("learned", float64(n), loop.learned[k])
		add("teacher", float64(n), loop.teacher[k])
	}
	add("loss_ratio", math.NaN(), trained.LossRatio())
	add("median_relative_error", math.NaN(), relative)
	add("improvement_ratio", math.NaN(), loop.improvement())
	add("mean_gap", math.NaN(), loop.gap())
	return all, nil
}

// curves compare what was learned with its teacher over many updates.
type curves struct {
	updates []int     // numbers of updates at which the curves are taken
	learned []float64 // mean over MDPs and states of V^π, exact
	teacher []float64
}

// improvement is the last point's gain over the start, relative to the
// teacher's.
func (c *curves) improvement() float64 {
	last := len(c.teacher) - 1
	return (c.learned[last] - c.learned[0]) / (c.teacher[last] - c.teacher[0])
}

// gap is the mean distance of the curves, relative to the teacher's gain.
func (c *curves) gap() float64 {
	last := len(c.teacher) - 1
	return floats.Distance(c.learned, c.teacher, 1) / float64(len(c.learned)) / (c.teacher[last] - c.teacher[0])
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
// from the same policies and random numbers, and takes the curves at every
// multiple of every, 0 included.
func (t Config) closeLoop(block *Block, steps baseline.StepSizes, mdps, updates, every int) (*curves, error) {
	prompt := NewActorCriticPrompt(t.States, t.Actions)
	root := seed.New(t.Seed, "lianglai", "held-out MDPs").Uint64()
	problems, err := drawProblems(root, t.States, t.Actions, t.Gamma, mdps)
	if err != nil {
		return nil, err
	}
	loop := &curves{}
	for k := 0; k <= updates; k += every {
		loop.updates = append(loop.updates, k)
	}
	learned := Update{prompt, prompt.WithSteps(block, steps)}.Controller(baseline.Initial, baseline.OneHot, root)
	if loop.learned, err = loop.run(learned, problems); err != nil {
		return nil, err
	}
	loop.teacher, err = loop.run(baseline.Teacher{Steps: steps, Start: baseline.Initial, Root: root}, problems)
	return loop, err
}

// run returns the curve of a controller.
func (c *curves) run(controller control.Controller, problems []mdp.Problem) (curve []float64, err error) {
	trajectories, err := controller.Run(problems, slices.Max(c.updates))
	if err != nil {
		return nil, err
	}
	for _, k := range c.updates {
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

package distill

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Method is Algorithm Distillation among the methods, whose source is [Source]. Its recipes are
//
//	full             the paper's, with its source rate
//	full-cleared     its control: its weights, with the context cleared before each round
//	full-short       another: with a context of one round
//	full-tuned       the paper's with the tuned source rate
//	first            the paper's first attempt, which failed to qualify
//	cpu              the budget for machines without a GPU, with the paper's source rate
//	cpu-tuned        with the tuned source rate
//	cpu-tuned-short  its control
//	cpu-source-X     with source rate X, for tuning
var Method = method.Method{
	Name: name, Label: "Algorithm Distillation",
	// It has no free numbers of its own; published is its source's rate.
	Informed: method.Informed{method.ByWindow: method.Walking(name, "cpu-tuned", "cpu")},
	Deploy: func(s method.Setting) (method.Deployment, error) {
		name, cleared := strings.CutSuffix(s.Recipe, "-cleared")
		c, err := recipe(name, s.Identity.Model, s.States, s.Tuned["source"])
		if err != nil {
			return nil, err
		}
		s.Limits.Bound("histories", &c.Histories)
		s.Limits.Bound("length", &c.Length)
		s.Limits.Bound("context", &c.Context)
		s.Limits.Bound("batch", &c.Batch)
		s.Limits.Bound("steps", &c.Steps)
		s.Limits.Bound("width", &c.Width, &c.Hidden)
		return &deployment{method.InContext[Config]{Training: c, States: c.States, Actions: c.Actions,
			Root: s.Identity.Model, Cleared: cleared, Open: open}}, nil
	},
}

// recipes are those that others are variations of.
var recipes = map[string]func(seed uint64, states int) Config{"full": Paper, "first": FirstAttempt, "cpu": CPU}

// recipe returns the configuration of a recipe, given the tuned step sizes of the
// source.
func recipe(name string, seed uint64, states int, tuned baseline.StepSizes) (c Config, err error) {
	base, short := strings.CutSuffix(name, "-short")
	base, isTuned := strings.CutSuffix(base, "-tuned")
	base, rate, rated := strings.Cut(base, "-source-")
	of, ok := recipes[base]
	if !ok || isTuned && rated {
		return c, fmt.Errorf("no recipe %q of Algorithm Distillation", name)
	}
	if c = of(seed, states); isTuned {
		c.Source = tuned
	}
	if rated {
		c.Source.Alpha, err = strconv.ParseFloat(rate, 64)
		if err != nil || !(c.Source.Alpha > 0 && c.Source.Alpha <= math.MaxFloat64) {
			err = fmt.Errorf("recipe %q of Algorithm Distillation: the source's rate is %q, want a number above 0",
				name, rate)
		}
	}
	if short {
		c = c.ShortContext()
	}
	return c, err
}

// deployment has the step sizes of its source.
type deployment struct{ method.InContext[Config] }

var _ method.Learner = (*deployment)(nil)

// StepSizes implements method.Learner.
func (d *deployment) StepSizes() baseline.StepSizes { return d.Training.Source }

// Key implements method.Training.
func (c Config) Key() string { return "distill" }

// Name implements method.Training.
func (c Config) Name() string {
	return fmt.Sprintf("%s-source%v-context%d-steps%d-S%d-%d", name, c.Source.Alpha, c.Context, c.Steps, c.States,
		c.Seed)
}

// Seconds implements method.Training.
func (c Config) Seconds() float64 {
	const perParameter = 4e-11 // and token
	tokens := float64(c.Steps) * float64(c.Batch) * float64(c.Context)
	perToken := train.SecondsPerToken*float64(c.Layers)/4 + perParameter*float64(c.Network().Size()) +
		train.SecondsPerContext*float64(c.Context)
	return tokens * perToken
}

// Source is the source algorithm by itself, tabular actor–critic, among the methods. What
// Algorithm Distillation can be asked for is to learn as fast as the histories that it
// imitates. Its recipes are
//
//	source        with the paper's rate
//	source-tuned  with the tuned one
var Source = method.Method{
	Name: "actor-critic", Label: "Actor–critic", Untrained: true,
	Deploy: func(s method.Setting) (method.Deployment, error) {
		d := &SourceDeployment{}
		switch s.Recipe {
		case "source":
			d.ActorCritic.Steps = Paper(0, s.States).Source
		case "source-tuned":
			d.ActorCritic.Steps = s.Tuned["source"]
		default:
			return nil, fmt.Errorf("no recipe %q of actor–critic", s.Recipe)
		}
		d.ActorCritic.Start = baseline.Uniform
		return d, nil
	},
}

// SourceDeployment deploys the source algorithm.
type SourceDeployment struct {
	ActorCritic struct {
		Steps baseline.StepSizes `json:"steps"`
		Start baseline.Start     `json:"start"`
	} `json:"actor_critic"`
}

// Weights implements method.Deployment: there are none.
func (d *SourceDeployment) Weights() []method.Weights { return nil }

// Controller implements method.Deployment. Its transitions come from streams below root.
func (d *SourceDeployment) Controller(_ *method.Models, _ float64, root uint64) (control.Controller, error) {
	return baseline.Teacher(d.ActorCritic.Steps, d.ActorCritic.Start, baseline.OneHot, root), nil
}

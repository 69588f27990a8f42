package distill

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/incontext"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Method is Algorithm Distillation among the methods, whose source is [Source]. Its recipes are
//
//	full             the paper's, with its source rate
//	full-after-N     its first N steps
//	full-short       its control with a context of one round
//	full-tuned       the paper's with the tuned source rate
//	first            the paper's first attempt, which failed to qualify
//	first-after-N    its first N steps
//	cpu              the budget for machines without a GPU, with the paper's source rate
//	cpu-tuned        with the tuned source rate
//	cpu-tuned-short  its control
//	cpu-source-X     with source rate X, for tuning
var Method = method.Method{
	Name: name, Label: "Algorithm Distillation", Colour: color.RGBA{213, 94, 0, 255}, Dashes: []float64{10, 4}, Sampled: true,
	Signal: "actions of a source's histories", Access: "20 on-policy transitions", Cost: ".63–.75 GPU-h",
	Recipes: sources(), Printed: []string{"full", "cpu"}, Tuned: []string{"full-tuned", "cpu-tuned", "cpu-tuned-short"},
	StageOf: stageOf, Imitates: imitates, Informed: informed(),
	Variants: []method.Variant{
		{Recipe: "full", Label: "the paper's budget", Loss: "its source by itself, at the paper's rate, is below the paper's loss already (table stages)"},
		{Recipe: "cpu", Label: "a CPU budget", Budget: smaller},
		{Recipe: "cpu-tuned", Label: "a CPU budget, source tuned", Budget: smaller},
	},
	Retuned: [][2]string{{"cpu", "cpu-tuned"}, {"full", "full-tuned"}},
	Control: &method.OwnControl{Suffix: "-short", Whose: "the short context's"},
	Tuning:  method.Tuning{Says: "CPU budget", Axis: "actor step α of the source"},
	Figure:  method.Figure{Name: "distillation", Title: "Algorithm Distillation improves within one life"},
	Notes: map[string][]string{
		"benchmark":     {"Algorithm Distillation: the paper's budget (full) or one for CPUs (cpu), with the paper's source rate or a tuned one; a CPU row is no substitute for the full budget, and the table qualification says which rows have not learned at theirs."},
		"qualification": {"Algorithm Distillation: median normalized loss of the policies returned on problems that nothing else uses; \"short\" has a context of one round, so that nothing is remembered between rounds."},
		"tuning":        {"The source rates of Algorithm Distillation above 4 were added after its losses at the paper's rate had been seen; the choice among them is on calibration problems."},
	},
	Measures: incontext.Measures,
	// One sequence a step, at the shape of the recipe with the longest context, of which only
	// so much is used.
	Growth: &method.Growth{
		Name: "distillation training", Axis: "context", Unit: "a sequence", Budget: 40_000 * 128, X: []float64{50, 100, 200, 400}, Recipe: "first",
		Limits: func(x int) method.Limits { return method.Limits{"context": x, "batch": 1, "histories": 10} },
	},
	// The arrays are those of all histories on end, each [Histories·Length, 1]: previous actions
	// (−1 for none), rewards, states and actions. Batches are where in them windows begin. A
	// step takes seconds, and gigabytes in some programs, so that a few have to do.
	Race: &method.Race{
		Training: Paper(1, 8), States: 8, Arrays: []string{"previous", "reward", "state", "action"}, Parity: 6, Scan: 2,
	},
	Limits: []string{"histories", "length", "context", "batch", "steps", "width"},
	Deploy: func(s method.Setting) (method.Deployment, error) {
		c, err := recipe(s.Recipe, s.Identity.Model, s.States, s.Tuned["source"])
		if err != nil {
			return nil, err
		}
		s.Limits.Bound(&c.Histories, "histories")
		s.Limits.Bound(&c.Length, "length")
		s.Limits.Bound(&c.Context, "context")
		s.Limits.Bound(&c.Batch, "batch")
		s.Limits.Bound(&c.Steps, "steps")
		s.Limits.Bound(&c.Width, "width")
		s.Limits.Bound(&c.Hidden, "width")
		d := &Deployment{}
		d.Distill.Training, d.Distill.Root = c, s.Identity.Model
		return d, nil
	},
}

// smaller says how the budget for CPUs differs from the paper's.
const smaller = "3,000 small steps and a context of 60, instead of 40,000 and 200"

// recipe returns the configuration of a recipe, given the tuned step sizes of the
// source.
func recipe(name string, seed uint64, states int, tuned baseline.StepSizes) (c Config, err error) {
	base, short := strings.CutSuffix(name, "-short")
	base, withTuned := strings.CutSuffix(base, "-tuned")
	rate, withRate := strings.CutPrefix(base, sourcePrefix)
	whole, steps, beginning := strings.Cut(name, after)
	switch {
	case whole == "full" || name == "full-short" || name == "full-tuned":
		c = Paper(seed, states)
	case whole == "first":
		c = FirstAttempt(seed, states)
	case name == "cpu" || name == "cpu-tuned" || name == "cpu-tuned-short" || withRate && base == name:
		c = CPU(seed, states)
	default:
		return c, fmt.Errorf("no recipe %q of Algorithm Distillation", name)
	}
	if withTuned {
		c.Source = tuned
	}
	if withRate {
		if c.Source.Alpha, err = strconv.ParseFloat(rate, 64); err != nil {
			return c, fmt.Errorf("recipe %q of Algorithm Distillation: %w", name, err)
		}
		if !(c.Source.Alpha > 0 && c.Source.Alpha <= math.MaxFloat64) {
			return c, fmt.Errorf("recipe %q of Algorithm Distillation: the source's rate is %v, want one above 0", name, c.Source.Alpha)
		}
	}
	if beginning {
		n, err := strconv.Atoi(steps)
		if err != nil || n < 1 || n >= c.Steps {
			return c, fmt.Errorf("recipe %q of Algorithm Distillation: want a number of steps below %d", name, c.Steps)
		}
		c.Steps = n
	}
	if short {
		c = c.ShortContext()
	}
	return c, nil
}

// stageOf returns what the first steps of a recipe of the paper's are a part of, and how text
// says it.
func stageOf(name string) (whole, stage string) {
	whole, _, beginning := strings.Cut(name, after)
	part, err := recipe(name, 1, 2, baseline.StepSizes{})
	if !beginning || err != nil {
		return "", ""
	}
	all, err := recipe(whole, 1, 2, baseline.StepSizes{})
	if err != nil {
		return "", ""
	}
	return whole, fmt.Sprintf("%s, %d of %d steps", whole, part.Steps, all.Steps)
}

const (
	after        = "-after-"
	sourcePrefix = "cpu-source-"
)

// sources lists the recipes of the tuning block, by source rate. They go past
// the paper's choice, 4, which ends the paper's grid.
func sources() (recipes []string) {
	for _, rate := range baseline.Extended().Alphas {
		if rate >= 1 {
			recipes = append(recipes, sourcePrefix+strconv.FormatFloat(rate, 'g', -1, 64))
		}
	}
	return recipes
}

// Deployment deploys a network of Algorithm Distillation.
type Deployment struct {
	Distill struct {
		Training Config `json:"training"`
		Root     uint64 `json:"root"` // of the transitions
	} `json:"distill"`
}

var (
	_ method.Learner  = (*Deployment)(nil)
	_ method.Recorded = (*Deployment)(nil)
)

// Weights implements method.Deployment.
func (d *Deployment) Weights() []method.Weights {
	return []method.Weights{method.Last(d.Distill.Training)}
}

// StepSizes implements method.Learner: they are the source's.
func (d *Deployment) StepSizes() baseline.StepSizes { return d.Distill.Training.Source }

// Records implements method.Recorded.
func (d *Deployment) Records() []string { return []string{"actions"} }

// program is what a compiled program depends on.
type program struct {
	network transformer.Config
	states  int
}

// Controller implements method.Deployment.
func (d *Deployment) Controller(m *method.Models, _ float64, _ uint64) (control.Controller, error) {
	c := d.Distill.Training
	model, err := method.Load(m, method.Last(c), program{c.Network(), c.States}, Load,
		func(m *Model) (string, int) { return m.Config.Hash(), m.Config.Steps })
	if err != nil {
		return nil, err
	}
	return model.controller(d.Distill.Root), nil
}

// Key implements method.Training.
func (c Config) Key() string { return "distill" }

// Name implements method.Training.
func (c Config) Name() string {
	return fmt.Sprintf("%s-source%v-context%d-steps%d-S%d-%d", name, c.Source.Alpha, c.Context, c.Steps, c.States, c.Seed)
}

// Data implements method.Training.
func (c Config) Data() string {
	return fmt.Sprintf("%d histories of %d steps; context %d, batch %d, %d steps", c.Histories, c.Length, c.Context, c.Batch, c.Steps)
}

// Seconds implements method.Training.
func (c Config) Seconds() float64 {
	const perParameter = 1.2e-10 // and token
	tokens := float64(c.Steps) * float64(c.Batch) * float64(c.Context)
	perToken := train.SecondsPerToken*float64(c.Layers)/4 + perParameter*float64(c.Network().Size()) + train.SecondsPerContext*float64(c.Context)
	return tokens * perToken
}

// Shape implements method.Training.
func (c Config) Shape() string { return fmt.Sprint(c.Network(), c.Batch) }

// Kept implements method.Training.
func (c Config) Kept() []int { return nil }

// Read implements method.Training.
func (c Config) Read(path string) (hash string, step int, err error) {
	stored, _, err := ReadWeights(path)
	return stored.Hash(), stored.Steps, err
}

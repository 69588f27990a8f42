package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/mdp"
)

// The methods of Section 8, which see sampled transitions.
const (
	LiangLai     Method = "liang-lai"
	Distillation Method = "algorithm-distillation"
)

// LiangLaiConfig deploys a trained block.
type LiangLaiConfig struct {
	Training lianglai.Training `json:"training"`
	Steps    baseline.Steps    `json:"steps"`
	Start    baseline.Start    `json:"start"`
	Features baseline.Features `json:"features,omitempty"`
	Root     uint64            `json:"root"` // of the transitions and the features
}

// DistillConfig deploys a network of Algorithm Distillation.
type DistillConfig struct {
	Training distill.Config `json:"training"`
	Root     uint64         `json:"root"` // of the transitions
}

// Tuned are the step sizes that the tuning block chose on calibration problems.
type Tuned struct {
	Initial baseline.Steps `json:"initial"` // of Liang–Lai, started from π₀
	Uniform baseline.Steps `json:"uniform"` // of Liang–Lai, started from the uniform policy
	Source  baseline.Steps `json:"source"`  // of Algorithm Distillation's source
}

// Recipes of Liang–Lai's deployment. All share the block: its update is linear
// in the step sizes. "paper" has the paper's step sizes; "tuned" those of the
// extended grid, with the start that did better there; "paper-uniform" and
// "tuned-initial" are the same with the other start, "paper-features" with dense
// features.
const (
	llPaper         = "paper"
	llPaperUniform  = "paper-uniform"
	llPaperFeatures = "paper-features"
	llTuned         = "tuned"
	llTunedInitial  = "tuned-initial"
	// Of the tuning block: the actor's steps in dense features, at the paper's β.
	llFeatures = "features"
	// Of the qualification block: the shape that Liang and Lai train in, and the
	// harness's.
	llNative  = "native"
	llHarness = "harness"
)

// liangLaiLearner returns step sizes, start and features of a recipe.
func liangLaiLearner(recipe string, states int) (c LiangLaiConfig, err error) {
	tuned := Protocol.Sizes[states].Tuned
	switch recipe {
	case llPaper:
		c.Start = baseline.Initial
		c.Steps, err = lianglai.PaperSteps(states)
	case llPaperUniform:
		c.Start = baseline.Uniform
		c.Steps, err = lianglai.PaperSteps(states)
	case llPaperFeatures:
		c.Start, c.Features = baseline.Initial, baseline.Dense
		c.Steps, err = lianglai.PaperSteps(states)
	case llTuned:
		c.Start, c.Steps = baseline.Uniform, tuned.Uniform
	case llTunedInitial:
		c.Start, c.Steps = baseline.Initial, tuned.Initial
	default:
		err = fmt.Errorf("experiment: no recipe %q for method %q", recipe, LiangLai)
	}
	return c, err
}

// Recipes of Algorithm Distillation, by name:
//
//	full             the paper's, with its source rate
//	full-short       its control with a context of one round
//	full-tuned       the paper's with the tuned source rate
//	first            the paper's first attempt, which failed to qualify
//	cpu              the budget for machines without a GPU, with the paper's source rate
//	cpu-tuned        with the tuned source rate
//	cpu-tuned-short  its control
//	cpu-source-X     with source rate X, for tuning
func distillation(recipe string, seed uint64, states int) (distill.Config, error) {
	tuned := Protocol.Sizes[states].Tuned.Source
	var c distill.Config
	switch {
	case recipe == "full" || recipe == "full-short" || recipe == "full-tuned":
		c = distill.Paper(seed, states)
	case recipe == "first":
		c = distill.FirstAttempt(seed, states)
	case recipe == "cpu" || recipe == "cpu-tuned" || recipe == "cpu-tuned-short" || strings.HasPrefix(recipe, sourcePrefix):
		c = distill.CPU(seed, states)
	default:
		return c, fmt.Errorf("experiment: no recipe %q for method %q", recipe, Distillation)
	}
	switch recipe {
	case "full-tuned", "cpu-tuned", "cpu-tuned-short":
		c.Source = tuned
	}
	if rate, ok := strings.CutPrefix(recipe, sourcePrefix); ok {
		var err error
		if c.Source.Alpha, err = strconv.ParseFloat(rate, 64); err != nil {
			return c, fmt.Errorf("experiment: recipe %q of method %q: %w", recipe, Distillation, err)
		}
	}
	if strings.HasSuffix(recipe, "-short") {
		c = c.ShortContext()
	}
	return c, nil
}

const sourcePrefix = "cpu-source-"

// Sources lists the recipes of the tuning block, by source rate. They go past
// the paper's choice, 4, which ends the paper's grid.
func Sources() (recipes []string) {
	for _, rate := range baseline.Extended().Alphas {
		if rate >= 1 {
			recipes = append(recipes, sourcePrefix+strconv.FormatFloat(rate, 'g', -1, 64))
		}
	}
	return recipes
}

// baseline returns the configuration of a cell of a sampled method.
func (c Cell) baseline(preset Preset) (Config, error) {
	size := Protocol.Sizes[c.S]
	config := Config{Version: Version, Fixtures: Fixtures{
		Family: mdp.Random, Root: size.Evaluation, States: c.S, Actions: Protocol.Actions, Problems: preset.Problems,
	}}
	switch c.Block {
	case Tuning:
		config.Fixtures.Root, config.Fixtures.Problems = size.Calibration, preset.Calibrating
	case Qualification:
		config.Fixtures.Root = size.Qualification
	}
	if c.Method == LiangLai && c.Block == Tuning {
		var err error
		config.Tuning, err = c.tuning(preset)
		return config, err
	}
	if c.Seed == 0 || !slices.ContainsFunc(size.Runs, func(r Run) bool { return r.Model == c.Seed }) {
		return Config{}, fmt.Errorf("experiment: cell %s: the protocol has no run with model seed %d at S=%d", c.Name(), c.Seed, c.S)
	}
	if c.Method == LiangLai && c.Block == Qualification {
		imitation, err := c.imitation(preset)
		// The held-out MDPs belong to the training.
		return Config{Version: Version, Imitation: &imitation}, err
	}
	config.Loop = &LoopConfig{Rounds: Protocol.Rounds, Eta: Protocol.Eta}
	if c.Method == LiangLai {
		learner, err := liangLaiLearner(c.Recipe, c.S)
		if err != nil {
			return Config{}, fmt.Errorf("%w (cell %s)", err, c.Name())
		}
		learner.Training, learner.Root = preset.shrinkLiangLai(lianglai.Harness(c.Seed, c.S)), c.Seed
		config.Loop.LiangLai = &learner
		return config, nil
	}
	training, err := distillation(c.Recipe, c.Seed, c.S)
	if err != nil {
		return Config{}, fmt.Errorf("%w (cell %s)", err, c.Name())
	}
	config.Loop.Distill = &DistillConfig{Training: preset.shrinkDistill(training), Root: c.Seed}
	return config, nil
}

// tuning returns the grid of a cell of Liang–Lai.
func (c Cell) tuning(preset Preset) (*TuningConfig, error) {
	t := &TuningConfig{Grid: preset.grid(), Root: Protocol.Sizes[c.S].Calibration}
	switch c.Recipe {
	case "":
	case llFeatures:
		steps, err := lianglai.PaperSteps(c.S)
		if err != nil {
			return nil, fmt.Errorf("%w (cell %s)", err, c.Name())
		}
		t.Grid.Betas, t.Features = []float64{steps.Beta}, baseline.Dense
	default:
		return nil, fmt.Errorf("experiment: no recipe %q for method %q (cell %s)", c.Recipe, c.Method, c.Name())
	}
	return t, nil
}

// imitation returns how a block is compared with its teacher.
func (c Cell) imitation(preset Preset) (ImitationConfig, error) {
	p := preset.Imitation
	i := ImitationConfig{Windows: p.Windows, MDPs: p.MDPs, Updates: p.Updates, Every: p.Updates / 60}
	var err error
	switch c.Recipe {
	case llNative:
		i.Training, i.Steps = lianglai.Native(c.Seed), Protocol.NativeSteps
	case llHarness:
		i.Training = lianglai.Harness(c.Seed, c.S)
		i.Steps, err = lianglai.PaperSteps(c.S)
	default:
		err = fmt.Errorf("experiment: no recipe %q for method %q", c.Recipe, c.Method)
	}
	if err == nil && i.Training.States != c.S {
		err = fmt.Errorf("experiment: recipe %q is for S=%d", c.Recipe, i.Training.States)
	}
	i.Training = preset.shrinkLiangLai(i.Training)
	if err != nil {
		err = fmt.Errorf("%w (cell %s)", err, c.Name())
	}
	return i, err
}

// SampledRecipes lists the recipes of a sampled method that the preset's block
// has, in the plan's order.
func (p Preset) SampledRecipes(block Block, method Method) (recipes []string) {
	for _, row := range p.Rows {
		if row.Block == block && row.Method == method && !slices.Contains(recipes, row.Recipe) {
			recipes = append(recipes, row.Recipe)
		}
	}
	return recipes
}

// shrinkLiangLai and shrinkDistill set the preset's sizes and counts.
func (p Preset) shrinkLiangLai(t lianglai.Training) lianglai.Training {
	shrink(&t.MDPs, p.LiangLai.MDPs)
	shrink(&t.Batch, p.LiangLai.Batch)
	shrink(&t.Steps, p.LiangLai.Steps)
	return t
}

func (p Preset) shrinkDistill(c distill.Config) distill.Config {
	shrink(&c.Histories, p.Distill.Histories)
	shrink(&c.Length, p.Distill.Length)
	shrink(&c.Batch, p.Distill.Batch)
	shrink(&c.Steps, p.Distill.Steps)
	shrink(&c.Width, p.Distill.Width)
	shrink(&c.Hidden, p.Distill.Width)
	return c
}

func shrink(n *int, to int) {
	if to > 0 {
		*n = min(*n, to)
	}
}

// grid returns the preset's grid of step sizes.
func (p Preset) grid() baseline.Grid {
	g := baseline.Extended()
	if n := p.GridSize; n > 0 {
		g.Alphas, g.Betas = g.Alphas[:n], g.Betas[:n]
	}
	return g
}

// liangLaiSeconds and distillSeconds estimate trainings on one core.
func liangLaiSeconds(t lianglai.Training) float64 {
	width := float64(2*t.States*t.Actions + 3*t.States + 2)
	return float64(t.Steps) * float64(t.Batch) * width * secondsPerWindow
}

func distillSeconds(c distill.Config) float64 {
	tokens := float64(c.Steps) * float64(c.Batch) * float64(c.Context)
	perToken := secondsPerToken*float64(c.Layers)/4 + secondsPerParameter*float64(c.Network().Size()) + secondsPerContext*float64(c.Context)
	return tokens * perToken
}

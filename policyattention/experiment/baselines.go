package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/npz"
	"icrl/policyattention/transformer"
)

// The methods of Section 8, which see sampled transitions.
const (
	LiangLai     Method = "liang-lai"
	Distillation Method = "algorithm-distillation"
)

// Sampled reports whether the method sees sampled transitions only.
func (m Method) Sampled() bool { return m == LiangLai || m == Distillation }

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
	case recipe == "cpu" || strings.HasPrefix(recipe, "cpu-"):
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

// liangLai returns the controller of a trained block.
func (s *Store) liangLai(c LiangLaiConfig) (control.Controller, error) {
	block, err := s.block(c.Training)
	if err != nil {
		return nil, err
	}
	prompt, err := lianglai.NewActorCriticPrompt(c.Training.States, c.Training.Actions)
	if err != nil {
		return nil, err
	}
	return lianglai.Controller{Prompt: prompt, Block: prompt.WithSteps(block.Block, c.Steps), Start: c.Start, Features: c.Features, Root: c.Root}, nil
}

// block loads a trained block.
func (s *Store) block(c lianglai.Training) (*lianglai.Trained, error) {
	t, err := s.FindTraining(c)
	if err != nil {
		return nil, err
	}
	path := t.WeightsPath(c.Steps)
	stored, trained, err := lianglai.Read(path)
	if err != nil {
		return nil, err
	}
	if stored != c {
		return nil, fmt.Errorf("experiment: %s holds configuration %.12s, want %.12s", path, stored.Hash(), c.Hash())
	}
	return trained, nil
}

// sourceProgram is what a compiled program of Algorithm Distillation depends on.
type sourceProgram struct {
	network transformer.Config
	states  int
}

// distilled returns the controller of a network of Algorithm Distillation.
func (s *Store) distilled(c DistillConfig) (distill.Controller, error) {
	t, err := s.FindTraining(c.Training)
	if err != nil {
		return distill.Controller{}, err
	}
	path := t.WeightsPath(c.Training.Steps)
	program := sourceProgram{c.Training.Network(), c.Training.States}
	s.mu.Lock()
	defer s.mu.Unlock()
	model, compiled := s.sources[program]
	if compiled {
		model, err = model.With(path)
	} else {
		var b compute.Backend
		if b, err = s.backend(); err != nil {
			return distill.Controller{}, err
		}
		model, err = distill.Load(b, path)
	}
	if err != nil {
		return distill.Controller{}, err
	}
	s.sources[program] = model
	if model.Config != c.Training {
		return distill.Controller{}, fmt.Errorf("experiment: %s holds configuration %.12s, want %.12s", path, model.Config.Hash(), c.Training.Hash())
	}
	return distill.Controller{Model: model, Root: c.Root}, nil
}

// run runs the closed loop of a cell. It returns with the trajectories the arrays
// to store.
func (s *Store) run(cell Cell, config Config, problems []mdp.Problem) ([]control.Trajectory, map[string]npz.Array, error) {
	l := config.Loop
	if l.Distill != nil {
		controller, err := s.distilled(*l.Distill)
		if err != nil {
			return nil, nil, err
		}
		trajectories, actions, err := controller.Live(problems, l.Rounds)
		if err != nil {
			return nil, nil, err
		}
		arrays := l.arrays(cell.kept(l), trajectories)
		arrays["actions"] = actionArray(actions)
		return trajectories, arrays, followed(problems, trajectories, l.Eta)
	}
	controller, err := s.controller(config)
	if err != nil {
		return nil, nil, err
	}
	trajectories, err := controller.Run(problems, l.Rounds)
	if err != nil {
		return nil, nil, err
	}
	arrays := l.arrays(cell.kept(l), trajectories)
	if l.LiangLai != nil {
		err = followed(problems, trajectories, l.Eta)
	}
	return trajectories, arrays, err
}

// followed gives trajectories without critic tables those that the exact
// one-step critic makes of their policies, so that they can be compared with
// exact PMD of step size eta in the same contexts as others.
func followed(problems []mdp.Problem, trajectories []control.Trajectory, eta float64) error {
	for i, p := range problems {
		t := &trajectories[i]
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return err
		}
		t.Eta, t.Q = eta, []*mat.Dense{q}
		for _, pi := range t.Policies[1 : len(t.Policies)-1] {
			q = p.MDP.EvaluationBackup(pi, q)
			t.Q = append(t.Q, q)
		}
	}
	return nil
}

// actionArray joins actions [N][K] into an array [N, K].
func actionArray(actions [][]int) npz.Array {
	out := npz.Array{Shape: []int{len(actions), len(actions[0])}}
	for _, row := range actions {
		for _, a := range row {
			out.Data = append(out.Data, float64(a))
		}
	}
	return out
}

// parseActions is the inverse of actionArray.
func parseActions(a npz.Array, n, k int) ([][]int, error) {
	if want := []int{n, k}; !slices.Equal(a.Shape, want) {
		return nil, fmt.Errorf("shape %v, want %v", a.Shape, want)
	}
	actions := make([][]int, n)
	for i := range actions {
		for _, v := range a.Data[i*k : (i+1)*k] {
			if v != float64(int(v)) {
				return nil, fmt.Errorf("%v is no action", v)
			}
			actions[i] = append(actions[i], int(v))
		}
	}
	return actions, nil
}

// verifyLives repeats the lives of a network with their recorded actions, each
// of which must be the one that was drawn, and returns the stored trajectories.
func (s *Store) verifyLives(v *Verification, folder string, config Config, problems []mdp.Problem, kept []int, stored [][]*mat.Dense, arrays map[string]npz.Array) ([]control.Trajectory, error) {
	path, l := filepath.Join(folder, policiesFile), config.Loop
	actions, err := parseActions(arrays["actions"], config.Fixtures.Problems, l.Rounds*baseline.Window)
	if err != nil {
		v.add(path, 0, "array actions: %v", err)
		return nil, nil
	}
	done := v.during(reliving)
	controller, err := s.distilled(*l.Distill)
	if err != nil {
		done()
		v.add(filepath.Join(folder, manifestFile), 0, "its controller: %v", err)
		return nil, s.backendError()
	}
	again, err := controller.Relive(problems, actions[:len(problems)], policyTolerance)
	done()
	if err != nil {
		v.add(path, 0, "the stored actions: %v", err)
		return nil, nil
	}
	return compared(v, path, config, problems, kept, stored, again)
}

// walkTolerance is absolute for the policies of forty dependent rounds in
// float64.
const walkTolerance = 1e-8

// repeatTolerance is absolute for the policies of a loop that is run again.
func (c Config) repeatTolerance() float64 {
	switch {
	case c.networks():
		return policyTolerance
	case c.Loop.LiangLai != nil:
		return walkTolerance
	}
	return scoreTolerance
}

// repeat runs a closed loop again and returns the stored trajectories.
func (s *Store) repeat(v *Verification, folder string, config Config, problems []mdp.Problem, kept []int, stored [][]*mat.Dense) ([]control.Trajectory, error) {
	path, l := filepath.Join(folder, policiesFile), config.Loop
	var done func()
	switch {
	case config.networks():
		done = v.during(acting)
	case l.LiangLai != nil:
		done = v.during(imitating)
	default:
		done = v.during(rerunning)
	}
	controller, err := s.controller(config)
	if err != nil {
		done()
		v.add(filepath.Join(folder, manifestFile), 0, "its controller: %v", err)
		return nil, s.backendError()
	}
	again, err := controller.Run(problems, l.Rounds)
	done()
	if err != nil {
		v.add(path, 0, "its controller: %v", err)
		return nil, nil
	}
	return compared(v, path, config, problems, kept, stored, again)
}

// compared compares stored policies with those of the repeated run of a loop. It
// returns the repeated trajectories with the stored policies in them.
func compared(v *Verification, path string, config Config, problems []mdp.Problem, kept []int, stored [][]*mat.Dense, again []control.Trajectory) ([]control.Trajectory, error) {
	v.compareKept(path, "controller", again, kept, stored, config.repeatTolerance())
	for i := range again {
		for j, k := range kept {
			again[i].Policies[k] = stored[i][j]
		}
	}
	if config.Loop.Critic != nil { // its tables are the run's own
		return again, nil
	}
	return again, followed(problems, again, config.Loop.Eta)
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

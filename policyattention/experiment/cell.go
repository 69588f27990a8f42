// Package experiment holds the paper's runs as data.
//
// A Cell names one evaluation: block, method, number of states, identity,
// preset. A pure function takes it to its Config, which says everything that
// its numbers depend on, and to the hash of that. Results are artifacts: folders
// found by this hash, so that asking twice computes once and a changed
// configuration never meets a stale result. Trained weights are artifacts of
// their own, found by the hash of the training configuration and shared by all
// cells that need them.
package experiment

import (
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Version counts changes of laws outside the configuration (families of MDPs,
// scoring, encodings) that change results. Raising it makes every artifact
// stale.
const Version = 1

// Block is a group of cells that answers one question of the paper.
type Block string

const (
	Oracle       Block = "oracle"       // exact PMD on many problems
	Confirmation Block = "confirmation" // S = 4, fresh identities
	Shift        Block = "shift"        // four families without retraining
	Benchmark    Block = "benchmark"    // S = 8 and 16, retrained
	Mechanism    Block = "mechanism"    // one-step inputs: which rule was learned?
	Calibration  Block = "calibration"  // one-step inputs of each run's calibration root
	Backups      Block = "backups"      // one-step backups of the learned critic
	Frontier     Block = "frontier"     // weights along training
	Ablation     Block = "ablation"     // every recipe at the preset's ablation budget
	Contrast     Block = "contrast"     // the ablation's networks on static one-step inputs
	Prior        Block = "prior"        // the recipe prior at the paper's budget
	FirstRounds  Block = "first-rounds" // the recipe early-rounds at the paper's budget
	ZeroShot     Block = "zero-shot"    // one network on sizes that it has not seen
	Replication  Block = "replication"  // more identities than the paper has

	ShiftReplication Block = "shift-replication" // those of S = 4 on the four families

	// Of the sampled methods.
	Tuning        Block = "tuning"        // step sizes, on calibration problems
	Qualification Block = "qualification" // do they behave as their sources say?
)

// Blocks lists all blocks.
var Blocks = []Block{
	Oracle, Confirmation, Shift, Benchmark, Mechanism, Calibration, Backups, Frontier,
	Ablation, Contrast, Prior, FirstRounds, ZeroShot, Replication, ShiftReplication, Tuning, Qualification,
}

// Method is a controller.
type Method = method.Name

const (
	ExactPMD        Method = "exact-pmd"
	PolicyAttention Method = "policyattention"
	PMDTarget       Method = "pmd-target"
	RewardOnly      Method = "reward-only"
	LearnedCritic   Method = "policyattention-learned-critic"
	Mixture         Method = "policyattention-mixture"
)

// objective is what a method's actor was trained for.
var objective = map[Method]train.Objective{
	PolicyAttention: train.Proximal, PMDTarget: train.PMDTarget, RewardOnly: train.RewardOnly,
	LearnedCritic: train.Proximal, Mixture: train.Proximal,
}

// Cell names one evaluation.
type Cell struct {
	Preset string     `json:"preset"`
	Block  Block      `json:"block"`
	Method Method     `json:"method"`
	Recipe string     `json:"recipe,omitempty"` // of the training; empty for exact methods
	Steps  int        `json:"steps,omitempty"`  // of the training, where they are not the preset's
	S      int        `json:"s"`                // states
	Seed   uint64     `json:"seed,omitempty"`   // model seed; 0 for exact methods
	Family mdp.Family `json:"family,omitempty"` // of a shift
	Step   int        `json:"step,omitempty"`   // of a frontier's weights
}

// Name returns block/method-S8-18100, with the recipe where it is not plain,
// and the family, the steps and the step where there are any. It is unique
// within a preset.
func (c Cell) Name() string {
	parts := []string{string(c.Method)}
	if c.Recipe != "" && c.Recipe != "plain" {
		parts = append(parts, c.Recipe)
	}
	if c.Family != "" {
		parts = append(parts, string(c.Family))
	}
	if c.Steps != 0 {
		parts = append(parts, fmt.Sprint(c.Steps))
	}
	parts = append(parts, fmt.Sprintf("S%d", c.S))
	if c.Seed != 0 {
		parts = append(parts, fmt.Sprint(c.Seed))
	}
	if c.Step != 0 {
		parts = append(parts, fmt.Sprint(c.Step))
	}
	return string(c.Block) + "/" + strings.Join(parts, "-")
}

// Config is everything that the numbers of a cell depend on, but for the
// arithmetic of the backend.
type Config struct {
	Version  int      `json:"version"`
	Fixtures Fixtures `json:"fixtures"`
	// One of these is set.
	Loop      *LoopConfig      `json:"loop,omitempty"`
	OneStep   *OneStepConfig   `json:"one_step,omitempty"`
	Backup    *BackupConfig    `json:"backup,omitempty"`
	Tuning    *TuningConfig    `json:"tuning,omitempty"`
	Imitation *ImitationConfig `json:"imitation,omitempty"` // has no fixtures
}

// study is a kind of evaluation.
type study interface {
	// weights lists the weights that it needs.
	weights() needs
	// compute writes its result on the problems into the folder dir and returns the
	// summary.
	compute(s *Store, dir string, cell Cell, f Fixtures, problems []mdp.Problem) (map[string]Values, error)
	// read reads the result from e.Folder into its field of e.
	read(e *Evaluation) error
	// verify checks the result in e.Folder, and charges to v what is wrong with it. It
	// errs only where the check could not be made.
	verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error
}

// Fixtures names the problems of a cell.
type Fixtures struct {
	Family   mdp.Family `json:"family"`
	Root     uint64     `json:"root"`
	States   int        `json:"states"`
	Actions  int        `json:"actions"`
	Problems int        `json:"problems"`
}

// Weights names the weights of a network after some step of its training.
type Weights struct {
	Training train.Config `json:"training"`
	Step     int          `json:"step"`
}

// Config returns the cell's configuration. It errs on a cell that names
// nothing.
func (c Cell) Config() (Config, error) {
	preset, err := FindPreset(c.Preset)
	if err != nil {
		return Config{}, err
	}
	size, ok := Protocol.Sizes[c.S]
	if !ok {
		return Config{}, fmt.Errorf("experiment: cell %s: the protocol has no size S=%d", c.Name(), c.S)
	}
	if preset.Methods.Sampled(c.Method) {
		return c.baseline(preset)
	}
	fixtures := Fixtures{Family: mdp.Random, Root: size.Evaluation, States: c.S, Actions: Protocol.Actions, Problems: preset.Problems}
	if c.Family != "" {
		fixtures.Family = c.Family
	}
	loop := &LoopConfig{Rounds: Protocol.Rounds, Eta: Protocol.Eta}
	if c.Block == Oracle {
		// Exact policies can be made again from the seed: keep the tables' rounds.
		fixtures.Root, fixtures.Problems, loop.Kept = size.Oracle, preset.Oracle, []int{20, 40}
	}
	if c.Method == ExactPMD {
		return Config{Version: Version, Fixtures: fixtures, Loop: loop}, nil
	}
	if c.Block == Backups {
		fixtures.Root, fixtures.Problems = size.HeldOut, preset.HeldOut
		critic, err := c.weights(preset, train.Critic)
		recipe := train.Plain()
		return Config{Version: Version, Fixtures: fixtures, Backup: &BackupConfig{
			Critic: critic, Rounds: Protocol.HeldOutRounds, EtaMin: recipe.EtaMin, EtaMax: recipe.EtaMax,
		}}, err
	}
	actor, err := c.weights(preset, objective[c.Method])
	if err != nil {
		return Config{}, err
	}
	loop.Actor = &actor
	switch c.Method {
	case Mixture:
		loop.Phi = Protocol.Mixture
	case LearnedCritic:
		critic, err := c.weights(preset, train.Critic)
		if err != nil {
			return Config{}, err
		}
		loop.Critic = &critic
	}
	if slices.Contains([]Block{Mechanism, Calibration, Contrast}, c.Block) {
		fixtures.Root, fixtures.Problems = size.HeldOut, preset.HeldOut
		recipe := train.Plain() // the same inputs for every recipe
		inputs := &OneStepConfig{
			Actor: actor, Rounds: Protocol.HeldOutRounds, EtaMin: recipe.EtaMin, EtaMax: recipe.EtaMax,
			Supplied: Protocol.SuppliedEta, FitLo: Protocol.Fit.Lo, FitHi: Protocol.Fit.Hi, FitBy: Protocol.Fit.By,
		}
		if c.Block != Mechanism { // at the deployed step size
			inputs.EtaMin, inputs.EtaMax, inputs.Supplied = Protocol.Eta, Protocol.Eta, []float64{Protocol.Eta}
		}
		switch c.Block {
		case Calibration:
			fixtures.Root = train.CalibrationRoot(actor.Training.Task)
		case Contrast:
			inputs.Rounds = 0 // random policies and their values: no algorithm has seen them
		}
		return Config{Version: Version, Fixtures: fixtures, OneStep: inputs}, nil
	}
	return Config{Version: Version, Fixtures: fixtures, Loop: loop}, nil
}

// identities returns the runs that cells of a block and size can be of.
func identities(block Block, states int) []Run {
	switch block {
	case ZeroShot:
		return Protocol.ZeroShot.Runs
	case Replication, ShiftReplication:
		return Protocol.Sizes[states].More
	}
	return Protocol.Sizes[states].Runs
}

// weights returns the weights of the cell's identity for an objective.
func (c Cell) weights(preset Preset, objective train.Objective) (Weights, error) {
	recipe, ok := Recipes[c.Recipe]
	if !ok || objective == "" {
		return Weights{}, fmt.Errorf("experiment: cell %s: no recipe %q for method %q", c.Name(), c.Recipe, c.Method)
	}
	for _, run := range identities(c.Block, c.S) {
		if run.Model != c.Seed {
			continue
		}
		t := train.Standard(objective, recipe, run.Model, c.S)
		if c.Block == ZeroShot {
			t.Sizes, t.Slots = Protocol.ZeroShot.Train, Protocol.ZeroShot.Slots
		}
		t.Task = run.Task
		t.Actions, t.MDPs, t.Examples, t.Batch = Protocol.Actions, preset.MDPs, preset.Examples, preset.Batch
		t.Steps, t.Snapshots = preset.Steps, preset.snapshots(objective, c)
		if c.Steps != 0 {
			t.Steps = c.Steps
		}
		w := Weights{Training: t, Step: t.Steps}
		if c.Step != 0 {
			w.Step = c.Step
		}
		return w, nil
	}
	return Weights{}, fmt.Errorf("experiment: cell %s: the protocol has no run with model seed %d at S=%d", c.Name(), c.Seed, c.S)
}

// study returns the one that is set.
func (c Config) study() study {
	switch {
	case c.OneStep != nil:
		return c.OneStep
	case c.Backup != nil:
		return c.Backup
	case c.Tuning != nil:
		return c.Tuning
	case c.Imitation != nil:
		return c.Imitation
	}
	return c.Loop
}

// weights lists the weights that the configuration needs.
func (c Config) weights() needs { return c.study().weights() }

// need is the weights after a step of a training run.
type need struct {
	Training TrainingConfig
	Step     int
}

func (w Weights) need() need { return need{w.Training, w.Step} }

type needs []need

// networks reports whether any are a network's, so that what is computed with them
// depends on a backend's arithmetic.
func (n needs) networks() bool {
	return slices.ContainsFunc(n, func(w need) bool { _, ok := w.Training.(networkConfig); return ok })
}

// Trainings lists the training runs that the cell needs.
func (c Cell) Trainings() ([]TrainingConfig, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	var runs []TrainingConfig
	for _, w := range config.weights() {
		runs = append(runs, w.Training)
	}
	return runs, nil
}

// Hash returns the SHA-256 of the configuration's JSON in hexadecimal.
func (c Config) Hash() string {
	digest, err := jsonDigest(c)
	if err != nil {
		panic(err) // constants of the protocol, which JSON can hold
	}
	return digest
}

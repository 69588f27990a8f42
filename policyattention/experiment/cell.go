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
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/artifact"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Version counts changes outside the configuration (families of MDPs,
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
	Backups      Block = "backups"      // one-step backups of critics that see samples
	Critics      Block = "critics"      // such critics in the loop, on the same samples
	Frontier     Block = "frontier"     // weights along training
	Quality      Block = "quality"      // how few steps of training will do
	Ablation     Block = "ablation"     // every recipe at the preset's ablation budget
	Contrast     Block = "contrast"     // the ablation's networks on static one-step inputs
	Prior        Block = "prior"        // the recipe prior at the paper's budget
	FirstRounds  Block = "first-rounds" // the recipe early-rounds at the paper's budget
	ZeroShot     Block = "zero-shot"    // one network on sizes that it has not seen
	Replication  Block = "replication"  // more identities than the paper has

	Long Block = "long" // more rounds than the paper's

	ShiftReplication Block = "shift-replication" // those of S = 4 on the four families

	// Of the sampled methods.
	Tuning        Block = "tuning"        // step sizes, on calibration problems
	Qualification Block = "qualification" // do they behave as their sources say?
)

// Blocks lists all blocks.
var Blocks = []Block{
	Oracle, Confirmation, Shift, Benchmark, Mechanism, Calibration, Backups, Critics, Frontier, Quality,
	Ablation, Contrast, Prior, FirstRounds, ZeroShot, Replication, Long, ShiftReplication, Tuning, Qualification,
}

// The paper's own methods.
const (
	ExactPMD        method.Name = "exact-pmd"
	PolicyAttention method.Name = "policyattention"
	PMDTarget       method.Name = "pmd-target"
	RewardOnly      method.Name = "reward-only"
	LearnedCritic   method.Name = "policyattention-learned-critic"
	ResidualCritic  method.Name = "policyattention-residual-critic"
	TablesCritic    method.Name = "policyattention-tables-critic"
	MemoryCritic    method.Name = "policyattention-memory-critic"
	ActorSampleMean method.Name = "policyattention-sample-mean"
	ExactMemory     method.Name = "memory-critic"
	AnchoredCritic  method.Name = "policyattention-anchored-critic"
	ExactAnchored   method.Name = "anchored-critic"
	SampleMean      method.Name = "sample-mean"
	AllSamples      method.Name = "all-samples-mean"
	AllPosterior    method.Name = "all-samples-posterior-mean"
	Corrected       method.Name = "corrected-posterior-mean"
	Anchored        method.Name = "anchored-posterior-mean"
	ShrunkMean      method.Name = "shrunk-mean"
	PosteriorMean   method.Name = "posterior-mean"
	Mixture         method.Name = "policyattention-mixture"
)

// Cell names one evaluation.
type Cell struct {
	Preset string      `json:"preset"`
	Block  Block       `json:"block"`
	Method method.Name `json:"method"`
	Recipe string      `json:"recipe,omitempty"` // of the training; empty for exact methods
	Steps  int         `json:"steps,omitempty"`  // of the training, where they are not the preset's
	S      int         `json:"s"`                // states
	Seed   uint64      `json:"seed,omitempty"`   // model seed; 0 for exact methods
	Family mdp.Family  `json:"family,omitempty"` // of a shift
	Step   int         `json:"step,omitempty"`   // of a frontier's weights
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
	Loop    *LoopConfig    `json:"loop,omitempty"`
	OneStep *OneStepConfig `json:"one_step,omitempty"`
	Backup  *BackupConfig  `json:"backup,omitempty"`
	Along   *AlongConfig   `json:"along,omitempty"`
	Study   method.Study   `json:"-"` // a method's own, under its key
}

// MarshalJSON implements json.Marshaler.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	if c.Study == nil {
		return json.Marshal(plain(c))
	}
	return artifact.JoinObjects(plain(c), map[string]any{c.Study.Key(): c.Study})
}

// study is a kind of evaluation.
type study interface {
	// weights lists the weights that it needs.
	weights() []method.Weights
	// compute writes its result on the problems into the folder dir and returns the
	// summary.
	compute(s *Store, dir string, cell Cell, f Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error)
	// read reads the result from e.Folder into its field of e.
	read(e *Evaluation) error
	// verify checks the result in e.Folder, and charges to v what is wrong with it. It
	// returns an error only where the check could not be made.
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

// Config returns the configuration of a cell of the preset. It returns an error if the
// cell names nothing.
func (p Preset) Config(c Cell) (Config, error) {
	config, err := p.config(c)
	if err != nil {
		return Config{}, fmt.Errorf("experiment: cell %s: %w", c.Name(), err)
	}
	return config, nil
}

func (p Preset) config(c Cell) (config Config, err error) {
	if c.Preset != p.Name {
		return config, fmt.Errorf("it is of preset %s, not of %s", c.Preset, p.Name)
	}
	m, err := p.Methods.Find(c.Method)
	if err != nil {
		return config, err
	}
	setting, err := p.setting(c)
	if err != nil {
		return config, err
	}
	config = Config{Version: Version, Fixtures: p.fixtures(c, setting)}
	setting.Root = config.Fixtures.Root
	study := map[Block]func(method.Setting) (method.Study, error){Tuning: m.Tune, Qualification: m.Qualify}[c.Block]
	if c.Seed == 0 && m.Deploy != nil && !m.Untrained && !(c.Block == Tuning && study != nil) {
		return config, errors.New("it has no model seed")
	}
	if study != nil {
		if config.Study, err = study(setting); err == nil {
			if _, own := config.Study.(method.OwnProblems); own {
				config.Fixtures = Fixtures{}
			}
		}
		return config, err
	}
	if c.Block == Quality {
		if m.Deploy == nil {
			return config, errors.New("it has no network to look at")
		}
		config.Along, err = p.along(m.Deploy, setting)
		return config, err
	}
	loop := &LoopConfig{Rounds: p.Protocol.Rounds, Eta: p.Protocol.Eta}
	switch c.Block {
	case Oracle:
		loop.Kept = baseline.Horizons // exact policies can be made again from the seed
	case Long:
		loop.Rounds = slices.Max(p.Protocol.Long)
		loop.Kept, loop.Tabled = []int{loop.Rounds}, p.Protocol.Long
	case Critics:
		loop.Tabled = baseline.Horizons
	}
	if m.Deploy != nil {
		if loop.Deployment, err = m.Deploy(setting); err != nil {
			return config, err
		}
	}
	var actor method.Actor
	var critic method.Critic
	if parts, ok := loop.Deployment.(method.Separable); ok {
		actor, critic = parts.Parts()
	}
	switch c.Block {
	case Mechanism, Calibration, Contrast:
		config.OneStep, err = p.oneStep(c.Block, actor)
	case Backups:
		config.Backup, err = p.backup(critic)
	default:
		config.Loop = loop
	}
	return config, err
}

// setting returns what the cell and the protocol fix for a method.
func (p Preset) setting(c Cell) (method.Setting, error) {
	size, ok := p.Protocol.Sizes[c.S]
	if !ok {
		return method.Setting{}, fmt.Errorf("the protocol has no size S=%d", c.S)
	}
	s := method.Setting{
		Recipe: c.Recipe, States: c.S, Actions: p.Protocol.Actions, Rounds: p.Protocol.Rounds, Eta: p.Protocol.Eta,
		Mixture: p.Protocol.Mixture, Steps: cmp.Or(c.Steps, p.Steps), Step: c.Step,
		Snapshots: p.snapshots(c), Limits: p.Limits[c.Method], Tuned: size.Tuned, Shrinkage: size.Shrinkage,
	}
	if c.Block == Quality {
		looks := p.looks(c.Steps)
		if len(looks) == 0 {
			return s, fmt.Errorf("nothing is looked at within %d steps", c.Steps)
		}
		s.Snapshots = map[method.Name][]int{c.Method: looks[:len(looks)-1]}
	}
	if c.Block == ZeroShot {
		s.Train, s.Slots = p.Protocol.ZeroShot.Train, p.Protocol.ZeroShot.Slots
	}
	if c.Seed == 0 {
		return s, nil
	}
	runs := p.identities(c.Block, c.S)
	i := slices.IndexFunc(runs, func(r method.Identity) bool { return r.Model == c.Seed })
	if i < 0 {
		return s, fmt.Errorf("the protocol has no run with model seed %d at S=%d", c.Seed, c.S)
	}
	s.Identity = runs[i]
	return s, nil
}

// fixtures returns the problems of a cell.
func (p Preset) fixtures(c Cell, s method.Setting) Fixtures {
	size := p.Protocol.Sizes[c.S]
	f := Fixtures{Family: mdp.Random, Root: size.Evaluation, States: c.S, Actions: p.Protocol.Actions, Problems: p.Problems}
	if c.Family != "" {
		f.Family = c.Family
	}
	switch c.Block {
	case Oracle:
		f.Root, f.Problems = size.Oracle, p.Oracle
	case Mechanism, Contrast, Backups:
		f.Root, f.Problems = size.HeldOut, p.HeldOut
	case Calibration:
		f.Root, f.Problems = train.CalibrationRoot(s.Identity.Task), p.HeldOut
	case Tuning:
		f.Root, f.Problems = size.Calibration, p.Calibrating
	case Qualification:
		f.Root = cmp.Or(size.Fresh[c.Method], size.Qualification)
		f.Problems = cmp.Or(p.Qualifying[c.Method], p.Problems)
	}
	return f
}

// oneStep returns the comparison of an actor with the fixed rules, on the same inputs
// for every recipe.
func (p Preset) oneStep(block Block, actor method.Actor) (*OneStepConfig, error) {
	if actor == nil {
		return nil, fmt.Errorf("block %s asks an actor, and the method has none", block)
	}
	plain := train.Plain()
	c := &OneStepConfig{
		Actor: actor, Rounds: p.Protocol.HeldOutRounds, EtaMin: plain.EtaMin, EtaMax: plain.EtaMax,
		Supplied: p.Protocol.SuppliedEta, FitLo: p.Protocol.Fit.Lo, FitHi: p.Protocol.Fit.Hi, FitBy: p.Protocol.Fit.By,
	}
	if block != Mechanism { // at the deployed step size
		c.EtaMin, c.EtaMax, c.Supplied = p.Protocol.Eta, p.Protocol.Eta, []float64{p.Protocol.Eta}
	}
	if block == Contrast {
		c.Rounds = 0 // random policies and their values: no algorithm has seen them
	}
	return c, nil
}

// backup returns the comparison of a critic with the exact backup.
func (p Preset) backup(critic method.Critic) (*BackupConfig, error) {
	if critic == nil {
		return nil, fmt.Errorf("block %s asks a critic, and the method has none", Backups)
	}
	plain := train.Plain()
	return &BackupConfig{Critic: critic, Rounds: p.Protocol.HeldOutRounds, EtaMin: plain.EtaMin, EtaMax: plain.EtaMax}, nil
}

// identities returns the runs that cells of a block and size can be of.
func (p Preset) identities(block Block, states int) []method.Identity {
	switch block {
	case ZeroShot:
		return p.Protocol.ZeroShot.Runs
	case Replication, ShiftReplication:
		return p.Protocol.Sizes[states].More
	case Quality:
		return slices.Concat(p.Protocol.Sizes[states].Runs, p.Protocol.Sizes[states].More)
	}
	return p.Protocol.Sizes[states].Runs
}

// study returns the one that is set.
func (c Config) study() study {
	switch {
	case c.OneStep != nil:
		return c.OneStep
	case c.Backup != nil:
		return c.Backup
	case c.Along != nil:
		return c.Along
	case c.Study != nil:
		return ownStudy{c.Study}
	}
	return c.Loop
}

// weights lists the weights that the configuration needs.
func (c Config) weights() []method.Weights { return c.study().weights() }

// Step returns the step of training after which the configuration's first weights are, 0 without any.
func (c Config) Step() int {
	if all := c.weights(); len(all) > 0 {
		return all[0].Step
	}
	return 0
}

// Trainings lists the training runs that the configuration needs.
func (c Config) Trainings() []method.Training {
	var runs []method.Training
	for _, w := range c.weights() {
		runs = append(runs, w.Training)
	}
	return runs
}

// Hash returns the SHA-256 of the configuration's JSON in hexadecimal.
func (c Config) Hash() string {
	digest, err := artifact.Digest(c)
	if err != nil {
		panic(err) // constants of the protocol, which JSON can hold
	}
	return digest
}

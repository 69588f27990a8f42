package experiment

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
)

// Preset is a scale at which the experiments are run. Presets differ in sizes and
// counts, of identities and methods too, and not in what a cell means.
type Preset struct {
	Name      string
	Steps     int   // optimizer steps of an actor or a critic
	Snapshots []int // steps before the last at which weights are kept
	Problems  int   // evaluation problems a size
	Oracle    int   // problems of the oracle block
	HeldOut   int   // one-step inputs of the mechanism block
	Ablation  int   // optimizer steps of the ablation's training runs
	// Quality are the steps after which block quality looks at the weights, ascending; Brief are
	// the optimizer steps of its training runs, by recipe and size.
	Quality []int
	Brief   map[string]map[int]int
	// Calibrating counts the problems of the tuning block.
	Calibrating int
	// Qualifying counts the problems of the qualification block where it has more than
	// the benchmark.
	Qualifying map[method.Name]int
	// Limits bound the numbers of a method's recipes.
	Limits map[method.Name]method.Limits
	// Omit are patterns of [path.Match] for files of weights, each named after its training
	// run and a slash. Copies of the artifacts may lack them, to stay small.
	Omit     []string
	Rows     []Row
	Protocol *Protocol
	Methods  method.Registry // in the order of tables
}

// every stands for all recipes that the method lists, identity by identity.
const every = "*"

// Row lists cells of one block and method: each size with each of the block's
// first Runs identities, or one without an identity where Runs is 0.
type Row struct {
	Block  Block
	Method method.Name
	Recipe string
	Sizes  []int
	Runs   int
}

// The baselines that the presets plan.
const (
	LiangLai     method.Name = "liang-lai"
	Distillation method.Name = "algorithm-distillation"
	ActorCritic  method.Name = "actor-critic"
	S5RL         method.Name = "s5rl"
)

// Presets are the presets of the paper's protocol and all registered methods, by name.
// Rows of methods that are not registered are left out.
var Presets = func() map[string]Preset {
	byName := map[string]Preset{}
	for _, p := range presets {
		p.Protocol, p.Methods = &PaperProtocol, all.Methods
		p.Rows = slices.DeleteFunc(p.Rows, func(r Row) bool { return !p.Methods.Has(r.Method) })
		byName[p.Name] = p
	}
	return byName
}()

// networks bounds the training of every actor and critic alike.
func networks(l method.Limits, more map[method.Name]method.Limits) map[method.Name]method.Limits {
	for _, m := range []method.Name{PolicyAttention, PMDTarget, RewardOnly, LearnedCritic, ResidualCritic, TablesCritic, ActorSampleMean, Mixture} {
		more[m] = l
	}
	return more
}

// Weights that would take more room than they are worth. The first identity stands for the
// rest: critics of the paper's recipe at S = 8, and weights on the way that the frontier is
// made of. Of those, PMD-target keeps none, nor does any actor at S = 4; and of the identities
// beyond the paper's, the fifth of them and later keep no weights. Of Algorithm
// Distillation's recipes, parts keep none: the whole run has those of the end, and until then its
// state stands for it. The control of the whole run keeps none either.
const (
	laterCritics   = "critic-plain-S8-1810[^0]/*"
	laterSnapshots = "*-plain-S8-1810[^0]/weights-*"
	smallSnapshots = "*-plain-S4-1410?/weights-*"
	furtherActors  = "proximal-plain-S*-1[489]10[5-9]/*"
	pmdSnapshots   = "pmd-target-plain-*/weights-*"
	briefPlain     = "proximal-plain-[13][26]00-S*/*"
	briefPrior     = "proximal-prior-800-S*/*"
	earlierStages  = "algorithm-distillation-*-context200-steps[125]*/weights.safetensors"
	firstStages    = "algorithm-distillation-*-context800-steps1000-*/weights.safetensors"
	wholeControl   = "algorithm-distillation-*-context21-steps40000-*/weights.safetensors"
)

var presets = []Preset{
	{
		Name: "smoke", Steps: 10, Snapshots: []int{5}, Quality: []int{4, 8}, Brief: map[string]map[int]int{"plain": {4: 8}},
		Problems: 6, Oracle: 24, HeldOut: 6, Ablation: 5, Calibrating: 4,
		Limits: networks(method.Limits{"mdps": 4, "examples": 32, "batch": 8}, map[method.Name]method.Limits{
			LiangLai:       {"mdps": 50, "batch": 200, "steps": 100, "grid": 3, "windows": 20, "held-out mdps": 2, "updates": 60},
			Distillation:   {"histories": 8, "length": 80, "batch": 4, "steps": 5, "width": 16},
			S5RL:           {"steps": 48, "rows": 8, "life": 30, "width": 12},
			MemoryCritic:   {"mdps": 4, "examples": 32, "batch": 8, "critic-steps": 10, "critic-problems": 20},
			AnchoredCritic: {"mdps": 4, "examples": 32, "batch": 8, "critic-steps": 10, "critic-problems": 20},
			ExactMemory:    {"critic-steps": 10, "critic-problems": 20},
			ExactAnchored:  {"critic-steps": 10, "critic-problems": 20},
		}),
		Omit: []string{"*-5-S*/*", laterCritics},
		Rows: []Row{
			{Oracle, ExactPMD, "", []int{4}, 0},
			{Benchmark, ExactPMD, "", []int{4}, 0},
			{Benchmark, PolicyAttention, "plain", []int{4}, 2},
			{Benchmark, PMDTarget, "plain", []int{4}, 1},
			{Mechanism, PolicyAttention, "plain", []int{4}, 1},
			{Confirmation, ExactPMD, "", []int{4}, 0},
			{Confirmation, PolicyAttention, "plain", []int{4}, 2},
			{Confirmation, Mixture, "plain", []int{4}, 2},
			{Confirmation, LearnedCritic, "plain", []int{4}, 1},
			{Backups, LearnedCritic, "plain", []int{4}, 1},
			{Critics, SampleMean, "", []int{4}, 0},
			{Backups, SampleMean, "", []int{4}, 0},
			{Critics, ResidualCritic, "plain", []int{4}, 1},
			{Backups, ResidualCritic, "plain", []int{4}, 1},
			{Critics, Corrected, "", []int{4}, 0},
			{Critics, Anchored, "", []int{4}, 0},
			{Critics, ExactAnchored, "", []int{4}, 1},
			{Backups, ExactMemory, "", []int{4}, 1},
			{Backups, ExactAnchored, "", []int{4}, 1},
			{Critics, AnchoredCritic, "plain", []int{4}, 1},
			{Shift, ExactPMD, "", []int{4}, 0},
			{Shift, PolicyAttention, "plain", []int{4}, 1},
			{Frontier, PolicyAttention, "plain", []int{4}, 1},
			{Quality, PolicyAttention, "plain", []int{4}, 1},
			{Calibration, PolicyAttention, "plain", []int{4}, 1},
			{Ablation, PolicyAttention, "plain", []int{4}, 1},
			{Ablation, PolicyAttention, "log-input", []int{4}, 1},
			{Ablation, PolicyAttention, "random-contexts", []int{4}, 1},
			{Contrast, PolicyAttention, "plain", []int{4}, 1},
			{Contrast, PolicyAttention, "log-input", []int{4}, 1},
			{Contrast, PolicyAttention, "random-contexts", []int{4}, 1},
			{ZeroShot, ExactPMD, "", []int{6}, 0},
			{ZeroShot, PolicyAttention, "plain", []int{4, 6}, 1},
			{Replication, PolicyAttention, "plain", []int{4}, 1},
			{ShiftReplication, PolicyAttention, "plain", []int{4}, 1},
			{Long, ExactPMD, "", []int{4}, 0},
			{Long, PolicyAttention, "plain", []int{4}, 1},
			{Tuning, LiangLai, "", []int{8}, 0},
			{Tuning, LiangLai, "features", []int{8}, 0},
			{Tuning, Distillation, "cpu-tuned", []int{8}, 1},
			{Qualification, LiangLai, "native", []int{9}, 1},
			{Qualification, LiangLai, "harness", []int{8}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8}, 1},
			{Qualification, S5RL, "cpu", []int{8}, 1},
			{Qualification, S5RL, "cpu-cleared", []int{8}, 1},
			{Benchmark, ExactPMD, "", []int{8}, 0},
			{Benchmark, LiangLai, "paper", []int{8}, 1},
			{Benchmark, LiangLai, "paper-features", []int{8}, 1},
			{Benchmark, LiangLai, "tuned", []int{8}, 1},
			{Benchmark, Distillation, "cpu-tuned", []int{8}, 1},
			{Benchmark, ActorCritic, "source", []int{8}, 0},
			{Benchmark, S5RL, "cpu", []int{8}, 1},
		},
	},
	// A tenth of the paper's steps and of its looks along training: what a few minutes on two cores
	// allow.
	{
		Name: "quick", Steps: 5_120, Snapshots: []int{640, 1_280, 2_560, 3_840},
		Problems: 64, Oracle: 1000, HeldOut: 256, Calibrating: 64,
		Limits: map[method.Name]method.Limits{
			LiangLai:     {"mdps": 1000, "batch": 2000, "windows": 200, "held-out mdps": 4, "updates": 600},
			Distillation: {"steps": 1500},
		},
		Omit: []string{laterCritics},
		Rows: []Row{
			{Oracle, ExactPMD, "", []int{4, 8, 16}, 0},
			{Confirmation, ExactPMD, "", []int{4}, 0},
			{Confirmation, PolicyAttention, "plain", []int{4}, 1},
			{Confirmation, PMDTarget, "plain", []int{4}, 1},
			{Confirmation, Mixture, "plain", []int{4}, 1},
			{Shift, ExactPMD, "", []int{4}, 0},
			{Shift, PolicyAttention, "plain", []int{4}, 1},
			{Benchmark, ExactPMD, "", []int{8, 16}, 0},
			{Benchmark, PolicyAttention, "plain", []int{8}, 1},
			{Benchmark, PMDTarget, "plain", []int{8}, 1},
			{Mechanism, PolicyAttention, "plain", []int{4, 8}, 1},
			{Mechanism, PMDTarget, "plain", []int{4, 8}, 1},
			{Frontier, PolicyAttention, "plain", []int{4, 8}, 1},
			{Frontier, PMDTarget, "plain", []int{4, 8}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8}, 1},
			{Qualification, Distillation, "cpu-tuned-short", []int{8}, 1},
			{Tuning, LiangLai, "", []int{8, 16}, 0},
			{Qualification, LiangLai, "native", []int{9}, 1},
			{Qualification, LiangLai, "harness", []int{8}, 1},
			{Benchmark, LiangLai, "paper", []int{8}, 1},
			{Benchmark, LiangLai, "paper-uniform", []int{8}, 1},
			{Benchmark, LiangLai, "tuned", []int{8}, 1},
			{Benchmark, LiangLai, "tuned-initial", []int{8}, 1},
			{Benchmark, Distillation, "cpu-tuned", []int{8}, 1},
			{Benchmark, ActorCritic, "source", []int{8}, 0},
			{Benchmark, ActorCritic, "source-tuned", []int{8}, 0},
		},
	},
	// In the order of what is worth training first. Rows that need no new training
	// follow the one they read from; learned critics, by far the most expensive,
	// and further identities come last.
	{
		Name: "paper", Steps: 51_200, Snapshots: []int{6_400, 12_800, 25_600, 38_400},
		Quality:  []int{100, 200, 400, 800, 1_200, 1_600, 2_400, 3_200},
		Brief:    map[string]map[int]int{"plain": {4: 3_200, 8: 3_200, 16: 1_600}, "prior": {4: 800, 8: 800, 16: 800}},
		Problems: 64, Oracle: 1000, HeldOut: 256, Ablation: 5_120, Calibrating: 256,
		Qualifying: map[method.Name]int{S5RL: 128},
		Omit:       []string{"*-5120-S*/*", laterCritics, laterSnapshots, smallSnapshots, furtherActors, pmdSnapshots, briefPlain, briefPrior, earlierStages, firstStages, wholeControl},
		Rows: []Row{
			{Oracle, ExactPMD, "", []int{4, 8, 16}, 0},
			{Confirmation, ExactPMD, "", []int{4}, 0},
			{Shift, ExactPMD, "", []int{4}, 0},
			{Benchmark, ExactPMD, "", []int{8, 16}, 0},
			{ZeroShot, ExactPMD, "", []int{6, 12}, 0},

			{Confirmation, PolicyAttention, "plain", []int{4}, 5},
			{Confirmation, Mixture, "plain", []int{4}, 5},
			{Shift, PolicyAttention, "plain", []int{4}, 5},
			{Mechanism, PolicyAttention, "plain", []int{4}, 5},
			{Calibration, PolicyAttention, "plain", []int{4}, 5},
			{Frontier, PolicyAttention, "plain", []int{4}, 3},

			{Benchmark, PolicyAttention, "plain", []int{8}, 3},
			{Mechanism, PolicyAttention, "plain", []int{8}, 3},
			{Frontier, PolicyAttention, "plain", []int{8}, 3},

			{Benchmark, PMDTarget, "plain", []int{8}, 3},
			{Mechanism, PMDTarget, "plain", []int{8}, 3},
			{Frontier, PMDTarget, "plain", []int{8}, 3},

			{Confirmation, RewardOnly, "plain", []int{4}, 5},
			{Mechanism, RewardOnly, "plain", []int{4}, 5},

			{Ablation, PolicyAttention, every, []int{8}, 3},
			{Contrast, PolicyAttention, every, []int{8}, 3},
			{Prior, PolicyAttention, "prior", []int{8}, 3},
			{FirstRounds, PolicyAttention, "early-rounds", []int{8}, 2},

			{Benchmark, PolicyAttention, "plain", []int{16}, 3},
			{Mechanism, PolicyAttention, "plain", []int{16}, 3},
			{Benchmark, PMDTarget, "plain", []int{16}, 3},
			{Frontier, PMDTarget, "plain", []int{4}, 3},
			{Confirmation, PMDTarget, "plain", []int{4}, 3},
			{ZeroShot, PolicyAttention, "plain", []int{4, 6, 8, 12, 16}, 3},

			{Confirmation, LearnedCritic, "plain", []int{4}, 5},
			{Backups, LearnedCritic, "plain", []int{4}, 5},
			{Benchmark, LearnedCritic, "plain", []int{8}, 3},
			{Backups, LearnedCritic, "plain", []int{8}, 3},

			{Critics, SampleMean, "", []int{4, 8}, 0},
			{Critics, ShrunkMean, "", []int{4, 8}, 0},
			{Critics, PosteriorMean, "", []int{4, 8}, 0},
			{Backups, SampleMean, "", []int{4, 8}, 0},
			{Backups, ShrunkMean, "", []int{4, 8}, 0},
			{Backups, PosteriorMean, "", []int{4, 8}, 0},
			{Critics, ResidualCritic, "plain", []int{4}, 5},
			{Backups, ResidualCritic, "plain", []int{4}, 5},
			{Critics, TablesCritic, "plain", []int{4}, 5},
			{Backups, TablesCritic, "plain", []int{4}, 5},
			{Critics, TablesCritic, "plain", []int{8}, 3},
			{Backups, TablesCritic, "plain", []int{8}, 3},
			{Critics, ResidualCritic, "plain", []int{8}, 3},
			{Backups, ResidualCritic, "plain", []int{8}, 3},
			{Critics, AllSamples, "", []int{4, 8}, 0},
			{Critics, AllPosterior, "", []int{4, 8}, 0},
			{Critics, Corrected, "", []int{4, 8}, 0},
			{Critics, Anchored, "", []int{4, 8}, 0},
			{Critics, ActorSampleMean, "plain", []int{4}, 5},
			{Critics, ExactMemory, "", []int{4}, 5},
			{Critics, ExactAnchored, "", []int{4}, 5},
			{Critics, MemoryCritic, "plain", []int{4}, 5},
			{Critics, AnchoredCritic, "plain", []int{4}, 5},
			{Backups, ExactMemory, "", []int{4}, 5},
			{Backups, ExactAnchored, "", []int{4, 8}, 1},
			{Critics, ActorSampleMean, "plain", []int{8}, 3},
			{Critics, ExactMemory, "", []int{8}, 3},
			{Critics, ExactAnchored, "", []int{8}, 3},
			{Critics, MemoryCritic, "plain", []int{8}, 3},
			{Critics, AnchoredCritic, "plain", []int{8}, 3},
			{Backups, ExactMemory, "", []int{8}, 3},

			{Replication, PolicyAttention, "plain", []int{4, 8, 16}, 5},
			{ShiftReplication, PolicyAttention, "plain", []int{4}, 5},
			{Quality, PolicyAttention, "plain", []int{4, 8, 16}, 5},
			{Quality, PolicyAttention, "prior", []int{4, 8, 16}, 3},
			{Long, ExactPMD, "", []int{4, 8, 16}, 0},
			{Long, PolicyAttention, "plain", []int{4}, 5},
			{Long, PolicyAttention, "plain", []int{8, 16}, 3},
			{Long, PMDTarget, "plain", []int{4, 8, 16}, 3},
			{Long, PolicyAttention, "prior", []int{8, 16}, 3},
			{Prior, PolicyAttention, "prior", []int{16}, 3},
			{Tuning, LiangLai, "", []int{8, 16}, 0},
			{Tuning, LiangLai, "features", []int{8, 16}, 0},
			{Qualification, LiangLai, "native", []int{9}, 1},
			{Qualification, LiangLai, "harness", []int{8, 16}, 3},
			{Benchmark, LiangLai, "paper", []int{8, 16}, 3},
			{Benchmark, LiangLai, "paper-features", []int{8, 16}, 3},
			{Benchmark, LiangLai, "paper-uniform", []int{8, 16}, 3},
			{Benchmark, LiangLai, "tuned", []int{8, 16}, 3},
			{Benchmark, LiangLai, "tuned-initial", []int{8, 16}, 3},
			{Tuning, Distillation, every, []int{8, 16}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8, 16}, 1},
			{Qualification, Distillation, "cpu-tuned-short", []int{8, 16}, 1},
			{Qualification, Distillation, "cpu", []int{8, 16}, 1},
			{Benchmark, Distillation, "cpu", []int{8, 16}, 3},
			{Benchmark, Distillation, "cpu-tuned", []int{8, 16}, 3},
			{Benchmark, ActorCritic, "source", []int{8, 16}, 0},
			{Benchmark, ActorCritic, "source-tuned", []int{8, 16}, 0},
			{Qualification, S5RL, "cpu", []int{8}, 3},
			{Qualification, S5RL, "cpu-cleared", []int{8}, 3},
			{Qualification, S5RL, "cpu", []int{16}, 3},
			{Qualification, S5RL, "cpu-cleared", []int{16}, 3},
			{Benchmark, S5RL, "cpu", []int{8}, 3},
			{Benchmark, S5RL, "cpu", []int{16}, 3},
			// A GPU's work.
			{Qualification, Distillation, "first-after-1000", []int{8}, 1},
			{Qualification, Distillation, "first", []int{8}, 1},
			{Benchmark, Distillation, "full-after-500", []int{8, 16}, 1},
			{Benchmark, Distillation, "full-after-1000", []int{8, 16}, 1},
			{Benchmark, Distillation, "full-after-2500", []int{8, 16}, 1},
			{Benchmark, Distillation, "full-after-5000", []int{8, 16}, 1},
			{Benchmark, Distillation, "full-after-10000", []int{8, 16}, 1},
			{Benchmark, Distillation, "full-after-20000", []int{8, 16}, 1},
			{Qualification, Distillation, "full", []int{8, 16}, 1},
			{Qualification, Distillation, "full-short", []int{8, 16}, 1},
			{Benchmark, Distillation, "full", []int{8, 16}, 3},
			{Benchmark, Distillation, "full-tuned", []int{8, 16}, 3},
		},
	},
}

// FindPreset returns the preset called name.
func FindPreset(name string) (Preset, error) {
	p, ok := Presets[name]
	if !ok {
		return Preset{}, fmt.Errorf("experiment: no preset %q, want one of %q", name, slices.Sorted(maps.Keys(Presets)))
	}
	return p, nil
}

// looks returns the steps at which block quality looks at runs of some optimizer steps.
func (p Preset) looks(steps int) []int {
	return slices.DeleteFunc(slices.Clone(p.Quality), func(at int) bool { return at > steps })
}

// snapshots returns the steps at which the frontier looks at the weights of a cell's
// identity, by the methods that it looks at.
func (p Preset) snapshots(c Cell) map[method.Name][]int {
	at := map[method.Name][]int{}
	for _, row := range p.Rows {
		if row.Block != Frontier || row.Recipe != c.Recipe || c.Steps != 0 || !slices.Contains(row.Sizes, c.S) {
			continue
		}
		if slices.ContainsFunc(p.identities(Frontier, c.S)[:row.Runs], func(r method.Identity) bool { return r.Model == c.Seed }) {
			at[row.Method] = p.Snapshots
		}
	}
	return at
}

// omits lists the files of weights that copies of a training run's artifact may lack, in
// alphabetical order; none of a run that trains itself, which Store.restore cannot repeat.
func (p Preset) omits(c method.Training) []string {
	if _, ok := c.(method.Shared); !ok {
		return nil
	}
	var files []string
	for _, step := range weightSteps(c) {
		file := weightsFile(c, step)
		if slices.ContainsFunc(p.Omit, func(pattern string) bool {
			matches, _ := path.Match(pattern, c.Name()+"/"+file) // Check has refused malformed patterns
			return matches
		}) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

// label returns what a method is called in text.
func (p Preset) label(name method.Name) string {
	m, err := p.Methods.Find(name)
	if err != nil {
		return string(name)
	}
	return m.Label
}

// Check reports the first thing in a preset that makes no sense.
func (p Preset) Check() error {
	if p.Name == "" || p.Protocol == nil || min(p.Problems, p.Steps) < 1 {
		return fmt.Errorf("experiment: preset %q, want a name, a protocol, and at least one problem and optimizer step", p.Name)
	}
	for _, pattern := range p.Omit {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("experiment: preset %s: pattern %q: %w", p.Name, pattern, err)
		}
	}
	for _, row := range p.Rows {
		if _, err := p.Methods.Find(row.Method); err != nil {
			return fmt.Errorf("experiment: preset %s: %w", p.Name, err)
		}
		switch last := slices.Max(baseline.Horizons); {
		case row.Block == Oracle && p.Oracle < 1:
			return fmt.Errorf("experiment: preset %s: %d problems in block %s, want at least one", p.Name, p.Oracle, Oracle)
		case row.Block == Long && len(p.Protocol.Long) == 0:
			return fmt.Errorf("experiment: preset %s: block %s, and no horizons in the protocol for it", p.Name, Long)
		case slices.Contains([]Block{Oracle, Critics, Quality}, row.Block) && p.Protocol.Rounds < last:
			return fmt.Errorf("experiment: preset %s: %d rounds, block %s keeps round %d", p.Name, p.Protocol.Rounds, row.Block, last)
		}
		for _, states := range row.Sizes {
			if looks := p.looks(p.Brief[row.Recipe][states]); row.Block == Quality && (len(looks) == 0 || looks[len(looks)-1] != p.Brief[row.Recipe][states]) {
				return fmt.Errorf("experiment: preset %s: block %s looks at recipe %s, S=%d after %d steps, of %d", p.Name, Quality, row.Recipe, states, looks, p.Brief[row.Recipe][states])
			}
			if n := len(p.identities(row.Block, states)); row.Runs > n {
				return fmt.Errorf("experiment: preset %s: %d runs of %s in block %s at S=%d, the protocol has %d", p.Name, row.Runs, row.Method, row.Block, states, n)
			}
		}
	}
	for name, limits := range p.Limits {
		m, err := p.Methods.Find(name)
		for limit := range limits {
			if err == nil && !slices.Contains(m.Limits, limit) {
				return fmt.Errorf("experiment: preset %s bounds %q of %s, which has %q", p.Name, limit, name, m.Limits)
			}
		}
	}
	configs, err := p.Trainings()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, c := range configs {
		if names[c.Name()] {
			return fmt.Errorf("experiment: preset %s has two training runs of the name %s", p.Name, c.Name())
		}
		names[c.Name()] = true
	}
	return nil
}

// Plan lists the cells of the preset in the order in which they are worth
// running.
func (p Preset) Plan() []Cell {
	var cells []Cell
	for _, row := range p.Rows {
		for _, s := range row.Sizes {
			cells = append(cells, p.expand(row, s)...)
		}
	}
	return cells
}

// expand lists the cells of a row at one size.
func (p Preset) expand(row Row, states int) []Cell {
	base := Cell{Preset: p.Name, Block: row.Block, Method: row.Method, Recipe: row.Recipe, S: states}
	if row.Block == Ablation || row.Block == Contrast {
		base.Steps = p.Ablation
	}
	if row.Block == Quality {
		base.Steps = p.Brief[row.Recipe][states]
	}
	runs := []Cell{base}
	if row.Runs > 0 {
		runs = nil
		for _, run := range p.identities(row.Block, states)[:row.Runs] {
			c := base
			c.Seed = run.Model
			runs = append(runs, c)
		}
	}
	var cells []Cell
	for _, c := range runs {
		switch {
		case row.Block == Shift, row.Block == ShiftReplication:
			for _, c.Family = range mdp.Shifts {
				cells = append(cells, c)
			}
		case row.Block == Frontier:
			for _, c.Step = range append(slices.Clone(p.Snapshots), p.Steps) {
				cells = append(cells, c)
			}
		default:
			for _, c.Recipe = range p.recipes(row) {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// recipes lists those that a row stands for.
func (p Preset) recipes(row Row) []string {
	if row.Recipe != every {
		return []string{row.Recipe}
	}
	m, _ := p.Methods.Find(row.Method) // Check has refused rows of others
	return m.Recipes
}

// SampledRecipes lists the recipes of a method that the preset's block has, in the
// plan's order.
func (p Preset) SampledRecipes(block Block, name method.Name) (recipes []string) {
	for _, row := range p.Rows {
		if row.Block != block || row.Method != name {
			continue
		}
		for _, recipe := range p.recipes(row) {
			if !slices.Contains(recipes, recipe) {
				recipes = append(recipes, recipe)
			}
		}
	}
	return recipes
}

// Trainings lists the distinct training runs that cells need, in their order; of the
// whole plan without any.
func (p Preset) Trainings(cells ...Cell) ([]method.Training, error) {
	if len(cells) == 0 {
		cells = p.Plan()
	}
	var configs []method.Training
	seen := map[string]bool{}
	for _, cell := range cells {
		config, err := p.Config(cell)
		if err != nil {
			return nil, err
		}
		for _, c := range config.Trainings() {
			if hash := c.Hash(); !seen[hash] {
				seen[hash] = true
				configs = append(configs, c)
			}
		}
	}
	return configs, nil
}

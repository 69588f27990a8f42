package experiment

import (
	"fmt"
	"maps"
	"slices"

	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/train"
)

// Preset is a scale at which the experiments are run. Presets differ in sizes and
// counts, of identities and methods too, and not in what a cell means.
type Preset struct {
	Name      string
	Steps     int   // optimizer steps of a training run
	Snapshots []int // steps before the last at which weights are kept
	MDPs      int   // training MDPs
	Examples  int
	Batch     int
	Problems  int // evaluation problems a size
	Oracle    int // problems of the oracle block
	HeldOut   int // one-step inputs of the mechanism block
	Ablation  int // optimizer steps of the ablation's training runs
	// Of the sampled methods. Zeros stand for the recipes' own numbers.
	Calibrating int // problems of the tuning block
	GridSize    int // step sizes of its grid, on either axis
	LiangLai    struct{ MDPs, Batch, Steps int }
	Distill     struct{ Histories, Length, Batch, Steps, Width int }
	Imitation   struct{ Windows, MDPs, Updates int }
	Rows        []Row
	Methods     method.Registry // in the order of tables
}

// every stands for all recipes of PolicyAttention, and for all source rates of
// Algorithm Distillation in the tuning block, identity by identity.
const every = "*"

// Row lists cells of one block and method: each size with each of the block's
// first Runs identities.
type Row struct {
	Block  Block
	Method Method
	Recipe string
	Sizes  []int
	Runs   int
}

// Presets are all presets by name.
var Presets = map[string]Preset{
	"smoke": {
		Name: "smoke", Steps: 10, Snapshots: []int{5}, MDPs: 4, Examples: 32, Batch: 8,
		Problems: 6, Oracle: 24, HeldOut: 6, Ablation: 5,
		Calibrating: 4, GridSize: 3,
		LiangLai:  struct{ MDPs, Batch, Steps int }{50, 200, 100},
		Distill:   struct{ Histories, Length, Batch, Steps, Width int }{8, 80, 4, 5, 16},
		Imitation: struct{ Windows, MDPs, Updates int }{20, 2, 60},
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
			{Shift, ExactPMD, "", []int{4}, 0},
			{Shift, PolicyAttention, "plain", []int{4}, 1},
			{Frontier, PolicyAttention, "plain", []int{4}, 1},
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
			{Tuning, LiangLai, "", []int{8}, 0},
			{Tuning, LiangLai, llFeatures, []int{8}, 0},
			{Tuning, Distillation, "cpu-tuned", []int{8}, 1},
			{Qualification, LiangLai, llNative, []int{9}, 1},
			{Qualification, LiangLai, llHarness, []int{8}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8}, 1},
			{Benchmark, ExactPMD, "", []int{8}, 0},
			{Benchmark, LiangLai, llPaper, []int{8}, 1},
			{Benchmark, LiangLai, llPaperFeatures, []int{8}, 1},
			{Benchmark, LiangLai, llTuned, []int{8}, 1},
			{Benchmark, Distillation, "cpu-tuned", []int{8}, 1},
		},
	},
	"quick": {
		Name: "quick", Steps: 6400, Snapshots: []int{800, 1600, 3200, 4800}, MDPs: 24, Examples: 2048, Batch: 64,
		Problems: 64, Oracle: 1000, HeldOut: 256,
		Calibrating: 64,
		LiangLai:    struct{ MDPs, Batch, Steps int }{1000, 2000, 0},
		Distill:     struct{ Histories, Length, Batch, Steps, Width int }{Steps: 1500},
		Imitation:   struct{ Windows, MDPs, Updates int }{200, 4, 600},
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
			{Tuning, LiangLai, "", []int{8, 16}, 0},
			{Qualification, LiangLai, llNative, []int{9}, 1},
			{Qualification, LiangLai, llHarness, []int{8}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8}, 1},
			{Qualification, Distillation, "cpu-tuned-short", []int{8}, 1},
			{Benchmark, LiangLai, llPaper, []int{8}, 1},
			{Benchmark, LiangLai, llPaperUniform, []int{8}, 1},
			{Benchmark, LiangLai, llTuned, []int{8}, 1},
			{Benchmark, LiangLai, llTunedInitial, []int{8}, 1},
			{Benchmark, Distillation, "cpu-tuned", []int{8}, 1},
		},
	},
	// In the order of what is worth training first. Rows that need no new training
	// follow the one they read from; learned critics, by far the most expensive,
	// and further identities come last.
	"paper": {
		Name: "paper", Steps: 51_200, Snapshots: []int{6_400, 12_800, 25_600, 38_400}, MDPs: 24, Examples: 2048, Batch: 64,
		Problems: 64, Oracle: 1000, HeldOut: 256, Ablation: 5_120,
		Calibrating: 256,
		Imitation:   struct{ Windows, MDPs, Updates int }{1000, 8, 3000},
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

			{Replication, PolicyAttention, "plain", []int{4, 8, 16}, 5},
			{ShiftReplication, PolicyAttention, "plain", []int{4}, 5},
			{Prior, PolicyAttention, "prior", []int{16}, 3},
			{Tuning, LiangLai, "", []int{8, 16}, 0},
			{Tuning, LiangLai, llFeatures, []int{8, 16}, 0},
			{Qualification, LiangLai, llNative, []int{9}, 1},
			{Qualification, LiangLai, llHarness, []int{8, 16}, 3},
			{Benchmark, LiangLai, llPaper, []int{8, 16}, 3},
			{Benchmark, LiangLai, llPaperFeatures, []int{8, 16}, 3},
			{Benchmark, LiangLai, llPaperUniform, []int{8, 16}, 3},
			{Benchmark, LiangLai, llTuned, []int{8, 16}, 3},
			{Benchmark, LiangLai, llTunedInitial, []int{8, 16}, 3},
			{Tuning, Distillation, every, []int{8, 16}, 1},
			{Qualification, Distillation, "cpu-tuned", []int{8, 16}, 1},
			{Qualification, Distillation, "cpu-tuned-short", []int{8, 16}, 1},
			{Qualification, Distillation, "cpu", []int{8, 16}, 1},
			{Benchmark, Distillation, "cpu", []int{8, 16}, 3},
			{Benchmark, Distillation, "cpu-tuned", []int{8, 16}, 3},
			// A GPU's work.
			{Qualification, Distillation, "first", []int{8}, 1},
			{Qualification, Distillation, "full", []int{8, 16}, 1},
			{Qualification, Distillation, "full-short", []int{8}, 1},
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
	p.Methods = all.Methods
	return p, nil
}

// recipes are the training recipes: "plain" stands for the paper, "prior" is
// reported beside it, and the others change plain in one respect.
var recipes = func() []train.Recipe {
	list := []train.Recipe{train.Plain(), train.Prior()}
	vary := func(name string, change func(*train.Recipe)) {
		r := train.Plain()
		r.Name = name
		change(&r)
		list = append(list, r)
	}
	// π enters as log π.
	vary("log-input", func(r *train.Recipe) { r.Policy = train.LogPolicy })
	// Contexts come from random policies, from the first rounds of a run only, or
	// from all rounds alike.
	vary("random-contexts", func(r *train.Recipe) { r.Contexts = train.RandomPolicies })
	vary("early-rounds", func(r *train.Recipe) { r.Rounds = r.Early })
	vary("uniform-rounds", func(r *train.Recipe) { r.Early = r.Rounds })
	// States and actions keep the names that the MDP has for them.
	vary("fixed-names", func(r *train.Recipe) { r.Relabel = false })
	// The weights after the last step are released, not their average.
	vary("last-weights", func(r *train.Recipe) { r.Average = false })
	// The step size is the deployed one throughout, or from nearly twice the range.
	vary("nominal-eta", func(r *train.Recipe) { r.EtaMin, r.EtaMax = Protocol.Eta, Protocol.Eta })
	vary("wide-eta", func(r *train.Recipe) { r.EtaMin, r.EtaMax = 0.1, 1.5 })
	return list
}()

// Recipes are the training recipes by name.
var Recipes = func() map[string]train.Recipe {
	byName := map[string]train.Recipe{}
	for _, r := range recipes {
		byName[r.Name] = r
	}
	return byName
}()

// RecipeNames lists the training recipes, the plain one first.
func RecipeNames() []string {
	var names []string
	for _, r := range recipes {
		names = append(names, r.Name)
	}
	return names
}

// snapshots returns the steps at which the training run of a cell keeps its
// weights: none unless the frontier looks at that run.
func (p Preset) snapshots(objectiveOf train.Objective, c Cell) []int {
	for _, row := range p.Rows {
		if row.Block != Frontier || row.Recipe != c.Recipe || objective[row.Method] != objectiveOf || c.Steps != 0 || !slices.Contains(row.Sizes, c.S) {
			continue
		}
		for _, run := range Protocol.Sizes[c.S].Runs[:row.Runs] {
			if run.Model == c.Seed {
				return p.Snapshots
			}
		}
	}
	return nil
}

// omits reports whether copies of a training run's artifact may lack its weights, to
// stay small: those of the ablation are many, and minutes make them again; of the
// critics at S = 8 the first identity's stand for the rest.
func (p Preset) omits(c TrainingConfig) bool {
	t, ok := c.(train.Config)
	if !ok || t.Steps == p.Ablation {
		return ok
	}
	s := slices.Max(t.Sizes)
	first := t.Seed == Protocol.Sizes[s].Runs[0].Model
	return t.Objective == train.Critic && s == 8 && !first
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
	runs := []Cell{base}
	if row.Method != ExactPMD && !(row.Method == LiangLai && row.Block == Tuning) {
		runs = nil
		for _, run := range identities(row.Block, states)[:row.Runs] {
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
		case row.Recipe == every:
			for _, c.Recipe = range row.recipes() {
				cells = append(cells, c)
			}
		default:
			cells = append(cells, c)
		}
	}
	return cells
}

// recipes lists what every stands for.
func (r Row) recipes() []string {
	if r.Method == Distillation {
		return Sources()
	}
	return RecipeNames()
}

// Trainings lists the distinct training runs that the plan needs, in its order.
func (p Preset) Trainings() ([]TrainingConfig, error) {
	var configs []TrainingConfig
	seen := map[string]bool{}
	for _, cell := range p.Plan() {
		needed, err := cell.Trainings()
		if err != nil {
			return nil, err
		}
		for _, c := range needed {
			if hash := c.Hash(); !seen[hash] {
				seen[hash] = true
				configs = append(configs, c)
			}
		}
	}
	return configs, nil
}

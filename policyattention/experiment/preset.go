package experiment

import (
	"fmt"
	"maps"
	"slices"

	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

// Preset is a scale at which the experiments are run. Presets differ in sizes
// and counts only.
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
	Rows      []Row
}

// Row lists cells of one block and method: each size with each of the first
// Runs identities.
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
		Problems: 6, Oracle: 24, HeldOut: 6,
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
			{Shift, ExactPMD, "", []int{4}, 0},
			{Shift, PolicyAttention, "plain", []int{4}, 1},
			{Frontier, PolicyAttention, "plain", []int{4}, 1},
		},
	},
	"quick": {
		Name: "quick", Steps: 6400, Snapshots: []int{800, 1600, 3200, 4800}, MDPs: 24, Examples: 2048, Batch: 64,
		Problems: 64, Oracle: 1000, HeldOut: 256,
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
		},
	},
	// Rows that need no new training follow the one they read from; learned
	// critics, by far the most expensive, and what goes beyond the paper come last.
	"paper": {
		Name: "paper", Steps: 51_200, Snapshots: []int{6_400, 12_800, 25_600, 38_400}, MDPs: 24, Examples: 2048, Batch: 64,
		Problems: 64, Oracle: 1000, HeldOut: 256,
		Rows: []Row{
			{Oracle, ExactPMD, "", []int{4, 8, 16}, 0},
			{Confirmation, ExactPMD, "", []int{4}, 0},
			{Shift, ExactPMD, "", []int{4}, 0},
			{Benchmark, ExactPMD, "", []int{8, 16}, 0},
			{Benchmark, PolicyAttention, "plain", []int{8}, 3},
			{Frontier, PolicyAttention, "plain", []int{8}, 3},
			{Confirmation, PolicyAttention, "plain", []int{4}, 5},
			{Confirmation, Mixture, "plain", []int{4}, 5},
			{Shift, PolicyAttention, "plain", []int{4}, 5},
			{Frontier, PolicyAttention, "plain", []int{4}, 3},
			{Mechanism, PolicyAttention, "plain", []int{4}, 5},
			{Mechanism, PolicyAttention, "plain", []int{8}, 3},
			{Benchmark, PMDTarget, "plain", []int{8}, 3},
			{Frontier, PMDTarget, "plain", []int{8}, 3},
			{Mechanism, PMDTarget, "plain", []int{8}, 3},
			{Confirmation, RewardOnly, "plain", []int{4}, 5},
			{Mechanism, RewardOnly, "plain", []int{4}, 5},
			{Frontier, PMDTarget, "plain", []int{4}, 3},
			{Benchmark, PolicyAttention, "plain", []int{16}, 3},
			{Benchmark, PMDTarget, "plain", []int{16}, 3},
			{Mechanism, PolicyAttention, "plain", []int{16}, 3},
			{Ablation, PolicyAttention, "prior", []int{8, 16}, 3},
			{Ablation, PolicyAttention, "log-input", []int{8}, 3},
			{Ablation, PolicyAttention, "random-contexts", []int{8}, 3},
			{Ablation, PolicyAttention, "early-rounds", []int{8}, 3},
			{Ablation, PolicyAttention, "uniform-rounds", []int{8}, 3},
			{Ablation, PolicyAttention, "fixed-names", []int{8}, 3},
			{Ablation, PolicyAttention, "last-weights", []int{8}, 3},
			{Ablation, PolicyAttention, "nominal-eta", []int{8}, 3},
			{Confirmation, LearnedCritic, "plain", []int{4}, 5},
			{Benchmark, LearnedCritic, "plain", []int{8}, 3},
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

// Recipes are the training recipes by name: "plain" stands for the paper,
// "prior" is reported beside it, and the others change plain in one respect.
//
//	prior            log π added to the logits
//	log-input        log π as input
//	random-contexts  contexts from random policies
//	early-rounds     contexts from the first rounds of a run only
//	uniform-rounds   contexts from all rounds alike
//	fixed-names      states and actions named as the MDP has them
//	last-weights     the weights after the last step, not their average
//	nominal-eta      trained at the deployed step size only
var Recipes = func() map[string]train.Recipe {
	recipes := map[string]train.Recipe{"plain": train.Plain(), "prior": train.Prior()}
	vary := func(name string, change func(*train.Recipe)) {
		r := train.Plain()
		r.Name = name
		change(&r)
		recipes[name] = r
	}
	vary("log-input", func(r *train.Recipe) { r.Policy = train.LogPolicy })
	vary("random-contexts", func(r *train.Recipe) { r.Contexts = train.RandomPolicies })
	vary("early-rounds", func(r *train.Recipe) { r.Rounds = r.Early })
	vary("uniform-rounds", func(r *train.Recipe) { r.Early = r.Rounds })
	vary("fixed-names", func(r *train.Recipe) { r.Relabel = false })
	vary("last-weights", func(r *train.Recipe) { r.Average = false })
	vary("nominal-eta", func(r *train.Recipe) { r.EtaMin, r.EtaMax = Protocol.Eta, Protocol.Eta })
	return recipes
}()

// Plan lists the cells of the preset in the order in which they are worth
// running.
func (p Preset) Plan() []Cell {
	var cells []Cell
	for _, row := range p.Rows {
		for _, s := range row.Sizes {
			base := Cell{Preset: p.Name, Block: row.Block, Method: row.Method, Recipe: row.Recipe, S: s}
			var runs []Cell
			for _, run := range Protocol.Sizes[s].Runs[:row.Runs] {
				c := base
				c.Seed = run.Model
				runs = append(runs, c)
			}
			if row.Method == ExactPMD {
				runs = []Cell{base}
			}
			for _, c := range runs {
				switch row.Block {
				case Shift:
					for _, f := range mdp.Shifts {
						c.Family = f
						cells = append(cells, c)
					}
				case Frontier:
					for _, step := range append(slices.Clone(p.Snapshots), p.Steps) {
						c.Step = step
						cells = append(cells, c)
					}
				default:
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

// Trainings lists the distinct training runs that the plan needs, in its order.
func (p Preset) Trainings() ([]train.Config, error) {
	var configs []train.Config
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

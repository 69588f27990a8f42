package lockup

import (
	"fmt"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
)

// Paper is the study of the repository: what it is measured on, without curves. The size
// is one at which every recipe has been trained.
func Paper() *Study {
	const states = 8
	p := experiment.PaperProtocol
	return &Study{
		Root: p.Sizes[states].Evaluation, States: states, Actions: p.Actions, Problems: 8, Rounds: p.Rounds, Eta: p.Eta,
		Masses: []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8},
	}
}

// trained are the actors of Paper whose weights are in the artifacts, by their block.
var trained = []struct {
	label string
	cell  experiment.Cell
}{
	{"PolicyAttention", experiment.Cell{Block: experiment.Benchmark, Method: experiment.PolicyAttention, Recipe: "plain"}},
	{"PMD-target", experiment.Cell{Block: experiment.Benchmark, Method: experiment.PMDTarget, Recipe: "plain"}},
	{"PolicyAttention, recipe prior", experiment.Cell{Block: experiment.Prior, Method: experiment.PolicyAttention, Recipe: "prior"}},
}

// Named is an actor of the study.
type Named struct {
	Label   string
	Weights map[string]string // see Curve
	Actor   control.Actor
}

// Actors returns exact PMD, the first identity of each recipe in the store, and the actor
// for any MDP with log π added. All run in plain Go, with the same bits everywhere.
func Actors(store *experiment.Store) ([]Named, error) {
	all := []Named{{Label: "exact PMD", Actor: control.RuleActor(pmd.PMD)}}
	for _, x := range trained {
		cell, states := x.cell, Paper().States
		cell.Preset, cell.S, cell.Seed = store.Preset.Name, states, experiment.PaperProtocol.Sizes[states].Runs[0].Model
		config, err := store.Preset.Config(cell)
		if err != nil {
			return nil, fmt.Errorf("lockup: %w", err)
		}
		run, err := store.FindTraining(config.Trainings()[0])
		if err != nil {
			return nil, fmt.Errorf("lockup: %w", err)
		}
		actor, err := load(run.WeightsPath(run.Config.Budget()))
		if err != nil {
			return nil, err
		}
		all = append(all, Named{x.label, map[string]string{run.Config.Name(): run.Manifest.Files["weights.safetensors"]}, actor})
	}
	forward, err := anymdp.Released()
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	actor, err := anymdp.NewActor(forward, anymdp.Prior)
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	return append(all, Named{Label: "actor for any MDP, with log π", Actor: actor}), nil
}

// Short are actors of the ablation's budget, which differ in what they read, π or log π, and in
// what they were trained on, rounds of runs from any start or from starved ones.
func Short() (configs []train.Config) {
	const states, steps = 8, 5120
	run := experiment.PaperProtocol.Sizes[states].Runs[0]
	for _, contexts := range []train.Distribution{train.Trajectories, train.StarvedStarts} {
		for _, input := range []train.PolicyInput{train.RawPolicy, train.LogPolicy} {
			r := train.Plain()
			r.Name, r.Policy, r.Contexts = fmt.Sprintf("%s-%s", input, contexts), input, contexts
			c := train.Standard(train.Proximal, r, run.Model, states)
			c.Task, c.Steps = run.Task, steps
			configs = append(configs, c)
		}
	}
	return configs
}

// Ways returns ways to keep an actor from locking up: other inputs, other training, the
// guard of the paper's Appendix G. weights has a file of weights for each of [Short].
func Ways(store *experiment.Store, weights []string) ([]Named, error) {
	var all []Named
	for i, c := range Short() {
		actor, err := load(weights[i])
		if err != nil {
			return nil, err
		}
		digest, err := artifact.FileDigest(weights[i])
		if err != nil {
			return nil, fmt.Errorf("lockup: %w", err)
		}
		reads := map[train.PolicyInput]string{train.RawPolicy: "π", train.LogPolicy: "log π"}[c.Recipe.Policy]
		starts := map[train.Distribution]string{train.Trajectories: "any", train.StarvedStarts: "starved"}[c.Recipe.Contexts]
		all = append(all, Named{fmt.Sprintf("%d steps, reads %s, %s starts", c.Steps, reads, starts), map[string]string{c.Hash(): digest}, actor})
	}
	guarded, err := Guarded(store)
	return append(all, guarded...), err
}

// Guarded are those of [Ways] whose weights are in the repository.
func Guarded(store *experiment.Store) ([]Named, error) {
	const phi = .01
	actors, err := Actors(store)
	if err != nil {
		return nil, err
	}
	plain := actors[1]
	forward, err := anymdp.Released()
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	alone, err := anymdp.NewActor(forward, anymdp.Network)
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	return []Named{
		{plain.Label + ", mixed, φ = .01", plain.Weights, control.MixedActor{Actor: plain.Actor, Phi: phi}},
		{Label: "actor for any MDP, network alone", Actor: alone},
	}, nil
}

// load reads an actor's weights.
func load(path string) (control.Actor, error) {
	model, err := train.LoadExact(path)
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	return model.Actor()
}

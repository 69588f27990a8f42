package lockup

import (
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
)

// Paper is the study of the repository. The size is one at which every recipe has been trained.
func Paper() *Study {
	const states = 8
	p := experiment.PaperProtocol
	return &Study{
		Root: p.Sizes[states].Evaluation, States: states, Actions: p.Actions, Problems: 8, Rounds: p.Rounds, Eta: p.Eta,
		Masses: []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8},
	}
}

// The parts of the study: actors of the figure, and ways to keep one from locking up.
const (
	Curves   = "curves"
	Compared = "compared"
)

// actor is an actor of the study; without load its weights are not kept.
type actor struct {
	part, label string
	weights     []method.Weights
	load        func(*experiment.Store) (control.Actor, error)
}

// actors lists exact PMD, the first identity of each recipe, and the actor for any MDP; and, of
// ways to keep an actor from locking up, other inputs and other training in 5,120 steps, the guard
// of the paper's Appendix G, and the network of the actor for any MDP alone.
func actors(store *experiment.Store) ([]actor, error) {
	all := []actor{{part: Curves, label: "exact PMD", load: func(*experiment.Store) (control.Actor, error) { return control.RuleActor(pmd.PMD), nil }}}
	for _, x := range []struct {
		label, method, recipe string
		block                 experiment.Block
	}{
		{"PolicyAttention", "policyattention", "plain", experiment.Benchmark}, {"PMD-target", "pmd-target", "plain", experiment.Benchmark},
		{"PolicyAttention, recipe prior", "policyattention", "prior", experiment.Prior},
	} {
		u, err := store.Preset.Unit(experiment.Cell{Block: x.block, Key: rows.Key{
			Method: x.method, Recipe: x.recipe, S: int32(Paper().States), Seed: int64(experiment.PaperProtocol.Sizes[Paper().States].Runs[0].Model), Family: string(mdp.Random),
		}})
		if err != nil {
			return nil, err
		}
		trained, _ := u.Config.(*experiment.Loop).Deployment.(method.Separable).Parts()
		all = append(all, actor{Curves, x.label, u.Weights, func(s *experiment.Store) (control.Actor, error) { return trained.Actor(s.Models()) }})
	}
	plain := all[1]
	all = append(all, actor{part: Curves, label: "actor for any MDP, with log π", load: released(anymdp.Prior)})
	for _, label := range []string{"reads π, any starts", "reads log π, any starts", "reads π, starved starts", "reads log π, starved starts"} {
		all = append(all, actor{part: Compared, label: "5120 steps, " + label})
	}
	return append(all,
		actor{Compared, plain.label + ", mixed, φ = .01", plain.weights, func(s *experiment.Store) (control.Actor, error) {
			a, err := plain.load(s)
			return control.MixedActor{Actor: a, Phi: experiment.PaperProtocol.Mixture}, err
		}},
		actor{part: Compared, label: "actor for any MDP, network alone", load: released(anymdp.Network)},
	), nil
}

// released is the released actor for any MDP.
func released(readout anymdp.Readout) func(*experiment.Store) (control.Actor, error) {
	return func(*experiment.Store) (control.Actor, error) {
		forward, err := anymdp.Released()
		if err != nil {
			return nil, err
		}
		return anymdp.NewActor(forward, readout)
	}
}

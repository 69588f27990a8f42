package paper

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
)

// LockUp is the study of actors on problems in which the best action of every state begins with
// little mass. An actor whose answer loses what is left of that mass never finds the action: it locks
// up, where exact PMD only takes longer. Its JSON is a part of every configuration.
type LockUp struct {
	Root     uint64    `json:"root"` // of the problems
	States   int       `json:"states"`
	Actions  int       `json:"actions"`
	Problems int       `json:"problems"`
	Rounds   int       `json:"rounds"` // after which the loss is taken
	Eta      float64   `json:"eta"`
	Masses   []float64 `json:"masses"` // that the best action of each state begins with
}

// PaperLockUp is the study of the repository. The size is one at which every recipe has been trained.
var PaperLockUp = LockUp{
	Root: experiment.PaperProtocol.Sizes[8].Evaluation, States: 8, Actions: experiment.PaperProtocol.Actions,
	Problems: 8,
	Rounds:   experiment.PaperProtocol.Rounds, Eta: experiment.PaperProtocol.Eta,
	Masses: []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8},
}

// locking is an actor of the study. Without load its weights are not kept.
type locking struct {
	part, label string
	weights     []method.Weights
	load        func(*experiment.Store) (control.Actor, error)
}

// actors lists exact PMD, the first identity of each recipe, and the actor for any MDP; and, of
// ways to keep an actor from locking up, other inputs and other training in 5,120 steps, the guard
// of the paper's Appendix G, and the network of the actor for any MDP alone.
func (l LockUp) actors(p experiment.Preset) ([]locking, error) {
	const curves, compared = "curves", "compared"
	seed := int64(experiment.PaperProtocol.Sizes[l.States].Runs[0].Model)
	trained := func(label string, block experiment.Block, name, recipe string) (locking, error) {
		u, err := p.Unit(experiment.Cell{Block: block, Key: rows.Key{
			Method: name, Recipe: recipe, S: int32(l.States), Seed: seed, Family: string(mdp.Random),
		}})
		if err != nil {
			return locking{}, err
		}
		actor, _ := u.Config.(*experiment.Loop).Deployment.(method.Separable).Parts()
		return locking{curves, label, u.Weights, func(s *experiment.Store) (control.Actor, error) {
			return actor.Actor(s.Models())
		}}, nil
	}
	plain, err := trained("PolicyAttention", experiment.Benchmark, "policyattention", "plain")
	target, failed := trained("PMD-target", experiment.Benchmark, "pmd-target", "plain")
	prior, none := trained("PolicyAttention, recipe prior", experiment.Prior, "policyattention", "prior")
	return []locking{
		{curves, "exact PMD", nil, func(*experiment.Store) (control.Actor, error) {
			return control.RuleActor(pmd.PMD), nil
		}},
		plain, target, prior,
		{curves, "actor for any MDP, with log π", nil, released(anymdp.Prior)},
		{compared, "5120 steps, reads π, any starts", nil, nil},
		{compared, "5120 steps, reads log π, any starts", nil, nil},
		{compared, "5120 steps, reads π, starved starts", nil, nil},
		{compared, "5120 steps, reads log π, starved starts", nil, nil},
		{compared, "PolicyAttention, mixed, φ = .01", plain.weights, func(s *experiment.Store) (control.Actor, error) {
			a, err := plain.load(s)
			return control.MixedActor{Actor: a, Phi: experiment.PaperProtocol.Mixture}, err
		}},
		{compared, "actor for any MDP, network alone", nil, released(anymdp.Network)},
	}, errors.Join(err, failed, none)
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

// Units implements experiment.Study.
func (l LockUp) Units(s *experiment.Store) (units []experiment.Unit, err error) {
	actors, err := l.actors(s.Preset)
	for _, a := range actors {
		u := experiment.Unit{
			Block: "lockup", Name: a.part + "/" + a.label,
			Key: rows.Key{Method: a.label, Recipe: a.part, S: int32(l.States), Family: "starved"},
			Of:  rows.Lock{Part: a.part, Actor: a.label}, Config: struct {
				LockUp
				Part, Actor string
			}{l, a.part, a.label},
			Problems: l.Problems, Sample: 1, Tolerance: 1e-3, Weights: a.weights,
		}
		if a.load == nil {
			u.Sample = -1
		}
		type result = experiment.Result
		u.Compute = func(_ context.Context, s *experiment.Store, first int, _ *result) (*result, error) {
			return l.measure(s, a, first)
		}
		units = append(units, u)
	}
	return units, err
}

// measure returns the losses of an actor with the exact critic on the first problems, all for 0,
// from every mass.
func (l LockUp) measure(s *experiment.Store, a locking, first int) (*experiment.Result, error) {
	if a.load == nil {
		return nil, fmt.Errorf("the weights of %q are not kept", a.label)
	}
	actor, err := a.load(s)
	if err != nil {
		return nil, err
	}
	if first == 0 {
		first = l.Problems
	}
	r, loop := &experiment.Result{}, control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: l.Eta}
	for _, mass := range l.Masses {
		problems, err := l.draw(mass, first)
		if err != nil {
			return nil, err
		}
		trajectories, err := loop.Run(problems, l.Rounds)
		if err != nil {
			return nil, fmt.Errorf("mass %g: %w", mass, err)
		}
		scales, err := control.NewScales(problems)
		if err != nil {
			return nil, err
		}
		for i, scale := range scales {
			loss, err := scale.Loss(trajectories[i].Policies[l.Rounds])
			if err != nil {
				return nil, fmt.Errorf("mass %g, problem %d: %w", mass, i, err)
			}
			r.Locks = append(r.Locks, rows.Lock{Part: a.part, Actor: a.label, Mass: mass, Problem: int32(i),
				Loss: loss})
		}
	}
	return r, nil
}

// draw returns the first problems of the study's root, but that in every state π₀ has the mass on
// the best action under Q*, and shares the rest among the others in the proportions in which it was
// drawn.
func (l LockUp) draw(mass float64, first int) ([]mdp.Problem, error) {
	problems, err := mdp.Random.Draw(l.Root, l.States, l.Actions, first)
	for i, p := range problems {
		optimum, err := p.MDP.Optimal()
		if err != nil {
			return nil, fmt.Errorf("problem %d: %w", i, err)
		}
		for s := range l.States {
			pmd.Starve(problems[i].Pi0.RawRowView(s), floats.MaxIdx(optimum.Q.RawRowView(s)), mass)
		}
	}
	return problems, err
}

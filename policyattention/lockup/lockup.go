// Package lockup measures actors on problems in which the best action of every state
// begins with little mass. An actor whose answer loses what is left of that mass never
// finds the action: it locks up, where exact PMD only takes longer.
package lockup

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
)

// Block is the study's block.
const Block experiment.Block = "lockup"

// Study is what actors are measured on. As an experiment.Study it adds each actor to a preset.
type Study struct {
	Root     uint64    `json:"root"` // of the problems
	States   int       `json:"states"`
	Actions  int       `json:"actions"`
	Problems int       `json:"problems"`
	Rounds   int       `json:"rounds"` // after which the loss is taken
	Eta      float64   `json:"eta"`
	Masses   []float64 `json:"masses"` // that the best action of each state begins with
}

// Units implements experiment.Study.
func (s *Study) Units(store *experiment.Store) (units []experiment.Unit, err error) {
	actors, err := actors(store)
	for _, a := range actors {
		u := experiment.Unit{
			Block: Block, Name: a.part + "/" + a.label, Key: rows.Key{Method: a.label, Recipe: a.part, S: int32(s.States), Family: "starved"},
			Of: rows.Lock{Part: a.part, Actor: a.label}, Config: struct {
				*Study
				Part, Actor string
			}{s, a.part, a.label},
			Problems: s.Problems, Sample: 1, Tolerance: 1e-3, Weights: a.weights,
		}
		if a.load == nil {
			u.Sample = -1
		}
		u.Compute = func(_ context.Context, store *experiment.Store, first int, _ *experiment.Result) (*experiment.Result, error) {
			return s.measure(store, a, first)
		}
		units = append(units, u)
	}
	return units, err
}

// measure returns the losses of an actor on the first problems, all for 0, from every mass.
func (s *Study) measure(store *experiment.Store, a actor, first int) (*experiment.Result, error) {
	if a.load == nil {
		return nil, fmt.Errorf("lockup: the weights of %q are not kept", a.label)
	}
	actor, err := a.load(store)
	if err != nil {
		return nil, err
	}
	some, r := *s, &experiment.Result{}
	if first > 0 {
		some.Problems = first
	}
	for _, mass := range s.Masses {
		losses, err := some.Measure(actor, mass)
		if err != nil {
			return nil, fmt.Errorf("%w (%s, mass %g)", err, a.label, mass)
		}
		for i, v := range losses {
			r.Locks = append(r.Locks, rows.Lock{Part: a.part, Actor: a.label, Mass: mass, Problem: int32(i), Loss: v})
		}
	}
	return r, nil
}

// Draw returns the study's problems with a mass: those of its root, of family random,
// but that in every state π₀ has the mass on the best action under Q*, and shares the rest
// among the others in the proportions in which it was drawn. It returns an error unless
// the mass is in (0, 1).
func (s *Study) Draw(mass float64) ([]mdp.Problem, error) {
	if !(mass > 0 && mass < 1) {
		return nil, fmt.Errorf("lockup: a mass of %v, want one between 0 and 1", mass)
	}
	problems, err := mdp.Random.Draw(s.Root, s.States, s.Actions, s.Problems)
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	for i, p := range problems {
		optimum, err := p.MDP.Optimal()
		if err != nil {
			return nil, fmt.Errorf("lockup: problem %d: %w", i, err)
		}
		pi := mat.DenseCopyOf(p.Pi0)
		for state := range s.States {
			row, best := pi.RawRowView(state), 0
			for a, q := range optimum.Q.RawRowView(state) {
				if q > optimum.Q.At(state, best) {
					best = a
				}
			}
			rest := 1 - row[best]
			for a := range row {
				row[a] *= (1 - mass) / rest
			}
			row[best] = mass
		}
		problems[i].Pi0 = pi
	}
	return problems, nil
}

// Measure returns the losses [problems] of an actor in closed loop with the exact critic,
// from one mass.
func (s *Study) Measure(actor control.Actor, mass float64) ([]float64, error) {
	problems, err := s.Draw(mass)
	if err != nil {
		return nil, err
	}
	loop := control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: s.Eta}
	trajectories, err := loop.Run(problems, s.Rounds)
	if err != nil {
		return nil, fmt.Errorf("lockup: %w", err)
	}
	losses := make([]float64, len(problems))
	for i, p := range problems {
		scale, err := control.NewScale(p)
		if err != nil {
			return nil, fmt.Errorf("lockup: problem %d: %w", i, err)
		}
		if losses[i], err = scale.Loss(trajectories[i].Policies[s.Rounds]); err != nil {
			return nil, fmt.Errorf("lockup: problem %d: %w", i, err)
		}
	}
	return losses, nil
}

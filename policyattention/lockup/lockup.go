// Package lockup measures actors on problems in which the best action of every state
// begins with little mass. An actor whose answer loses what is left of that mass never
// finds the action: it locks up, where exact PMD only takes longer.
package lockup

import (
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/stats"
)

// Study is the losses of several actors. It is what a file of it holds.
type Study struct {
	Root     uint64    `json:"root"` // of the problems
	States   int       `json:"states"`
	Actions  int       `json:"actions"`
	Problems int       `json:"problems"`
	Rounds   int       `json:"rounds"` // after which the loss is taken
	Eta      float64   `json:"eta"`
	Masses   []float64 `json:"masses"` // that the best action of each state begins with
	Curves   []Curve   `json:"curves"`
	// Compared are ways to keep an actor from locking up, see [Ways].
	Compared []Curve `json:"compared"`
}

// Curve is the losses of one actor.
type Curve struct {
	Actor   string            `json:"actor"`             // as text writes it
	Weights map[string]string `json:"weights,omitempty"` // SHA-256 by training run, where there is one in the artifacts
	// Loss [masses][problems] is ‖Q* − Q^π‖∞ / ‖Q* − Q^{π₀}‖∞ of the policy returned.
	Loss [][]float64 `json:"loss"`
}

// Medians returns the median loss over problems at each mass.
func (c Curve) Medians() []float64 {
	medians := make([]float64, len(c.Loss))
	for i, losses := range c.Loss {
		medians[i] = stats.Median(losses)
	}
	return medians
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

// Curve measures an actor at every mass.
func (s *Study) Curve(a Named) (Curve, error) {
	c := Curve{Actor: a.Label, Weights: a.Weights}
	for _, mass := range s.Masses {
		losses, err := s.Measure(a.Actor, mass)
		if err != nil {
			return c, fmt.Errorf("%w (%s, mass %g)", err, a.Label, mass)
		}
		c.Loss = append(c.Loss, losses)
	}
	return c, nil
}

// Path is where the study lies in a folder of artifacts, beside the presets.
func Path(artifacts string) string { return filepath.Join(artifacts, "lockup", "lockup.json") }

// Read reads a file that Write wrote. It returns an error if its curves do not fit its
// masses and problems.
func Read(path string) (*Study, error) {
	s := &Study{}
	if err := artifact.ReadJSON(path, s); err != nil {
		return nil, err
	}
	for _, c := range slices.Concat(s.Curves, s.Compared) {
		if len(c.Loss) != len(s.Masses) {
			return nil, fmt.Errorf("lockup: %s: %s has losses at %d masses, want %d", path, c.Actor, len(c.Loss), len(s.Masses))
		}
		for _, losses := range c.Loss {
			if len(losses) != s.Problems {
				return nil, fmt.Errorf("lockup: %s: %s has %d losses at a mass, want %d", path, c.Actor, len(losses), s.Problems)
			}
		}
	}
	return s, nil
}

// Write writes the study as JSON.
func (s *Study) Write(path string) error { return artifact.WriteJSON(path, s, " ") }

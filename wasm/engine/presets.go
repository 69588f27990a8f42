package engine

import (
	"fmt"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Presets other than the families of package mdp.
const (
	Maze           = "maze"            // a map of 25 places with two ways to the goal
	FrozenLake     = "frozen-lake"     // the 4×4 map of Gymnasium, slippery
	FrozenLakeWide = "frozen-lake-8x8" // the 8×8 map of Gymnasium, slippery
	LockUp         = "lock-up"         // the paper's witness that one-step fidelity is not enough
)

// LockUpZeta is the one-step change below which exact PMD stays in the lock-up
// preset.
const LockUpZeta = 1e-4

// Problem returns the problem that the settings name: P, r and π₀.
func (s Settings) Problem() (mdp.Problem, error) {
	if g := s.Grid(); g != nil {
		p, r := g.tables()
		return mdp.NewProblem(s.Gamma, p, r, nil)
	}
	if s.Preset == LockUp {
		return pmd.LockUp(LockUpZeta, s.Eta, s.Gamma)
	}
	if s.States > MaxStates || s.Actions > MaxActions {
		return mdp.Problem{}, fmt.Errorf("a problem of %d states and %d actions, the page takes at most %d and %d",
			s.States, s.Actions, MaxStates, MaxActions)
	}
	problems, err := mdp.Family(s.Preset).Draw(s.Seed, s.States, s.Actions, 1)
	if err != nil {
		return mdp.Problem{}, err
	}
	return mdp.NewProblem(s.Gamma, problems[0].MDP.DenseP(), problems[0].MDP.R, problems[0].Pi0)
}

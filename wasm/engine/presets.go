package engine

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Presets other than the families of package mdp.
const (
	FrozenLake = "frozen-lake" // the 4×4 map of Gymnasium, slippery
	LockUp     = "lock-up"     // the paper's witness that one-step fidelity is not enough
)

// LockUpZeta is the one-step change below which exact PMD stays in the lock-up
// preset.
const LockUpZeta = 1e-4

// Problem returns the problem that the settings name: P, r and π₀.
func (s Settings) Problem() (mdp.Problem, error) {
	switch s.Preset {
	case FrozenLake:
		p, r := frozenLake()
		return mdp.NewProblem(s.Gamma, p, r, nil)
	case LockUp:
		return pmd.LockUp(LockUpZeta, s.Eta, s.Gamma)
	}
	if s.States > MaxSide || s.Actions > MaxSide {
		return mdp.Problem{}, fmt.Errorf("a problem of %d states and %d actions, the page takes at most %d of each", s.States, s.Actions, MaxSide)
	}
	problems, err := mdp.Family(s.Preset).Draw(s.Seed, s.States, s.Actions, 1)
	if err != nil {
		return mdp.Problem{}, err
	}
	return mdp.NewProblem(s.Gamma, problems[0].MDP.P, problems[0].MDP.R, problems[0].Pi0)
}

// lake is Gymnasium's 4×4 map: start, frozen, hole, goal.
const lake = "SFFF" + "FHFH" + "FFFH" + "HFFG"

// frozenLake returns the transitions [64, 16] and rewards [16, 4] of Gymnasium's
// slippery FrozenLake: an action (left, down, right, up) goes where it says or
// to either side, each with probability 1/3; holes and the goal end an episode,
// here as states that lead to themselves; the reward, 1 on entering the goal,
// is given as its expectation.
func frozenLake() (p, r *mat.Dense) {
	const side, actions = 4, 4
	p, r = mat.NewDense(side*side*actions, side*side, nil), mat.NewDense(side*side, actions, nil)
	for s, tile := range lake {
		for a := range actions {
			row := p.RawRowView(s*actions + a)
			if tile == 'H' || tile == 'G' {
				row[s] = 1
				continue
			}
			for _, b := range []int{(a + 3) % 4, a, (a + 1) % 4} {
				x, y := s%side, s/side
				switch b {
				case 0:
					x = max(0, x-1)
				case 1:
					y = min(side-1, y+1)
				case 2:
					x = min(side-1, x+1)
				case 3:
					y = max(0, y-1)
				}
				next := y*side + x
				row[next] += 1. / 3
				if lake[next] == 'G' {
					r.Set(s, a, r.At(s, a)+1./3)
				}
			}
		}
	}
	return p, r
}

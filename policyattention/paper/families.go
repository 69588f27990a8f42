package paper

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// family draws one problem's rewards [S, A] and transitions [S·A, S] from a random stream.
type family struct {
	name string
	draw func(rng *rand.Rand) (p, r *mat.Dense)
}

var families = []family{{"deep-sea", deepSea}, {"chain", chain}, {"garnet", garnet(32)}, {"garnet-64", garnet(64)},
	{"maze", maze}, {"anymdp", anyMDP}}

const farDiscount, familyRoot, familyProblems = .99, 61_900, 256

// familyBackups are the backups after which policies are scored.
var familyBackups = []int{10, 20, 50, 100, 200}

// transitions returns empty tables.
func transitions(states, actions int) (p, r *mat.Dense) {
	return mat.NewDense(states*actions, states, nil), mat.NewDense(states, actions, nil)
}

// deepSea is a triangle of depth 8 (Osband et al., ICLR 2020): one action of a state, which one is drawn,
// goes down and right at a small cost, the other down and left. Only right all the way has a reward.
func deepSea(rng *rand.Rand) (p, r *mat.Dense) {
	const depth, last = 8, 8 * 9 / 2
	p, r = transitions(last+1, 2)
	place := func(i, j int) int { return min(last, i*(i+1)/2+max(0, j)) }
	for i := range depth {
		for j := range i + 1 {
			s, right := place(i, j), rng.IntN(2)
			p.Set(2*s+right, place(i+1, j+1), 1)
			p.Set(2*s+1-right, place(i+1, j-1), 1)
			r.Set(s, right, -.01/depth)
			if i == depth-1 && j == i {
				r.Set(s, right, 1)
			}
		}
	}
	for a := range 2 {
		p.Set(2*last+a, last, 1)
	}
	return p, r
}

// chain has 32 states. One action goes right nine times in ten and else left, the other left; there is
// a reward of 1 at the right end, and of .01 at the left.
func chain(*rand.Rand) (p, r *mat.Dense) {
	const states = 32
	p, r = transitions(states, 2)
	for s := range states {
		left, right := max(0, s-1), min(states-1, s+1)
		p.Set(2*s, left, 1)
		p.Set(2*s+1, right, .9)
		p.Set(2*s+1, left, p.At(2*s+1, left)+.1)
	}
	r.Set(0, 0, .01)
	r.Set(states-1, 1, 1)
	return p, r
}

// garnet has 4 actions with 4 successors each, and rewards uniform on [−1, 1].
func garnet(states int) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
		const actions, branches = 4, 4
		p, r = transitions(states, actions)
		weights := mdp.RandomPolicy(rng, states*actions, branches)
		for pair := range states * actions {
			for k, next := range rng.Perm(states)[:branches] {
				p.Set(pair, next, weights.At(pair, k))
			}
			r.Set(pair/actions, pair%actions, 2*rng.Float64()-1)
		}
		return p, r
	}
}

// maze is a square of 8 × 8 cells, one in five a wall. A move slips to either side one time in ten, and
// stays before a wall; the reward is 1 in the last cell, where one stays.
func maze(rng *rand.Rand) (p, r *mat.Dense) {
	const side, states, actions = 8, 64, 4
	p, r = transitions(states, actions)
	wall := make([]bool, states)
	for s := range wall[:states-1] {
		wall[s] = rng.Float64() < .2
	}
	moves := [actions][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}
	for s := range states {
		for a := range actions {
			for _, slip := range []int{0, 1, 3} {
				move, share := moves[(a+slip)%actions], .1
				if slip == 0 {
					share = .8
				}
				x, y := s%side+move[0], s/side+move[1]
				next := s
				if inside := x >= 0 && y >= 0 && x < side && y < side; inside && !wall[y*side+x] && s != states-1 {
					next = y*side + x
				}
				p.Set(s*actions+a, next, p.At(s*actions+a, next)+share)
			}
			if s == states-1 {
				r.Set(s, a, 1)
			}
		}
	}
	return p, r
}

// planners are methods of the study with equal information that read the model, and their backups a round.
var planners = []struct {
	name    string
	backups int
}{{"exact-pmd", 1}, {"any", 1}, {"value-iteration", 1}, {"policy-iteration", 10}, {"natural-gradient", 10}}

// planner is one of them with a step size.
func planner(s *experiment.Store, name string, backups int, eta float64) (control.Controller, error) {
	c, err := withModel[name](method.Case{Values: []float64{eta, 0}, Models: s.Models})
	if b, ok := c.(begun); ok { // from π₀
		c = b.Controller
	}
	if loop, ok := c.(control.Loop); ok && backups > 1 {
		loop.Critic = severalBackups
		return loop, err
	}
	return c, err
}

// severalBackups evaluates a policy by ten backups from what is known.
var severalBackups = control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
	for range 10 {
		c.Q = c.MDP.EvaluationBackup(c.Pi, c.Q)
	}
	return c.Q, nil
})

// Families is the study of problems on which a greedy step or a short horizon is wrong, with γ = .99:
// methods that plan with the model, after equally many backups.
func Families(*experiment.Store) (units []experiment.Unit, err error) {
	for _, f := range families {
		for _, m := range planners {
			key := rows.Key{Method: m.name, Family: f.name}
			units = append(units, experiment.Unit{
				Block: "families", Name: f.name + "/" + m.name, Key: key, Of: key, Problems: familyProblems, Sample: 1,
				Chosen: true, Tolerance: anyTolerance, Weights: anyWeights(m.name, 1), Config: struct {
					Family, Method          string
					Root                    uint64
					Problems, BackupsARound int
					Backups                 []int
					Gamma                   float64
					Actor                   string `json:",omitempty"`
				}{f.name, m.name, familyRoot, familyProblems, m.backups, familyBackups, farDiscount,
					trainedAs(m.name)},
				Compute: func(_ context.Context, s *experiment.Store, places []int32, _ *rows.Tables) (
					*rows.Tables, error) {
					return f.compute(s, m.name, m.backups, key, places)
				},
			})
		}
	}
	return units, nil
}

// compute runs a planner on problems.
func (f family) compute(s *experiment.Store, name string, backups int, key rows.Key, places []int32) (
	*rows.Tables, error) {
	out := &rows.Tables{}
	for _, i := range places {
		rng := seed.New(familyRoot, "family", f.name, int(i))
		p, r := f.draw(rng)
		states, actions := r.Dims()
		problem, err := mdp.NewProblem(farDiscount, p, r, mdp.RandomPolicy(rng, states, actions))
		if err != nil {
			return nil, err
		}
		optimum, err := problem.MDP.Optimal()
		if err != nil {
			return nil, err
		}
		loop, err := planner(s, name, backups, pmd.SuggestedSpan/(mat.Max(optimum.Q)-mat.Min(optimum.Q)))
		if err != nil {
			return nil, err
		}
		var rounds []int
		for _, b := range familyBackups {
			rounds = append(rounds, b/backups)
		}
		losses, err := scored(loop, []mdp.Problem{problem}, rounds...)
		if err != nil {
			return nil, fmt.Errorf("%s, problem %d: %w", f.name, i, err)
		}
		for k, b := range familyBackups {
			out.Rounds = append(out.Rounds,
				rows.Round{Key: key, Problem: i, Round: int32(b), Loss: digits(losses[0][k], 6)})
		}
	}
	return out, nil
}

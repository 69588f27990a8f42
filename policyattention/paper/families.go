package paper

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// family draws one problem's transitions [S·A, S] and rewards [S, A] from a random stream.
type family struct {
	name string
	draw func(rng *rand.Rand) (p, r *mat.Dense)
}

var families = []family{{"deep-sea", deepSea(8, 2)}, {"chain", chain(32, 2)}, {"garnet", garnet(32, 4, 4)},
	{"garnet-64", garnet(64, 4, 4)}, {"maze", maze(8, 4)}, {"anymdp", anyMDP(32, 5, farDiscount)}}

const farDiscount, familyRoot, familyProblems = .99, 61_900, 256

// familyBackups are the backups after which policies are scored, by whether a planner is on samples.
var familyBackups = map[bool][]int{false: {10, 20, 50, 100, 200}, true: {20, 100}}

// smallFamilies have the states and actions for which the benchmark's methods were trained, and their discount. The
// first is the benchmark's own: a Garnet with all states as successors.
var smallFamilies = []family{{"random", garnet(16, 3, 16)}, {"deep-sea", endless(deepSea(5, 3))},
	{"chain", chain(16, 3)}, {"garnet", garnet(16, 3, 4)}, {"maze", endless(maze(4, 3))},
	{"anymdp", endless(anyMDP(16, 3, mdp.Discount))}}

const smallStates, smallProblems = 16, 128

// transitions returns empty tables.
func transitions(states, actions int) (p, r *mat.Dense) {
	return mat.NewDense(states*actions, states, nil), mat.NewDense(states, actions, nil)
}

// deepSea is a triangle (Osband et al., ICLR 2020): one action of a state, which one is drawn, goes down and right at
// a small cost, the others down and left. Only right all the way has a reward.
func deepSea(depth, actions int) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
		last := depth * (depth + 1) / 2
		p, r = transitions(last+1, actions)
		place := func(i, j int) int { return min(last, i*(i+1)/2+max(0, j)) }
		for i := range depth {
			for j := range i + 1 {
				s, right := place(i, j), rng.IntN(actions)
				for a := range actions {
					if a != right {
						p.Set(s*actions+a, place(i+1, j-1), 1)
					}
				}
				p.Set(s*actions+right, place(i+1, j+1), 1)
				r.Set(s, right, -.01/float64(depth))
				if i == depth-1 && j == i {
					r.Set(s, right, 1)
				}
			}
		}
		for a := range actions {
			p.Set(last*actions+a, last, 1)
		}
		return p, r
	}
}

// chain has a reward of 1 at the right end, and of .01 at the left. One action goes right nine times in ten and else
// left, the others left.
func chain(states, actions int) func(*rand.Rand) (p, r *mat.Dense) {
	return func(*rand.Rand) (p, r *mat.Dense) {
		p, r = transitions(states, actions)
		for s := range states {
			left, right := max(0, s-1), min(states-1, s+1)
			for a := range actions {
				p.Set(s*actions+a, left, 1)
			}
			p.Set(s*actions+1, left, .1)
			p.Set(s*actions+1, right, .9)
		}
		r.Set(0, 0, .01)
		r.Set(states-1, 1, 1)
		return p, r
	}
}

// garnet has so many successors of each action, and rewards uniform on [−1, 1].
func garnet(states, actions, branches int) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
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

// maze is a square of cells, one in five a wall. Moves are down, to the right, up and, where there are four actions, to
// the left. A move slips to either side one time in ten, and stays before a wall; the reward is 1 in the last cell,
// where one stays.
func maze(side, actions int) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
		states := side * side
		p, r = transitions(states, actions)
		wall := make([]bool, states)
		for s := range wall[:states-1] {
			wall[s] = rng.Float64() < .2
		}
		moves := [4][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}
		for s := range states {
			for a := range actions {
				for turn, share := range []float64{.8, .1, 0, .1} {
					move := moves[(a+turn)%4]
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
}

// endless makes problems for walks without resets, on which the last state can be reached from every other: a state
// that no action leaves leads to state 0, even where that is no longer the worst or best place, and rewards are at
// most 1.
func endless(draw func(*rand.Rand) (p, r *mat.Dense)) func(*rand.Rand) (p, r *mat.Dense) {
	return func(rng *rand.Rand) (p, r *mat.Dense) {
		p, r = draw(rng)
		states, actions := r.Dims()
		step, reach := baseline.Identity(states), &mat.Dense{}
		for s := range states {
			from := p.Slice(s*actions, (s+1)*actions, 0, states).(*mat.Dense)
			if mat.Min(from.ColView(s)) == 1 {
				from.Zero()
				from.SetCol(0, slices.Repeat([]float64{1}, actions))
			}
			for a := range actions {
				floats.Add(step.RawRowView(s), from.RawRowView(a))
			}
		}
		if reach.Pow(step, states); mat.Min(reach.ColView(states-1)) == 0 {
			return endless(draw)(rng)
		}
		r.Scale(1/max(mat.Max(r), -mat.Min(r)), r)
		return p, r
	}
}

// pick draws problems by their places, with a random π₀.
func (f family) pick(gamma float64, places []int32) (problems []mdp.Problem, err error) {
	for _, i := range places {
		rng := seed.New(familyRoot, "family", f.name, int(i))
		p, r := f.draw(rng)
		states, actions := r.Dims()
		problem, err := mdp.NewProblem(gamma, p, r, mdp.RandomPolicy(rng, states, actions))
		if err != nil {
			return nil, fmt.Errorf("%s, problem %d: %w", f.name, i, err)
		}
		problem.Number = int(i) + 1
		problems = append(problems, problem)
	}
	return problems, nil
}

// planner is a method of the study with equal information with its backups a round, which its name ends in where the
// method is there with others, too. It reads the model or, where samples is not 0, draws so many transitions of each
// pair for each backup, and begins without values.
type planner struct {
	method, ending   string
	backups, samples int
}

var planners = []planner{
	{"exact-pmd", "", 1, 0}, {"any", "", 1, 0}, {"value-iteration", "", 1, 0}, {"policy-iteration", "", 10, 0},
	{"natural-gradient", "", 10, 0}, {"policy-iteration", "-2", 2, 0}, {"natural-gradient", "-2", 2, 0},
	{"greedy-step", "", 1, 0}, {"greedy-reward", "", 1, 0}, {"pmd-mean", "", 1, 4}, {"any-mean", "", 1, 4},
	{"value-iteration-mean", "", 1, 4}, {"policy-iteration-mean", "", 10, 4}, {"natural-gradient-mean", "", 10, 4},
	{"pmd-all", "", 1, 4}, {"value-iteration-all", "", 1, 4},
}

// controller returns it for problems as large as one, with a step size. What is estimated from samples may be backed up
// more than once: backups is the third value.
func (m planner) controller(s *experiment.Store, like mdp.Problem, eta float64) (control.Controller, error) {
	of := method.Case{Values: []float64{eta, 0, float64(m.backups)}, Models: s.Models, Root: familyRoot}
	if m.samples > 0 {
		of.Condition = method.Condition{Information: method.ByGenerative,
			N: m.samples * m.backups * like.MDP.States() * like.MDP.Actions()}
		return withSamples[m.method](of)
	}
	c, err := withModel[m.method](of)
	if b, ok := c.(begun); ok { // from π₀
		c = b.Controller
	}
	if loop, ok := c.(control.Loop); ok && m.backups > 1 {
		loop.Critic = evaluation(m.backups)
		return loop, err
	}
	return c, err
}

// evaluation evaluates a policy by so many backups from what is known.
func evaluation(backups int) control.CriticFunc {
	return func(c control.Context) (*mat.Dense, error) {
		for range backups {
			c.Q = c.MDP.EvaluationBackup(c.Pi, c.Q)
		}
		return c.Q, nil
	}
}

// Families is the study of problems on which a greedy step or a short horizon is wrong, with γ = .99: methods that
// plan with the model or on samples, after equally many backups; then the benchmark's methods on small ones.
func Families(s *experiment.Store) (units []experiment.Unit, err error) {
	for _, f := range families {
		for _, m := range planners {
			units = append(units, f.planned(m))
		}
	}
	for _, f := range smallFamilies {
		for _, r := range equalRuns {
			if _, err := r.maker(s.Preset.Methods); err != nil || r.Families == "" {
				continue // where there is no maker, its method's folder has been taken out
			}
			for j := range r.runs() {
				units = append(units, f.repeat(r, j))
			}
		}
	}
	return units, nil
}

// planned is a planner on problems of a family.
func (f family) planned(m planner) experiment.Unit {
	key, horizons := rows.Key{Method: m.method + m.ending, Family: f.name}, familyBackups[m.samples > 0]
	var rounds []int
	for _, b := range horizons {
		rounds = append(rounds, b/m.backups)
	}
	return experiment.Unit{
		Block: "families", Name: f.name + "/" + key.Method, Key: key, Of: key, Problems: familyProblems, Sample: 1,
		Chosen: true, Tolerance: anyTolerance, Weights: anyWeights(m.method, 1), Config: struct {
			Family, Method          string
			Root                    uint64
			Problems, BackupsARound int
			Backups                 []int
			Gamma                   float64
			Actor                   string `json:",omitempty"`
			Samples                 int    `json:",omitempty"`
		}{f.name, key.Method, familyRoot, familyProblems, m.backups, horizons, farDiscount, trainedAs(m.method),
			m.samples},
		Compute: func(_ context.Context, s *experiment.Store, places []int32, _ *rows.Tables) (*rows.Tables, error) {
			problems, err := f.pick(farDiscount, places)
			if err != nil {
				return nil, err
			}
			out := &rows.Tables{}
			for k, problem := range problems {
				optimum, err := problem.MDP.Optimal()
				if err != nil {
					return nil, err
				}
				loop, err := m.controller(s, problem, pmd.SuggestedSpan/(mat.Max(optimum.Q)-mat.Min(optimum.Q)))
				if err != nil {
					return nil, err
				}
				losses, err := scored(loop, problems[k:k+1], rounds...)
				if err != nil {
					return nil, fmt.Errorf("%s, problem %d: %w", f.name, places[k], err)
				}
				out.Rounds = append(out.Rounds, lossRows(key, places[k:k+1], horizons, losses, 6)...)
			}
			return out, nil
		},
	}
}

// repeat is run j of a method of the study with equal information on small problems of a family. Nothing is tuned or
// trained for them.
func (f family) repeat(r equalRun, j int) experiment.Unit {
	samples, horizons := familyRoot+1+uint64(j), baseline.Horizons
	key := rows.Key{Method: r.Method, Recipe: rows.Condition(string(r.Information), r.N, r.Untuned), S: smallStates,
		Family: f.name, Seed: int64(samples)}
	if r.Information == method.ByModel {
		horizons = anyHorizons
		if !r.Learned {
			key.Seed = 0
		}
	}
	return experiment.Unit{
		Block: "families", Name: fmt.Sprintf("%s-%d/%s, %s-%d", f.name, smallStates, r.Method, key.Recipe, j), Key: key,
		Of: key, Problems: smallProblems, Sample: 1, Chosen: true, Tolerance: r.tolerance(),
		Config: struct {
			informedMethod
			Family        string
			Root, Samples uint64
			Problems      int
			Horizons      []int
			Gamma         float64
			Values        []float64
		}{r.informedMethod, f.name, familyRoot, samples, smallProblems, horizons, mdp.Discount, r.Values},
		Compute: func(_ context.Context, s *experiment.Store, places []int32, _ *rows.Tables) (*rows.Tables, error) {
			controller, err := r.controller(s, j, samples)
			problems, undrawn := f.pick(mdp.Discount, places)
			if err := cmp.Or(err, undrawn); err != nil {
				return nil, err
			}
			losses, err := r.losses(controller, problems, horizons...)
			return &rows.Tables{Rounds: lossRows(key, places, horizons, losses, significant)}, err
		},
	}
}

// lossRows are losses [problems][horizons] as rows, to so many digits, in float32.
func lossRows(key rows.Key, places []int32, horizons []int, losses [][]float64, precision int) (all []rows.Round) {
	for i := range losses {
		for h, horizon := range horizons {
			all = append(all, rows.Round{Key: key, Problem: places[i], Round: int32(horizon),
				Loss: rows.Single(digits(losses[i][h], precision))})
		}
	}
	return all
}

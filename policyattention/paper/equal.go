package paper

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// The study with equal information asks how much of a method's lead is its update rule and how much
// what it is told: every method runs in every condition in which it can, on the same problems and,
// where it sees samples, on as many transitions as all others, which the environment counts.

//go:embed equal.json
var equalJSON []byte

// equalRuns are the runs of the study in their order.
var equalRuns = experiment.Embedded[[]equalRun](equalJSON)

// equalRun is a method in a condition at a size.
type equalRun struct {
	informedMethod
	Learned bool `json:"learned"`
	// Values are those of the method's free numbers. Where equal.json has "tuning", for the record, they were chosen on
	// calibration problems by the mean loss over T = 20 and 40, from a grid of an eighth of each start, the start, and
	// eight times it, on to the best of the neighbours by factors of two until none is better. Those of the actor for
	// any MDP were chosen with the weights of an earlier recipe, and kept.
	Values []float64 `json:"values"`
	// Elsewhere says that its first rounds are those of another run: verification seldom makes it again, since it is
	// long, and then with one stream of samples.
	Elsewhere bool `json:"elsewhere"`
}

type informedMethod struct {
	States int `json:"states"`
	method.Condition
	Method string `json:"method"`
	// Untuned says that the values are the published ones.
	Untuned bool `json:"untuned,omitempty"`
}

// roots of random streams, which no other block uses; run j has the stream of samples Samples + j.
type roots struct {
	Evaluation  uint64 `json:"evaluation"`
	Calibration uint64 `json:"calibration"`
	Samples     uint64 `json:"samples"`
	Choosing    uint64 `json:"choosing"` // samples on calibration problems
}

var equalRoots = map[int]roots{
	8:  {Evaluation: 38400, Calibration: 88400, Samples: 26_080, Choosing: 26_089},
	16: {Evaluation: 39400, Calibration: 89400, Samples: 26_160, Choosing: 26_169},
}

const equalRounds, equalProblems = 40, 512

// horizons are the rounds whose losses are kept, 1 and 5 where a figure shows them.
func (r equalRun) horizons() []int {
	if r.Information == method.ByGenerative || r.N > 20 {
		return baseline.Horizons
	}
	return []int{1, 5, 20, 40}
}

// Equal is the study as one of a preset, whose networks it uses.
func Equal(s *experiment.Store) (units []experiment.Unit, err error) {
	var sharper []experiment.Unit
	for _, r := range equalRuns {
		u, failed := r.unit(s)
		if failed != nil && !s.Preset.Methods.Has(r.Method) {
			continue // its method's folder has been taken out
		}
		units, err = append(units, u), errors.Join(err, failed)
		for j := 0; j < r.runs() && r.sharpened(); j++ {
			sharper = append(sharper, r.sharper(s, u, j))
		}
	}
	return append(units, sharper...), err
}

// Losses are stored to four digits; those of networks in float32 have gone through 40 rounds of
// rounding.
const significant, rounding, learnedRounding = 4, 1e-4, 2e-3

func (r equalRun) unit(s *experiment.Store) (u experiment.Unit, err error) {
	name := fmt.Sprintf("S%d/%s", r.States, r.Information)
	if r.N > 0 {
		name += fmt.Sprintf("-%d", r.N)
	}
	name += "/" + r.Method
	if r.Untuned {
		name += "-untuned"
	}
	u = experiment.Unit{
		Block: "equal", Name: name, Key: rows.Key{Method: r.Method, S: int32(r.States), Family: string(mdp.Random)},
		Of: r.row(), Problems: equalProblems, Sample: 2, Chosen: true, Tolerance: rounding,
		Weights: anyWeights(r.Method, r.runs()),
		Config: struct {
			informedMethod
			Rounds, Problems, Calibrating, Runs int
			Horizons                            []int
			Values                              []float64
			Roots                               roots
			Actor                               string `json:",omitempty"`
		}{r.informedMethod, equalRounds, equalProblems, 24, r.runs(), r.horizons(), r.Values, equalRoots[r.States],
			trainedAs(r.Method)},
		Compute: r.compute,
	}
	if r.Learned {
		u.Tolerance = learnedRounding
	}
	if r.Elsewhere {
		u.OneIn, u.Sample = 16, 1
	}
	_, err = r.maker(s.Preset.Methods)
	return u, err
}

// trainedAs is the hash of how the actor for any MDP was trained, empty for methods without it.
func trainedAs(name string) string {
	for _, w := range anyWeights(name, 1) {
		return method.Hash(w.Training)
	}
	return ""
}

func (r equalRun) row() rows.Equal {
	return rows.Equal{Method: r.Method, S: int32(r.States), Information: string(r.Information), N: int32(r.N),
		Untuned: r.Untuned}
}

// runs is how many streams of samples there are, and identities of a learned method.
func (r equalRun) runs() int {
	if r.Information == method.ByModel && !r.Learned {
		return 1
	}
	return 3
}

// compute makes the runs; see [experiment.Unit].
func (r equalRun) compute(_ context.Context, s *experiment.Store, places []int32, _ *rows.Tables) (
	*rows.Tables, error) {
	problems, err := mdp.Random.Pick(equalRoots[r.States].Evaluation, r.States, mdp.Actions, places)
	if err != nil {
		return nil, err
	}
	out := &rows.Tables{}
	for j := range r.runs() {
		if r.Elsewhere && len(places) < equalProblems && j != int(places[0])%r.runs() {
			continue
		}
		controller, err := r.controller(s, j, equalRoots[r.States].Samples+uint64(j))
		if err != nil {
			return nil, err
		}
		losses, err := r.losses(controller, problems)
		if err != nil {
			return nil, err
		}
		for i := range losses {
			for h, horizon := range r.horizons() {
				row := r.row()
				row.Run, row.Problem, row.Round = int32(j), places[i], int32(horizon)
				row.Loss = digits(losses[i][h], significant)
				out.Equal = append(out.Equal, row)
			}
		}
	}
	return out, nil
}

// controller makes the method's controller for run j, with its own or other samples.
func (r equalRun) controller(s *experiment.Store, j int, samples uint64) (control.Controller, error) {
	make, err := r.maker(s.Preset.Methods)
	if err != nil {
		return nil, err
	}
	return make(method.Case{
		Condition: r.Condition, States: r.States, Run: j, Values: r.Values, Untuned: r.Untuned,
		Root: samples, Models: s.Models,
		Deploy: func(name method.Name, recipe string) (method.Deployment, error) {
			u, err := s.Preset.Unit(experiment.Benchmark, rows.Key{
				Method: name, Recipe: recipe, S: int32(r.States), Family: string(mdp.Random),
				Seed: int64(s.Preset.Protocol.Sizes[r.States].Runs[j].Model),
			})
			if err != nil {
				return nil, err
			}
			return u.Config.(*experiment.Loop).Deployment, nil
		},
	})
}

// losses runs a controller on problems, which count what it draws, and scores it by exact solves. They
// are [problems][horizons].
func (r equalRun) losses(controller control.Controller, problems []mdp.Problem) (all [][]float64, err error) {
	drawn := make([]int, len(problems))
	counted := slices.Clone(problems)
	for i, p := range problems {
		m := *p.MDP
		m.Drawn, counted[i].MDP = &drawn[i], &m
	}
	all, err = scored(controller, counted, r.horizons()...)
	for i := range all {
		if want := equalRounds * r.N; drawn[i] != want {
			return nil, fmt.Errorf("it drew %d transitions in the condition %s, want %d", drawn[i], r.Condition, want)
		}
	}
	return all, err
}

// ownRounds is how many rounds of its own a controller has made after k rounds of the study.
func ownRounds(c control.Controller, k int) int {
	if p, ok := c.(baseline.Paced); ok {
		return k * p.N / baseline.Window
	}
	return k
}

// begun is a loop that may start from the uniform policy instead of π₀.
type begun struct {
	control.Controller
	start baseline.Start
}

// Run implements control.Controller. The trajectory begins with the problem's π₀.
func (b begun) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	begun := make([]mdp.Problem, len(problems))
	for i, p := range problems {
		begun[i] = p
		if b.start == baseline.Uniform {
			begun[i].Pi0 = p.MDP.Uniform()
		}
	}
	trajectories, err := b.Controller.Run(begun, rounds)
	for i := range trajectories {
		trajectories[i].Policies[0] = problems[i].Pi0
	}
	return trajectories, err
}

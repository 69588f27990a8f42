package paper

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
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
	// Families says "too" where the run is made on small families, too, and "only" where it is made there alone.
	Families string `json:"families"`
}

type informedMethod struct {
	States int `json:"states"`
	method.Condition
	Method string `json:"method"`
	// Untuned says that the values are the published ones.
	Untuned bool `json:"untuned,omitempty"`
	// Recipe is deployed in place of the method's own, with the first identity.
	Recipe string `json:"recipe,omitempty"`
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
		if r.Families == "only" || failed != nil && !s.Preset.Methods.Has(r.Method) {
			continue // where there is no such method, its folder has been taken out
		}
		units, err = append(units, u), errors.Join(err, failed)
		for j := 0; j < r.runs() && r.sharpened(); j++ {
			sharper = append(sharper, r.sharper(s, u, j))
		}
	}
	return append(units, sharper...), err
}

// Losses are stored to four digits; those of networks in float32 have gone through 40 rounds of rounding.
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
		Of: r.row(), Problems: equalProblems, Sample: 2, Chosen: true, Tolerance: r.tolerance(),
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
	if r.Elsewhere {
		u.OneIn, u.Sample = 4, 1
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
	if r.Information == method.ByModel && !r.Learned || r.Recipe != "" {
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
		losses, err := r.losses(controller, problems, r.horizons()...)
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
				Method: name, Recipe: cmp.Or(r.Recipe, recipe), S: int32(r.States), Family: string(mdp.Random),
				Seed: int64(s.Preset.Protocol.Sizes[r.States].Runs[j].Model),
			})
			if err != nil {
				return nil, err
			}
			return u.Config.(*experiment.Loop).Deployment, nil
		},
	})
}

// tolerance is how much its losses may differ when they are computed again.
func (r equalRun) tolerance() float64 {
	if r.Learned {
		return learnedRounding
	}
	return rounding
}

// losses runs a controller on problems, which count what it draws, and scores it by exact solves. They
// are [problems][horizons].
func (r equalRun) losses(c control.Controller, problems []mdp.Problem, horizons ...int) (all [][]float64, err error) {
	drawn := make([]int, len(problems))
	counted := slices.Clone(problems)
	for i, p := range problems {
		m := *p.MDP
		m.Drawn, counted[i].MDP = &drawn[i], &m
	}
	all, err = scored(c, counted, horizons...)
	for i := range all {
		if want := equalRounds * r.N; drawn[i] != want {
			return nil, fmt.Errorf("it drew %d transitions in the condition %s, want %d", drawn[i], r.Condition, want)
		}
	}
	return all, err
}

// sharpRounds is T where policies of the study with equal information are sharpened, sharpCalibrating on how many
// calibration problems each run chooses a temperature.
const sharpRounds, sharpCalibrating = 20, 24

// sharpened reports whether a run is sharpened: with the model, 20 transitions of a walk, or at S = 8
// two generative ones of each pair. The decoder is exact PMD.
func (r equalRun) sharpened() bool {
	few := r.Information == method.ByWindow && r.N == 20 ||
		r.Information == method.ByGenerative && r.N == 48 && r.States == 8
	return r.Method != "decoder" && (few || r.Information == method.ByModel)
}

// sharper is the unit of run j beside the run's own: losses of its policies at a temperature that calibration
// problems choose, and greedy.
func (r equalRun) sharper(s *experiment.Store, u experiment.Unit, j int) experiment.Unit {
	root := equalRoots[r.States]
	u.Block, u.Name, u.Key.Seed = "equal-sharpness", fmt.Sprintf("%s-%d", u.Name, j), int64(root.Samples)+int64(j)
	u.Key.Recipe = rows.Condition(string(r.Information), r.N, r.Untuned)
	u.Of, u.Sample = u.Key, 2
	u.Config = struct {
		informedMethod
		Run, Rounds, Problems, Calibrating int
		Roots                              roots
		Values, Temperatures               []float64
		Actor                              string `json:",omitempty"`
	}{r.informedMethod, j, sharpRounds, equalProblems, sharpCalibrating, root, r.Values, experiment.Temperatures,
		trainedAs(r.Method)}
	u.Compute = func(_ context.Context, s *experiment.Store, places []int32, stored *rows.Tables) (
		*rows.Tables, error) {
		on := func(problems, samples uint64, places []int32) (x returned, err error) {
			controller, err := r.controller(s, j, samples)
			drawn, undrawn := mdp.Random.Pick(problems, r.States, mdp.Actions, places)
			if err := cmp.Or(err, undrawn); err != nil {
				return x, err
			}
			return run(controller, drawn, sharpRounds)
		}
		temperature, least := math.NaN(), math.Inf(1)
		if stored != nil {
			temperature = stored.Tuned[0].Alpha
		}
		if stored == nil || len(places) == equalProblems { // otherwise the choice is not made again
			before := temperature // it stays where another is no better but by rounding
			calibrating, err := on(root.Calibration, root.Choosing, experiment.First(sharpCalibrating))
			if err != nil {
				return nil, err
			}
			for _, tried := range experiment.Temperatures {
				losses, err := calibrating.losses(tried)
				if err != nil {
					return nil, err
				}
				mean := stats.Mean(slices.Concat(losses...))
				if mean < least-1e-6 || tried == before && mean < least+1e-6 {
					temperature, least = tried, mean
				}
			}
		}
		returned, err := on(root.Evaluation, root.Samples+uint64(j), places)
		if err != nil {
			return nil, err
		}
		chosen, err := returned.losses(temperature)
		greedy, failed := returned.losses(0)
		if err := cmp.Or(err, failed); err != nil {
			return nil, err
		}
		out := &rows.Tables{}
		for i := range greedy {
			row := rows.Tuned{Key: u.Key, Start: "chosen", Alpha: temperature, Beta: math.NaN(), Problem: places[i],
				Round: sharpRounds, Loss: digits(chosen[i][0], significant)}
			out.Tuned = append(out.Tuned, row)
			row.Start, row.Alpha, row.Loss = "greedy", 0, digits(greedy[i][0], significant)
			out.Tuned = append(out.Tuned, row)
		}
		return out, nil
	}
	return u
}

// returned are policies that a controller returns [problems][horizons], with what scores them.
type returned struct {
	scales   []*control.Scale
	policies [][]*mat.Dense
}

// run keeps the policies that a controller returns after so many rounds of a study, the last the most.
func run(controller control.Controller, problems []mdp.Problem, horizons ...int) (r returned, err error) {
	if r.scales, err = control.NewScales(problems); err != nil {
		return r, err
	}
	rounds := ownRounds(controller, horizons[len(horizons)-1])
	trajectories, err := controller.Run(problems, rounds)
	for _, t := range trajectories {
		if len(t.Policies) != rounds+1 {
			return r, fmt.Errorf("policies of %d rounds, want %d", len(t.Policies)-1, rounds)
		}
		var policies []*mat.Dense
		for _, k := range horizons {
			policies = append(policies, t.Policies[ownRounds(controller, k)])
		}
		r.policies = append(r.policies, policies)
	}
	return r, err
}

// losses are those of the policies at a temperature, 1 for as they are [problems][horizons].
func (r returned) losses(temperature float64) ([][]float64, error) {
	all := make([][]float64, len(r.policies))
	for i, policies := range r.policies {
		for _, pi := range policies {
			if temperature != 1 {
				pi = control.AtTemperature(pi, temperature)
			}
			loss, err := r.scales[i].Loss(pi)
			if err != nil {
				return nil, fmt.Errorf("problem %d: %w", i, err)
			}
			all[i] = append(all[i], loss)
		}
	}
	return all, nil
}

// scored are the losses of what a controller returns on problems [problems][horizons].
func scored(controller control.Controller, problems []mdp.Problem, horizons ...int) ([][]float64, error) {
	r, err := run(controller, problems, horizons...)
	if err != nil {
		return nil, err
	}
	return r.losses(1)
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
	begun := slices.Clone(problems)
	for i, p := range problems {
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

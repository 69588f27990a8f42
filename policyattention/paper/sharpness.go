package paper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

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
			if err != nil {
				return x, err
			}
			drawn, err := mdp.Random.Pick(problems, r.States, mdp.Actions, places)
			if err != nil {
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
		if err != nil {
			return nil, err
		}
		greedy, err := returned.losses(0)
		out := &rows.Tables{}
		for i := range greedy {
			row := rows.Tuned{Key: u.Key, Start: "chosen", Alpha: temperature, Beta: math.NaN(), Problem: places[i],
				Round: sharpRounds, Loss: digits(chosen[i][0], significant)}
			out.Tuned = append(out.Tuned, row)
			row.Start, row.Alpha, row.Loss = "greedy", 0, digits(greedy[i][0], significant)
			out.Tuned = append(out.Tuned, row)
		}
		return out, err
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

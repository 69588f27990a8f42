package baseline

import (
	"fmt"
	"slices"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
)

// Horizons are the numbers of rounds T at which losses are tabulated and tunings scored.
var Horizons = []int{20, 40}

// Score runs a controller that was given step sizes and a start, and returns its losses at
// [Horizons].
func Score(c control.Controller, steps StepSizes, start Start, problems []mdp.Problem,
	scales []*control.Scale) (all []rows.Tuned, err error) {
	trajectories, err := c.Run(problems, slices.Max(Horizons))
	if err != nil {
		return nil, err
	}
	for _, horizon := range Horizons {
		for i, scale := range scales {
			loss, err := scale.Loss(trajectories[i].Policies[horizon])
			if err != nil {
				return nil, fmt.Errorf("problem %d, round %d: %w", i, horizon, err)
			}
			all = append(all, rows.Tuned{Start: string(start), Alpha: steps.Alpha, Beta: steps.Beta,
				Problem: int32(i), Round: int32(horizon), Loss: loss})
		}
	}
	return all, nil
}

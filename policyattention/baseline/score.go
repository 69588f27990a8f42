package baseline

import (
	"fmt"

	"icrl/policyattention/control"
	"icrl/policyattention/rows"
)

// Horizons are the numbers of rounds T at which losses are tabulated and tunings scored.
var Horizons = []int{20, 40}

// Score returns the losses at [Horizons] of a learner with step sizes and a start.
func Score(
	trajectories []control.Trajectory, steps StepSizes, start Start, scales []*control.Scale,
) (all []rows.Tuned, err error) {
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

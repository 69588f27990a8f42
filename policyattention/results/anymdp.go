package results

import (
	"errors"
	"slices"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/artifact"
	"icrl/policyattention/stats"
)

// BesideRow sets the actor for any MDP beside the actors of fixed shape, on the problems that
// those are scored on: the difference of median losses, run by run.
type BesideRow struct {
	S, T        int
	Readout     anymdp.Readout
	Fixed, Loss float64 // medians
	Difference  stats.Estimate
	P99, Worst  float64 // of the difference, problem by problem
}

// Beside returns the rows of the actor for any MDP. It returns none where nothing is stored.
func (s *Source) Beside() (rows []BesideRow, err error) {
	var stored []map[string][]trial.Losses
	for _, c := range recipe.All() {
		_, losses, err := trial.Read(trial.Folder(s.Store.Root(), c), c)
		if errors.Is(err, artifact.ErrMissing) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		stored = append(stored, losses)
	}
	for _, f := range trial.Fixtures {
		fixed, err := s.Plain(f.States)
		if err != nil {
			return nil, err
		}
		for k, horizon := range trial.Horizons[:2] {
			y := fixed.Losses(horizon)
			n := min(len(stored), len(y)) // runs are drawn in pairs
			// A preset with fewer problems has other ones.
			if n == 0 || len(y[0]) != len(stored[0][f.Name]) {
				continue
			}
			for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
				row := BesideRow{S: f.States, T: horizon, Readout: readout}
				var x [][]float64
				var excess []float64
				for j, losses := range stored[:n] {
					of := make([]float64, len(losses[f.Name]))
					for i, l := range losses[f.Name] {
						of[i] = l.Of(readout)[k]
						excess = append(excess, of[i]-y[j][i])
					}
					x = append(x, of)
				}
				slices.Sort(excess)
				row.P99, row.Worst = stats.Quantile(excess, .99), excess[len(excess)-1]
				row.Fixed, row.Loss = stats.Median(stats.RunMedians(y[:n])), stats.Median(stats.RunMedians(x))
				if row.Difference, err = stats.Standard.Difference(x, y[:n]); err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

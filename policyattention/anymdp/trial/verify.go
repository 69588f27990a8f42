package trial

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/artifact"
	"icrl/policyattention/train"
)

// tolerance is by how much a loss that is replayed in plain Go may differ from the stored
// one, from XLA in float32. An error of 1e-6 of a row's separation in each of 40 rounds
// moves a logit by 4e-5 separations, and a loss by a quarter of that for each nat.
//
// In the read-out of the network alone the error of an output counts κ·17 nats where a mass
// is at its floor. Outputs in float32 are 3e-7 (root mean square) and at most 1e-6 away from
// plain Go's. Of the losses replayed one is 1.3e-3 away, and 2e-4 by another machine's XLA:
// it is rounding, for with the same graph in float64 losses agree to 1e-12 (see
// TestMissesAreRounding). The tolerance is three times that miss.
const tolerance, networkTolerance = 1e-3, 4e-3

// replayed are the horizons of problems that are replayed, and those of problems with more
// than manyPairs state-action pairs, which would take a sixth of the time.
func replayed(r Row) []int {
	const manyPairs = 150
	if r.States*r.Actions > manyPairs {
		return Horizons[:1]
	}
	return Horizons[:2]
}

// Verify checks what is stored of configurations below a preset's folder, from nothing but
// itself: digests, that there is one line for every problem and nothing else, and the
// losses of the first problem of some rows, from its seed through the stored weights in
// plain Go. An identity takes the rows that others leave. It returns what is wrong, and
// the number of losses that were replayed.
func Verify(preset string, configs []recipe.Config) (wrong []string, losses int, err error) {
	var known []string
	for i, c := range configs {
		folder := Folder(preset, c)
		known = append(known, filepath.Base(folder))
		_, stored, err := Read(folder, c)
		if errors.Is(err, artifact.ErrMissing) {
			continue
		}
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		found, n, err := replay(folder, c, stored, i, len(configs))
		if err != nil {
			return nil, 0, err
		}
		wrong, losses = append(wrong, found...), losses+n
	}
	entries, err := os.ReadDir(filepath.Join(preset, "any"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("trial: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			wrong = append(wrong, fmt.Sprintf("trial: %s: no configuration has this name and hash", filepath.Join(preset, "any", e.Name())))
		}
	}
	return wrong, losses, nil
}

// replay is Verify for one identity, number i of n.
func replay(folder string, c recipe.Config, stored map[string][]Losses, i, n int) (wrong []string, losses int, err error) {
	path := filepath.Join(folder, WeightsFile)
	config, step, _, err := train.ReadNetwork[recipe.Config](path)
	if err != nil {
		return []string{err.Error()}, 0, nil
	}
	if config != c || step != c.Steps {
		wrong = append(wrong, fmt.Sprintf("trial: %s is of another configuration or step", path))
	}
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	forward, err := anymdp.Plain(f)
	if err != nil {
		return nil, 0, err
	}
	rows := map[string]bool{}
	for k, row := range Rows {
		rows[row.Name] = true
		if got := len(stored[row.Name]); got != row.Problems {
			wrong = append(wrong, fmt.Sprintf("trial: %s: %d problems of %q, want %d", folder, got, row.Name, row.Problems))
			continue
		}
		if k%n != i || row.Fixture != 0 { // those would take a tenth of the time
			continue
		}
		row.Problems, row.Network, row.Mixed = 1, 1, 0
		problems, err := row.Draw(Root, c.Seed)
		if err != nil {
			return nil, 0, err
		}
		again, err := row.run(problems, 0, forward, replayed(row))
		if err != nil {
			return nil, 0, err
		}
		first := stored[row.Name][0]
		for h, horizon := range replayed(row) {
			for _, x := range [][3]float64{
				{first.Exact[h], again[0].Exact[h], tolerance},
				{first.Prior[h], again[0].Prior[h], tolerance},
				{first.Network[h], again[0].Network[h], networkTolerance},
			} {
				losses++
				if !(math.Abs(x[0]-x[1]) <= x[2]) {
					wrong = append(wrong, fmt.Sprintf("trial: %s: problem 0 of %q after %d rounds: loss %v, stored %v", folder, row.Name, horizon, x[1], x[0]))
				}
			}
		}
	}
	for name := range stored {
		if !rows[name] {
			wrong = append(wrong, fmt.Sprintf("trial: %s: no row is called %q", folder, name))
		}
	}
	return wrong, losses, nil
}

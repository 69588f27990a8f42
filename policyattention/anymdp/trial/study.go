package trial

import (
	"context"
	"fmt"
	"path/filepath"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/experiment"
	"icrl/policyattention/rows"
)

// Block is the study's block.
const Block experiment.Block = "any"

// WeightsFile is the file of weights in an identity's folder.
const WeightsFile = "weights.safetensors"

// Folder is the folder of a configuration's weights below that of a preset.
func Folder(preset string, c anymdp.Config) string {
	return filepath.Join(preset, "any", fmt.Sprintf("any-%d-%.12s", c.Seed, c.Hash()))
}

// Study adds every row for every identity to a preset.
type Study struct{}

// Units implements experiment.Study. Verification computes the first problem of some rows again: an
// identity takes the rows that others leave.
func (Study) Units(*experiment.Store) (units []experiment.Unit, err error) {
	for i, identity := range anymdp.Identities {
		for k, row := range Rows {
			u := row.unit(anymdp.Standard(identity))
			if k%len(anymdp.Identities) != i || row.Fixture != 0 { // those would take a tenth of the time
				u.Sample = -1
			}
			units = append(units, u)
		}
	}
	return units, nil
}

// tolerance is by how much an excess that is computed again may differ from the stored one, from
// XLA in float32. An error of 1e-6 of a row's separation in each of 40 rounds moves a logit by
// 4e-5 separations, and a loss by a quarter of that for each nat. In the read-out of the network
// alone the error of an output counts κ·17 nats where a mass is at its floor: one loss is 1.3e-3
// away, by rounding (see TestMissesAreRounding). The tolerance is three times that.
const tolerance = 4e-3

func (r Row) unit(c anymdp.Config) experiment.Unit {
	return experiment.Unit{
		Block: Block, Name: fmt.Sprintf("%d/%s", c.Seed, r.Name), Key: rows.Key{Method: "any", Seed: int64(c.Seed),
			S: int32(r.States), Family: r.Name},
		Of: rows.Any{Set: r.Name, Seed: int64(c.Seed)}, Config: struct {
			Row      Row           `json:"row"`
			Training anymdp.Config `json:"training"`
			Root     uint64        `json:"root"`
			Horizons []int         `json:"horizons"`
		}{r, c, Root, Horizons},
		Rows: len(Horizons) * (r.Problems + r.Network + r.Mixed), Sample: 1, Tolerance: tolerance,
		Compute: func(ctx context.Context, s *experiment.Store, first int,
			_ *experiment.Result) (*experiment.Result, error) {
			path := filepath.Join(Folder(s.Root(), c), WeightsFile)
			some, horizons := r, Horizons
			var forward anymdp.Forward
			if first > 0 { // in plain Go, at the horizons of the paper
				some.Problems, some.Network, some.Mixed, horizons = first, first, min(first, r.Mixed), replayed(r)
				f, err := safetensors.ReadFile(path)
				if err == nil {
					forward, err = anymdp.Plain(f)
				}
				if err != nil {
					return nil, fmt.Errorf("trial: %w", err)
				}
			} else {
				model, err := anymdp.Load(path)
				if err != nil {
					return nil, err
				}
				forward = model.Forward
			}
			any, err := some.Run(ctx, c.Seed, forward, horizons)
			if err != nil {
				return nil, err
			}
			return &experiment.Result{Tables: rows.Tables{Any: any}}, nil
		},
	}
}

// replayed are the horizons of problems that are computed again, and those of problems with more
// than manyPairs state-action pairs, which would take a sixth of the time.
func replayed(r Row) []int {
	const manyPairs = 150
	if r.States*r.Actions > manyPairs {
		return Horizons[:1]
	}
	return Horizons[:2]
}

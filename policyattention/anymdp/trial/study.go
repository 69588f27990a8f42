package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/experiment"
	"icrl/policyattention/rows"
)

// Block is the study's block.
const Block experiment.Block = "any"

// Root is the root of the problems of the table. Those of [CalibrationRoot] were looked at
// while the recipe was made; of rows with a Fixture, so may have been the fixture's, which
// [Row.Draw] gave for every root until then.
const Root, CalibrationRoot = 31900, 31800

// WeightsFile is the file of weights in an identity's folder.
const WeightsFile = "weights.safetensors"

// Folder is the folder of a configuration's weights below that of a preset.
func Folder(preset string, c recipe.Config) string {
	return filepath.Join(preset, "any", fmt.Sprintf("any-%d-%.12s", c.Seed, c.Hash()))
}

// Study adds every row for every identity to a preset.
type Study struct{}

// Units implements experiment.Study. Verification computes the first problem of some rows again: an
// identity takes the rows that others leave.
func (Study) Units(*experiment.Store) (units []experiment.Unit, err error) {
	all := recipe.All()
	for i, c := range all {
		for k, row := range Rows {
			u := row.unit(c)
			if k%len(all) != i || row.Fixture != 0 { // those would take a tenth of the time
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

func (r Row) unit(c recipe.Config) experiment.Unit {
	return experiment.Unit{
		Block: Block, Name: fmt.Sprintf("%d/%s", c.Seed, r.Name), Key: rows.Key{Method: "any", Seed: int64(c.Seed), S: int32(r.States), Family: r.Name},
		Of: rows.Any{Set: r.Name, Seed: int64(c.Seed)}, Config: struct {
			Row      Row           `json:"row"`
			Training recipe.Config `json:"training"`
			Root     uint64        `json:"root"`
			Horizons []int         `json:"horizons"`
		}{r, c, Root, Horizons},
		Rows: len(Horizons) * (r.Problems + r.Network + r.Mixed), Sample: 1, Tolerance: tolerance,
		Compute: func(ctx context.Context, s *experiment.Store, first int, _ *experiment.Result) (*experiment.Result, error) {
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
				model, err := recipe.Load(path)
				if err != nil {
					return nil, err
				}
				forward = model.Forward
			}
			losses, err := some.Run(ctx, Root, c.Seed, forward, horizons)
			if err != nil {
				return nil, err
			}
			return &experiment.Result{Tables: rows.Tables{Any: some.table(c.Seed, horizons, losses)}}, nil
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

// table returns losses as rows: exact PMD's in six digits, and by how much others are larger in
// three.
func (r Row) table(identity uint64, horizons []int, losses []Losses) (all []rows.Any) {
	for i, l := range losses {
		for _, x := range []struct {
			readout string
			losses  []float64
			n       int
		}{{"prior", l.Prior, r.Problems}, {"network", l.Network, r.Network}, {"mixed", l.Mixed, r.Mixed}} {
			for h, horizon := range horizons {
				if i < x.n {
					exact := digits(l.Exact[h], 6)
					all = append(all, rows.Any{
						Set: r.Name, Seed: int64(identity), Readout: x.readout, Round: int32(horizon), Problem: int32(i),
						Exact: exact, Excess: digits(x.losses[h]-exact, 3),
					})
				}
			}
		}
	}
	return all
}

// digits rounds to so many significant digits.
func digits(v float64, n int) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return v // what is not finite
	}
	return short
}

package results

import (
	"fmt"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Group is a number of runs that stands in a row of its own: a recipe, or a group of
// identities.
type Group struct {
	Name   string `json:"name"`
	S      int    `json:"s"`
	T      int    `json:"t"`
	Loss   Estimate
	Ratio  Estimate  // to exact PMD
	Tail   Tail      // against exact PMD
	RowL1  []float64 // to exact PMD in the loop, by run
	Static []float64 // of an ablation: the same on static one-step inputs
	Plain  Estimate  // of an ablation: ratio to the plain recipe
}

// group estimates the loss of runs beside exact PMD at a horizon.
func group(name string, runs, oracle Runs, states, horizon int) (g Group, err error) {
	g = Group{Name: name, S: states, T: horizon, RowL1: runs.RowL1()}
	g.Loss, g.Ratio, g.Tail, err = beside(runs, oracle, horizon)
	return g, err
}

// Group estimates the loss of selected runs beside exact PMD at a horizon.
func (s *Source) Group(name string, x Selection, oracle Runs, horizon int) (Group, error) {
	runs, err := s.Find(x)
	if err != nil {
		return Group{}, err
	}
	return group(name, runs, oracle, x.S, horizon)
}

// Ablation returns the recipes at a size and horizon in their order, the plain one
// first.
func (s *Source) Ablation(states, horizon int) (rows []Group, err error) {
	oracle, err := s.Oracle(states)
	if err != nil {
		return nil, err
	}
	var plain Runs
	actor, err := s.Store.Preset.Methods.Find(experiment.PolicyAttention)
	if err != nil {
		return nil, err
	}
	for _, recipe := range actor.Recipes {
		runs, err := s.Find(Selection{Block: experiment.Ablation, Recipe: recipe, S: states})
		if err != nil {
			return nil, err
		}
		static, err := s.Find(Selection{Block: experiment.Contrast, Recipe: recipe, S: states})
		if err != nil {
			return nil, err
		}
		if recipe == "plain" {
			plain = runs
		}
		if runs.Planned == 0 {
			continue
		}
		g, err := group(recipe, runs, oracle, states, horizon)
		if err != nil {
			return nil, err
		}
		g.Static = static.Values(func(e *experiment.Evaluation) float64 { return e.OneStep.MeanDistance(pmd.PMD) })
		if g.Plain, err = runs.Ratio(plain, horizon); err != nil {
			return nil, err
		}
		rows = append(rows, g)
	}
	return rows, nil
}

// BesidePlain sets the runs of another recipe, which a block holds, beside the plain
// ones, at each size and horizon.
func (s *Source) BesidePlain(block experiment.Block, recipe string) (rows []Group, err error) {
	for _, states := range s.Sizes(block) {
		oracle, err := s.Oracle(states)
		if err != nil {
			return nil, err
		}
		plain, err := s.Plain(states)
		if err != nil {
			return nil, err
		}
		runs, err := s.Find(Selection{Block: block, S: states})
		if err != nil {
			return nil, err
		}
		for _, x := range []struct {
			recipe string
			Runs
		}{{"plain", plain}, {recipe, runs}} {
			for _, horizon := range Horizons {
				g, err := group(x.recipe, x.Runs, oracle, states, horizon)
				if err != nil {
					return nil, err
				}
				rows = append(rows, g)
			}
		}
	}
	return rows, nil
}

// ZeroShotRow is a network of several sizes at one of them, beside networks that
// were trained there.
type ZeroShotRow struct {
	Group
	Seen      bool // in training
	Retrained Group
}

// ZeroShot returns the sizes that one network was run on.
func (s *Source) ZeroShot() (rows []ZeroShotRow, err error) {
	for _, states := range s.Sizes(experiment.ZeroShot) {
		oracle, err := s.Oracle(states)
		if err != nil {
			return nil, err
		}
		runs, err := s.Find(Selection{Block: experiment.ZeroShot, Method: experiment.PolicyAttention, S: states})
		if err != nil {
			return nil, err
		}
		retrained, err := s.Plain(states)
		if err != nil {
			return nil, err
		}
		if runs.Planned == 0 {
			continue
		}
		for _, horizon := range Horizons {
			row := ZeroShotRow{Seen: slices.Contains(experiment.PaperProtocol.ZeroShot.Train, states)}
			if row.Group, err = group("", runs, oracle, states, horizon); err != nil {
				return nil, err
			}
			if row.Retrained, err = group("", retrained, oracle, states, horizon); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ReplicationRow sets the paper's identities beside further ones.
type ReplicationRow struct {
	S, T        int
	First, More Group
	All         []float64 // ratios to exact PMD of all runs
}

// Replication returns the two groups of identities at each size and horizon.
func (s *Source) Replication() (rows []ReplicationRow, err error) {
	for _, states := range s.Sizes(experiment.Replication) {
		oracle, err := s.Oracle(states)
		if err != nil {
			return nil, err
		}
		first, err := s.Plain(states)
		if err != nil {
			return nil, err
		}
		more, err := s.Find(Selection{Block: experiment.Replication, S: states})
		if err != nil {
			return nil, err
		}
		for _, horizon := range Horizons {
			row := ReplicationRow{S: states, T: horizon}
			if row.First, err = group("paper's identities", first, oracle, states, horizon); err != nil {
				return nil, err
			}
			if row.More, err = group("further identities", more, oracle, states, horizon); err != nil {
				return nil, err
			}
			row.All = slices.Concat(row.First.Ratio.ByRun, row.More.Ratio.ByRun)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Stray is the identity at S = 4 that is unlike its four siblings: the best ratio of
// medians, twice their ζ in the loop, and the worst tails on shifted problems. It belongs
// to the paper's five and stands in all their rows; tables name it beside them.
const Stray uint64 = 14103

var strayLabel = fmt.Sprintf("PolicyAttention, run %d alone", Stray)

// long adds the further horizons of a size.
func (s *Source) long(states int, add func(string, Selection, Runs, ...int) error) error {
	oracle, err := s.Find(Selection{Block: experiment.Long, Method: experiment.ExactPMD, S: states})
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		Selection
	}{
		{"PolicyAttention", Selection{Method: experiment.PolicyAttention, Recipe: "plain"}},
		{"PMD-target", Selection{Method: experiment.PMDTarget}},
		{"PolicyAttention, recipe prior", Selection{Recipe: "prior"}},
		{strayLabel, Selection{Method: experiment.PolicyAttention, Seed: Stray}},
	} {
		x.Block, x.S = experiment.Long, states
		if err := add(x.name, x.Selection, oracle, experiment.PaperProtocol.Long...); err != nil {
			return err
		}
	}
	return nil
}

// Tails returns the learned actors of the closed loops with their tails: the paper's
// blocks by method, further identities, the recipe prior, further horizons, and the
// shifts.
func (s *Source) Tails() (rows []Group, err error) {
	add := func(name string, x Selection, oracle Runs, horizons ...int) error {
		runs, err := s.Find(x)
		if err != nil || runs.Planned == 0 {
			return err
		}
		for _, horizon := range horizons {
			g, err := group(name, runs, oracle, x.S, horizon)
			if err != nil {
				return err
			}
			rows = append(rows, g)
		}
		return nil
	}
	for _, states := range []int{4, 8, 16} {
		oracle, err := s.Oracle(states)
		if err != nil {
			return nil, err
		}
		for _, block := range []experiment.Block{experiment.Confirmation, experiment.Benchmark} {
			for _, m := range s.Store.Preset.Methods {
				if m.Name == experiment.ExactPMD || m.Sampled {
					continue
				}
				if err := add(m.Label, Selection{Block: block, Method: m.Name, S: states}, oracle, Horizons...); err != nil {
					return nil, err
				}
			}
		}
		if err := add("PolicyAttention, further identities", Selection{Block: experiment.Replication, S: states}, oracle, Horizons...); err != nil {
			return nil, err
		}
		if err := add("PolicyAttention, recipe prior", Selection{Block: experiment.Prior, S: states}, oracle, Horizons...); err != nil {
			return nil, err
		}
		one := Selection{Block: experiment.Confirmation, Method: experiment.PolicyAttention, S: states, Seed: Stray}
		if err := add(strayLabel, one, oracle, Horizons...); err != nil {
			return nil, err
		}
		if err := s.long(states, add); err != nil {
			return nil, err
		}
	}
	for _, family := range mdp.Shifts {
		oracle, err := s.Find(Selection{Block: experiment.Shift, Method: experiment.ExactPMD, Family: family})
		if err != nil {
			return nil, err
		}
		x := Selection{Block: experiment.Shift, Method: experiment.PolicyAttention, S: 4, Family: family}
		if err := add("PolicyAttention, "+string(family), x, oracle, Horizons...); err != nil {
			return nil, err
		}
		x.Block = experiment.ShiftReplication
		if err := add("PolicyAttention, "+string(family)+", further identities", x, oracle, Horizons...); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Meeting counts the ratios that meet the registered criterion.
func Meeting(ratios []float64) int {
	met := 0
	for _, r := range ratios {
		if r <= experiment.PaperProtocol.Margin {
			met++
		}
	}
	return met
}

// Package experiment runs methods on problems, stores what they leave as rows, and makes sure
// of it.
//
// A Unit is one run as data: what it computes, on which problems, with which weights. A
// preset lists cells, each a block, method, recipe, size and seed, which a table of blocks
// makes units; a Study adds units of its own, and training runs are units too. Results are found by
// the hash of a unit's configuration, so that asking twice computes once and a changed configuration
// never meets a stale result.
package experiment

import (
	"context"

	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Unit is one run: what leaves the rows of one name in a block, or a training run.
type Unit struct {
	Block    Block  // none of a training run
	Name     string // unique in the block
	Training method.Training
	rows.Key
	Of       any // what its rows name as their run: its Key, unless a study has rows of its own
	Config   any // everything that its rows depend on, but for the arithmetic of the backend
	Problems int // how many rows are on; 0: they are not by problem
	Rows     int // how many there are, where it is not 0
	Weights  []method.Weights
	// Sample is how many problems verification computes again, all for 0; Tolerance is how much its numbers may then
	// differ. They are the first ones or, where the unit is Chosen, those that the
	// verification's seed chooses. OneIn is of how many such units of its block verification computes one again, which
	// the seed chooses; all for 0.
	Sample    int
	Chosen    bool
	OneIn     int
	Tolerance float64
	// Compute returns the rows on some problems, the first ones unless the unit is Chosen. Where the unit is verified,
	// stored is what it has left on these, so that recorded choices are made again.
	Compute func(ctx context.Context, s *Store, problems []int32, stored *rows.Tables) (*rows.Tables, error)
}

// First lists the first n problems.
func First(n int) (problems []int32) {
	for i := range int32(n) {
		problems = append(problems, i)
	}
	return problems
}

// Study lists units that are added to a preset's.
type Study func(s *Store) ([]Unit, error)

// training is a training run as a unit.
func training(c method.Training) Unit {
	return Unit{Name: c.Name(), Training: c, Of: rows.Loss{Training: c.Name()}, Config: c}
}

// Kind returns "train" or "evaluate".
func (u Unit) Kind() string {
	if u.Training != nil {
		return "train"
	}
	return "evaluate"
}

// Path names a unit in its preset: block/name, or the name of a training run.
func (u Unit) Path() string {
	if u.Block == "" {
		return u.Name
	}
	return string(u.Block) + "/" + u.Name
}

package bench

import (
	"fmt"

	"icrl/policyattention/artifact"
)

// Part is a kind of work in a training step.
type Part string

const (
	// Linear is the matrix products with weights, with biases and ReLU.
	Linear Part = "linear"
	// Attention is everything from queries, keys and values to the heads' outputs.
	Attention Part = "attention"
	LayerNorm Part = "layer norm"
	Optimizer Part = "optimizer" // AdamW on all parameters
	Step      Part = "step"      // the whole step, as in the row
)

// Parts are what a profile times of a training step, the whole step last.
var Parts = []Part{Linear, Attention, LayerNorm, Optimizer, Step}

// Profile is where the time of a training step goes, on one core of a machine.
type Profile struct {
	Machine Machine      `json:"machine"`
	Peak    float64      `json:"peak_gflops"` // XLA's best float32 matrix product on that core
	Rows    []ProfileRow `json:"rows"`
}

// ProfileRow is one row of the comparison.
type ProfileRow struct {
	Row      string           `json:"row"`
	FLOPs    map[Part]float64 `json:"flops"` // of the parts that are matrix products, a step
	Programs []Breakdown      `json:"programs"`
}

// Breakdown is a step in one program.
type Breakdown struct {
	Program string `json:"program"`
	// Milliseconds of processor time a step; the least of several turns. Each part
	// is a program by itself, forward and backward, at the step's shapes.
	Milliseconds map[Part]float64 `json:"cpu_milliseconds"`
}

// Rest is what the step takes beyond its parts, in milliseconds: gathering the
// batch, the additions to the residual stream, and the loss. It is negative where
// a program does together what the parts do apart.
func (b Breakdown) Rest() float64 {
	rest := b.Milliseconds[Step]
	for _, part := range Parts {
		if part != Step {
			rest -= b.Milliseconds[part]
		}
	}
	return rest
}

// Rate is the operations of a part a second, in GFLOP/s.
func (r ProfileRow) Rate(b Breakdown, part Part) float64 {
	return r.FLOPs[part] / b.Milliseconds[part] / 1e6
}

// ReadProfile reads a stored profile.
func ReadProfile(path string) (*Profile, error) {
	p := &Profile{}
	if err := artifact.ReadJSON(path, p); err != nil {
		return nil, err
	}
	if len(p.Rows) == 0 || !(p.Peak > 0) {
		return nil, fmt.Errorf("bench: %s: %d rows and a peak of %v GFLOP/s", path, len(p.Rows), p.Peak)
	}
	for _, r := range p.Rows {
		for _, b := range r.Programs {
			for _, part := range Parts {
				if !(b.Milliseconds[part] > 0) {
					return nil, fmt.Errorf("bench: %s: %s, %s: %s takes %v ms", path, r.Row, b.Program, part, b.Milliseconds[part])
				}
			}
		}
	}
	return p, nil
}

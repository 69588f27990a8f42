package bench

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/artifact"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer/definition"
	"icrl/policyattention/transformer/fused"
)

// What is timed beside the parts of the network.
const (
	Optimizer fused.Part = "optimizer" // AdamW on all parameters
	Step      fused.Part = "step"      // the whole step, as in the row
)

// Parts are what a profile times of a training step, the whole step last.
var Parts = []fused.Part{fused.Linear, fused.Attention, fused.LayerNorm, Optimizer, Step}

// Profile is where the time of a training step goes, on one core of a machine.
type Profile struct {
	Machine Machine      `json:"machine"`
	Peak    float64      `json:"peak_gflops"` // XLA's best float32 matrix product on that core
	Rows    []ProfileRow `json:"rows"`
}

// ProfileRow is one row of the comparison.
type ProfileRow struct {
	Row      string                 `json:"row"`
	FLOPs    map[fused.Part]float64 `json:"flops"` // of the parts that are matrix products, a step
	Programs []Breakdown            `json:"programs"`
}

// Breakdown is a step in one program.
type Breakdown struct {
	Program string `json:"program"`
	// Milliseconds of processor time a step; the least of several turns. Each part
	// is a program by itself, forward and backward, at the step's shapes.
	Milliseconds map[fused.Part]float64 `json:"cpu_milliseconds"`
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
func (r ProfileRow) Rate(b Breakdown, part fused.Part) float64 {
	return r.FLOPs[part] / b.Milliseconds[part] / 1e6
}

// ReadProfile reads what Profile.Write wrote.
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

// Write writes the measurements to a file.
func (p *Profile) Write(path string) error { return artifact.WriteJSON(path, p, "  ") }

// PartFLOPs splits FLOPs into the parts that are matrix products.
func (r TrainingRow) PartFLOPs() map[fused.Part]float64 {
	linear, attention := perToken(r.Network(), r.tokens())
	all := 3 * float64(r.Batch*r.tokens())
	return map[fused.Part]float64{fused.Linear: all * linear, fused.Attention: all * attention}
}

// StartPart makes a part of a step ready by itself, on random inputs.
func (r TrainingRow) StartPart(backend compute.Backend, part fused.Part) (Session, error) {
	rng := seed.New(r.Seed, "bench", "profile")
	normal := func(shape ...int) *tensors.Tensor {
		values := make([]float32, shapes.Make(dtypes.Float32, shape...).Size())
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		return tensors.FromFlatDataAndDimensions(values, shape...)
	}
	size := r.Network().Size()
	params := tensors.FromFlatDataAndDimensions(r.Network().Init(rng), size)
	if part == Optimizer {
		zeros := tensors.FromShape(params.Shape()) // the second moment, never negative
		update := func(in []*Node) []*Node {
			params, m, v := definition.Step(r.Config.Optimizer, in[0], in[1], in[2], in[3], in[4])
			return []*Node{params, m, v}
		}
		return newCall(backend, 1, update, params, normal(size), normal(size), zeros, tensors.FromScalar(int32(1)))
	}
	n, b, t, k := r.Passes(backend)
	inputs, graph := fused.Isolate(r.Network(), part, b, t, k)
	if len(inputs) == 0 {
		return nil, fmt.Errorf("bench: %q is no part of a training step", part)
	}
	all := []*tensors.Tensor{params}
	for _, shape := range inputs {
		all = append(all, normal(shape...))
	}
	return newCall(backend, n, graph, all...)
}

// StartProduct makes the product of the peak ready: a step is one of them.
func StartProduct(backend compute.Backend) (Session, error) {
	square := func(in []*Node) []*Node { return []*Node{DotProduct(in[0], in[0])} }
	return newCall(backend, 1, square, tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{1. / side}, side*side), side, side))
}

// call is a computation whose inputs stay on the device; a step makes it n times.
type call struct {
	exec   *Exec
	n      int
	inputs []any
}

func newCall(backend compute.Backend, n int, graph func([]*Node) []*Node, inputs ...*tensors.Tensor) (Session, error) {
	exec, err := NewExec(backend, graph)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c := call{exec: exec, n: n}
	for _, x := range inputs {
		if err := x.MaterializeOnDevice(backend, false, 0); err != nil {
			return nil, fmt.Errorf("bench: moving inputs to the device: %w", err)
		}
		c.inputs = append(c.inputs, x)
	}
	return c, nil
}

func (c call) Steps(n int) ([]float64, error) {
	for range n * c.n {
		outputs, err := c.exec.Call(c.inputs...)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		for _, y := range outputs {
			if err := y.FinalizeAll(); err != nil {
				return nil, fmt.Errorf("bench: %w", err)
			}
		}
	}
	return nil, nil
}

func (c call) Close() { c.exec.Finalize() }

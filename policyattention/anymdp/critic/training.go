//go:build !js

package critic

import (
	"errors"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic. The network is trained by
// regression on sampled transitions.
//
// An answer is p̂·v. Its error against a fresh transition s' of the same pair is v(s') − p̂·v, and for values v
// that are independent of each other with one variance, the mean of its square over v is that variance times the
// squared distance of p̂ and the frequencies of fresh transitions. So the loss is this distance, and no value is
// drawn. It is multiplied by N, as the error of the mean of N samples falls with N, so that memories of all ages
// count alike.
type Config struct {
	Recipe    string            `json:"recipe"`   // "memory-critic"
	Seed      uint64            `json:"seed"`     // identity: weights, problems, order of examples
	Problems  int               `json:"problems"` // drawn once; four pairs of each are examples
	Batch     int               `json:"batch"`
	Steps     int               `json:"steps"`
	Optimizer transformer.AdamW `json:"optimizer"`
}

// Standard is the configuration of the released identities.
func Standard(identity uint64) Config {
	const steps = 6000
	o := transformer.StandardAdamW()
	o.LearningRate, o.Beta2, o.Cosine = 2e-3, .99, steps
	return Config{Recipe: name, Seed: identity, Problems: 1 << 14, Batch: 64, Steps: steps, Optimizer: o}
}

const name = "memory-critic"

// Validate reports the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Recipe != name:
		return fmt.Errorf("critic: %q, want %q", c.Recipe, name)
	case min(c.Problems, c.Batch, c.Steps) < 1 || max(c.Problems, c.Steps) > 1<<20:
		return fmt.Errorf("critic: %d problems, batch %d, %d steps: want each from 1 to 2^20", c.Problems, c.Batch,
			c.Steps)
	case c.Batch > rowsOf*c.Problems:
		return fmt.Errorf("critic: batches of %d from %d examples", c.Batch, rowsOf*c.Problems)
	case max(c.Optimizer.LearningRate, c.Optimizer.WeightDecay) >= 1:
		return errors.New("critic: the optimizer's rates are not in [0, 1)")
	}
	if err := c.Optimizer.Validate(); err != nil {
		return fmt.Errorf("critic: %w", err)
	}
	return nil
}

// Network is the shape of the network.
func (c Config) Network() transformer.Config { return Shape() }

// Job is the training run, for [train.Job.Run].
func (c Config) Job() (train.Job, error) {
	return train.Job{
		Config: c,
		Model: train.Transformer{
			Network:   c.Network(),
			Start:     func() []float32 { return c.Network().Init(seed.New(c.Seed, "memory critic", "init")) },
			Objective: loss,
		},
		Batches:   train.Batches{Data: c.data, Index: c.batch},
		Optimizer: c.Optimizer, Steps: c.Steps,
	}, c.Validate()
}

// batch returns the examples [Batch] of a step, drawn one by one.
func (c Config) batch(step int) []int32 {
	rng := seed.New(c.Seed, "memory critic", "batch", step)
	index := make([]int32, c.Batch)
	for i := range index {
		index[i] = int32(rng.IntN(rowsOf * c.Problems))
	}
	return index
}

// data is tokens [n, Slots, Features], counts [n, Slots], targets [n, Slots], which slots are
// states [n, Slots] and totals [n, 1] of all examples.
func (c Config) data() ([]*tensors.Tensor, error) {
	examples, slots := c.Examples(), []int{Slots}
	return train.Arrays(len(examples), func(i int) ([][]float64, error) {
		x, states := examples[i], make([]float64, Slots)
		for s := range x.States {
			states[s] = 1
		}
		return [][]float64{slices.Concat(x.Tokens...), x.Counts, x.Target, states, {float64(x.Total)}}, nil
	}, []int{Slots, Features}, slots, slots, slots, []int{1})
}

// loss is the mean of N ‖p̂ − frequencies of fresh transitions‖².
func loss(network train.Outputs, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens, counts, targets, states, totals := part(0), part(1), part(2), part(3), part(4)
	outputs := Squeeze(network(tokens, Slots), -1)
	mass := Add(counts, Mul(states, Exp(MulScalar(Tanh(DivScalar(outputs, Most)), Most))))
	p := Div(mass, ReduceAndKeep(mass, ReduceSum, -1))
	distance := ReduceAndKeep(Square(Sub(p, targets)), ReduceSum, -1)
	return ReduceAllMean(Mul(totals, distance))
}

// What the experiments ask of a training run: see method.Training.

// Key implements method.Training.
func (c Config) Key() string { return "memory_critic" }

// Name implements method.Training.
func (c Config) Name() string { return fmt.Sprintf("%s-%d", name, c.Seed) }

// Seconds implements method.Training.
func (c Config) Seconds() float64 {
	const drawn, perToken = 1e-3, 4e-6
	return drawn*float64(c.Problems) + perToken*float64(c.Steps*c.Batch*16)
}

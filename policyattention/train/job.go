package train

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer"
)

// Job is a training run of any model.
type Job struct {
	// Config is all that weights depend on but the backend's arithmetic. Its JSON names the run and is stored with it.
	Config    any
	Model     Trainable
	Batches   Batches
	Optimizer transformer.AdamW
	// Clip is the largest Euclidean norm of a gradient: longer ones are shortened to it. 0 stands for no bound.
	Clip      float64
	Steps     int
	Snapshots []int // steps after which weights are kept, ascending
	// Average releases, in place of the last step's parameters, their average over the steps so far, with a weight of
	// order t⁸ on step t: it reaches back over about the last fifth of the run (polynomial-decay averaging, Shamir
	// and Zhang 2013, arXiv 1212.1824) and is without most of the noise that a constant learning rate leaves. Training
	// itself is the same.
	Average bool
	// Release, if not nil, returns what is written as weights of parameters [Size], which it does not change.
	Release func(params []float32) ([]float32, error)
	// Alone, if not nil, makes a run that this package cannot make in the folder dir, see [Job.Run], and Holds is
	// its [Job.Check]. Such a job has nothing else but Config and Steps.
	Alone func(ctx context.Context, dir string, progress func(Progress)) (*Result, error)
	Holds func(path string, step int) error
}

// JSON returns the JSON of a valid configuration.
func JSON(config any) []byte {
	b, err := json.Marshal(config)
	if err != nil {
		panic(err) // Validate has refused the numbers that JSON cannot hold
	}
	return b
}

// Hash returns the SHA-256 of a configuration's JSON in hexadecimal.
func Hash(config []byte) string { return fmt.Sprintf("%x", sha256.Sum256(config)) }

// validate reports what of a job makes no run.
func (j Job) validate() error {
	if n := j.Batches.every(); n < 1 || j.Steps%n != 0 {
		return fmt.Errorf("train: rollouts for %d steps each, want a divisor of %d steps", n, j.Steps)
	}
	if b := j.Batches; (b.Index == nil) == (b.Arrays == nil) || b.Index != nil && b.Data == nil {
		return errors.New("train: batches want either Data and Index, or Arrays")
	}
	return nil
}

// Trainable is what a Job trains: a loss as a function of one flat vector of float32 parameters.
type Trainable interface {
	// Layout lists the parameters in the order of the flat vector, without gaps.
	Layout() []transformer.Tensor
	// Init returns the initial parameters [Size]; the same at every call.
	Init() []float32
	// Loss builds the scalar to minimize from the parameters [Size], the arrays of Batches.Data, and those of a batch.
	// It is a mean over the examples, so that the gradient of a batch is the mean of those of its parts.
	Loss(params *Node, data, batch []*Node) *Node
}

// Transformer is a network of package transformer with an objective, as a Trainable. On CPUs, where batches are
// indices, package engine makes its steps.
type Transformer struct {
	Network transformer.Config
	Start   func() []float32 // the initial parameters [Network.Size]
	// Objective builds the scalar to minimize, see Trainable.Loss, from the outputs of one call of the network.
	Objective func(network Outputs, data, batch []*Node) *Node
}

// Outputs is what an objective is given of a network: its outputs [B, k, Outputs] for the last k of tokens
// [B, T, Features], see [transformer.Network.Tail].
type Outputs = func(tokens *Node, k int) *Node

// Layout, Init and Loss implement Trainable.
func (t Transformer) Layout() []transformer.Tensor { return t.Network.Layout() }
func (t Transformer) Init() []float32              { return t.Start() }
func (t Transformer) Loss(params *Node, data, batch []*Node) *Node {
	return t.Objective(transformer.Bind(t.Network, params).Tail, data, batch)
}

// Batches is where the examples of a run come from: arrays that stay on the device and indices into them; what the
// weights themselves do; or anything else that is a function of the step.
type Batches struct {
	// Data returns arrays that stay on the device; nil stands for none. Names are theirs, for [Job.Export].
	Data  func() ([]*tensors.Tensor, error)
	Names []string
	// Index returns which examples of Data a step takes [Examples]; the model gets them as an array [Examples, 1].
	Index func(step int) []int32
	// Arrays returns the arrays [Examples, …] of a step, where there is no Index; they are freed after it. Both count
	// steps from 0 and are pure functions of them, and shapes and types are the same at every step.
	Arrays func(step int) ([]*tensors.Tensor, error)
	// Collect, if not nil, makes batches depend on the weights, as in policy optimization online: it is shown the
	// parameters [Size] before each step that Every divides, and the backend that the run is on. The batches of that
	// step and the next Every−1 are a function of step and parameters. Every divides the steps of the run, which is
	// saved between such stretches only.
	Collect func(on compute.Backend, step int, params []float32) error
	Every   int
}

// every is how many steps of a run belong together.
func (b Batches) every() int {
	if b.Collect == nil {
		return 1
	}
	return b.Every
}

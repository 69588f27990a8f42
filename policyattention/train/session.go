package train

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/numeric"
	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Job is a training run of any model.
type Job struct {
	// Config is all that weights depend on but the backend's arithmetic. Its JSON names the run and is stored with it.
	Config    any
	Model     Trainable
	Batches   Batches
	Optimizer transformer.AdamW
	Clip      float64 // the largest Euclidean norm of a gradient: longer ones are shortened to it; 0 for no bound
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

// JSON returns the JSON of a configuration. It panics where a number is not finite.
func JSON(config any) []byte {
	b, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("%T: %v", config, err))
	}
	return b
}

// Hash returns the SHA-256 of a configuration's JSON in hexadecimal.
func Hash(config []byte) string { return fmt.Sprintf("%x", sha256.Sum256(config)) }

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

// Session is a run that is being made: the parameters, the moments of its optimizer, and what computes gradients. On
// CPUs, whatever the backend, that is a trainer where package engine can train the model, and otherwise a graph of
// GoMLX. Package engine makes the optimizer's step. How many cores a trainer has changes no bit.
type Session struct {
	*state
	job           Job
	backend       compute.Backend
	data          []*tensors.Tensor
	trainer       *trainer // nil where GoMLX computes gradients
	differentiate *Exec
}

// NewSession makes a run ready on a backend, before its first step, which compiles.
func NewSession(b compute.Backend, j Job) (*Session, error) { return newSession(b, j, j.start()) }

// newSession goes on from a state.
func newSession(b compute.Backend, j Job, from *state) (s *Session, err error) {
	if n := j.Batches.every(); n < 1 || j.Steps%n != 0 {
		return nil, fmt.Errorf("train: rollouts for %d steps each, want a divisor of %d steps", n, j.Steps)
	}
	if x := j.Batches; (x.Index == nil) == (x.Arrays == nil) || x.Index != nil && x.Data == nil {
		return nil, errors.New("train: batches want either Data and Index, or Arrays")
	}
	s = &Session{state: from, job: j, backend: b}
	if j.Batches.Data != nil {
		if s.data, err = j.Batches.Data(); err != nil {
			return nil, err
		}
	}
	if t, ok := j.Model.(Transformer); ok && j.Batches.Index != nil && backend.OnCPU(b) {
		s.trainer, err = newTrainer(b, t, s.data, s.optimizer)
	} else {
		s.differentiate, err = NewExec(b, func(in []*Node) (loss, gradient *Node) {
			params, data := in[0], len(in)-len(s.data)
			loss = j.Model.Loss(params, in[data:], in[1:data])
			return loss, Gradient(loss, params)[0]
		})
	}
	if err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// Steps makes the next n optimizer steps and returns their losses [n]. It returns an error on a loss
// that is not finite, and is of no use after it.
func (s *Session) Steps(n int) ([]float32, error) {
	losses := make([]float32, n)
	for i := range losses {
		if x := s.job.Batches; x.Collect != nil && s.step%x.Every == 0 {
			if err := x.Collect(s.backend, s.step, slices.Clone(s.optimizer.Params)); err != nil {
				return nil, fmt.Errorf("train: rollouts before step %d: %w", s.step+1, err)
			}
		}
		loss, gradients, err := s.gradients()
		if err != nil {
			return nil, fmt.Errorf("train: step %d: %w", s.step+1, err)
		}
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			return nil, fmt.Errorf("train: the loss of step %d is %v", s.step+1, loss)
		}
		s.optimizer.Step(s.step+1, gradients)
		losses[i] = loss
		s.step, s.losses = s.step+1, append(s.losses, loss)
	}
	return losses, nil
}

// gradients returns the loss of the next step, and gradients of which its own is the sum.
func (s *Session) gradients() (loss float32, gradients [][]float32, err error) {
	if s.trainer != nil {
		return s.trainer.gradients(s.job.Batches.Index(s.step))
	}
	inputs := []*tensors.Tensor{tensors.FromFlatDataAndDimensions(s.optimizer.Params, len(s.optimizer.Params))}
	if s.job.Batches.Index != nil {
		inputs = append(inputs, indices(s.job.Batches.Index(s.step)))
	} else {
		arrays, err := s.job.Batches.Arrays(s.step)
		if err != nil {
			return 0, nil, err
		}
		inputs = append(inputs, arrays...)
	}
	out, _, err := ask(s.differentiate, s.data, inputs...)
	if err != nil {
		return 0, nil, err
	}
	return out[0][0], out[1:], nil
}

// Close frees the session's memory on the device.
func (s *Session) Close() {
	if s.trainer != nil {
		s.trainer.tokens.Finalize()
		s.trainer.slopes.Finalize()
	} else {
		s.differentiate.Finalize()
	}
	s.free()
}

func (s *Session) free() {
	for _, x := range s.data {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
}

// indices are those of some examples as the model gets them.
func indices(of []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(of, len(of), 1) }

// ask calls a program on inputs, which it frees, and data. It returns what the program puts out, row-major, and the
// shape of the first output.
func ask(program *Exec, data []*tensors.Tensor, inputs ...*tensors.Tensor) (out [][]float32, shape []int, err error) {
	var all []any
	for _, x := range slices.Concat(inputs, data) {
		all = append(all, x)
	}
	made, err := program.Call(all...)
	for i, x := range made {
		if i == 0 {
			shape = x.Shape().Dimensions
		}
		flat, failed := tensors.CopyFlatData[float32](x)
		out, err = append(out, flat), errors.Join(err, failed)
	}
	for _, x := range append(made, inputs...) {
		err = errors.Join(err, x.FinalizeAll())
	}
	return out, shape, err
}

// trainer takes gradients of a Transformer by package engine. GoMLX makes the tokens of examples, and the slopes of the
// loss in what the network has made of them.
type trainer struct {
	network        *engine.Network[float32]
	tokens, slopes *Exec
	data           []*tensors.Tensor
	k, one         int         // tokens of a sequence that have outputs, and tokens of an example
	parts          [][]float32 // gradients of parts of a batch
}

// newTrainer returns the trainer of a network on a backend, from data, for the parameters of an optimizer. Its first
// call of a program moves the data there, before there are several threads.
func newTrainer(b compute.Backend, of Transformer, data []*tensors.Tensor, o *engine.Optimizer) (*trainer, error) {
	network, err := o.Network(of.Network)
	if err != nil {
		return nil, err
	}
	t := &trainer{network: network, data: data}
	t.tokens, err = NewExec(b, func(in []*Node) (asked *Node) {
		of.Objective(func(tokens *Node, k int) *Node {
			asked = tokens
			if t.k == 0 { // the first graph is built before there are several threads
				t.k = k
			}
			batch := tokens.Shape().Dimensions[0]
			return Zeros(tokens.Graph(), shapes.Make(tokens.DType(), batch, k, of.Network.Outputs))
		}, in[1:], in[:1])
		return asked
	})
	if err != nil {
		return nil, err
	}
	_, shape, err := ask(t.tokens, t.data, indices([]int32{0}))
	if err != nil {
		return nil, err
	}
	t.one = shape[0] * shape[1]
	t.slopes, err = NewExec(b, func(in []*Node) (value, slopes *Node) {
		value = of.Objective(func(*Node, int) *Node { return in[0] }, in[2:], in[1:2])
		return value, Gradient(value, in[0])[0]
	})
	return t, err
}

// partTokens are about how many tokens a part of a batch has at least: work for one core, with a gradient of its own.
const partTokens, maxGradients = 768, 16

// gradients returns the mean loss of examples, and gradients of which its own is the sum. Cores, of which there are as
// many as GOMAXPROCS says, share the batch out in parts that do not depend on how many there are.
func (t *trainer) gradients(examples []int32) (float32, [][]float32, error) {
	block := max(1, engine.BlockTokens/t.one)
	blocks := (len(examples) + block - 1) / block
	parts := min(blocks, max(2, min(maxGradients, len(examples)*t.one/partTokens)))
	for len(t.parts) < parts {
		t.parts = append(t.parts, make([]float32, t.network.Config.Size()))
	}
	losses := make([]float64, parts)
	err := numeric.Parallel(parts, func(part int) error {
		clear(t.parts[part])
		for i := part * blocks / parts; i < (part+1)*blocks/parts; i++ {
			some := examples[i*block : min((i+1)*block, len(examples))]
			loss, err := t.block(some, len(examples), t.parts[part])
			if err != nil {
				return err
			}
			losses[part] += loss
		}
		return nil
	})
	loss := 0.
	for _, x := range losses {
		loss += x
	}
	return float32(loss), t.parts[:parts], err
}

// block takes some examples of a batch of so many through the network and back, and returns their part of the loss.
func (t *trainer) block(examples []int32, batch int, gradient []float32) (loss float64, err error) {
	tokens, shape, err := ask(t.tokens, t.data, indices(examples))
	if err != nil {
		return 0, err
	}
	p, share := engine.Pass{B: shape[0], T: shape[1], K: t.k}, float64(len(examples))/float64(batch)
	var failed error
	err = t.network.Gradient(p, tokens[0], func(outputs []float32) {
		y := tensors.FromFlatDataAndDimensions(outputs, p.B, p.K, t.network.Config.Outputs)
		var out [][]float32
		if out, _, failed = ask(t.slopes, t.data, y, indices(examples)); failed != nil {
			return
		}
		for i, v := range out[1] {
			outputs[i] = float32(share * float64(v))
		}
		loss = share * float64(out[0][0])
	}, gradient)
	return loss, errors.Join(err, failed)
}

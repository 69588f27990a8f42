package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
	"icrl/policyattention/transformer/fused"
)

// Trainable is what a Job trains: a loss as a function of one flat vector of float32
// parameters.
type Trainable interface {
	// Layout lists the parameters in the order of the flat vector, without gaps.
	Layout() []transformer.Tensor
	// Init returns the initial parameters [Size]; the same at every call.
	Init() []float32
	// Loss builds the scalar to minimize from the parameters [Size], the arrays of
	// Batches.Data, and those of a batch or of a part of one. It is a mean over the
	// examples, so that the gradient of a batch is the mean of those of its parts.
	Loss(params *Node, data, batch []*Node) *Node
}

// Differentiated is a Trainable that builds its gradient itself. The losses of others are
// differentiated by GoMLX.
type Differentiated interface {
	Trainable
	// Gradient builds Loss and its gradient with respect to the parameters [Size].
	Gradient(params *Node, data, batch []*Node) (loss, gradient *Node)
}

// Batches is where the examples of a run come from: an array that stays on the device
// and indices into it ([Fixed]), a stream that is drawn anew for every step ([Stream]), or
// what the weights themselves do ([Rollouts]).
type Batches interface {
	// Data returns arrays that stay on the device, possibly none.
	Data() ([]*tensors.Tensor, error)
	// Batch returns the arrays [Examples, …] of a step, counted from 0. It is a pure
	// function of the step, and shapes and types are the same at every step.
	Batch(step int) ([]*tensors.Tensor, error)
}

// Rollouts is Batches that depend on the weights, as in policy optimization online.
type Rollouts interface {
	Batches
	// Every is how many steps are made with what one look at the weights has given; it
	// divides the steps of the run, which is saved between such stretches only.
	Every() int
	// Collect is shown the parameters [Size] before each step that Every divides, and the
	// backend that the run is on. The batches of that step and the next Every−1 are a
	// function of step and parameters.
	Collect(on compute.Backend, step int, params []float32) error
}

// Fixed is Batches from a fixed set: the model gets arrays of all examples, and of each
// batch the indices of its own.
type Fixed struct {
	Arrays func() ([]*tensors.Tensor, error)
	Index  func(step int) *tensors.Tensor // [Examples, …]
}

// Data implements Batches.
func (f Fixed) Data() ([]*tensors.Tensor, error) { return f.Arrays() }

// Batch implements Batches.
func (f Fixed) Batch(step int) ([]*tensors.Tensor, error) {
	return []*tensors.Tensor{f.Index(step)}, nil
}

// Stream is Batches that a function draws anew for every step, from a seed and the step
// alone.
type Stream func(step int) ([]*tensors.Tensor, error)

// Data implements Batches.
func (Stream) Data() ([]*tensors.Tensor, error) { return nil, nil }

// Batch implements Batches.
func (f Stream) Batch(step int) ([]*tensors.Tensor, error) { return f(step) }

// Transformer is a network of package transformer with an objective, as a Trainable.
type Transformer struct {
	Network transformer.Config
	Start   func() []float32 // the initial parameters [Network.Size]
	// Objective builds the scalar to minimize, see Trainable.Loss, from outputs of one call
	// of the network's Vectors or Tail.
	Objective func(network *fused.Network, data, batch []*Node) *Node
	// InGo returns the same objective for package engine, on the arrays of a [Fixed] set. On GoMLX's
	// pure-Go backend that package makes the steps, unless it is nil.
	InGo func(data []*tensors.Tensor) (engine.Objective, error)
}

// Layout implements Trainable.
func (t Transformer) Layout() []transformer.Tensor { return t.Network.Layout() }

// Init implements Trainable.
func (t Transformer) Init() []float32 { return t.Start() }

// Loss implements Trainable.
func (t Transformer) Loss(params *Node, data, batch []*Node) *Node {
	return t.Objective(fused.Bind(t.Network, params), data, batch)
}

// Gradient implements Differentiated.
func (t Transformer) Gradient(params *Node, data, batch []*Node) (loss, gradient *Node) {
	network := fused.Bind(t.Network, params)
	loss = t.Objective(network, data, batch)
	return loss, network.Gradient(loss)
}

// size is the number of parameters of a layout.
func size(layout []transformer.Tensor) (n int) {
	for _, t := range layout {
		n += t.Size()
	}
	return n
}

// gradient returns the loss of a batch and its gradient [Size].
func (j Job) gradient(params *Node, data, batch []*Node) (loss, gradient *Node) {
	if m, ok := j.Model.(Differentiated); ok {
		return m.Gradient(params, data, batch)
	}
	loss = j.Model.Loss(params, data, batch)
	return loss, Gradient(loss, params)[0]
}

// every is how many steps of a run belong together, see Rollouts.
func (j Job) every() int {
	if r, ok := j.Batches.(Rollouts); ok {
		return r.Every()
	}
	return 1
}

// collect shows a Rollouts the parameters where it has to see them.
func (j Job) collect(on compute.Backend, step int, read func() ([]float32, error)) error {
	r, ok := j.Batches.(Rollouts)
	if !ok || step%r.Every() != 0 {
		return nil
	}
	params, err := read()
	if err == nil {
		err = r.Collect(on, step, params)
	}
	if err != nil {
		return fmt.Errorf("train: rollouts before step %d: %w", step+1, err)
	}
	return nil
}

// left is how many steps can be made after so many before the next look at the weights.
func (j Job) left(step int) int {
	if n := j.every(); n > 1 {
		return n - step%n
	}
	if _, ok := j.Batches.(Rollouts); ok {
		return 1
	}
	return j.Steps
}

// validate reports what of a job makes no run.
func (j Job) validate() error {
	if n := j.every(); n < 1 || j.Steps%n != 0 {
		return fmt.Errorf("train: rollouts for %d steps each, want a divisor of %d steps", n, j.Steps)
	}
	if j.Examples < 1 {
		return fmt.Errorf("train: batches of %d examples, want at least one", j.Examples)
	}
	return nil
}

// batches returns the arrays of the batches of n steps, in equal parts. A call that makes
// several steps has room for size of them, along a leading axis.
func (j Job) batches(first, n, size, parts int) ([][]*tensors.Tensor, error) {
	fail := func(step int, err error) ([][]*tensors.Tensor, error) {
		return nil, fmt.Errorf("train: batch of step %d: %w", step+1, err)
	}
	if j.Examples%parts != 0 {
		return nil, fmt.Errorf("train: a batch of %d cannot be shared out in %d parts", j.Examples, parts)
	}
	all := make([][]*tensors.Tensor, parts)
	for k := range n {
		arrays, err := j.Batches.Batch(first + k)
		if err != nil {
			return fail(first+k, err)
		}
		for i, x := range arrays {
			shape := x.Shape().Clone()
			if shape.Rank() == 0 || shape.Dimensions[0] != j.Examples {
				return fail(first+k, fmt.Errorf("array %d has shape %s, want %d examples", i, shape, j.Examples))
			}
			shape.Dimensions[0] /= parts
			room := shape
			if size > 1 {
				room = shapes.Make(shape.DType, append([]int{size}, shape.Dimensions...)...)
			}
			for p := range all {
				if k == 0 {
					all[p] = append(all[p], tensors.FromShape(room))
				}
				if !slices.Equal(all[p][i].Shape().Dimensions, room.Dimensions) {
					return fail(first+k, fmt.Errorf("array %d has shape %s, before it was another", i, shape))
				}
				if err := copyBytes(all[p][i], k, x, p, int(shape.ByteSize())); err != nil {
					return fail(first+k, err)
				}
			}
		}
	}
	return all, nil
}

// copyBytes copies the n bytes of part p of a tensor to the k-th n of another.
func copyBytes(to *tensors.Tensor, k int, from *tensors.Tensor, p, n int) error {
	var failed error
	err := from.ConstBytes(func(source []byte) {
		failed = to.MutableBytes(func(target []byte) { copy(target[k*n:(k+1)*n], source[p*n:]) })
	})
	return errors.Join(err, failed)
}

package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/backend"
)

// Session is a run that is being made: the parameters, the moments of its optimizer, and what
// computes gradients. A trainer makes the steps of a network that package engine can train on GoMLX's backend
// in pure Go. Elsewhere GoMLX computes the gradient, on xla:cpu one of each part of a batch, each on a
// core of its own, and package engine makes the optimizer's step with their mean. How many cores there
// are changes no bit: a part is the same program on any core, and the order of the sum is that of the
// parts.
type Session struct {
	*state
	job       Job
	backend   compute.Backend
	trainer   *trainer // nil where GoMLX computes gradients
	lanes     []*lane
	gradients [][]float32 // of each part of a batch
}

// NewSession makes a run ready on a backend, before its first step, which compiles.
func NewSession(b compute.Backend, j Job) (*Session, error) {
	return newSession(b, j, j.start())
}

// newSession goes on from a state.
func newSession(b compute.Backend, j Job, from *state) (*Session, error) {
	if err := j.validate(); err != nil {
		return nil, err
	}
	var data []*tensors.Tensor
	if j.Batches.Data != nil {
		var err error
		if data, err = j.Batches.Data(); err != nil {
			return nil, err
		}
	}
	s := &Session{state: from, job: j, backend: b}
	if t, ok := j.Model.(Transformer); ok && j.Batches.Index != nil && backend.IsGo(b) {
		var err error
		s.trainer, err = newTrainer(b, t, j.Batches.Index, data, s.optimizer)
		return s, err
	}
	parts := 1
	if backend.IsXLACPU(b) {
		parts = j.parts()
	}
	cores, err := backend.Cores(b, parts)
	if err != nil {
		return nil, err
	}
	for parts%len(cores) != 0 { // a core with fewer parts than another would wait for it
		cores[len(cores)-1].Close()
		cores = cores[:len(cores)-1]
	}
	for _, core := range cores {
		params := tensors.FromShape(shapes.Make(dtypes.Float32, len(s.optimizer.Params)))
		s.lanes = append(s.lanes, &lane{Core: core, params: params})
	}
	for range parts {
		s.gradients = append(s.gradients, make([]float32, len(s.optimizer.Params)))
	}
	if err := s.each(func(_ int, l *lane) error { return l.start(j, data) }); err != nil {
		s.Close()
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
		loss, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("train: step %d: %w", s.step+1, err)
		}
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			return nil, fmt.Errorf("train: the loss of step %d is %v", s.step+1, loss)
		}
		losses[i] = loss
		s.step, s.losses = s.step+1, append(s.losses, loss)
	}
	return losses, nil
}

// next makes a step.
func (s *Session) next() (float32, error) {
	if s.trainer != nil {
		loss, err := s.trainer.step(s.step + 1)
		return float32(loss), err
	}
	parts := len(s.gradients)
	batch, err := s.job.batch(s.step, parts)
	if err != nil {
		return 0, err
	}
	losses := make([]float32, parts)
	err = s.each(func(i int, l *lane) error {
		share := parts / len(s.lanes)
		err := tensors.MutableFlatData(l.params, func(to []float32) { copy(to, s.optimizer.Params) })
		for part := i * share; part < (i+1)*share && err == nil; part++ {
			losses[part], err = l.take(batch[part], s.gradients[part])
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	s.optimizer.Step(s.step+1, 1/float64(parts), s.gradients)
	mean := float32(0)
	for _, loss := range losses {
		mean += loss / float32(parts)
	}
	return mean, nil
}

// each has every core do f at the same time, with its number.
func (s *Session) each(f func(i int, l *lane) error) error {
	var all errgroup.Group
	for i, l := range s.lanes {
		all.Go(func() error { return l.Do(func() error { return f(i, l) }) })
	}
	return all.Wait()
}

// Close frees the session's memory on the device.
func (s *Session) Close() {
	if s.trainer != nil {
		s.trainer.close()
	}
	s.each(func(_ int, l *lane) error { //nolint:errcheck // nothing is left to do about it
		for _, x := range append(l.arrays, l.params) {
			x.FinalizeAll() //nolint:errcheck // nor about this
		}
		if l.differentiate != nil {
			l.differentiate.Finalize()
		}
		return nil
	})
	for _, l := range s.lanes {
		l.Core.Close()
	}
}

// lane is a core with its own copy of the data and of the parameters, which XLA reads where they are
// written.
type lane struct {
	*backend.Core
	params        *tensors.Tensor
	differentiate *Exec
	arrays        []*tensors.Tensor
}

// start moves the run to a core.
func (l *lane) start(j Job, data []*tensors.Tensor) (err error) {
	if l.arrays, err = onDevice(l.Backend, data); err != nil {
		return err
	}
	if err := l.params.MaterializeOnDevice(l.Backend, l.Backend.HasSharedBuffers(), 0); err != nil {
		return fmt.Errorf("train: moving parameters to the device: %w", err)
	}
	l.differentiate, err = NewExec(l.Backend, func(inputs []*Node) (loss, gradient *Node) {
		data, params := len(l.arrays), len(inputs)-1
		return j.gradient(inputs[params], inputs[:data], inputs[data:params])
	})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// onDevice returns copies of arrays that are on a device alone.
func onDevice(b compute.Backend, data []*tensors.Tensor) (all []*tensors.Tensor, err error) {
	for _, x := range data {
		own, err := x.LocalClone()
		if err == nil {
			err = own.MaterializeOnDevice(b, false, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("train: moving data to the device: %w", err)
		}
		own.FinalizeLocal()
		all = append(all, own)
	}
	return all, nil
}

// take takes a part of a batch through the model, copies its gradient, and returns its loss.
func (l *lane) take(batch []*tensors.Tensor, gradient []float32) (loss float32, err error) {
	// The parameters come last: XLA plans its memory by the order of inputs, and with them first a step at S = 8
	// takes a tenth longer.
	var inputs []any
	for _, x := range append(slices.Concat(l.arrays, batch), l.params) {
		inputs = append(inputs, x)
	}
	outputs, err := l.differentiate.Call(inputs...)
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		tensors.ConstFlatData(outputs[0], func(from []float32) { loss = from[0] }),
		tensors.ConstFlatData(outputs[1], func(from []float32) { copy(gradient, from) }))
	return loss, errors.Join(err, outputs[0].FinalizeAll(), outputs[1].FinalizeAll())
}

// maxTokens is the number of tokens that XLA takes through a network at once. The
// activations of more do not stay in a core's caches, which costs a sixth of a step's
// time at S = 16; and the temporary buffer of very many does not fit into the memory
// that glibc's allocator keeps for a thread, so that it would be mapped anew for each
// step.
const maxTokens = 1024

// maxParts is how many parts a batch is taken in at most. Algorithm Distillation's
// 128 sequences of 200 tokens want all of them on XLA: a step in 16 parts takes 1.25 times as
// long.
const maxParts = 32

// parts is how many parts a batch is taken in on xla:cpu: two at least, for two cores.
func (j Job) parts() int {
	n := 1
	for n < maxParts && j.Examples%(2*n) == 0 && (n == 1 || j.Examples/n*j.Tokens > maxTokens) {
		n *= 2
	}
	return n
}

// batch returns the arrays of a step's batch in equal parts.
func (j Job) batch(step, parts int) ([][]*tensors.Tensor, error) {
	arrays, err := j.Batches.of(step)
	if err != nil {
		return nil, err
	}
	all := make([][]*tensors.Tensor, parts)
	for i, x := range arrays {
		shape := x.Shape().Clone()
		if shape.Rank() == 0 || shape.Dimensions[0] != j.Examples {
			return nil, fmt.Errorf("array %d of the batch has shape %s, want %d examples", i, shape, j.Examples)
		}
		shape.Dimensions[0] /= parts
		for p := range all {
			part := tensors.FromShape(shape)
			var failed error
			err := x.ConstBytes(func(from []byte) {
				failed = part.MutableBytes(func(to []byte) { copy(to, from[p*len(to):]) })
			})
			if err = errors.Join(err, failed); err != nil {
				return nil, err
			}
			all[p] = append(all[p], part)
		}
	}
	return all, nil
}

package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/backend"
)

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
func NewSession(b compute.Backend, j Job) (*Session, error) {
	return newSession(b, j, j.start())
}

// newSession goes on from a state.
func newSession(b compute.Backend, j Job, from *state) (*Session, error) {
	if err := j.validate(); err != nil {
		return nil, err
	}
	s := &Session{state: from, job: j, backend: b}
	var err error
	if j.Batches.Data != nil {
		if s.data, err = j.Batches.Data(); err != nil {
			return nil, err
		}
	}
	if t, ok := j.Model.(Transformer); ok && j.Batches.Index != nil && backend.OnCPU(b) {
		s.trainer, err = newTrainer(b, t, j.Batches.Index, s.data, s.optimizer)
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
func (s *Session) next() (loss float32, err error) {
	if s.trainer != nil {
		loss, err := s.trainer.step(s.step + 1)
		return float32(loss), err
	}
	batch, err := s.job.Batches.of(s.step)
	if err != nil {
		return 0, err
	}
	params := tensors.FromFlatDataAndDimensions(s.optimizer.Params, len(s.optimizer.Params))
	out, _, err := ask(s.differentiate, s.data, append([]*tensors.Tensor{params}, batch...)...)
	if err != nil {
		return 0, err
	}
	s.optimizer.Step(s.step+1, out[1:])
	return out[0][0], nil
}

// Close frees the session's memory on the device.
func (s *Session) Close() {
	if s.trainer != nil {
		s.trainer.close()
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

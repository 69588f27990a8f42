package train

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes/gotype"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer/engine"
)

// Values copies the numbers of arrays of one type.
func Values[T gotype.Supported](arrays ...*tensors.Tensor) (all [][]T, err error) {
	for i, x := range arrays {
		values, err := tensors.CopyFlatData[T](x)
		if err != nil {
			return nil, fmt.Errorf("train: array %d of the examples: %w", i, err)
		}
		all = append(all, values)
	}
	return all, nil
}

// local makes the steps of a job with package engine.
type local struct {
	job     Job
	step    int // steps made
	trainer *engine.Trainer
}

// inGo returns the model of a job if package engine can train it.
func (j Job) inGo() (model Transformer, ok bool) {
	model, ok = j.Model.(Transformer)
	return model, ok && model.InGo != nil
}

func newLocal(j Job, model Transformer, s *state) (stepper, error) {
	data, err := j.Batches.Data()
	if err != nil {
		return nil, &fault{0, err}
	}
	objective, err := model.InGo(data)
	if err != nil {
		return nil, &fault{0, err}
	}
	for _, x := range data {
		x.FinalizeAll() //nolint:errcheck // it has been copied
	}
	trainer, err := engine.NewTrainer(model.Network, objective, j.optimizer(s))
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &local{j, s.step, trainer}, nil
}

// optimizer goes on from where a run is.
func (j Job) optimizer(s *state) *engine.Optimizer {
	return engine.NewOptimizer(j.Optimizer, j.Clip, s.params, s.m, s.v, s.average)
}

// copyOf copies what an optimizer holds.
func (s *state) copyOf(o *engine.Optimizer) error {
	s.params, s.m, s.v, s.average = slices.Clone(o.Params), slices.Clone(o.M), slices.Clone(o.V), slices.Clone(o.Average)
	return nil
}

func (l *local) call() int { return 1 }

func (l *local) steps(n int) ([][]float32, error) {
	losses := make([]float32, n)
	for k := range losses {
		batches, err := l.job.batches(l.step, 1, 1, 1)
		if err != nil {
			return nil, &fault{0, err}
		}
		examples, err := Values[int32](batches[0]...)
		if err != nil {
			return nil, err
		}
		loss, err := l.trainer.Step(l.step+1, examples[0])
		if err != nil {
			return nil, fmt.Errorf("train: step %d: %w", l.step+1, err)
		}
		losses[k] = float32(loss)
		l.step++
	}
	return [][]float32{losses}, nil
}

func (l *local) read(_ int, s *state) error { return s.copyOf(l.trainer.Optimizer) }

func (l *local) finalize() {}

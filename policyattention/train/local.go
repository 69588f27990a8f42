package train

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer/engine"
)

// Values copies the numbers of arrays of one type.
func Values[T dtypes.Supported](arrays ...*tensors.Tensor) (all [][]T, err error) {
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
	return model, ok && model.InGo != nil && j.Clip == 0
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
	trainer, err := engine.NewTrainer(model.Network, objective, j.Optimizer, s.params, s.m, s.v, s.average)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &local{j, s.step, trainer}, nil
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

func (l *local) read(_ int, s *state) error {
	for _, x := range []struct {
		into *[]float32
		from []float32
	}{{&s.params, l.trainer.Params}, {&s.m, l.trainer.M}, {&s.v, l.trainer.V}, {&s.average, l.trainer.Average}} {
		*x.into = append((*x.into)[:0:0], x.from...)
	}
	return nil
}

func (l *local) finalize() {}

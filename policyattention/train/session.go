package train

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/safetensors"
)

// Session is a run from its first step, taken one step at a time and kept
// nowhere: what speed comparisons measure.
type Session struct {
	job     Job
	trainer *trainer
	steps   int
}

// NewSession starts c on a backend. The first step compiles.
func (c Config) NewSession(backend compute.Backend) (*Session, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	job := c.job()
	t, err := job.newTrainer(backend, job.start())
	if err != nil {
		return nil, err
	}
	return &Session{job: job, trainer: t}, nil
}

// Step performs the next optimizer step and returns its loss.
func (s *Session) Step() (float32, error) {
	batch := s.job.Batch(s.steps)
	s.steps++
	return s.trainer.step(s.steps, batch)
}

// Close frees the session's memory on the device.
func (s *Session) Close() { s.trainer.finalize() }

// Export writes what an independent implementation needs to repeat the first
// steps of c: the initial weights by name; the examples, as "tokens" and the
// objective's arrays ("prior", "gain" and "weight" of an actor, "mean" and
// "exact" of a critic; see objective.go); and the examples of each batch,
// "index" [steps, Batch].
func (c Config) Export(path string, steps int) error {
	if err := c.Validate(); err != nil {
		return err
	}
	f := &safetensors.File{}
	add := func(name string, shape []int, data any) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	params := c.start()
	for _, t := range c.Network().Layout() {
		add(t.Name, t.Shape, params[t.Offset:][:t.Size()])
	}
	e, err := c.examples()
	if err != nil {
		return err
	}
	names := []string{"tokens", "prior", "gain", "weight"}
	if c.Objective == Critic {
		names = []string{"tokens", "mean", "exact"}
	}
	for k, array := range e.arrays {
		add(names[k], append([]int{c.Examples}, e.shapes[k]...), array)
	}
	batches := order{c: c}
	var index []int32
	for step := range steps {
		err := batches.batch(step).ConstFlatData(func(data any) { index = append(index, data.([]int32)...) })
		if err != nil {
			return fmt.Errorf("train: batch %d: %w", step, err)
		}
	}
	add("index", []int{steps, c.Batch}, index)
	return safetensors.WriteFile(path, f)
}

package train

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
)

// Session is runs from their first step, taken some steps at a time and kept
// nowhere: what speed comparisons measure.
type Session struct {
	backend compute.Backend
	device  stepper
	jobs    []Job
	states  []*state // as far as they were read
	made    int
}

// NewSession starts c on a backend. The first step compiles.
func (c Config) NewSession(backend compute.Backend) (*Session, error) {
	return NewSession(backend, Execution{}, c)
}

// NewSession starts several runs, to be made together, on a backend.
func NewSession(backend compute.Backend, execution Execution, configs ...Config) (*Session, error) {
	jobs := make([]Job, len(configs))
	for i, c := range configs {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		jobs[i] = c.job()
	}
	return NewJobSession(backend, execution, jobs...)
}

// NewJobSession is NewSession for any jobs.
func NewJobSession(backend compute.Backend, execution Execution, jobs ...Job) (*Session, error) {
	states := make([]*state, len(jobs))
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			return nil, err
		}
		s := j.start()
		states[i] = &s
	}
	g, err := newStepper(backend, execution, jobs, states)
	if err != nil {
		return nil, err
	}
	return &Session{backend: backend, device: g, jobs: jobs, states: states}, nil
}

// Steps performs the next n optimizer steps of every run and returns their
// losses [runs][n].
func (s *Session) Steps(n int) ([][]float32, error) {
	all := make([][]float32, len(s.jobs))
	for made := 0; made < n; {
		next := min(n-made, s.device.call())
		for i, j := range s.jobs {
			err := j.collect(s.backend, s.made, func() ([]float32, error) {
				err := s.device.read(i, s.states[i])
				return s.states[i].params, err
			})
			if err != nil {
				return nil, err
			}
			next = min(next, j.left(s.made))
		}
		losses, err := s.device.steps(next)
		if err != nil {
			return nil, err
		}
		made, s.made = made+next, s.made+next
		for i := range all {
			all[i] = append(all[i], losses[i]...)
		}
	}
	return all, nil
}

// Close frees the session's memory on the device.
func (s *Session) Close() { s.device.finalize() }

// Passes returns how a step takes its batch through the network on a backend: in
// n passes of b sequences of t tokens, for the outputs of the last k. All are 0 for a
// configuration that is not valid.
func (c Config) Passes(on compute.Backend) (n, b, t, k int) {
	if c.Validate() != nil {
		return 0, 0, 0, 0
	}
	k = slices.Max(c.Sizes) * c.Actions
	n = 1
	if backend.IsXLACPU(on) {
		n = c.job().parts()
	}
	return n, c.Batch / n, c.ContextTokens(k), k
}

// Export writes what an independent implementation needs to repeat the first
// steps of c, see [Job.Export]: the examples, as "tokens" and the objective's arrays
// ("prior", "gain" and "weight" of an actor, "mean" and "exact" of a critic; see
// objective.go); and the examples of each batch, "index" [steps, Batch].
func (c Config) Export(path string, steps int) error {
	if err := c.Validate(); err != nil {
		return err
	}
	names := []string{"tokens", "prior", "gain", "weight"}
	if c.Objective == Critic {
		names = []string{"tokens", "mean", "exact"}
	}
	return c.job().Export(path, names, steps)
}

// Export writes what an independent implementation needs to repeat the first steps of a
// job whose batches are [Fixed]: the initial parameters by name; the arrays of the data,
// which are given names; and "index" [steps, Examples], an index for each example of a batch.
func (j Job) Export(path string, names []string, steps int) error {
	fixed, ok := j.Batches.(Fixed)
	if !ok {
		return fmt.Errorf("train: batches of type %T cannot be exported, only Fixed", j.Batches)
	}
	arrays, err := fixed.Data()
	if err != nil {
		return err
	}
	if len(arrays) != len(names) {
		return fmt.Errorf("train: %d names for %d arrays", len(names), len(arrays))
	}
	f := &safetensors.File{}
	add := func(name string, shape []int, data any) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	params := j.Model.Init()
	for _, t := range j.Model.Layout() {
		add(t.Name, t.Shape, params[t.Offset:][:t.Size()])
	}
	for i, x := range arrays {
		shape := x.Shape().Dimensions
		if err := x.ConstFlatData(func(data any) { add(names[i], shape, data) }); err != nil {
			return fmt.Errorf("train: exporting %s: %w", names[i], err)
		}
	}
	var index []int32
	for step := range steps {
		err := fixed.Index(step).ConstFlatData(func(data any) { index = append(index, data.([]int32)...) })
		if err != nil {
			return fmt.Errorf("train: batch %d: %w", step, err)
		}
	}
	add("index", []int{steps, j.Examples}, index)
	return safetensors.WriteFile(path, f)
}

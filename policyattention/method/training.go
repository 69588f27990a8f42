package method

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/compute"

	"icrl/policyattention/train"
)

// Training is everything that a training run depends on, but for the backend's
// arithmetic. Its JSON is its configuration. It is a Shared or an Alone too.
type Training interface {
	Key() string      // the member of a manifest that it is
	Name() string     // unique within a preset
	Hash() string     // SHA-256 of its JSON in hexadecimal
	Budget() int      // optimizer steps
	Seconds() float64 // about how long it takes on one core of a current x86 server
	Kept() []int      // steps before the last after which weights are kept, ascending
	// Read returns the hash of the configuration that a file of weights is of and the
	// step after which they are.
	Read(path string) (hash string, step int, err error)
}

// Shared is a Training by the common trainer, which saves and resumes it: see
// [train.Job.Run].
type Shared interface {
	Training
	Job() (train.Job, error)
}

// Alone is a Training that trains itself.
type Alone interface {
	Training
	// TrainAt trains, writes the weights and returns the loss of every step. When ctx is
	// done it returns ctx's cause.
	TrainAt(ctx context.Context, at Place) (losses []float64, err error)
}

// Place is where a training run is made.
type Place struct {
	Weights  string                       // path to write
	Progress func(step int, loss float64) // to be told of every step, from 0
}

// Weights are the weights after a step of a training run.
type Weights struct {
	Training Training
	Step     int
}

// Last returns the weights after the last step of a training run.
func Last(t Training) Weights { return Weights{t, t.Budget()} }

// Networks reports whether any of the weights are a network's, so that what is computed
// with them depends on a backend's arithmetic.
func Networks(all []Weights) bool {
	for _, w := range all {
		if _, ok := w.Training.(Shared); ok {
			return true
		}
	}
	return false
}

// Models loads trained weights, each once, and compiles a program for each kind of
// network once.
type Models struct {
	Path    func(Weights) (string, error) // of a file of weights
	Backend func() (compute.Backend, error)

	mu       sync.Mutex
	loaded   map[string]any // by path
	programs map[any]any    // a model for each program
}

// Load loads weights. Models whose program is equal share a compiled one: compile makes
// the first of them and With the others. The function holds returns the configuration
// and the step that a model is of.
func Load[M interface{ With(path string) (M, error) }](m *Models, w Weights, program any, compile func(compute.Backend, string) (M, error), holds func(M) (hash string, step int)) (model M, err error) {
	path, err := m.Path(w)
	if err != nil {
		return model, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if model, ok := m.loaded[path].(M); ok {
		return model, nil
	}
	if first, ok := m.programs[program].(M); ok {
		model, err = first.With(path)
	} else {
		var b compute.Backend
		if b, err = m.Backend(); err != nil {
			return model, err
		}
		model, err = compile(b, path)
	}
	if err != nil {
		return model, err
	}
	if m.loaded == nil {
		m.loaded, m.programs = map[string]any{}, map[any]any{}
	}
	m.programs[program] = model
	if hash, step := holds(model); hash != w.Training.Hash() || step != w.Step {
		return model, fmt.Errorf("method: %s holds step %d of configuration %.12s, want step %d of %.12s", path, step, hash, w.Step, w.Training.Hash())
	}
	m.loaded[path] = model
	return model, nil
}

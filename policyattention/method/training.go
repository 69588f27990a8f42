package method

import (
	"slices"
	"sync"

	"github.com/gomlx/compute"

	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Training is all that a training run depends on, but for the backend's arithmetic. Its JSON is its configuration.
type Training interface {
	Key() string      // the member of a manifest that it is
	Name() string     // unique within a preset
	Seconds() float64 // about how long it takes on one core of a current x86 server
	Job() (train.Job, error)
}

// Hash returns the SHA-256 of a training's JSON in hexadecimal.
func Hash(t Training) string { return train.Hash(train.JSON(t)) }

// Weights are the weights after a step of a training run.
type Weights struct {
	Training Training
	Step     int
}

// Last returns the weights after the last step of a training run.
func Last(t Training) Weights {
	job, _ := t.Job() // Check tells of an invalid one
	return Weights{t, job.Steps}
}

// Params reads these very weights from a file, see [train.Job.Params].
func (w Weights) Params(path string) ([]float32, error) {
	job, err := w.Training.Job()
	if err != nil {
		return nil, err
	}
	return job.Params(path, w.Step)
}

// Check returns an error unless a file holds these very weights.
func (w Weights) Check(path string) error {
	job, err := w.Training.Job()
	if err != nil {
		return err
	}
	return job.Check(path, w.Step)
}

// Networks reports whether any of the weights are a network's, so that results depend on a backend's arithmetic.
func Networks(all []Weights) bool {
	return slices.ContainsFunc(all, func(w Weights) bool {
		job, err := w.Training.Job()
		return err != nil || job.Alone == nil
	})
}

// Models loads trained weights, each once.
type Models struct {
	Path    func(Weights) (string, error) // of a file of weights
	Backend func() (compute.Backend, error)

	mu   sync.Mutex
	kept map[string]any // by path
}

// Load loads weights by a function of their file's path, which refuses others.
func Load[M any](m *Models, w Weights, read func(path string) (M, error)) (model M, err error) {
	path, err := m.Path(w)
	if err != nil {
		return model, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.kept[path].(M); ok {
		return kept, nil
	}
	if model, err = read(path); err == nil {
		if m.kept == nil {
			m.kept = map[string]any{}
		}
		m.kept[path] = model
	}
	return model, err
}

// Make loads weights and makes a model of the parameters.
func Make[M any](m *Models, w Weights, model func(params []float32) (M, error)) (M, error) {
	return Load(m, w, func(path string) (made M, err error) {
		params, err := w.Params(path)
		if err != nil {
			return made, err
		}
		return model(params)
	})
}

// Network loads the network of a training run, after its last step.
func Network(m *Models, t interface {
	Training
	Network() transformer.Config
}) (*engine.Network[float32], error) {
	return Make(m, Last(t), func(params []float32) (*engine.Network[float32], error) {
		return engine.New[float32](t.Network(), params)
	})
}

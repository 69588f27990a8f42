// Package method says what the experiments need to know of a method: its name, its training, and its controller.
//
// A Method is one value. Package experiment carries out what it describes, with training that survives kills, stored
// results and verification, and knows no method by name. The methods of the paper are listed in package paper; a
// program of one's own adds a value to that list, or makes another: TestMethodFromOutside of package cli does.
package method

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Name names a method in cells, on the command line and in files.
type Name = string

// Method is a way to make controllers.
type Method struct {
	Name      Name
	Label     string // as text writes it
	Untrained bool   // there is nothing to train, so that it has no identities
	// Tolerance, if not 0, is how much its loop may differ on another backend or processor, both in float32.
	Tolerance float64
	// Deploy returns the controller that a cell asks for, if there is its recipe at its size; nil is exact PMD.
	Deploy func(Setting) (Deployment, error)
	// Studies replace the closed loop in the blocks called so.
	Studies  map[string]func(Setting) (Study, error)
	Informed Informed
}

// Registry is a list of methods, in the order of tables.
type Registry []Method

// Find returns the method called name.
func (r Registry) Find(name Name) (Method, error) {
	var names []Name
	for _, m := range r {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Method{}, fmt.Errorf("method: no method %q, want one of %q", name, names)
}

// Has reports whether there is a method called name.
func (r Registry) Has(name Name) bool {
	return slices.ContainsFunc(r, func(m Method) bool { return m.Name == name })
}

// Setting is what a cell and the protocol fix when they ask for a controller.
type Setting struct {
	Recipe          string
	States, Actions int
	Identity        Identity
	Rounds          int     // of the closed loop
	Eta             float64 // of the closed loop
	Root            uint64  // of the problems that the controller runs on
	Mixture         float64 // φ of a mixture with the uniform policy
	// Steps are the optimizer steps that the preset gives to an actor or a critic; methods with a budget of their own
	// have Limits. Step is the one after which weights are deployed, 0 for the last.
	Steps, Step int
	// Snapshots are steps before the last after which this identity's weights are looked at, by method.
	Snapshots map[Name][]int
	Limits    Limits
	Tuned     map[string]baseline.StepSizes // step sizes that calibration problems chose
}

// Identity is one trained identity.
type Identity struct {
	Model uint64 `json:"model"` // seed of the weights and of the order of examples
	Task  uint64 `json:"task"`  // root of the training problems
}

// Limits bound numbers of a recipe, such as "steps", by name.
type Limits map[string]int

// Bound makes numbers at most the limit called name, if there is one.
func (l Limits) Bound(name string, numbers ...*int) {
	for _, n := range numbers {
		if most, ok := l[name]; ok {
			*n = min(*n, most)
		}
	}
}

// Deployment is a controller as data. Its JSON is an object, a part of a cell's configuration, whose hash it changes.
type Deployment interface {
	// Weights lists the weights that it needs.
	Weights() []Weights
	// Controller returns the controller. Whatever it samples comes from streams below root or below a seed of its own.
	Controller(m *Models, eta float64, root uint64) (control.Controller, error)
}

// Separable is a Deployment whose actor and critic can be asked one by one. A nil part is the exact one.
type Separable interface {
	Deployment
	Parts() (Actor, Critic)
}

// Actor is a trained actor as data.
type Actor interface {
	Weights() []Weights
	Actor(*Models) (control.Actor, error)
}

// Critic is a trained critic as data; what it samples comes from streams below root.
type Critic interface {
	Weights() []Weights
	Critic(m *Models, root uint64) (control.Critic, error)
}

// Learner is a Deployment that imitates a source with these step sizes, which block tuning scores.
type Learner interface {
	Deployment
	StepSizes() baseline.StepSizes
}

// Study is an evaluation other than a closed loop. Its JSON is its configuration.
type Study interface {
	Weights() []Weights
	// Compute returns the rows of a cell, but for their key, on problems; nil where the study draws them itself.
	Compute(m *Models, problems []mdp.Problem) (rows.Tables, error)
	// OwnProblems reports whether it draws its problems itself.
	OwnProblems() bool
}

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
		job, err := w.Training.Job()
		if err != nil {
			return made, err
		}
		params, err := job.Params(path, w.Step)
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

// Information is how a method learns of a problem, where methods are compared with equal information.
type Information string

const (
	ByModel      Information = "model"      // P and r can be read
	ByGenerative Information = "generative" // N transitions a round from all pairs in turn, the same for all
	ByWindow     Information = "window"     // N transitions a round of a walk without resets
)

// Condition is an information and how much of it a round has.
type Condition struct {
	Information Information `json:"information"`
	N           int         `json:"n,omitempty"` // transitions a round; 0 with the model
}

// String returns for instance "generative, n = 48".
func (c Condition) String() string { return rows.Condition(string(c.Information), c.N, false) }

// Informed makes a method's controllers with equal information, for each information in which it can run.
type Informed map[Information]func(Case) (control.Controller, error)

// Case is one controller to make in a condition.
type Case struct {
	Condition
	States  int
	Run     int       // the samples' and, of a learned method, the trained identity's
	Values  []float64 // of the method's free numbers
	Untuned bool      // the values are the published ones
	Root    uint64    // of the samples
	// Deploy returns what a recipe of a method deploys with the run's identity, trained as for the benchmark.
	Deploy func(name Name, recipe string) (Deployment, error)
	Models *Models
}

// Source returns the condition's source of transitions.
func (c Case) Source() baseline.Source {
	if c.Information == ByGenerative {
		return baseline.Generative(c.N, c.Root)
	}
	return baseline.Walk(c.N, c.Root)
}

// StartOf returns the policy that a method starts from, by one of its values: 0 is π₀, 1 the uniform one.
func StartOf(value float64) baseline.Start {
	if value == 0 {
		return baseline.Initial
	}
	return baseline.Uniform
}

// InContext is the Deployment of a network that learns in its context alone, see [baseline.InContext]. Its JSON has
// Training, Root and Cleared under the training's key.
type InContext[C Training] struct {
	Training C      `json:"training"`
	Root     uint64 `json:"root"` // of the transitions
	// Cleared lets the network forget before each round: the control in which nothing is remembered between rounds.
	Cleared         bool `json:"cleared,omitempty"`
	States, Actions int  `json:"-"`

	Open func(*Models, *InContext[C]) (func(lives int) baseline.Reader, error) `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (d *InContext[C]) MarshalJSON() ([]byte, error) {
	type data InContext[C] // without this method
	return json.Marshal(map[string]data{d.Training.Key(): data(*d)})
}

// Weights and Controller implement Deployment; the controller is a [baseline.InContext].
func (d *InContext[C]) Weights() []Weights { return []Weights{Last(d.Training)} }
func (d *InContext[C]) Controller(m *Models, _ float64, _ uint64) (control.Controller, error) {
	reader, err := d.Open(m, d)
	return baseline.InContext{Name: d.Training.Key(), States: d.States, Actions: d.Actions, Root: d.Root,
		Reader: reader}, err
}

// Walking returns the controllers of a recipe that deploys an InContext, or of the one with the published values, where
// methods are compared with equal information: on the case's walk, at a pace of their own.
func Walking(name Name, recipe, published string) func(Case) (control.Controller, error) {
	return func(c Case) (control.Controller, error) {
		of := recipe
		if c.Untuned {
			of = published
		}
		d, err := c.Deploy(name, of)
		if err != nil {
			return nil, err
		}
		controller, err := d.Controller(c.Models, 0, 0)
		walking := controller.(baseline.InContext)
		walking.Root = c.Root
		return baseline.Paced{Controller: walking, N: c.N}, err
	}
}

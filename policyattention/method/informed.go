package method

import (
	"encoding/json"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/rows"
)

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
	States int
	Run    int       // the samples' and, of a learned method, the trained identity's
	Values []float64 // of the method's free numbers
	Root   uint64    // of the samples
	// Untuned says that the values are the published ones.
	Untuned bool
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

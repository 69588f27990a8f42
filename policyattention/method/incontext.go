package method

import (
	"encoding/json"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
)

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

// Weights implements Deployment.
func (d *InContext[C]) Weights() []Weights { return []Weights{Last(d.Training)} }

// Controller implements Deployment: it is a [baseline.InContext].
func (d *InContext[C]) Controller(m *Models, _ float64, _ uint64) (control.Controller, error) {
	reader, err := d.Open(m, d)
	if err != nil {
		return nil, err
	}
	return baseline.InContext{
		Name: d.Training.Key(), States: d.States, Actions: d.Actions, Root: d.Root, Reader: reader,
	}, nil
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
		if err != nil {
			return nil, err
		}
		walking := controller.(baseline.InContext)
		walking.Root = c.Root
		return baseline.Paced{Controller: walking, N: c.N}, nil
	}
}

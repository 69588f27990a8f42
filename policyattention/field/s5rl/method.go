package s5rl

import (
	"fmt"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Method is S5RL among the methods. Its recipes are
//
//	cpu          the budget for a core of a CPU
//	cpu-cleared  its control: the same weights, with the state cleared before each round
var Method = method.Method{
	Name: name, Label: "S5RL", Informed: informed,
	Deploy: func(s method.Setting) (method.Deployment, error) {
		base, cleared := strings.CutSuffix(s.Recipe, "-cleared")
		if base != "cpu" {
			return nil, fmt.Errorf("no recipe %q of S5RL", s.Recipe)
		}
		c := CPU(s.Identity.Model, s.States)
		c.Actions = s.Actions
		s.Limits.Bound(&c.Steps, "steps")
		s.Limits.Bound(&c.Rows, "rows")
		s.Limits.Bound(&c.Life, "life")
		for _, n := range []*int{&c.Width, &c.State, &c.Hidden} {
			s.Limits.Bound(n, "width")
		}
		c.Blocks = min(c.Blocks, c.State/block)
		c.Optimizer.Cosine = c.Steps
		d := &Deployment{}
		d.S5RL.Training, d.S5RL.Root, d.S5RL.Cleared = c, s.Identity.Model, cleared
		return d, nil
	},
}

// Deployment deploys a network of S5RL.
type Deployment struct {
	S5RL struct {
		Training Config `json:"training"`
		Root     uint64 `json:"root"`              // of the transitions
		Cleared  bool   `json:"cleared,omitempty"` // see Model.Controller
	} `json:"s5rl"`
}

// Weights implements method.Deployment.
func (d *Deployment) Weights() []method.Weights {
	return []method.Weights{method.Last(d.S5RL.Training)}
}

// Controller implements method.Deployment.
func (d *Deployment) Controller(m *method.Models, _ float64, _ uint64) (control.Controller, error) {
	program := d.S5RL.Training
	program.Seed = 0 // the program of all weights
	exec, err := method.Compile(m, program, program.compile)
	if err != nil {
		return nil, err
	}
	model, err := method.Load(m, d.Weights()[0], func(path string) (*Model, error) {
		c, params, err := ReadWeights(path)
		if err != nil {
			return nil, err
		}
		return newModel(c, exec, params), nil
	})
	if err != nil {
		return nil, err
	}
	return model.Controller(d.S5RL.Root, d.S5RL.Cleared), nil
}

// Key implements method.Training.
func (c Config) Key() string { return name }

// Name implements method.Training.
func (c Config) Name() string { return fmt.Sprintf("%s-S%d-%d", name, c.States, c.Seed) }

// Hash implements method.Training.
func (c Config) Hash() string { return c.job().Hash() }

// Budget implements method.Training.
func (c Config) Budget() int { return c.Steps }

// Seconds implements method.Training.
func (c Config) Seconds() float64 {
	const perParameter = 4.5e-10 // and step of a life, forwards and back
	all := network{c}.Layout()
	last := all[len(all)-1]
	steps := float64(c.rollouts()*c.Rows*c.Life) * (float64(c.Epochs) + .5)
	return perParameter * float64(last.Offset+last.Size()) * steps
}

// Read implements method.Training.
func (c Config) Read(path string) (hash string, step int, err error) {
	stored, _, err := ReadWeights(path)
	return stored.Hash(), stored.Steps, err
}

// Job implements method.Shared.
func (c Config) Job() (train.Job, error) { return c.job(), c.Validate() }

// informed is the network with equal information: on a walk, which is what it was trained on. It
// has no free numbers.
var informed = method.Informed{method.ByWindow: controllerOf}

func controllerOf(c method.Case) (control.Controller, error) {
	d, err := c.Deploy(name, "cpu")
	if err != nil {
		return nil, err
	}
	below := *d.(*Deployment)
	below.S5RL.Root = c.Root
	controller, err := below.Controller(c.Models, 0, c.Root)
	return baseline.Paced{Controller: controller, N: c.N}, err
}

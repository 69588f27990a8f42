// Package s5rl is in-context reinforcement learning with structured state space models (Lu et al., arXiv 2303.03982;
// public code luchris429/popjaxrl): an actor and a critic on layers of S5, trained online by proximal policy
// optimization (PPO, arXiv 1707.06347) on problems that are drawn anew all the time. Within a life it sees one problem;
// what it learns of it is in the layers' state, and its weights stay.
//
// At a step the network sees which pair of state and action came before and the reward of that pair (zeros at the first
// step of a life), the state now, and a flag at the first step, which also clears the layers' state. It writes logits
// and a value for every state, of which the state now picks its own.
package s5rl

import (
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic.
type Config struct {
	Method  string `json:"method"` // always "s5rl"
	Seed    uint64 `json:"seed"`   // root of problems, lives, weights and order
	States  int    `json:"states"`
	Actions int    `json:"actions"`

	Width  int `json:"width"`  // of the S5 layers
	State  int `json:"state"`  // of each of them: N, of which half is kept
	Blocks int `json:"blocks"` // of HiPPO matrices that the state begins with
	Layers int `json:"layers"` // S5 layers: 1
	Hidden int `json:"hidden"` // units of the two layers before either output

	Steps       int `json:"steps"`       // of the optimizer
	Rows        int `json:"rows"`        // environments side by side
	Lives       int `json:"lives"`       // of a row in a rollout: 1
	Life        int `json:"life"`        // steps of a life
	Epochs      int `json:"epochs"`      // passes over a rollout
	Minibatches int `json:"minibatches"` // of rows, in an epoch

	Gamma     float64           `json:"gamma"`   // discount of what the actor maximizes
	Lambda    float64           `json:"lambda"`  // of generalized advantage estimation
	Ratio     float64           `json:"ratio"`   // how far a probability may move: its factor is clipped to 1 ± Ratio
	Entropy   float64           `json:"entropy"` // weight of the policy's entropy
	Value     float64           `json:"value"`   // weight of the critic's loss
	Scale     float64           `json:"scale"`   // of rewards in the input
	Out       float64           `json:"out"`     // C is so many times the source's at first
	Skip      float64           `json:"skip"`    // and D
	Norm      float64           `json:"norm"`    // largest norm of a gradient
	Optimizer transformer.AdamW `json:"optimizer"`
}

const name = "s5rl"

// block is the size of the HiPPO matrices: of two pairs of eigenvalues both are slow enough to sum
// up what a life shows, while of 32 pairs all but a few turn around within some steps.
const block = 4

// CPU is the recipe for a core of a CPU; docs/field.md says what it changes of the source's (run_popgym.py), and why.
func CPU(seed uint64, states int) Config {
	const steps = 2_560
	return Config{Method: name, Seed: seed, States: states, Actions: mdp.Actions,
		Width: 64, State: 8 * states, Blocks: 8 * states / block, Layers: 1, Hidden: 64,
		Steps: steps, Rows: 32, Lives: 1, Life: 800, Epochs: 2, Minibatches: 8,
		Gamma: .5, Lambda: .5, Ratio: .2, Entropy: .05, Value: 1, Scale: 2, Out: 20, Skip: 0, Norm: .5,
		Optimizer: transformer.AdamW{LearningRate: 4e-3, Beta1: .9, Beta2: .999, Epsilon: 1e-5, Cosine: steps}}
}

// every is how many steps are made with a rollout.
func (c Config) every() int { return c.Epochs * c.Minibatches }

// Validate reports the first field that makes no sense.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("s5rl: "+format, args...) }
	numbers := []float64{c.Ratio, c.Entropy, c.Value, c.Norm, c.Scale, c.Out, c.Skip}
	switch {
	case c.Method != name:
		return bad("method is %q, want %q", c.Method, name)
	case c.States < 2 || c.Actions < 2:
		return bad("S=%d states and A=%d actions, want at least two of each", c.States, c.Actions)
	case min(c.Hidden, c.Width, c.Blocks, c.State) < 1 || max(c.Hidden, c.Width, c.State) > 1<<12 ||
		c.State%(2*c.Blocks) != 0 || c.Layers != 1:
		return bad("%d and %d units in %d layers of state %d in %d blocks, want 1 to 4096, one layer, an even state "+
			"a block", c.Width, c.Hidden, c.Layers, c.State, c.Blocks)
	case min(c.Steps, c.Rows, c.Epochs, c.Minibatches) < 1 || c.Lives != 1 || c.Life < 2:
		return bad("%d steps, %d rows of %d lives of %d steps, %d epochs of %d minibatches, want one life of two steps",
			c.Steps, c.Rows, c.Lives, c.Life, c.Epochs, c.Minibatches)
	case c.Steps%c.every() != 0 || c.Rows%c.Minibatches != 0:
		return bad("%d steps and %d rows, want multiples of the %d steps of a rollout and of its %d minibatches",
			c.Steps, c.Rows, c.every(), c.Minibatches)
	case !(c.Gamma >= 0 && c.Gamma < 1 && c.Lambda >= 0 && c.Lambda <= 1):
		return bad("γ = %v and λ = %v, want numbers in [0, 1), and in [0, 1]", c.Gamma, c.Lambda)
	case slices.ContainsFunc(numbers, func(x float64) bool { return !(x >= 0 && x < 1e6) }):
		return bad("ratio, entropy, value, norm, scale, out and skip are %v, want finite numbers ≥ 0", numbers)
	}
	return c.Optimizer.Validate()
}

// Method is S5RL among the methods. Its recipes are
//
//	cpu          the budget for a core of a CPU
//	cpu-cleared  its control: the same weights, with the state cleared before each round
//
// With equal information it is the network on a walk, which is what it was trained on. It has no free numbers.
var Method = method.Method{
	Name: name, Label: "S5RL",
	Informed: method.Informed{method.ByWindow: method.Walking(name, "cpu", "cpu")},
	Deploy: func(s method.Setting) (method.Deployment, error) {
		base, cleared := strings.CutSuffix(s.Recipe, "-cleared")
		if base != "cpu" {
			return nil, fmt.Errorf("no recipe %q of S5RL", s.Recipe)
		}
		c := CPU(s.Identity.Model, s.States)
		c.Actions = s.Actions
		s.Limits.Bound("steps", &c.Steps)
		s.Limits.Bound("rows", &c.Rows)
		s.Limits.Bound("life", &c.Life)
		s.Limits.Bound("width", &c.Width, &c.State, &c.Hidden)
		c.Blocks = min(c.Blocks, c.State/block)
		c.Optimizer.Cosine = c.Steps
		return &method.InContext[Config]{Training: c, States: c.States, Actions: c.Actions, Root: s.Identity.Model,
			Cleared: cleared, Open: open}, nil
	},
}

// open reads the network of a deployment, whose program is compiled when it is first called.
func open(m *method.Models, d *method.InContext[Config]) (func(lives int) baseline.Reader, error) {
	type reading = func(lives int, cleared bool) baseline.Reader
	read, err := method.Make(m, method.Last(d.Training), func(params []float32) (reading, error) {
		on, err := m.Backend()
		if err != nil {
			return nil, err
		}
		exec, err := d.Training.compile(on)
		return func(lives int, cleared bool) baseline.Reader {
			return d.Training.reader(exec, params, lives, cleared)
		}, err
	})
	return func(lives int) baseline.Reader { return read(lives, d.Cleared) }, err
}

// Key, Name, Seconds and Job implement method.Training.
func (c Config) Key() string  { return name }
func (c Config) Name() string { return fmt.Sprintf("%s-S%d-%d", name, c.States, c.Seed) }
func (c Config) Seconds() float64 {
	const perParameter = 4.5e-10 // and step of a life, forwards and back
	steps := float64(c.Steps/c.every()*c.Rows*c.Life) * (float64(c.Epochs) + .5)
	return perParameter * float64(len(c.Init())) * steps
}

func (c Config) Job() (train.Job, error) {
	r := &rollouts{Config: c}
	batches := train.Batches{Arrays: r.batch, Collect: r.collect, Every: c.every()}
	job := train.Job{Config: c, Model: c, Batches: batches, Optimizer: c.Optimizer, Clip: c.Norm, Steps: c.Steps}
	return job, c.Validate()
}

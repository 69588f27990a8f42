package s5rl

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/incontext"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Model is a trained network on a backend.
type Model struct {
	Config Config
	step   *stepper // without lives
}

// ReadWeights reads weights that training released.
func ReadWeights(path string) (c Config, params []float32, err error) {
	c, _, params, err = train.ReadParamsOf(path, func(c Config) []transformer.Tensor { return network{c}.Layout() })
	return c, params, err
}

// Load reads weights that training released.
func Load(on compute.Backend, path string) (*Model, error) {
	c, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	return NewModel(on, c, params)
}

// NewModel returns the network of c with the flat parameters params.
func NewModel(on compute.Backend, c Config, params []float32) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if want := c.Parameters(); len(params) != want {
		return nil, fmt.Errorf("s5rl: %d parameters, want %d", len(params), want)
	}
	step, err := newStepper(on, c)
	if err != nil {
		return nil, fmt.Errorf("s5rl: %w", err)
	}
	step.params = tensors.FromFlatDataAndDimensions(params, len(params))
	return &Model{c, step}, nil
}

// With returns the model of other weights for a network of the same shape, which shares m's
// compiled programs.
func (m *Model) With(path string) (*Model, error) {
	c, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	if got, want := c.shape(), m.Config.shape(); got != want {
		return nil, fmt.Errorf("s5rl: %s holds the network %+v, want %+v", path, got, want)
	}
	step := *m.step
	step.params = tensors.FromFlatDataAndDimensions(params, len(params))
	return &Model{c, &step}, nil
}

// Controller deploys a model, see [incontext.Controller]. With cleared, its state is cleared
// before each round, as at the beginning of a life: the control in which nothing is remembered
// between rounds.
func (m *Model) Controller(root uint64, cleared bool) incontext.Controller {
	return incontext.Controller{
		Name: name, States: m.Config.States, Actions: m.Config.Actions, Root: root,
		Agents: func(histories []*incontext.History) incontext.Agents {
			step := *m.step
			step.clear(len(histories))
			return &agents{step: &step, histories: histories, cleared: cleared}
		},
	}
}

// agents implements incontext.Agents.
type agents struct {
	step      *stepper
	histories []*incontext.History
	pending   int  // the step of the pending tokens
	cleared   bool // before each round
	first     bool // the pending token is shown as the first of a life
	tokens    int  // that the network has seen of each
}

// Operations implements incontext.Counted.
func (a *agents) Operations() int { return a.tokens * a.step.c.operations() }

// Begin implements incontext.Agents.
func (a *agents) Begin() error {
	a.first = a.cleared
	return nil
}

// Act implements incontext.Agents.
func (a *agents) Act() ([]*mat.Dense, error) { return a.take(1) }

// Window implements incontext.Agents.
func (a *agents) Window() ([]*mat.Dense, error) {
	if err := a.Begin(); err != nil {
		return nil, err
	}
	return a.take(baseline.Window)
}

// take shows each agent the next k tokens of its history and returns the distributions [k, A] of
// its actions at them.
func (a *agents) take(k int) ([]*mat.Dense, error) {
	n := len(a.histories)
	t := newShown(k * n)
	for at := range k * n {
		t.set(at, a.histories[at%n], a.pending+at/n)
		if a.first && at < n {
			t.previous[at] = incontext.None
		}
	}
	logits, _, err := a.step.see(t, k, true)
	if err != nil {
		return nil, err
	}
	a.pending, a.tokens = a.pending+k, a.tokens+k
	a.first = false
	return a.distributions(logits, k, func(i, j int) int { return j*n + i }), nil
}

// Policies implements incontext.Agents.
func (a *agents) Policies() ([]*mat.Dense, error) {
	n, states := len(a.histories), a.step.c.States
	a.tokens += states
	t := newShown(n * states)
	for at := range n * states {
		t.set(at, a.histories[at/states], a.pending)
		t.state[at] = int32(at % states)
	}
	asked := *a.step
	var err error
	if asked.re, err = repeat(a.step.re, states); err != nil {
		return nil, err
	}
	if asked.im, err = repeat(a.step.im, states); err != nil {
		return nil, err
	}
	logits, _, err := asked.see(t, 1, false)
	if err != nil {
		return nil, err
	}
	return a.distributions(logits, states, func(i, s int) int { return i*states + s }), nil
}

// distributions returns for each agent the k distributions of logits [·, A], the j-th of agent i at
// row at(i, j).
func (a *agents) distributions(logits []float32, k int, at func(i, j int) int) []*mat.Dense {
	actions := a.step.c.Actions
	all := make([]*mat.Dense, len(a.histories))
	for i := range all {
		all[i] = mat.NewDense(k, actions, nil)
		for j := range k {
			all[i].SetRow(j, softmax(logits[at(i, j)*actions:][:actions]))
		}
	}
	return all
}

// repeat returns states [Layers, n, P] with each life k times in a row, [Layers, n·k, P].
func repeat(states *tensors.Tensor, k int) (*tensors.Tensor, error) {
	flat, err := tensors.CopyFlatData[float32](states)
	if err != nil {
		return nil, fmt.Errorf("s5rl: %w", err)
	}
	dims := states.Shape().Dimensions
	many := make([]float32, 0, len(flat)*k)
	for life := range slices.Chunk(flat, dims[2]) {
		for range k {
			many = append(many, life...)
		}
	}
	return tensors.FromFlatDataAndDimensions(many, dims[0], dims[1]*k, dims[2]), nil
}

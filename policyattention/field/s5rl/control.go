package s5rl

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Model is a network on a backend.
type Model struct {
	Config Config
	exec   *Exec
	params *tensors.Tensor
}

// ReadWeights reads weights that training released.
func ReadWeights(path string) (c Config, params []float32, err error) {
	c, _, params, err = train.ReadParams(path, func(c Config) []transformer.Tensor { return network{c}.Layout() })
	return c, params, err
}

// compile compiles the network, with the parameters as an input.
func (c Config) compile(on compute.Backend) (*Exec, error) {
	return NewExec(on, func(in []*Node) []*Node {
		logits, values, after := network{c}.apply(in[0], tokens{in[1], in[2], in[3], in[4]}, number{in[5], in[6]})
		return []*Node{logits, values, after.re, after.im}
	})
}

func newModel(c Config, exec *Exec, params []float32) *Model {
	return &Model{c, exec, tensors.FromFlatDataAndDimensions(params, len(params))}
}

// going are lives that go through a network some steps at a time.
type going struct {
	*Model
	re, im *tensors.Tensor // [Layers, lives, P]
}

// begin returns n lives before their first step.
func (m *Model) begin(n int) going {
	zero := func() *tensors.Tensor {
		p := m.Config.layer().kept()
		return tensors.FromFlatDataAndDimensions(make([]float32, m.Config.Layers*n*p), m.Config.Layers, n, p)
	}
	return going{m, zero(), zero()}
}

// shown are tokens, see tokens.
type shown struct {
	before, previous []int32
	reward           []float32
	state            []int32
}

func newShown(n int) shown {
	return shown{make([]int32, n), make([]int32, n), make([]float32, n), make([]int32, n)}
}

// set makes token i that of step t of a history, or the first token if no step came before.
func (s shown) set(i int, h *baseline.History, t int) {
	s.previous[i], s.reward[i], s.state[i] = h.At(t)
	s.before[i] = 0
	if t > 0 {
		_, _, s.before[i] = h.At(t - 1)
	}
}

// see shows each of n lives k tokens [k, n], and returns the distributions [k, A] of the actions of each, and values
// [k, n]. With keep the lives go on after them.
func (l *going) see(t shown, k int, keep bool) (p []*mat.Dense, values []float32, err error) {
	n := len(t.state) / k
	integers := func(x []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, k, n) }
	out, err := l.exec.Call(l.params, integers(t.before), integers(t.previous),
		tensors.FromFlatDataAndDimensions(t.reward, k, n), integers(t.state), l.re, l.im)
	if err != nil {
		return nil, nil, fmt.Errorf("s5rl: %w", err)
	}
	logits, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return nil, nil, err
	}
	p = make([]*mat.Dense, n)
	for i := range p {
		p[i] = mat.NewDense(k, l.Config.Actions, nil)
		for j := range k {
			row := p[i].RawRowView(j)
			for a := range row {
				row[a] = float64(logits[(j*n+i)*len(row)+a])
			}
			pmd.Softmax(row)
		}
	}
	if values, err = tensors.CopyFlatData[float32](out[1]); err != nil {
		return nil, nil, err
	}
	if keep {
		l.re, out[2], l.im, out[3] = out[2], l.re, out[3], l.im
	}
	for _, x := range out {
		if err := x.FinalizeAll(); err != nil {
			return nil, nil, err
		}
	}
	return p, values, nil
}

// Controller deploys a model, see [baseline.InContext]. With cleared, its state is cleared before each round, as at
// the beginning of a life: the control in which nothing is remembered between rounds.
func (m *Model) Controller(root uint64, cleared bool) baseline.InContext {
	return baseline.InContext{
		Name: name, States: m.Config.States, Actions: m.Config.Actions, Root: root,
		Lives: func(histories []*baseline.History) baseline.Lives {
			return &agents{going: m.begin(len(histories)), histories: histories, cleared: cleared}
		},
	}
}

// agents implements baseline.Lives.
type agents struct {
	going
	histories []*baseline.History
	pending   int  // the step of the pending tokens
	cleared   bool // before each round
	first     bool // the pending token is shown as the first of a life
}

// Begin implements baseline.Lives.
func (a *agents) Begin() error {
	a.first = a.cleared
	return nil
}

// Act implements baseline.Lives.
func (a *agents) Act() ([]*mat.Dense, error) { return a.take(1) }

// Window implements baseline.Lives.
func (a *agents) Window() ([]*mat.Dense, error) {
	a.first = a.cleared
	return a.take(baseline.Window)
}

// take shows each agent the next k tokens of its history and returns the distributions [k, A] of its actions at them.
func (a *agents) take(k int) ([]*mat.Dense, error) {
	n := len(a.histories)
	t := newShown(k * n)
	for at := range k * n {
		t.set(at, a.histories[at%n], a.pending+at/n)
		if a.first && at < n {
			t.previous[at] = baseline.None
		}
	}
	p, _, err := a.see(t, k, true)
	a.pending, a.first = a.pending+k, false
	return p, err
}

// Policies implements baseline.Lives.
func (a *agents) Policies() ([]*mat.Dense, error) {
	t, policies := newShown(len(a.histories)), make([]*mat.Dense, len(a.histories))
	for i, h := range a.histories {
		t.set(i, h, a.pending)
		policies[i] = mat.NewDense(a.Config.States, a.Config.Actions, nil)
	}
	for s := range a.Config.States {
		for i := range t.state {
			t.state[i] = int32(s)
		}
		p, _, err := a.see(t, 1, false)
		if err != nil {
			return nil, err
		}
		for i, row := range p {
			policies[i].SetRow(s, row.RawRowView(0))
		}
	}
	return policies, nil
}

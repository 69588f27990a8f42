package distill

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
	"icrl/policyattention/transformer/fused"
)

// Model is a trained network on a backend.
type Model struct {
	Config Config
	params *tensors.Tensor
	*programs
}

// programs are compiled, with the parameters as an input.
type programs struct {
	first   *Exec // tokens that follow one another, with none before them
	follow  *Exec // new tokens that follow one another
	instead *Exec // new tokens that are alternatives
}

func newModel(c Config, p *programs, params []float32) *Model {
	return &Model{c, tensors.FromFlatDataAndDimensions(params, len(params)), p}
}

// compile compiles the programs. They depend on no more of c than Config.program has.
func (c Config) compile(backend compute.Backend) (*programs, error) {
	p := &programs{}
	for _, e := range []struct {
		exec                **Exec
		empty, alternatives bool
	}{{&p.first, true, false}, {&p.follow, false, false}, {&p.instead, false, true}} {
		var err error
		*e.exec, err = NewExec(backend, func(in []*Node) []*Node {
			params, tokens := in[0], c.tokens(in[1], in[2], in[3], in[4])
			var cache, length *Node
			if !e.empty {
				cache, length = in[5], in[6]
			}
			logits, cache := fused.Bind(c.Network(), params).Extend(tokens, cache, length, e.alternatives)
			if e.alternatives {
				return []*Node{logits} // nobody goes on from an alternative
			}
			return []*Node{logits, cache}
		})
		if err != nil {
			return nil, fmt.Errorf("distill: %w", err)
		}
	}
	return p, nil
}

// controller deploys a model, see [baseline.InContext].
func (m *Model) controller(root uint64) baseline.InContext {
	return baseline.InContext{
		Name: "distill", States: m.Config.States, Actions: m.Config.Actions, Root: root,
		Lives: func(histories []*baseline.History) baseline.Lives { return m.agents(histories) },
	}
}

// agents implements baseline.Lives.
type agents struct {
	*Model
	histories []*baseline.History
	// pending counts the tokens that have been taken in: the next one's state is
	// known, and neither is it in the cache nor has an action been taken. In a life
	// that has been recorded, histories go on after it.
	pending int
	cache   *tensors.Tensor // of the tokens before, see fused.Network.Extend
	length  int             // of the cache
}

func (m *Model) agents(histories []*baseline.History) *agents {
	return &agents{Model: m, histories: histories, cache: m.emptyCache(len(histories))}
}

func (m *Model) emptyCache(n int) *tensors.Tensor {
	c := m.Config
	return tensors.FromFlatDataAndDimensions(make([]float32, c.Layers*2*n*c.Context*c.Width), c.Layers, 2, n,
		c.Context, c.Width)
}

// Begin implements baseline.Lives.
func (a *agents) Begin() error {
	if kept := a.kept(); kept < a.length {
		return a.forget(kept)
	}
	return nil
}

// Act implements baseline.Lives.
func (a *agents) Act() ([]*mat.Dense, error) { return a.take(a.follow, 1) }

// Window implements baseline.Lives.
func (a *agents) Window() ([]*mat.Dense, error) {
	exec, kept := a.follow, a.kept()
	if kept < a.length { // the kept tokens are shown again, before the round's
		a.pending -= kept
		a.length = 0
		exec = a.first
	} else {
		kept = 0
	}
	rows, err := a.take(exec, kept+baseline.Window)
	if err != nil {
		return nil, err
	}
	for i, x := range rows {
		rows[i] = x.Slice(kept, kept+baseline.Window, 0, a.Config.Actions).(*mat.Dense)
	}
	return rows, nil
}

// kept is how many of the tokens in the cache stay there for the next round:
// all, or, where that round and the query after it would not fit in, so many
// that they do.
func (a *agents) kept() int {
	if a.length+baseline.Window+1 <= a.Config.Context {
		return a.length
	}
	return a.Config.Context - baseline.Window - 1
}

// take takes the next k tokens into the cache and returns, for each agent, the
// distributions [k, A] of its actions at them.
func (a *agents) take(exec *Exec, k int) ([]*mat.Dense, error) {
	rows, cache, err := a.extend(exec, k, func(i, j int) (previous int32, reward float32, state int32) {
		return a.histories[i].At(a.pending + j)
	})
	if err != nil {
		return nil, err
	}
	a.replace(cache)
	a.pending += k
	a.length += k
	return rows, nil
}

// Policies implements baseline.Lives.
func (a *agents) Policies() ([]*mat.Dense, error) {
	policies, _, err := a.extend(a.instead, a.Config.States,
		func(i, s int) (previous int32, reward float32, state int32) {
			previous, reward, _ = a.histories[i].At(a.pending)
			return previous, reward, int32(s)
		})
	return policies, err
}

// forget drops all but the last kept tokens of the context and computes the cache
// of these anew: positions count from the first token kept.
func (a *agents) forget(kept int) error {
	a.length = 0
	if kept == 0 {
		return nil
	}
	a.pending -= kept
	_, err := a.take(a.follow, kept)
	return err
}

func (a *agents) replace(cache *tensors.Tensor) {
	a.cache.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	a.cache = cache
}

// extend shows k tokens to each agent after its cached ones. It returns the
// distributions of the actions at them [k, A], and the cache with them unless
// they are alternatives.
func (a *agents) extend(exec *Exec, k int,
	token func(i, j int) (previous int32, reward float32, state int32)) ([]*mat.Dense, *tensors.Tensor, error) {
	n := len(a.histories)
	previous, reward, state, position := make([]int32, n*k), make([]float32, n*k), make([]int32, n*k),
		make([]int32, n*k)
	length := make([]int32, n)
	for i := range n {
		length[i] = int32(a.length)
		for j := range k {
			at := i*k + j
			previous[at], reward[at], state[at] = token(i, j)
			position[at] = int32(a.length + j)
			if exec == a.instead {
				position[at] = int32(a.length)
			}
		}
	}
	in := []any{
		a.params,
		tensors.FromFlatDataAndDimensions(previous, n, k), tensors.FromFlatDataAndDimensions(reward, n, k),
		tensors.FromFlatDataAndDimensions(state, n, k), tensors.FromFlatDataAndDimensions(position, n, k),
	}
	if exec != a.first {
		in = append(in, a.cache, length)
	}
	out, err := exec.Call(in...)
	if err != nil {
		return nil, nil, err
	}
	logits, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return nil, nil, err
	}
	rows := make([]*mat.Dense, n)
	for i := range rows {
		rows[i] = mat.NewDense(k, a.Config.Actions, nil)
		for j, z := range logits[i*k*a.Config.Actions : (i+1)*k*a.Config.Actions] {
			rows[i].RawMatrix().Data[j] = float64(z)
		}
		for j := range k {
			pmd.Softmax(rows[i].RawRowView(j))
		}
	}
	var cache *tensors.Tensor
	if len(out) > 1 {
		cache = out[1]
	}
	return rows, cache, out[0].FinalizeAll()
}

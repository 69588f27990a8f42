package distill

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer/engine"
)

// Model is a trained network.
type Model struct {
	Config  Config
	network *engine.Network[float32]
}

// Load reads weights that training released.
func Load(path string) (*Model, error) {
	c, _, params, err := train.ReadNetwork[Config](path)
	if err != nil {
		return nil, err
	}
	return NewModel(c, params)
}

// NewModel returns the network of a valid c with the flat parameter vector params.
func NewModel(c Config, params []float32) (*Model, error) {
	n, err := engine.New[float32](c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("distill: %w", err)
	}
	return &Model{c, n}, nil
}

// controller deploys a model, see [baseline.InContext]. With cleared, its context has room for one round: the
// control in which nothing is remembered between rounds.
func (m *Model) controller(root uint64, cleared bool) baseline.InContext {
	room := m.Config.Context
	if cleared {
		room = m.Config.ShortContext().Context
	}
	return baseline.InContext{
		Name: "distill", States: m.Config.States, Actions: m.Config.Actions, Root: root,
		Lives: func(histories []*baseline.History) baseline.Lives { return m.agents(histories, room) },
	}
}

// agents implements baseline.Lives.
type agents struct {
	*Model
	histories []*baseline.History
	room      int // tokens of the context that are used
	// pending counts the tokens that have been taken in: the next one's state is
	// known, and neither is it in the caches nor has an action been taken. In a life
	// that has been recorded, histories go on after it.
	pending int
	caches  []*engine.Cache[float32] // of the tokens before, as many of each agent
}

func (m *Model) agents(histories []*baseline.History, room int) *agents {
	a := &agents{Model: m, histories: histories, room: room}
	for range histories {
		a.caches = append(a.caches, m.network.NewCache(room))
	}
	return a
}

// length is how many tokens the caches hold.
func (a *agents) length() int { return a.caches[0].Length }

// Begin implements baseline.Lives.
func (a *agents) Begin() error {
	_, err := a.Take(a.forget())
	return err
}

// forget makes room in the context for a round and the query after it: where there is none it empties the caches
// and returns how many of the last tokens are to be taken in again, positions counting from the first of them.
func (a *agents) forget() (again int) {
	if a.length()+baseline.Window+1 <= a.room {
		return 0
	}
	for _, cache := range a.caches {
		cache.Length = 0
	}
	again = a.room - baseline.Window - 1
	a.pending -= again
	return again
}

// Take implements baseline.Lives.
func (a *agents) Take(k int) ([]*mat.Dense, error) {
	if k == 0 {
		return nil, nil
	}
	rows, err := a.extend(k, false, func(i, j int) (previous int32, reward float32, state int32) {
		return a.histories[i].At(a.pending + j)
	})
	a.pending += k
	return rows, err
}

// Policies implements baseline.Lives.
func (a *agents) Policies() ([]*mat.Dense, error) {
	return a.extend(a.Config.States, true, func(i, s int) (previous int32, reward float32, state int32) {
		previous, reward, _ = a.histories[i].At(a.pending)
		return previous, reward, int32(s)
	})
}

// extend shows k tokens to each agent after those in its cache, one after the other or each by itself,
// and returns the distributions of the actions at them [k, A].
func (a *agents) extend(k int, alternatives bool, token func(i, j int) (int32, float32, int32)) ([]*mat.Dense, error) {
	n, features := len(a.histories), a.Config.Network().Features
	tokens := make([]float32, n*k*features)
	for i := range n {
		for j := range k {
			position := a.length() + j
			if alternatives {
				position = a.length()
			}
			previous, reward, state := token(i, j)
			a.Config.token(tokens[(i*k+j)*features:][:features], previous, reward, state, position)
		}
	}
	logits, err := a.network.Extend(a.caches, k, tokens, alternatives)
	if err != nil {
		return nil, fmt.Errorf("distill: %w", err)
	}
	rows := make([]*mat.Dense, n)
	for i := range rows {
		rows[i] = mat.NewDense(k, a.Config.Actions, nil)
		for j, z := range logits[i*k*a.Config.Actions:][:k*a.Config.Actions] {
			rows[i].RawMatrix().Data[j] = float64(z)
		}
		for j := range k {
			pmd.Softmax(rows[i].RawRowView(j))
		}
	}
	return rows, nil
}

// token writes the network's input from the previous action, negative for none, a reward, a
// state and a position.
func (c Config) token(into []float32, previous int32, reward float32, state int32, position int) {
	if previous >= 0 {
		into[previous] = 1
	}
	into[c.Actions] = reward
	into[c.Actions+1+int(state)] = 1
	into[c.Actions+1+c.States+position] = 1
}

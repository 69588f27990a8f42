package train

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer/engine"
)

// Model is a trained network. It works on as many cores as GOMAXPROCS says, whose number changes no
// bit of the results; nor does what else is in a batch.
type Model struct {
	Config  Config
	Params  []float32 // flat, in the order of the network's Layout
	network *engine.Network[float32]
}

// Load reads weights that Train released.
func Load(path string) (*Model, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	var c Config
	config := []byte(f.Metadata["config"])
	if err = json.Unmarshal(config, &c); err == nil {
		err = c.Validate()
	}
	if err != nil {
		const format = "train: not the weights that were asked for: of the configuration %.40s…: %w (in %s)"
		return nil, fmt.Errorf(format, config, err, path)
	}
	params, err := flat(path, f, c.Network().Layout())
	if err != nil {
		return nil, err
	}
	return NewModel(c, params)
}

// NewModel returns the network of c with the flat parameter vector params. It returns an error on a
// c that is not valid and on parameters of another number or not finite.
func NewModel(c Config, params []float32) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n, err := engine.New[float32](c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Model{c, params, n}, nil
}

// answers takes the tokens of contexts, which encode writes, through the network, and returns what it puts out
// for each pair of state and action, of the last of the tokens: a table [S, A] a context.
func (m *Model) answers(batch []control.Context, encode func(control.Context, []float32)) ([]*mat.Dense, error) {
	if err := m.check(batch); err != nil {
		return nil, err
	}
	c := m.Config
	tokens, pairs := c.ContextTokens(), c.States()*c.Actions
	size := tokens * c.Network().Features
	input := make([]float32, len(batch)*size)
	for i, x := range batch {
		encode(x, input[i*size:][:size])
	}
	outputs, err := m.network.Forward(engine.Pass{B: len(batch), T: tokens, K: pairs}, input)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	tables := make([]*mat.Dense, len(batch))
	for i := range tables {
		tables[i] = mat.NewDense(c.States(), c.Actions, nil)
		for j, v := range outputs[i*pairs:][:pairs] {
			if math.IsNaN(float64(v)) {
				return nil, fmt.Errorf("train: the network's output %d for context %d is not a number", j, i)
			}
			tables[i].RawMatrix().Data[j] = float64(v)
		}
	}
	return tables, nil
}

// check refuses invalid contexts, sizes that the network cannot take, and a critic's without their MDP.
func (m *Model) check(batch []control.Context) error {
	states, actions := m.Config.States(), m.Config.Actions
	for _, x := range batch {
		err := x.Check(states, actions)
		switch {
		case x.MDP == nil && m.Config.Objective == Critic:
			err = fmt.Errorf("the MDP is missing, from which a critic samples")
		case x.MDP != nil && (x.MDP.States() != states || x.MDP.Actions() != actions):
			err = fmt.Errorf("the MDP is [%d, %d], the network takes [%d, %d]",
				x.MDP.States(), x.MDP.Actions(), states, actions)
		}
		if err != nil {
			return fmt.Errorf("train: problem %d: %w", x.Problem, err)
		}
	}
	return nil
}

// Actor returns the model as an actor: π̂_{k+1} = softmax of its logits, in float64. With PriorReadout the logits
// contain log π itself, unclipped, so an action without mass stays without mass.
func (m *Model) Actor() (control.Actor, error) {
	if m.Config.Objective == Critic {
		return nil, fmt.Errorf("train: the weights are a critic's, want an actor's")
	}
	return actor{m}, nil
}

type actor struct{ *Model } // a control.Actor

func (m actor) Act(batch []control.Context) ([]pmd.Policy, error) {
	tables, err := m.answers(batch, m.Config.actorTokens)
	policies := make([]pmd.Policy, len(tables))
	for i, logits := range tables {
		policies[i].Pi = logits
		for s := range m.Config.States() {
			row := logits.RawRowView(s)
			for a := range row {
				if m.Config.Recipe.Readout == PriorReadout {
					row[a] += numeric.Log(batch[i].Pi.At(s, a))
				}
			}
			pmd.Softmax(row)
		}
	}
	return policies, err
}

// Trace returns every intermediate result of the network on an actor's context.
func (m *Model) Trace(x control.Context) (*engine.Trace, error) {
	_, err := m.Actor()
	if err = cmp.Or(err, m.check([]control.Context{x})); err != nil {
		return nil, err
	}
	flat := make([]float32, m.Config.ContextTokens()*m.Config.Network().Features)
	m.Config.actorTokens(x, flat)
	return m.network.Trace(flat)
}

// Critic returns the model as a critic that samples m transitions of every state-action pair a round from the MDP. The
// samples of a problem's round are a stream of their own below root.
func (m *Model) Critic(root uint64) (control.Critic, error) {
	if m.Config.Objective != Critic {
		return nil, fmt.Errorf("train: the weights are an actor's (%s), want a critic's", m.Config.Objective)
	}
	return critic{m, root}, nil
}

type critic struct { // a control.Critic
	*Model
	root uint64
}

func (m critic) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	return m.answers(batch, func(x control.Context, into []float32) {
		rng := seed.New(m.root, "critic", x.Problem, x.Round)
		m.Config.criticTokens(into, m.Config.sample(rng, x.MDP, x.Pi, x.Q))
	})
}

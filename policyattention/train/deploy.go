package train

import (
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
	Step    int // optimizer steps behind the weights
	forward func(p engine.Pass, tokens []float32) ([]float64, error)
}

// Load reads weights that Train released.
func Load(path string) (*Model, error) { return load(path, newModel[float32]) }

// LoadExact is Load of a model in float64, with the same bits on every platform.
func LoadExact(path string) (*Model, error) { return load(path, newModel[float64]) }

func load(path string, model func(c Config, step int, params []float32) (*Model, error)) (*Model, error) {
	c, step, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	return model(c, step, params)
}

// With returns the model of other weights.
func (m *Model) With(path string) (*Model, error) { return Load(path) }

// NewModel returns the network of c with the flat parameter vector params. It returns an error on a
// c that is not valid and on parameters of another number or not finite.
func NewModel(c Config, step int, params []float32) (*Model, error) {
	return newModel[float32](c, step, params)
}

func newModel[F engine.Float](c Config, step int, params []float32) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n, err := engine.New[F](c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Model{c, step, func(p engine.Pass, tokens []float32) ([]float64, error) {
		outputs, err := n.Forward(p, as[F](tokens))
		return as[float64](outputs), err
	}}, nil
}

// as is x as numbers of another type.
func as[G, F engine.Float](x []F) []G {
	if same, ok := any(x).([]G); ok {
		return same
	}
	y := make([]G, len(x))
	for i, v := range x {
		y[i] = G(v)
	}
	return y
}

// answers takes the tokens of n contexts through the network, which encode writes [tokens, Features]:
// outputs for each pair of state and action [n, S·A], the last of the tokens.
func (m *Model) answers(n, tokens, pairs int, encode func(i int, into []float32)) ([]float64, error) {
	size := tokens * m.Config.Network().Features
	input := make([]float32, n*size)
	for i := range n {
		encode(i, input[i*size:][:size])
	}
	outputs, err := m.forward(engine.Pass{B: n, T: tokens, K: pairs}, input)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	for i, v := range outputs {
		if math.IsNaN(v) {
			return nil, fmt.Errorf("train: the network's output %d is not a number", i)
		}
	}
	return outputs, nil
}

// check refuses invalid contexts and sizes that the network cannot take, a
// critic's also without their MDP, and returns their common number of states.
func (m *Model) check(batch []control.Context) (int, error) {
	if len(batch) == 0 {
		return 0, fmt.Errorf("train: an empty batch")
	}
	states := 0
	for i, x := range batch {
		if x.Pi == nil {
			return 0, fmt.Errorf("train: problem %d: the policy is missing", x.Problem)
		}
		s, a := x.Pi.Dims()
		if i == 0 {
			states = s
		}
		switch {
		case s != states:
			return 0, fmt.Errorf("train: problems of %d and of %d states in one batch", states, s)
		case states > m.Config.Slots || len(m.Config.Sizes) == 1 && m.Config.Slots == m.Config.Sizes[0] && states != m.Config.Slots:
			return 0, fmt.Errorf("train: problem %d has %d states, the network takes %d", x.Problem, states, m.Config.Slots)
		case a != m.Config.Actions:
			return 0, fmt.Errorf("train: problem %d has %d actions, the network takes %d", x.Problem, a, m.Config.Actions)
		case m.Config.Objective == Critic && x.MDP == nil:
			return 0, fmt.Errorf("train: problem %d: the MDP is missing, from which a critic samples", x.Problem)
		case m.Config.Objective == Critic && (x.MDP.States() != s || x.MDP.Actions() != a):
			return 0, fmt.Errorf("train: problem %d: the MDP is [%d, %d], the policy [%d, %d]", x.Problem, x.MDP.States(), x.MDP.Actions(), s, a)
		}
		if err := x.Check(states, m.Config.Actions); err != nil {
			return 0, fmt.Errorf("train: problem %d: %w", x.Problem, err)
		}
	}
	return states, nil
}

// Actor returns the model as an actor: π̂_{k+1} = softmax of its logits, in
// float64. With PriorReadout the logits contain log π itself, unclipped, so an
// action without mass stays without mass.
func (m *Model) Actor() (control.Actor, error) {
	if m.Config.Objective == Critic {
		return nil, fmt.Errorf("train: the weights are a critic's, want an actor's")
	}
	return actor{m}, nil
}

type actor struct{ *Model }

// Act implements control.Actor.
func (m actor) Act(batch []control.Context) ([]*mat.Dense, error) {
	states, err := m.check(batch)
	if err != nil {
		return nil, err
	}
	c := m.Config
	slot := identity(states)
	pairs := states * c.Actions
	logits, err := m.answers(len(batch), pairs, pairs, func(i int, into []float32) {
		c.actorTokens(into, slot, batch[i].Pi, batch[i].Q, batch[i].Eta)
	})
	if err != nil {
		return nil, err
	}
	policies := make([]*mat.Dense, len(batch))
	for i, x := range batch {
		next := mat.NewDense(states, c.Actions, nil)
		for s := range states {
			row := next.RawRowView(s)
			for a := range row {
				row[a] = logits[i*pairs+s*c.Actions+a]
				if c.Recipe.Readout == PriorReadout {
					row[a] += numeric.Log(x.Pi.At(s, a))
				}
			}
			pmd.Softmax(row)
		}
		policies[i] = next
	}
	return policies, nil
}

// Critic returns the model as a critic that samples m transitions of every
// state-action pair a round from the MDP. The samples of a problem's round are
// a stream of their own below root.
func (m *Model) Critic(root uint64) (control.Critic, error) {
	if m.Config.Objective != Critic {
		return nil, fmt.Errorf("train: the weights are an actor's (%s), want a critic's", m.Config.Objective)
	}
	return critic{m, root}, nil
}

type critic struct {
	*Model
	root uint64
}

// Evaluate implements control.Critic.
func (m critic) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	states, err := m.check(batch)
	if err != nil {
		return nil, err
	}
	c := m.Config
	slot := identity(states)
	pairs := states * c.Actions
	tokens := c.ContextTokens(pairs)
	means := make([]*mat.Dense, len(batch))
	output, err := m.answers(len(batch), tokens, pairs, func(i int, into []float32) {
		x := batch[i]
		rng := seed.New(m.root, "critic", x.Problem, x.Round)
		sampled := c.sample(rng, x.MDP, x.Pi, x.Q)
		c.criticTokens(into, slot, x.Pi, x.Q, sampled)
		means[i] = sampled.mean
	})
	if err != nil {
		return nil, err
	}
	values := make([]*mat.Dense, len(batch))
	for i := range batch {
		q := mat.NewDense(states, c.Actions, nil)
		for j := range pairs {
			v := output[i*pairs+j]
			if c.Recipe.Readout == PriorReadout {
				v += means[i].RawMatrix().Data[j]
			}
			q.RawMatrix().Data[j] = v
		}
		values[i] = q
	}
	return values, nil
}

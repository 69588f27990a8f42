package train

import (
	"fmt"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Model is a trained network on a backend.
type Model struct {
	Config  Config
	Step    int // optimizer steps behind the weights
	program *program
	weights weights
}

// Load reads weights that Train released.
func Load(backend compute.Backend, path string) (*Model, error) {
	c, step, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	return NewModel(backend, c, step, params)
}

// NewModel returns the network of c with the flat parameter vector params. On xla:cpu
// it works on all processor cores that the program may use (see [backend.Cores]), whose
// number changes no bit of the results. It returns an error on a c that is not valid and on
// parameters of another number or not finite.
func NewModel(backend compute.Backend, c Config, step int, params []float32) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := newProgram(backend, c)
	if err != nil {
		return nil, err
	}
	w, err := p.load(params)
	if err != nil {
		p.close()
		return nil, err
	}
	return &Model{c, step, p, w}, nil
}

// Close ends the compiled program that the model shares with those that With made of it.
func (m *Model) Close() { m.program.close() }

// outputs is how many of the tokens of a context, at its end, the network answers:
// all of an actor's, the queries of a critic's.
func (c Config) outputs(tokens int) int {
	if c.Objective == Critic {
		return tokens / c.ContextTokens(1)
	}
	return tokens
}

// With returns the model of other weights of the same network, which share m's
// compiled program.
func (m *Model) With(path string) (*Model, error) {
	c, step, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	if got, want := c.Network(), m.Config.Network(); got != want {
		return nil, fmt.Errorf("train: %s holds the network %+v, want %+v", path, got, want)
	}
	if c.ContextTokens(1) != m.Config.ContextTokens(1) {
		return nil, fmt.Errorf("train: %s is of another kind of network (%s, %d samples), want %s, %d samples", path, c.Objective, c.Samples, m.Config.Objective, m.Config.Samples)
	}
	w, err := m.program.load(params)
	if err != nil {
		return nil, err
	}
	return &Model{c, step, m.program, w}, nil
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
	logits, err := m.program.forward(m.weights, len(batch), pairs, func(i int, into []float32) {
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
				row[a] = float64(logits[i*pairs+s*c.Actions+a])
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
	output, err := m.program.forward(m.weights, len(batch), tokens, func(i int, into []float32) {
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
			v := float64(output[i*pairs+j])
			if c.Recipe.Readout == PriorReadout {
				v += means[i].RawMatrix().Data[j]
			}
			q.RawMatrix().Data[j] = v
		}
		values[i] = q
	}
	return values, nil
}

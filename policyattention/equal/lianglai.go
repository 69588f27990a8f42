package equal

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/reference"
)

// block is Liang–Lai's trained block and its prompt.
type block struct {
	prompt *lianglai.ActorCriticPrompt
	block  *lianglai.Block
}

// learn adds to a learner what the block makes of transitions with the given weights,
// whose sum stands for one window; nil are equal weights. The block is linear in z zᵀ
// over its columns z, so a weight is a factor √(n·weight) of a column.
func (b *block) learn(l *baseline.ActorCritic, window []baseline.Transition, weights []float64, pi *mat.Dense, meter *mdp.Meter) error {
	context, n := b.prompt.Context(window, pi), len(window)
	for i, w := range weights {
		row, factor := context.RawRowView(i), math.Sqrt(float64(n)*w)
		for j := range row {
			row[j] *= factor
		}
	}
	d := b.prompt.Width()
	// Two products with a matrix [d, d], two with the columns, a division; the columns; the
	// sums with θ and w.
	meter.Charge(4*d*d + 4*n*d + d + n*d + len(l.Theta.RawMatrix().Data) + len(l.W))
	return l.Step(b.prompt.Increment(b.block.Attend(context, b.prompt.Query(l))))
}

// learner returns the learner before its first round.
func learner(pi0 *mat.Dense, start baseline.Start) (*baseline.ActorCritic, error) {
	if start == baseline.Uniform {
		rows, columns := pi0.Dims()
		pi0 = mat.NewDense(rows, columns, nil)
		for i := range pi0.RawMatrix().Data {
			pi0.RawMatrix().Data[i] = 1 / float64(columns)
		}
	}
	return baseline.NewActorCritic(pi0)
}

// blockAgent is the block on transitions.
type blockAgent struct {
	*block
	told       reference.Told
	learner    *baseline.ActorCritic
	pi         *mat.Dense
	generative bool
}

// newBlockAgent returns the block as an agent. The update is an expectation under the
// policy, so generative transitions, whose actions are uniform, get the weights
// A·π(a|s)/n.
func newBlockAgent(b *block, t reference.Told, start baseline.Start, generative bool) (reference.Agent, error) {
	l, err := learner(t.Pi0, start)
	if err != nil {
		return nil, err
	}
	return &blockAgent{b, t, l, l.Policy(), generative}, nil
}

// Behaviour implements reference.Agent.
func (a *blockAgent) Behaviour() *mat.Dense { return a.pi }

// Learn implements reference.Agent.
func (a *blockAgent) Learn(window []baseline.Transition) (*mat.Dense, error) {
	var weights []float64
	if a.generative {
		for _, t := range window {
			weights = append(weights, float64(a.told.Actions)*a.pi.At(t.State, t.Action)/float64(len(window)))
		}
	}
	if err := a.learn(a.learner, window, weights, a.pi, a.told.Meter); err != nil {
		return nil, err
	}
	a.told.Meter.Charge(5 * a.told.States * a.told.Actions) // the softmax
	a.pi = a.learner.Policy()
	return a.pi, nil
}

// expected is the block with the expected update in place of its window: every pair and
// successor with the weight π(a|s)P(s'|s,a)/S. It knows Q^{π₀} at the beginning, like all
// that have the model, so w starts at V^{π₀}.
type expected struct {
	*block
	start baseline.Start
}

// Run implements control.Controller.
func (e expected) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		m := p.MDP
		l, err := learner(p.Pi0, e.start)
		if err != nil {
			return nil, err
		}
		pi := l.Policy()
		q, err := m.PolicyValue(pi)
		if err != nil {
			return nil, err
		}
		for s := range l.W {
			l.W[s] = mat.Dot(pi.RowView(s), q.RowView(s))
		}
		m.Meter().Charge(2 * m.States() * m.Actions())
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
		for range rounds {
			var all []baseline.Transition
			var weights []float64
			for s := range m.States() {
				for a, chosen := range pi.RawRowView(s) {
					reward := m.Reward(s, a)
					for next, probability := range m.Next(s, a) {
						all = append(all, baseline.Transition{State: s, Action: a, Reward: reward, Next: next})
						weights = append(weights, chosen*probability/float64(m.States()))
					}
				}
			}
			if err := e.learn(l, all, weights, pi, m.Meter()); err != nil {
				return nil, err
			}
			m.Meter().Charge(5 * m.States() * m.Actions())
			pi = l.Policy()
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
			m.Meter().EndRound()
		}
	}
	return trajectories, nil
}

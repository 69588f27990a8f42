package equal

import (
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/reference"
)

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
	baseline.Update
	told       reference.Told
	learner    *baseline.ActorCritic
	pi         *mat.Dense
	generative bool
}

// newBlockAgent returns the block as an agent. The update is an expectation under the
// policy, so generative transitions, whose actions are uniform, get the weights
// A·π(a|s)/n.
func newBlockAgent(b baseline.Update, t reference.Told, start baseline.Start, generative bool) (reference.Agent, error) {
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
	if err := a.Learned(a.learner, window, weights, a.pi, a.told.Meter); err != nil {
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
	baseline.Update
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
			if err := e.Learned(l, all, weights, pi, m.Meter()); err != nil {
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

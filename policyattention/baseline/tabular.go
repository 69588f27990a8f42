package baseline

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// greedy returns the greedy policy of q [S, A], uniform among ties.
func (t Told) greedy(q *mat.Dense) (*mat.Dense, error) {
	return pmd.RewardOnly.Update(mdp.UniformPolicy(t.States, t.Actions), q, 1)
}

// QLearning is tabular Q-learning from Q = 0 with a constant step α. It acts ε-greedily
// and returns the greedy policy.
func QLearning(t Told, alpha, epsilon float64) (Agent, error) {
	return newTabular(t, alpha, epsilon, false)
}

// Sarsa is SARSA from Q = 0 with a constant step α: the action at the successor is drawn
// from the ε-greedy policy of the round. It returns the greedy policy.
func Sarsa(t Told, alpha, epsilon float64) (Agent, error) {
	return newTabular(t, alpha, epsilon, true)
}

// tabular learns Q by steps along the window.
type tabular struct {
	Told
	alpha, epsilon float64
	onPolicy       bool
	q, behaviour   *mat.Dense
}

func newTabular(t Told, alpha, epsilon float64, onPolicy bool) (Agent, error) {
	l := &tabular{Told: t, alpha: alpha, epsilon: epsilon, onPolicy: onPolicy,
		q: mat.NewDense(t.States, t.Actions, nil)}
	_, err := l.act()
	return l, err
}

// act sets the behaviour and returns the greedy policy.
func (l *tabular) act() (*mat.Dense, error) {
	pi, err := l.greedy(l.q)
	if err != nil {
		return nil, err
	}
	l.behaviour, err = pmd.Mix(pi, l.epsilon)
	return pi, err
}

// Behaviour implements Agent.
func (l *tabular) Behaviour() *mat.Dense { return l.behaviour }

// Learn implements Agent.
func (l *tabular) Learn(window []Transition) (*mat.Dense, error) {
	for _, t := range window {
		next := l.q.RawRowView(t.Next)
		value := slices.Max(next)
		if l.onPolicy {
			value = next[mdp.Sample(l.Rand, l.behaviour.RawRowView(t.Next))]
		}
		x := &l.q.RawRowView(t.State)[t.Action]
		*x += l.alpha * (t.Reward + l.Gamma*value - *x)
	}
	return l.act()
}

// CertaintyEquivalence plans to the end in the model of the frequencies of all
// transitions so far. A pair that has not been seen is believed to stay in its state with
// the greatest reward seen, which makes the plan go and look. It acts by the plan mixed
// with the uniform policy in the share ε, and returns the plan.
func CertaintyEquivalence(t Told, epsilon float64) (Agent, error) {
	if !(epsilon >= 0 && epsilon <= 1) {
		return nil, fmt.Errorf("baseline: ε is %v, want 0 ≤ ε ≤ 1", epsilon)
	}
	return &planner{Told: t, seen: newCounts(t), epsilon: epsilon,
		behaviour: mdp.UniformPolicy(t.States, t.Actions)}, nil
}

// PosteriorSampling has the distribution of the random family as its prior: successors are
// Dirichlet(1, …, 1), rewards uniform on [−1, 1] until seen. It acts by the plan of a
// model drawn from the posterior (Osband et al., NeurIPS 2013) and returns the plan of
// the posterior mean.
func PosteriorSampling(t Told) (Agent, error) {
	p := &planner{Told: t, seen: newCounts(t), bayes: true}
	drawn, reward := p.drawn()
	var err error
	p.behaviour, err = p.plan(drawn, reward)
	return p, err
}

// planner keeps counts and plans.
type planner struct {
	Told
	seen      *counts
	bayes     bool
	epsilon   float64
	behaviour *mat.Dense
}

// Behaviour implements Agent.
func (p *planner) Behaviour() *mat.Dense { return p.behaviour }

// Learn implements Agent.
func (p *planner) Learn(window []Transition) (*mat.Dense, error) {
	p.seen.add(window)
	next, reward := p.believed()
	pi, err := p.plan(next, reward)
	if err != nil {
		return nil, err
	}
	if !p.bayes {
		p.behaviour, err = pmd.Mix(pi, p.epsilon)
		return pi, err
	}
	next, reward = p.drawn()
	p.behaviour, err = p.plan(next, reward)
	return pi, err
}

// believed returns the model to plan in: of frequencies, or the posterior mean.
func (p *planner) believed() (next, reward *mat.Dense) {
	next, reward = mat.NewDense(p.States*p.Actions, p.States, nil), mat.NewDense(p.States, p.Actions, p.seenRewards())
	for pair, n := range p.seen.total {
		row := next.RawRowView(pair)
		switch {
		case p.bayes:
			for s, k := range p.seen.of(pair) {
				row[s] = (1 + k) / (float64(p.States) + n)
			}
		case n == 0:
			row[pair/p.Actions] = 1
		default:
			for s, k := range p.seen.of(pair) {
				row[s] = k / n
			}
		}
	}
	return next, reward
}

// seenRewards returns the rewards [S·A]; of pairs not seen what is believed of them.
func (p *planner) seenRewards() []float64 {
	reward := make([]float64, len(p.seen.total))
	copy(reward, p.seen.reward)
	for pair, n := range p.seen.total {
		if n == 0 && !p.bayes {
			reward[pair] = p.seen.best
		}
	}
	return reward
}

// drawn returns a model drawn from the posterior.
func (p *planner) drawn() (next, reward *mat.Dense) {
	next, reward = mat.NewDense(p.States*p.Actions, p.States, nil), mat.NewDense(p.States, p.Actions, p.seenRewards())
	for pair, n := range p.seen.total {
		row, sum := next.RawRowView(pair), 0.0
		for s, k := range p.seen.of(pair) {
			row[s] = distuv.Gamma{Alpha: 1 + k, Beta: 1, Src: p.Rand}.Rand()
			sum += row[s]
		}
		for s := range row {
			row[s] /= sum
		}
		if n == 0 {
			reward.RawMatrix().Data[pair] = 2*p.Rand.Float64() - 1
		}
	}
	return next, reward
}

// plan returns the greedy policy of Q* in a model.
func (p *planner) plan(next, reward *mat.Dense) (*mat.Dense, error) {
	m, err := mdp.New(p.Gamma, next, reward)
	if err != nil {
		return nil, err
	}
	optimum, err := m.Optimal()
	if err != nil {
		return nil, err
	}
	pi := mat.NewDense(p.States, p.Actions, nil)
	for s, a := range optimum.Policy {
		pi.Set(s, a, 1)
	}
	return pi, nil
}

// greedy is the actor that takes the action of the greatest value, uniformly among ties.
var greedy = control.RuleActor(pmd.RewardOnly)

// ValueIteration backs up by the optimality operator and returns the greedy policy.
func ValueIteration() control.Loop {
	return control.Loop{Actor: greedy, Critic: control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
		return c.MDP.OptimalityBackup(c.Q), nil
	})}
}

// PolicyIteration is Howard's: the greedy policy of Q^π.
func PolicyIteration() control.Loop {
	return control.Loop{Actor: greedy, Critic: control.ValueCritic{}}
}

// NaturalPolicyGradient is the softmax natural policy gradient with full evaluation
// (Agarwal et al., JMLR 22, 2021): policy mirror descent with Q^π.
func NaturalPolicyGradient(eta float64) control.Loop {
	return control.Loop{Actor: control.RuleActor(pmd.PMD), Critic: control.ValueCritic{}, Eta: eta}
}

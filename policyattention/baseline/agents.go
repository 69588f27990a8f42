package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Told is what is known of a problem before the first transition.
type Told struct {
	States, Actions int
	Gamma           float64
	Problem         int        // its index
	Pi0             *mat.Dense // [S, A]
	Rand            *rand.Rand // for draws of the learner's own
}

// Agent learns from transitions alone. It takes in those of a round, and returns the round's policy and the one that
// the next round's walk follows, both [S, A]. Its first call, before there are any, says how it begins.
type Agent func(window []Transition) (policy, behaviour *mat.Dense, err error)

// Source returns what hands out the transitions of a round of problem i, given the round's policy. Two controllers with
// equal sources get the same random numbers; with a generative source they get the same transitions.
type Source func(i int, m *mdp.MDP) func(round int, behaviour *mat.Dense) []Transition

// Generative draws n transitions a round from pairs of its choice, whatever the policy: as many from every state and
// action, in their order, and where n is no multiple of S·A, one more from some, which are others each round until all
// have had their turn. Each problem's index and round has a stream of its own below root. Where n is m·S·A, the
// transitions are those that a learned critic with m samples and the same root draws itself.
func Generative(n int, root uint64) Source {
	return func(i int, m *mdp.MDP) func(int, *mat.Dense) []Transition {
		pairs := m.States() * m.Actions()
		each, more := n/pairs, n%pairs
		return func(round int, _ *mat.Dense) []Transition {
			chain, window := &Chain{mdp: m, rng: seed.New(root, "critic", i, round)}, make([]Transition, 0, n)
			for pair := range pairs {
				k := each
				if (pair-round*more%pairs+pairs)%pairs < more {
					k++
				}
				for range k {
					chain.State = pair / m.Actions()
					window = append(window, chain.Step(pair%m.Actions()))
				}
			}
			return window
		}
	}
}

// Walk draws n transitions a round by walking under the agent's policy from where the round before ended, without
// resets, at first from a state drawn uniformly. Each problem's index has a stream of its own below root.
func Walk(n int, root uint64) Source {
	return func(i int, m *mdp.MDP) func(int, *mat.Dense) []Transition {
		chain := NewChain(m, seed.New(root, "baseline", "chain", i))
		return func(_ int, behaviour *mat.Dense) []Transition { return chain.Walk(nil, behaviour, n) }
	}
}

// Agents runs an agent of its own on every problem, problems in parallel.
type Agents struct {
	Source Source
	New    func(Told) (Agent, error)
	Root   uint64 // of the agents' own draws
}

// Run implements control.Controller.
func (c Agents) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("baseline: %d rounds, want at least 1", rounds)
	}
	trajectories := make([]control.Trajectory, len(problems))
	return trajectories, numeric.Parallel(len(problems), func(place int) error {
		p, i := problems[place], problems[place].Index(place)
		agent, err := c.New(told(p, c.Root, i))
		var pi, behaviour *mat.Dense
		if err == nil {
			_, behaviour, err = agent(nil)
		}
		if err != nil {
			return fmt.Errorf("baseline: problem %d: %w", i, err)
		}
		source, policies := c.Source(i, p.MDP), []*mat.Dense{p.Pi0}
		for round := range rounds {
			if pi, behaviour, err = agent(source(round, behaviour)); err == nil {
				err = p.MDP.CheckPolicy(pi)
			}
			if err != nil {
				return fmt.Errorf("baseline: problem %d, round %d: %w", i, round, err)
			}
			policies = append(policies, pi)
		}
		trajectories[place].Policies = policies
		return nil
	})
}

func told(p mdp.Problem, root uint64, i int) Told {
	return Told{States: p.MDP.States(), Actions: p.MDP.Actions(), Gamma: p.MDP.Gamma, Problem: i, Pi0: p.Pi0,
		Rand: seed.New(root, "reference", i)}
}

// QLearning is Q-learning from Q = 0 with a constant step α. It acts ε-greedily and returns the greedy policy.
func QLearning(t Told, alpha, epsilon float64) Agent { return tabular(t, alpha, epsilon, false) }

// Sarsa differs from QLearning in the action at the successor, which is drawn from the round's ε-greedy policy.
func Sarsa(t Told, alpha, epsilon float64) Agent { return tabular(t, alpha, epsilon, true) }

// tabular learns Q by steps along the window. Its greedy policy is uniform among ties.
func tabular(t Told, alpha, epsilon float64, onPolicy bool) Agent {
	q, behaviour := mat.NewDense(t.States, t.Actions, nil), (*mat.Dense)(nil)
	return func(window []Transition) (*mat.Dense, *mat.Dense, error) {
		for _, x := range window {
			next := q.RawRowView(x.Next)
			value := slices.Max(next)
			if onPolicy {
				value = next[mdp.Sample(t.Rand, behaviour.RawRowView(x.Next))]
			}
			v := &q.RawRowView(x.State)[x.Action]
			*v += alpha * (x.Reward + t.Gamma*value - *v)
		}
		pi, err := pmd.RewardOnly.Update(mdp.UniformPolicy(t.States, t.Actions), q, 1)
		if err == nil {
			behaviour, err = pmd.Mix(pi, epsilon)
		}
		return pi, behaviour, err
	}
}

// CertaintyEquivalence plans to the end in the model of the frequencies of all transitions so far. A pair that has not
// been seen is believed to stay in its state with the greatest reward seen, which makes the plan go and look. It acts
// by the plan mixed with the uniform policy in the share ε, and returns the plan.
func CertaintyEquivalence(t Told, epsilon float64) Agent {
	seen := newCounts(t)
	believe := func(pair int, row []float64) (reward float64) {
		if seen.total[pair] == 0 {
			row[pair/t.Actions] = 1
			return seen.best
		}
		for s, k := range seen.next.RawRowView(pair) {
			row[s] = k / seen.total[pair]
		}
		return seen.reward[pair]
	}
	return func(window []Transition) (pi, behaviour *mat.Dense, err error) {
		if len(window) == 0 {
			pi = mdp.UniformPolicy(t.States, t.Actions)
			_, err = pmd.Mix(pi, epsilon) // refuses an ε that is none
			return pi, pi, err
		}
		seen.add(window)
		if pi, err = t.plan(believe); err == nil {
			behaviour, err = pmd.Mix(pi, epsilon)
		}
		return pi, behaviour, err
	}
}

// PosteriorSampling has the distribution of the random family as its prior: successors are Dirichlet(1, …, 1),
// rewards uniform on [−1, 1] until seen. It acts by the plan of a model drawn from the posterior (Osband et al.,
// NeurIPS 2013) and returns the plan of the posterior mean.
func PosteriorSampling(t Told) Agent {
	seen := newCounts(t)
	mean := func(pair int, row []float64) (reward float64) {
		for s, k := range seen.next.RawRowView(pair) {
			row[s] = (1 + k) / (float64(t.States) + seen.total[pair])
		}
		return seen.reward[pair]
	}
	draw := func(pair int, row []float64) (reward float64) {
		sum := 0.0
		for s, k := range seen.next.RawRowView(pair) {
			row[s] = distuv.Gamma{Alpha: 1 + k, Beta: 1, Src: t.Rand}.Rand()
			sum += row[s]
		}
		for s := range row {
			row[s] /= sum
		}
		if seen.total[pair] == 0 {
			return 2*t.Rand.Float64() - 1
		}
		return seen.reward[pair]
	}
	return func(window []Transition) (pi, behaviour *mat.Dense, err error) {
		seen.add(window)
		if pi, err = t.plan(mean); err == nil {
			behaviour, err = t.plan(draw)
		}
		return pi, behaviour, err
	}
}

// plan returns the greedy policy of Q* in a model: of each pair believe writes the row of P [S] and returns the reward.
func (t Told) plan(believe func(pair int, row []float64) (reward float64)) (*mat.Dense, error) {
	next, reward := mat.NewDense(t.States*t.Actions, t.States, nil), mat.NewDense(t.States, t.Actions, nil)
	for pair := range t.States * t.Actions {
		reward.RawMatrix().Data[pair] = believe(pair, next.RawRowView(pair))
	}
	m, err := mdp.New(t.Gamma, next, reward)
	if err != nil {
		return nil, err
	}
	optimum, err := m.Optimal()
	if err != nil {
		return nil, err
	}
	pi := mat.NewDense(t.States, t.Actions, nil)
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

// NaturalPolicyGradient is the softmax one with full evaluation, PMD with Q^π (Agarwal et al., JMLR 22, 2021).
func NaturalPolicyGradient(eta float64) control.Loop {
	return control.Loop{Actor: control.RuleActor(pmd.PMD), Critic: control.ValueCritic{}, Eta: eta}
}

// Estimator returns the action values Q_{k+1} [S, A] of the policy pi from Q_k and a round's transitions, which were
// drawn under pi or from all pairs. It must change neither pi nor q.
type Estimator func(pi, q *mat.Dense, window []Transition) *mat.Dense

// Sampled is the critic that forms Q_{k+1} from transitions alone, with an estimator of its own, whose draws are below
// root, for each problem from its round 0.
func Sampled(source Source, root uint64, estimator func(Told) Estimator) control.Critic {
	problems := map[int]func(x control.Context) *mat.Dense{}
	return control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
		if x.Round == 0 {
			draw := source(x.Problem, x.MDP)
			estimate := estimator(told(mdp.Problem{MDP: x.MDP, Pi0: x.Pi}, root, x.Problem))
			problems[x.Problem] = func(x control.Context) *mat.Dense { return estimate(x.Pi, x.Q, draw(x.Round, x.Pi)) }
		}
		next, ok := problems[x.Problem]
		if !ok {
			return nil, fmt.Errorf("baseline: problem %d begins at round %d, want 0", x.Problem, x.Round)
		}
		return next(x), nil
	})
}

// Improved is the loop of a critic that learns from transitions, and an actor: each round the critic
// returns Q_{k+1} of π_k, and the actor the round's policy from (π_k, Q_{k+1}, η). It begins with the critic,
// since nothing is known of Q before the first transition: Q_0 = 0.
func Improved(critic control.Critic, actor control.Actor, eta float64) control.Loop {
	l := &improved{critic: critic, actor: actor}
	return control.Loop{Actor: l, Critic: l, Eta: eta, Start: func(p mdp.Problem) (*mat.Dense, error) {
		return mat.NewDense(p.MDP.States(), p.MDP.Actions(), nil), nil
	}}
}

// improved asks its critic before its actor.
type improved struct {
	critic control.Critic
	actor  control.Actor
	q      []*mat.Dense // the critic's latest tables
}

// Act implements control.Actor.
func (l *improved) Act(batch []control.Context) (policies []pmd.Policy, err error) {
	if l.q, err = control.Evaluate(l.critic, batch); err != nil {
		return nil, err
	}
	for i, q := range l.q {
		batch[i].Q = q
	}
	policies, err = control.Act(l.actor, batch)
	for i := range policies { // as stored rows were computed: what underflows stays 0
		policies[i].Log = nil
	}
	return policies, err
}

// Evaluate implements control.Critic.
func (l *improved) Evaluate([]control.Context) ([]*mat.Dense, error) { return l.q, nil }

// Mean replaces Q(s,a), for the pairs that a round has transitions of, by
//
//	(1−w) Q_k(s,a) + w·mean of r + γ⟨π(·|s'), Q_k(s',·)⟩:
//
// the mean of samples where the weight w is 1, shrunk toward Q_k where it is less.
func Mean(t Told, w float64) Estimator {
	return func(pi, q *mat.Dense, window []Transition) *mat.Dense {
		values := t.values(pi, q)
		sum, count := make([]float64, t.States*t.Actions), make([]float64, t.States*t.Actions)
		for _, x := range window {
			pair := x.State*t.Actions + x.Action
			sum[pair] += x.Reward + t.Gamma*values[x.Next]
			count[pair]++
		}
		next := mat.DenseCopyOf(q)
		for pair, n := range count {
			if n > 0 {
				x := &next.RawMatrix().Data[pair]
				*x += w * (sum[pair]/n - *x)
			}
		}
		return next
	}
}

// values returns ⟨π(·|s), Q(s,·)⟩ of each state [S].
func (t Told) values(pi, q *mat.Dense) []float64 {
	v := make([]float64, t.States)
	for s := range v {
		v[s] = numeric.Dot(pi.RawRowView(s), q.RawRowView(s))
	}
	return v
}

// TD is expected SARSA along the window: Q(s,a) moves by the step β toward r + γ⟨π(·|s'), Q(s',·)⟩.
func TD(t Told, beta float64) Estimator {
	return func(pi, q *mat.Dense, window []Transition) *mat.Dense {
		next := mat.DenseCopyOf(q)
		for _, x := range window {
			v := &next.RawRowView(x.State)[x.Action]
			*v += beta * (x.Reward + t.Gamma*numeric.Dot(pi.RawRowView(x.Next), next.RawRowView(x.Next)) - *v)
		}
		return next
	}
}

// All backs up with the frequencies of all transitions of all rounds so far; pairs without any keep their value.
func All(t Told) Estimator {
	seen := newCounts(t)
	return func(pi, q *mat.Dense, window []Transition) *mat.Dense {
		seen.add(window)
		values, next := t.values(pi, q), mat.DenseCopyOf(q)
		for pair, n := range seen.total {
			if n > 0 {
				sum := numeric.Dot(seen.next.RawRowView(pair), values)
				next.RawMatrix().Data[pair] = seen.reward[pair] + t.Gamma*sum/n
			}
		}
		return next
	}
}

// counts are how often pairs have led where, and their rewards.
type counts struct {
	Told
	next   *mat.Dense // [S·A, S]
	total  []float64  // [S·A]
	reward []float64  // [S·A], which are no random numbers: once seen, they are known
	best   float64    // greatest reward seen, −∞ before any
}

func newCounts(t Told) *counts {
	pairs := t.States * t.Actions
	next := mat.NewDense(pairs, t.States, nil)
	return &counts{t, next, make([]float64, pairs), make([]float64, pairs), math.Inf(-1)}
}

func (c *counts) add(window []Transition) {
	for _, t := range window {
		pair := t.State*c.Actions + t.Action
		c.next.RawRowView(pair)[t.Next]++
		c.total[pair]++
		c.reward[pair] = t.Reward
		c.best = max(c.best, t.Reward)
	}
}

package baseline

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

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

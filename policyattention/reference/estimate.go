package reference

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
)

// Mean replaces Q(s,a), for the pairs that a round has transitions of, by
//
//	(1−w) Q_k(s,a) + w·mean of r + γ⟨π(·|s'), Q_k(s',·)⟩:
//
// the mean of samples where the weight w is 1, shrunk toward Q_k where it is less.
func Mean(t Told, w float64) Estimator { return mean{t, w} }

type mean struct {
	Told
	weight float64
}

// Estimate implements Estimator.
func (m mean) Estimate(pi, q *mat.Dense, window []baseline.Transition) (*mat.Dense, error) {
	values := m.values(pi, q)
	sum, count := make([]float64, m.States*m.Actions), make([]float64, m.States*m.Actions)
	for _, t := range window {
		pair := t.State*m.Actions + t.Action
		sum[pair] += t.Reward + m.Gamma*values[t.Next]
		count[pair]++
	}
	m.Meter.Charge(3 * len(window)) // of each transition the product, the target, the sum
	next := mat.DenseCopyOf(q)
	for pair, n := range count {
		if n > 0 {
			x := &next.RawMatrix().Data[pair]
			*x += m.weight * (sum[pair]/n - *x)
			m.Meter.Charge(4)
		}
	}
	return next, nil
}

// values returns ⟨π(·|s), Q(s,·)⟩ of each state [S].
func (t Told) values(pi, q *mat.Dense) []float64 {
	v := make([]float64, t.States)
	for s := range v {
		v[s] = t.value(pi.RawRowView(s), q.RawRowView(s))
	}
	return v
}

// value returns ⟨p, q⟩ of two rows [A].
func (t Told) value(p, q []float64) float64 {
	sum := 0.0
	for a, w := range p {
		sum += w * q[a]
	}
	t.Meter.Charge(2 * len(p))
	return sum
}

// TD is expected SARSA along the window: Q(s,a) moves by the step β toward
// r + γ⟨π(·|s'), Q(s',·)⟩, transition after transition.
func TD(t Told, beta float64) Estimator { return td{t, beta} }

type td struct {
	Told
	beta float64
}

// Estimate implements Estimator.
func (d td) Estimate(pi, q *mat.Dense, window []baseline.Transition) (*mat.Dense, error) {
	next := mat.DenseCopyOf(q)
	for _, t := range window {
		x := &next.RawRowView(t.State)[t.Action]
		*x += d.beta * (t.Reward + d.Gamma*d.value(pi.RawRowView(t.Next), next.RawRowView(t.Next)) - *x)
	}
	d.Meter.Charge(5 * len(window)) // the product with γ, two sums, the step, the sum with Q
	return next, nil
}

// All backs up with the frequencies of all transitions of all rounds so far; pairs
// without any keep their value.
func All(t Told) Estimator { return &all{t, newCounts(t)} }

type all struct {
	Told
	seen *counts
}

// Estimate implements Estimator.
func (l *all) Estimate(pi, q *mat.Dense, window []baseline.Transition) (*mat.Dense, error) {
	l.seen.add(window)
	values, next := l.values(pi, q), mat.DenseCopyOf(q)
	for pair, n := range l.seen.total {
		if n == 0 {
			continue
		}
		sum := 0.0
		for s, k := range l.seen.of(pair) {
			sum += k * values[s]
		}
		next.RawMatrix().Data[pair] = l.seen.reward[pair] + l.Gamma*sum/n
		l.Meter.Charge(2*l.States + 3)
	}
	return next, nil
}

// counts are how often pairs have led where, and their rewards.
type counts struct {
	states int
	next   []float64 // [S·A·S]
	total  []float64 // [S·A]
	reward []float64 // [S·A], which are no random numbers: once seen, they are known
	best   float64   // greatest reward seen, −∞ before any
}

func newCounts(t Told) *counts {
	pairs := t.States * t.Actions
	return &counts{states: t.States, next: make([]float64, pairs*t.States), total: make([]float64, pairs), reward: make([]float64, pairs), best: math.Inf(-1)}
}

// of returns how often a pair has led to each state [S].
func (c *counts) of(pair int) []float64 { return c.next[pair*c.states : (pair+1)*c.states] }

func (c *counts) add(window []baseline.Transition) {
	actions := len(c.total) / c.states
	for _, t := range window {
		pair := t.State*actions + t.Action
		c.of(pair)[t.Next]++
		c.total[pair]++
		c.reward[pair] = t.Reward
		c.best = max(c.best, t.Reward)
	}
}

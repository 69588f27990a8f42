// Package mdp holds finite discounted Markov decision processes, their Bellman
// operators, exact solutions, and the distributions from which the experiments draw
// them.
//
// A table over states and actions (rewards r, action values Q, policies π) is a
// gonum matrix [S, A]. Transition probabilities are one matrix [S·A, S] whose
// row s·A+a is P(·|s,a).
package mdp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// Tolerance is how far the sum of a probability row may lie from one. No entry
// may lie below zero.
const Tolerance = 1e-9

// MDP is a finite discounted Markov decision process (Section 3 of the paper).
// Build one with New, which validates it; the fields are read-only afterwards.
type MDP struct {
	Gamma float64    // discount γ in [0, 1)
	P     *mat.Dense // [S·A, S], row-stochastic; row s·A+a is P(·|s,a)
	R     *mat.Dense // [S, A], finite rewards r(s,a)

	next     [][]successor // the positive entries of each row of P [S·A]; nil unless they are few
	nonzeros int           // positive entries of P
	meter    *Meter        // nil where nobody counts
}

// successor is a state that an action can lead to.
type successor struct {
	state int
	p     float64
}

// New returns the MDP with discount gamma and copies of the transitions p
// [S·A, S] and the rewards r [S, A]. The error names the first input that is not
// what it must be.
func New(gamma float64, p, r *mat.Dense) (*MDP, error) {
	if !(gamma >= 0 && gamma < 1) {
		return nil, fmt.Errorf("mdp: discount gamma is %v, want 0 ≤ gamma < 1", gamma)
	}
	if p == nil || r == nil || p.IsEmpty() || r.IsEmpty() {
		return nil, errors.New("mdp: transitions P and rewards r must not be empty")
	}
	s, a := r.Dims()
	if rows, cols := p.Dims(); rows != s*a || cols != s {
		return nil, fmt.Errorf("mdp: transitions P are [%d, %d], want [S·A, S] = [%d, %d] for rewards [%d, %d]", rows, cols, s*a, s, s, a)
	}
	for i := range s * a {
		if err := checkDistribution(p.RawRowView(i)); err != nil {
			return nil, fmt.Errorf("mdp: P(·|s=%d,a=%d) %w", i/a, i%a, err)
		}
	}
	for i := range s {
		for j, v := range r.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("mdp: reward r(s=%d,a=%d) is %v, want a finite number", i, j, v)
			}
		}
	}
	m := &MDP{Gamma: gamma, P: mat.DenseCopyOf(p), R: mat.DenseCopyOf(r)}
	for i := range s * a {
		for _, v := range p.RawRowView(i) {
			if v > 0 {
				m.nonzeros++
			}
		}
	}
	if m.nonzeros <= s*a*s/8 {
		m.next = make([][]successor, s*a)
		for i := range m.next {
			for t, v := range p.RawRowView(i) {
				if v > 0 {
					m.next[i] = append(m.next[i], successor{t, v})
				}
			}
		}
	}
	return m, nil
}

// Expect returns E_{S'|s,a} v(S') for state values v [S].
func (m *MDP) Expect(s, a int, v []float64) float64 {
	if m.next == nil {
		m.meter.read(0, 2*len(v))
		return numeric.Dot(m.Next(s, a), v)
	}
	sum := 0.0
	successors := m.next[s*m.Actions()+a]
	m.meter.read(len(successors), 2*len(successors))
	for _, n := range successors {
		sum += float64(n.p * v[n.state])
	}
	return sum
}

// checkDistribution reports in what row is not a probability distribution.
func checkDistribution(row []float64) error {
	sum := 0.0
	for i, v := range row {
		if math.IsNaN(v) || v < 0 || math.IsInf(v, 1) {
			return fmt.Errorf("has entry %d equal to %v, want a probability", i, v)
		}
		sum += v
	}
	switch off := math.Abs(sum - 1); {
	case off > single:
		return fmt.Errorf("sums to %.12g, want 1 within %g", sum, Tolerance)
	case off > Tolerance:
		return fmt.Errorf("sums to %.12g, want 1 within %g; is it of single precision? (NormalizeRows)", sum, Tolerance)
	}
	return nil
}

// single is how far the sum of a row of single precision may lie from one.
const single = 1e-5

// NormalizeRows divides each row of pi by its sum, in place: the rows of a policy
// or of transitions that were computed or stored in single precision then lie
// within Tolerance. It returns an error, and changes nothing, where a row is not a probability
// distribution within 1e-5.
func NormalizeRows(pi *mat.Dense) error {
	if pi == nil {
		return errors.New("mdp: the table to normalize is missing")
	}
	sums := make([]float64, pi.RawMatrix().Rows)
	for i := range sums {
		row := pi.RawRowView(i)
		sums[i] = floats.Sum(row)
		if !(math.Abs(sums[i]-1) <= single) || floats.Min(row) < 0 {
			return fmt.Errorf("mdp: row %d is no probability distribution to single precision: it sums to %.12g and holds %v", i, sums[i], floats.Min(row))
		}
	}
	for i, sum := range sums {
		floats.Scale(1/sum, pi.RawRowView(i))
	}
	return nil
}

// States returns the number of states S.
func (m *MDP) States() int { s, _ := m.R.Dims(); return s }

// Actions returns the number of actions A.
func (m *MDP) Actions() int { _, a := m.R.Dims(); return a }

// Next returns the distribution P(·|s,a) [S]; it must not be changed.
func (m *MDP) Next(s, a int) []float64 {
	m.meter.read(m.States(), 0)
	return m.transitions().RawRowView(s*m.Actions() + a)
}

// Reward returns r(s,a).
func (m *MDP) Reward(s, a int) float64 {
	m.meter.read(1, 0)
	return m.rewards().At(s, a)
}

// Transition draws a transition from the state s under the action a: a reward and a
// successor, by one number of rng.
func (m *MDP) Transition(rng *rand.Rand, s, a int) (reward float64, next int) {
	if m.meter != nil {
		m.meter.now.Transitions++
	}
	return m.rewards().At(s, a), Sample(rng, m.transitions().RawRowView(s*m.Actions()+a))
}

// RMax returns max |r(s,a)|, which a controller may know: no meter counts it.
func (m *MDP) RMax() float64 {
	top := 0.0
	for _, v := range m.rewards().RawMatrix().Data {
		top = math.Max(top, math.Abs(v))
	}
	return top
}

// Bound returns B = R_max/(1-γ), which no action value exceeds in magnitude.
func (m *MDP) Bound() float64 { return m.RMax() / (1 - m.Gamma) }

// CheckPolicy reports why pi is not a policy of m: a wrong shape, or a row that is
// not a probability distribution within Tolerance.
func (m *MDP) CheckPolicy(pi *mat.Dense) error {
	s, a := m.R.Dims()
	return CheckPolicy(pi, s, a)
}

// CheckPolicy reports why pi is not a policy of s states and a actions.
func CheckPolicy(pi *mat.Dense, s, a int) error {
	if err := CheckTable("policy", pi, s, a); err != nil {
		return err
	}
	return CheckRows("policy", pi)
}

// CheckTable reports why the table called name is not [S, A] and finite.
func (m *MDP) CheckTable(name string, x *mat.Dense) error {
	s, a := m.R.Dims()
	return CheckTable(name, x, s, a)
}

// CheckTable reports why the table called name is not [s, a] and finite.
func CheckTable(name string, x *mat.Dense, s, a int) error {
	if x == nil {
		return fmt.Errorf("mdp: %s is missing", name)
	}
	if rows, cols := x.Dims(); rows != s || cols != a {
		return fmt.Errorf("mdp: %s is [%d, %d], want [S, A] = [%d, %d]", name, rows, cols, s, a)
	}
	for i := range s {
		for j, v := range x.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("mdp: %s has entry (s=%d,a=%d) equal to %v, want a finite number", name, i, j, v)
			}
		}
	}
	return nil
}

// CheckRows reports the first row of the table called name that is not a
// probability distribution within Tolerance.
func CheckRows(name string, pi *mat.Dense) error {
	for s := range pi.RawMatrix().Rows {
		if err := checkDistribution(pi.RawRowView(s)); err != nil {
			return fmt.Errorf("mdp: %s row s=%d %w", name, s, err)
		}
	}
	return nil
}

// Uniform returns the uniform policy [S, A].
func (m *MDP) Uniform() *mat.Dense { return UniformPolicy(m.R.Dims()) }

// UniformPolicy returns the uniform policy of so many states and actions.
func UniformPolicy(states, actions int) *mat.Dense {
	pi := mat.NewDense(states, actions, nil)
	for i := range pi.RawMatrix().Data {
		pi.RawMatrix().Data[i] = 1 / float64(actions)
	}
	return pi
}

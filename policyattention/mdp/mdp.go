// Package mdp holds finite Markov decision processes, their Bellman operators, exact
// solutions, and the distributions from which the experiments draw them.
//
// A table over states and actions (rewards r, action values Q, policies π) is a gonum matrix [S, A]. Transition
// probabilities are kept by successors: row s·A+a of P [S·A, S] is P(·|s,a), and MDP.DenseP makes the matrix of it.
// What values mean is in bellman.go, how they are found exactly in optimal.go, advantage.go and solve.go.
package mdp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Tolerance is how far the sum of a probability row may lie from one. No entry may lie below zero.
const Tolerance = 1e-9

// MDP is a finite Markov decision process (Section 3 of the paper). Build one with New or
// Model.Build, which validate it; it is read-only afterwards.
type MDP struct {
	Gamma float64    // discount γ in [0, 1); 1 where every episode surely ends
	R     *mat.Dense // [S, A], rewards r(s,a); −∞ where the state does not have the action
	Meaning
	Warnings []string // sentences on what its user should know
	Drawn    *int     // where it is not nil, counts transitions that methods draw; not for concurrent use

	next    Transitions // P by successors
	missing []bool      // [S·A], the actions that do not exist; nil where all do
	proper  []int       // at γ = 1, a policy [S] that ends surely
}

// New returns the MDP with discount gamma and copies of the transitions p [S·A, S] and the rewards r [S, A]; see Model
// for all that a problem may say. The error names the first input that is not what it must be.
func New(gamma float64, p, r *mat.Dense) (*MDP, error) {
	if p == nil || r == nil || p.IsEmpty() || r.IsEmpty() {
		return nil, errors.New("mdp: transitions P and rewards r must not be empty")
	}
	s, a := r.Dims()
	if rows, cols := p.Dims(); rows != s*a || cols != s {
		return nil, fmt.Errorf("mdp: transitions P are [%d, %d], want [S·A, S] = [%d, %d] for rewards [%d, %d]",
			rows, cols, s*a, s, s, a)
	}
	model := Model{Gamma: gamma, R: r}
	for i := range s * a {
		for state, x := range p.RawRowView(i) {
			if x != 0 {
				model.P.Add(state, x)
			}
		}
		model.P.EndRow()
	}
	return model.Build()
}

// Expect returns E_{S'|s,a} v(S') for state values v [S].
func (m *MDP) Expect(s, a int, v []float64) float64 {
	states, p := m.Successors(s, a)
	sum := 0.0
	for k, t := range states {
		sum += float64(p[k] * v[t])
	}
	return sum
}

// Successors returns the states that follow (s,a) with positive probability, in increasing
// order, and their probabilities. They must not be changed.
func (m *MDP) Successors(s, a int) (states []int32, p []float64) {
	return m.next.Row(s*m.Actions() + a)
}

// Exists returns whether state s has action a.
func (m *MDP) Exists(s, a int) bool { return m.missing == nil || !m.missing[s*m.Actions()+a] }

// Masked returns whether some state lacks some action.
func (m *MDP) Masked() bool { return m.missing != nil }

// DenseP returns P as a new matrix [S·A, S], whose row s·A+a is P(·|s,a) (and 0 where the
// action does not exist): S²·A numbers, which large problems cannot afford.
func (m *MDP) DenseP() *mat.Dense {
	s, a := m.R.Dims()
	p := mat.NewDense(s*a, s, nil)
	for i := range s * a {
		states, row := m.next.Row(i)
		for k, t := range states {
			p.Set(i, int(t), row[k])
		}
	}
	return p
}

// States returns the number of states S.
func (m *MDP) States() int { s, _ := m.R.Dims(); return s }

// Actions returns the number of actions A.
func (m *MDP) Actions() int { _, a := m.R.Dims(); return a }

// Next returns the distribution P(·|s,a) as a new vector [S].
func (m *MDP) Next(s, a int) []float64 {
	row := make([]float64, m.States())
	states, p := m.Successors(s, a)
	for k, t := range states {
		row[t] = p[k]
	}
	return row
}

// Reward returns r(s,a).
func (m *MDP) Reward(s, a int) float64 { return m.R.At(s, a) }

// Transition draws a transition from the state s under the action a: a reward and a successor, by one number of rng.
func (m *MDP) Transition(rng *rand.Rand, s, a int) (reward float64, next int) {
	if m.Drawn != nil {
		*m.Drawn++
	}
	states, p := m.Successors(s, a)
	return m.R.At(s, a), int(states[Sample(rng, p)])
}

// RMax returns max |r(s,a)| over the actions that exist.
func (m *MDP) RMax() float64 {
	top := 0.0
	for _, v := range m.R.RawMatrix().Data {
		if !math.IsInf(v, -1) {
			top = math.Max(top, math.Abs(v))
		}
	}
	return top
}

// Bound returns B = R_max/(1-γ), which no action value exceeds in magnitude.
func (m *MDP) Bound() float64 { return m.RMax() / (1 - m.Gamma) }

// CheckPolicy reports why pi is not a policy of m: a wrong shape, a row that is not a
// probability distribution within Tolerance, or an action that does not exist.
func (m *MDP) CheckPolicy(pi *mat.Dense) error {
	s, a := m.R.Dims()
	if err := CheckPolicy(pi, s, a); err != nil {
		return err
	}
	for i := range m.missing {
		if p := pi.At(i/a, i%a); m.missing[i] && p != 0 {
			return fmt.Errorf("mdp: policy has probability %v of action %d in state %d, which does not have it",
				p, i%a, i/a)
		}
	}
	return nil
}

// CheckPolicy reports why pi is not a policy of s states and a actions.
func CheckPolicy(pi *mat.Dense, s, a int) error {
	if err := CheckTable("policy", pi, s, a); err != nil {
		return err
	}
	return CheckRows("policy", pi)
}

// CheckTable reports why the table called name is not [S, A] and finite, or −∞ where an action does not exist.
func (m *MDP) CheckTable(name string, x *mat.Dense) error {
	s, a := m.R.Dims()
	return checkTable(name, x, s, a, m.missing)
}

// CheckTable reports why the table called name is not [s, a] and finite.
func CheckTable(name string, x *mat.Dense, s, a int) error { return checkTable(name, x, s, a, nil) }

func checkTable(name string, x *mat.Dense, s, a int, missing []bool) error {
	if x == nil {
		return fmt.Errorf("mdp: %s is missing", name)
	}
	if rows, cols := x.Dims(); rows != s || cols != a {
		return fmt.Errorf("mdp: %s is [%d, %d], want [S, A] = [%d, %d]", name, rows, cols, s, a)
	}
	for i := range s {
		for j, v := range x.RawRowView(i) {
			none := missing != nil && missing[i*a+j] && math.IsInf(v, -1)
			if !none && (math.IsNaN(v) || math.IsInf(v, 0)) {
				return fmt.Errorf("mdp: %s has entry (s=%d,a=%d) equal to %v, want a finite number", name, i, j, v)
			}
		}
	}
	return nil
}

// CheckRows reports the first row of the table called name that is not a probability distribution within Tolerance.
func CheckRows(name string, pi *mat.Dense) error {
	for s := range pi.RawMatrix().Rows {
		sum := 0.0
		for i, v := range pi.RawRowView(s) {
			if math.IsNaN(v) || v < 0 || math.IsInf(v, 1) {
				return fmt.Errorf("mdp: %s row s=%d has entry %d equal to %v, want a probability", name, s, i, v)
			}
			sum += v
		}
		if off := math.Abs(sum - 1); off > Tolerance {
			return fmt.Errorf("mdp: %s row s=%d sums to %.12g, want 1 within %g", name, s, sum, Tolerance)
		}
	}
	return nil
}

// Uniform returns the policy [S, A] that is uniform over the actions of each state.
func (m *MDP) Uniform() *mat.Dense {
	pi := UniformPolicy(m.R.Dims())
	for s := range m.States() {
		if row := pi.RawRowView(s); m.Masked() {
			for a := range row {
				if !m.Exists(s, a) {
					row[a] = 0
				}
			}
			floats.Scale(1/floats.Sum(row), row)
		}
	}
	return pi
}

// UniformPolicy returns the uniform policy of so many states and actions.
func UniformPolicy(states, actions int) *mat.Dense {
	pi := mat.NewDense(states, actions, nil)
	for i := range pi.RawMatrix().Data {
		pi.RawMatrix().Data[i] = 1 / float64(actions)
	}
	return pi
}

// ToRows returns the rows of x as slices that share its memory.
func ToRows(x *mat.Dense) [][]float64 {
	rows := make([][]float64, x.RawMatrix().Rows)
	for i := range rows {
		rows[i] = x.RawRowView(i)
	}
	return rows
}

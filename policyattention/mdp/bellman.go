package mdp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// The backups sum in index order with plain loops: their bits are then the same
// on every platform, which gonum's assembly kernels do not promise.

// EvaluationBackup returns the one-step policy-evaluation backup [S, A] of equation
// (2),
//
//	(F^π Q)(s,a) = r(s,a) + γ E_{S'|s,a} ⟨π(·|S'), Q(S',·)⟩.
//
// It panics when pi or q is not [S, A].
func (m *MDP) EvaluationBackup(pi, q *mat.Dense) *mat.Dense {
	m.mustFit("policy", pi)
	m.mustFit("Q", q)
	return m.backup(m.StateValues(pi, q))
}

// OptimalityBackup returns the Bellman optimality backup [S, A] of equation (3),
//
//	(F Q)(s,a) = r(s,a) + γ E_{S'|s,a} max_b Q(S',b).
//
// It panics when q is not [S, A].
func (m *MDP) OptimalityBackup(q *mat.Dense) *mat.Dense {
	m.mustFit("Q", q)
	v := make([]float64, m.States())
	for s := range v {
		v[s] = slices.Max(q.RawRowView(s))
	}
	return m.backup(v)
}

// mustFit panics when the table called name is not [S, A].
func (m *MDP) mustFit(name string, x *mat.Dense) {
	s, a := m.R.Dims()
	if rows, cols := x.Dims(); rows != s || cols != a {
		panic(fmt.Sprintf("mdp: %s is [%d, %d], want [S, A] = [%d, %d]", name, rows, cols, s, a))
	}
}

// backup returns r + γ P v [S, A] for state values v [S].
func (m *MDP) backup(v []float64) *mat.Dense {
	s, a := m.R.Dims()
	q := mat.NewDense(s, a, nil)
	for i := range s {
		row, reward := q.RawRowView(i), m.R.RawRowView(i)
		for j := range row {
			row[j] = reward[j] + float64(m.Gamma*m.Expect(i, j, v))
		}
	}
	return q
}

// PolicyValue returns the action values Q^π [S, A] of the policy pi [S, A], exact to
// rounding: by a refined solve of (I - γ P^π) V = r^π. It returns an
// error when pi is not a policy of m or, at γ = 1, may never end.
func (m *MDP) PolicyValue(pi *mat.Dense) (*mat.Dense, error) { return m.PolicyValueFrom(pi, nil) }

// PolicyValueFrom is PolicyValue, found sooner on large problems where q [S, A] is nearly Q^π.
func (m *MDP) PolicyValueFrom(pi, q *mat.Dense) (*mat.Dense, error) {
	if err := m.CheckPolicy(pi); err != nil {
		return nil, err
	}
	var start []float64
	if q != nil {
		start = m.StateValues(pi, q)
	}
	v, err := m.value(pi, start)
	if err != nil {
		return nil, err
	}
	if !m.benign() {
		s, a := m.R.Dims()
		return m.values(v, make([]double, s*a), make([]float64, s*a)), nil
	}
	rounded := make([]float64, len(v))
	for s, x := range v {
		rounded[s] = x.float()
	}
	return m.backup(rounded), nil
}

// MaxAbsDiff returns ‖x − y‖∞ over the entries of two tables of one shape.
func MaxAbsDiff(x, y *mat.Dense) float64 {
	top := 0.0
	for s := range x.RawMatrix().Rows {
		b := y.RawRowView(s)
		for a, v := range x.RawRowView(s) {
			if v != b[a] { // −∞ is no distance from −∞
				top = math.Max(top, math.Abs(v-b[a]))
			}
		}
	}
	return top
}

// StateValues returns ⟨π(·|s), x(s,·)⟩ for each state [S], over the actions that exist: V^π where x is Q^π.
func (m *MDP) StateValues(pi, x *mat.Dense) []float64 {
	v := make([]float64, m.States())
	for s := range v {
		weights, row := pi.RawRowView(s), x.RawRowView(s)
		if !m.Masked() {
			v[s] = numeric.Dot(weights, row)
			continue
		}
		for a, w := range weights {
			if m.Exists(s, a) {
				v[s] += float64(w * row[a])
			}
		}
	}
	return v
}

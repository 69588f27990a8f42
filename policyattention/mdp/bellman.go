package mdp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
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
	m.meter.Charge(2 * len(q.RawMatrix().Data))
	return m.backup(m.dots(pi, q))
}

// OptimalityBackup returns the Bellman optimality backup [S, A] of equation (3),
//
//	(F Q)(s,a) = r(s,a) + γ E_{S'|s,a} max_b Q(S',b).
//
// It panics when q is not [S, A].
func (m *MDP) OptimalityBackup(q *mat.Dense) *mat.Dense {
	m.mustFit("Q", q)
	v := make([]float64, m.States())
	m.meter.Charge(len(q.RawMatrix().Data))
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
	m.meter.read(s*a, 2*s*a)
	for i := range s {
		row, reward := q.RawRowView(i), m.rewards().RawRowView(i)
		for j := range row {
			row[j] = reward[j] + float64(m.Gamma*m.Expect(i, j, v))
		}
	}
	return q
}

// PolicyValue returns the action values Q^π [S, A] of the policy pi [S, A],
// exact to rounding: by an LU solve of (I - γ P^π) V = r^π or, where P is so
// large and sparse that this takes less work, by iterating V ← r^π + γ P^π V
// until nothing is left of the start. It returns an error when pi is not a policy of m.
func (m *MDP) PolicyValue(pi *mat.Dense) (*mat.Dense, error) {
	if err := m.CheckPolicy(pi); err != nil {
		return nil, err
	}
	v, err := m.stateValue(pi)
	if err != nil {
		return nil, err
	}
	return m.backup(v), nil
}

// StateValue returns the state values V^π [S] of the policy pi [S, A]; see PolicyValue.
func (m *MDP) StateValue(pi *mat.Dense) ([]float64, error) {
	if err := m.CheckPolicy(pi); err != nil {
		return nil, err
	}
	return m.stateValue(pi)
}

// stateValue returns V^π [S].
func (m *MDP) stateValue(pi *mat.Dense) ([]float64, error) {
	n, a := m.R.Dims()
	if sweeps := m.sweeps(); sweeps > 0 {
		return m.iterate(pi, sweeps), nil
	}
	system, reward := mat.NewDense(n, n, nil), m.rewardsUnder(pi)
	for s := range n {
		row := system.RawRowView(s)
		for j := range a {
			w := m.Gamma * pi.At(s, j)
			if w == 0 {
				continue
			}
			m.meter.Charge(1 + 2*n)
			m.meter.read(n, 0)
			states, p := m.Successors(s, j)
			for k, t := range states {
				row[t] -= float64(w * p[k])
			}
		}
		row[s]++
	}
	m.meter.Charge(n + luOperations(n))
	// Its condition number is at most (1+γ)/(1−γ) in the maximum norm, so it is not
	// estimated, which would take as long as the solution.
	pivots := make([]int, n)
	if !lapack64.Getrf(system.RawMatrix(), pivots) {
		return nil, fmt.Errorf("mdp: the value of a policy at γ=%v solves a singular system", m.Gamma)
	}
	lapack64.Getrs(blas.NoTrans, system.RawMatrix(), blas64.General{Rows: n, Cols: 1, Stride: 1, Data: reward}, pivots)
	return reward, nil
}

// rewardsUnder returns r^π [S].
func (m *MDP) rewardsUnder(pi *mat.Dense) []float64 {
	m.meter.read(len(pi.RawMatrix().Data), 2*len(pi.RawMatrix().Data))
	return m.dots(pi, m.rewards())
}

// iterate returns what is left of V = 0 after so many sweeps V ← r^π + γ P^π V.
func (m *MDP) iterate(pi *mat.Dense, sweeps int) []float64 {
	n, a := m.R.Dims()
	chain, reward := make([][]successor, n), m.rewardsUnder(pi)
	entries := 0
	for s := range n {
		for j := range a {
			if w := m.Gamma * pi.At(s, j); w != 0 {
				states, p := m.Successors(s, j)
				for k, t := range states {
					chain[s] = append(chain[s], successor{int(t), w * p[k]})
				}
			}
		}
		entries += len(chain[s])
	}
	m.meter.read(entries, (1+2*sweeps)*entries)
	v, old := make([]float64, n), make([]float64, n)
	for range sweeps {
		v, old = old, v
		for s, successors := range chain {
			sum := reward[s]
			for _, next := range successors {
				sum += float64(next.p * old[next.state])
			}
			v[s] = sum
		}
	}
	return v
}

// sweeps returns how many backups take any start within rounding of V^π, or 0
// where an LU solve, which takes about S³/3 multiplications, is less work.
func (m *MDP) sweeps() int {
	s, a := m.R.Dims()
	if !m.few || m.Gamma == 0 {
		return 0
	}
	// The start, 0, is at most B away; γ^sweeps B is below the rounding of B.
	sweeps := math.Ceil(math.Log(epsilon/4) / math.Log(m.Gamma))
	if sweeps*float64(len(m.next.P)+s*a) > float64(s)*float64(s)*float64(s)/3 {
		return 0
	}
	return int(sweeps)
}

// epsilon is the spacing of float64 at 1.
const epsilon = 0x1p-52

// Optimum is an optimal solution of an MDP.
type Optimum struct {
	Q          *mat.Dense // Q* [S, A]; −∞ where an action does not exist
	V          []float64  // V* [S]
	Policy     []int      // an optimal action in each state [S]
	Error      []float64  // a bound on |V* − V| in each state [S]
	Residual   float64    // ‖F Q − Q‖∞, which bounds ‖Q* − Q‖∞ by Residual/(1-γ)
	Iterations int        // rounds of policy iteration

	optimal []bool // [S·A]
}

// Optimal returns whether action a is optimal in state s, perhaps beside others.
func (o *Optimum) Optimal(s, a int) bool { return o.optimal[s*len(o.optimal)/len(o.V)+a] }

// Tied returns in how many states several actions are optimal.
func (o *Optimum) Tied() int {
	tied := 0
	for s := range o.V {
		n := 0
		for a := range len(o.optimal) / len(o.V) {
			if o.Optimal(s, a) {
				n++
			}
		}
		if n > 1 {
			tied++
		}
	}
	return tied
}

// Optimal returns Q* by Howard's policy iteration. An action replaces the
// current one only when it is better by more than the rounding of the solve, so
// the iteration ends; Residual certifies what it ended with.
func (m *MDP) Optimal() (*Optimum, error) {
	s, a := m.R.Dims()
	slack := 1e-13 * m.Bound()
	policy := make([]int, s)
	pi := mat.NewDense(s, a, nil)
	// Policy iteration ends well before the a^s policies run out; the cap turns
	// an unforeseen cycle into an error.
	for iteration := 1; iteration <= 1000+s; iteration++ {
		pi.Zero()
		for i, j := range policy {
			pi.Set(i, j, 1)
		}
		v, err := m.stateValue(pi)
		if err != nil {
			return nil, err
		}
		q := m.backup(v)
		m.meter.Charge(2 * s * a)
		changed := false
		for i := range s {
			row := q.RawRowView(i)
			best := policy[i]
			for j, x := range row {
				if x > row[best] {
					best = j
				}
			}
			if row[best] > row[policy[i]]+slack {
				policy[i], changed = best, true
			}
		}
		if !changed {
			residual := MaxAbsDiff(m.OptimalityBackup(q), q)
			o := &Optimum{Q: q, V: make([]float64, s), Policy: policy, Error: make([]float64, s), Residual: residual, Iterations: iteration, optimal: make([]bool, s*a)}
			for i := range s {
				row := q.RawRowView(i)
				o.V[i], o.Error[i] = slices.Max(row), residual/(1-m.Gamma)
				for j, x := range row {
					o.optimal[i*a+j] = x >= o.V[i]-1e-12*max(1, math.Abs(o.V[i]))
				}
			}
			return o, nil
		}
	}
	return nil, errors.New("mdp: policy iteration did not settle")
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

// dots returns ⟨π(s,·), x(s,·)⟩ for each state s, over the actions that exist.
func (m *MDP) dots(pi, x *mat.Dense) []float64 {
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

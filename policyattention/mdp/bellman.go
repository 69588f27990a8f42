package mdp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// The backups sum in index order with plain loops: their bits are then the same
// on every platform, which gonum's assembly kernels do not promise.

// EvaluationBackup returns the one-step policy-evaluation backup [S, A] of equation (2),
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

// PolicyValue returns the action values Q^π [S, A] of the policy pi [S, A], exact to rounding: by a refined solve of
// (I - γ P^π) V = r^π. It returns an error when pi is not a policy of m or, at γ = 1, may never end.
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

// Shortfall is a loss that no penalty can shrink: the value that a policy loses in the
// worst state, in units of how far apart optimal values lie where optimal play comes.
type Shortfall struct {
	Lost  float64 // max V*(s) − V^π(s) over the states that can be reached at all
	State int     // where that is
	Unit  float64 // the range of V* over the states that optimal actions lead to
	// Over says which states those are, or what Unit is where V* is the same in all.
	Over string
}

// Relative returns Lost/Unit, and 0 where nothing is lost.
func (x Shortfall) Relative() float64 {
	if x.Lost <= 0 {
		return 0
	}
	return x.Lost / x.Unit
}

// Shortfall compares the values v [S] of a policy with optimal ones. Episodes begin where the start distribution lets
// them, or anywhere where there is none; the unit is then of the states that an optimal action leads to from another
// one, so that a sink which only mistakes lead to is no part of it.
func (m *MDP) Shortfall(o *Optimum, v []float64) Shortfall {
	optimal := m.reachable(func(s, a int) bool { return o.Optimal(s, a) })
	possible := m.reachable(func(s, a int) bool { return true })
	x := Shortfall{Over: "the range of V* over the states that optimal play reaches from the start"}
	if m.Start == nil {
		x.Over = "the range of V* over the states that optimal play comes to from others"
	}
	low, high, size := math.Inf(1), math.Inf(-1), 0.0
	for s, best := range o.V {
		if lost := best - v[s]; (m.Start == nil || possible[s]) && lost > x.Lost {
			x.Lost, x.State = lost, s
		}
		if optimal[s] {
			low, high, size = min(low, best), max(high, best), max(size, math.Abs(best))
		}
	}
	if x.Unit = high - low; !(x.Unit > 1e-9*size) {
		x.Unit, x.Over = floats.Norm(o.V, math.Inf(1)), "the size of V*, which is the same wherever optimal play comes"
	}
	if x.Unit == 0 {
		x.Unit, x.Over = 1, "1, as V* is 0 everywhere"
	}
	return x
}

// reachable returns the states [S] that the start distribution and the given actions lead to;
// where there is no start, those that the actions lead to from another state.
func (m *MDP) reachable(takes func(s, a int) bool) []bool {
	seen, queue := make([]bool, m.States()), []int(nil)
	for s := range seen {
		if m.Start == nil || m.Start[s] > 0 {
			queue, seen[s] = append(queue, s), m.Start != nil
		}
	}
	for k := 0; k < len(queue); k++ {
		s := queue[k]
		for a := range m.Actions() {
			if !m.Exists(s, a) || !takes(s, a) {
				continue
			}
			states, _ := m.Successors(s, a)
			for _, next := range states {
				if t := int(next); t != s && !seen[t] {
					seen[t] = true
					if m.Start != nil {
						queue = append(queue, t)
					}
				}
			}
		}
	}
	return seen
}

// At γ = 1 values are sums of all rewards to come, which exist where episodes surely end.
// checkEnds accepts the two cases in which policy iteration is proven (Bertsekas and
// Tsitsiklis, An analysis of stochastic shortest path problems, 1991): every policy ends
// surely; or some policy does from every state, and whoever never ends pays for ever.

// checkEnds reports why sums of all rewards may not exist, and makes a policy that ends surely from every state.
func (m *MDP) checkEnds() error {
	a := m.Actions()
	m.pinAbsorbing()
	if len(m.Terminal) == 0 {
		return fmt.Errorf("mdp: discount gamma is 1, but no state ends an episode: " +
			"name the terminal states, or take gamma < 1, as .999")
	}
	if at := m.ending(); at >= 0 {
		return fmt.Errorf("mdp: discount gamma is 1, but from state %d no policy surely reaches a terminal state; "+
			"take gamma < 1, as .999", at)
	}
	better := "its reward negative"
	if m.Minimize {
		better = "its cost positive"
	}
	for i, stays := range m.avoiding() {
		if stays && m.R.At(i/a, i%a) >= 0 {
			return fmt.Errorf("mdp: discount gamma is 1, but an episode may go on for ever through state %d and "+
				"action %d, which costs nothing: make %s, or take gamma < 1, as .999", i/a, i%a, better)
		}
	}
	return nil
}

// pinAbsorbing makes states that are kept for ever at reward 0 terminal.
func (m *MDP) pinAbsorbing() {
	s, a := m.R.Dims()
	terminal := m.isTerminal()
	for i := range s {
		ends := !terminal[i]
		for j := range a {
			if states, _ := m.Successors(i, j); m.Exists(i, j) {
				ends = ends && m.R.At(i, j) == 0 && len(states) == 1 && int(states[0]) == i
			}
		}
		if ends {
			m.Terminal = append(m.Terminal, i)
		}
	}
}

// isTerminal returns which states end an episode [S].
func (m *MDP) isTerminal() []bool {
	terminal := make([]bool, m.States())
	for _, t := range m.Terminal {
		terminal[t] = true
	}
	return terminal
}

// ending fills m.proper with a policy that surely ends from every state, or returns a state
// from which none does: where each state can reach an end, moves on the way to it are all that it takes.
func (m *MDP) ending() (lost int) {
	s, a := m.R.Dims()
	before, reached, queue := m.predecessors(), m.isTerminal(), slices.Clone(m.Terminal)
	m.proper = make([]int, s)
	for k := 0; k < len(queue); k++ {
		for _, pair := range before[queue[k]] {
			if i := int(pair) / a; !reached[i] {
				reached[i], m.proper[i] = true, int(pair)%a
				queue = append(queue, i)
			}
		}
	}
	return slices.Index(reached, false)
}

// predecessors returns the pairs s·A+a that lead to each state.
func (m *MDP) predecessors() [][]int32 {
	before := make([][]int32, m.States())
	for i := range len(m.next.Offset) - 1 {
		states, _ := m.next.Row(i)
		for _, t := range states {
			before[t] = append(before[t], int32(i))
		}
	}
	return before
}

// avoiding returns the pairs [S·A] by which an episode can surely be kept from ending: the
// largest set of states that has actions which stay in it.
func (m *MDP) avoiding() []bool {
	s, a := m.R.Dims()
	before := m.predecessors()
	stays, ways := make([]bool, s*a), make([]int, s)
	out, queue := m.isTerminal(), slices.Clone(m.Terminal)
	for i := range stays {
		if stays[i] = !out[i/a] && m.Exists(i/a, i%a); stays[i] {
			ways[i/a]++
		}
	}
	for k := 0; k < len(queue); k++ {
		for _, i := range before[queue[k]] {
			if !stays[i] {
				continue
			}
			stays[i] = false
			if ways[int(i)/a]--; ways[int(i)/a] == 0 {
				queue = append(queue, int(i)/a)
			}
		}
	}
	return stays
}

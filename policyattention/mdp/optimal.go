package mdp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Optimum is an optimal solution of an MDP.
type Optimum struct {
	Q      *mat.Dense // Q* [S, A]; −∞ where an action does not exist
	V      []float64  // V* [S]
	Policy []int      // an optimal action in each state [S]
	// Error [S] bounds |V* − V|: the largest advantage over V that any action has wherever actions lead to from the
	// state, times 1/(1−γ). At γ = 1 the expected number of steps under Policy stands for 1/(1−γ), an estimate.
	Error      []float64
	Iterations int // rounds of policy iteration

	optimal []bool    // [S·A]
	less    []float64 // [S·A], by how much less than V* an action is worth
}

// Optimal returns whether action a is optimal in state s, perhaps beside others.
func (o *Optimum) Optimal(s, a int) bool { return o.optimal[s*len(o.optimal)/len(o.V)+a] }

// Missed returns the most that the policy pi [S, A] loses in a state by its first action, max_s V*(s) − ⟨π(·|s),
// Q*(s,·)⟩, from differences that are right even where values of this size round them away.
func (o *Optimum) Missed(pi *mat.Dense) float64 {
	most, a := 0.0, len(o.less)/len(o.V)
	for s := range o.V {
		lost := 0.0
		for j, p := range pi.RawRowView(s) {
			if p > 0 {
				lost += float64(p * o.less[s*a+j])
			}
		}
		most = max(most, lost)
	}
	return most
}

// Tied returns in how many states several actions are optimal.
func (o *Optimum) Tied() int {
	tied, a := 0, len(o.optimal)/len(o.V)
	for s := range o.V {
		row := o.optimal[s*a : (s+1)*a]
		if first := slices.Index(row, true); slices.Contains(row[first+1:], true) {
			tied++
		}
	}
	return tied
}

// Uncertain returns the state whose value has the largest Error as a share of its size (of 1
// where it is smaller), and that share.
func (o *Optimum) Uncertain() (state int, share float64) {
	for s, e := range o.Error {
		if x := e / max(1, math.Abs(o.V[s])); !(x <= share) {
			state, share = s, x
		}
	}
	return state, share
}

const (
	evaluations = 5   // sweeps without a change of policy after each with
	sweeps      = 20  // such rounds before a solve
	solves      = 100 // at most
)

// sweep improves the policy by modified policy iteration (Puterman and Shin, 1978), whose
// Gauss–Seidel sweeps go up and down the states in turn, with a solve now and then, until nothing
// changes by more than rounding. It returns values [S] that are nearly those of the policy. At γ = 1 it
// starts from the value of the policy, which surely ends, and so do then all that it comes to.
func (m *MDP) sweep(policy []int) []double {
	n, a := m.R.Dims()
	v, terminal := make([]float64, n), m.isTerminal()
	value := func(s, j int) float64 { // of action j until it leaves s
		states, p := m.Successors(s, j)
		sum, stays := gather(states, p, v), 0.0
		if k, ok := slices.BinarySearch(states, int32(s)); ok {
			sum, stays = sum-float64(p[k]*v[s]), p[k]
		}
		return (m.R.At(s, j) + float64(m.Gamma*sum)) / (1 - float64(m.Gamma*stays))
	}
	pass := func(down bool, visit func(s int)) {
		for i := range n {
			if down {
				i = n - 1 - i
			}
			if !terminal[i] {
				visit(i)
			}
		}
	}
	changed := false
	improve := func(s int) {
		best, now := policy[s], value(s, policy[s])
		for j, top := 0, now+1e-14*math.Abs(now); j < a; j++ {
			if x := value(s, j); x > top { // −∞ where the action does not exist
				best, top, now, changed = j, x, x, true
			}
		}
		policy[s], v[s] = best, now
	}
	var low, high float64 // changes of a sweep
	evaluate := func(s int) {
		now := value(s, policy[s])
		low, high, v[s] = min(low, now-v[s]), max(high, now-v[s]), now
	}
	for range solves {
		for round := range sweeps {
			if round > 0 || m.Gamma < 1 {
				changed = false
				pass(round%2 == 1, improve)
			}
			for sweep := range evaluations {
				low, high = math.Inf(1), math.Inf(-1)
				pass(sweep%2 == 0, evaluate)
				// Shift all by what each still gains or loses at least (MacQueen, 1966).
				if x := max(low, 0) + min(high, 0); x != 0 && m.Gamma < 1 {
					pass(false, func(s int) { v[s] += x * m.Gamma / (1 - m.Gamma) })
				}
			}
			if round > 0 && !changed {
				break
			}
		}
		pi := m.greedy(policy)
		rest, _ := m.residual(pi, doubles(v))
		m.system(pi).krylov(rest, 1e-4)
		floats.Add(v, rest)
		changed = false
		pass(false, improve)
		pass(true, improve)
		if !changed {
			break
		}
	}
	return doubles(v)
}

// Optimal returns Q* by Howard's policy iteration, of large problems from a policy that sweeps have found. Values have
// some 100 bits, and advantages are compared in units of what is added up in each of them.
func (m *MDP) Optimal() (*Optimum, error) {
	policy, v := m.anyPolicy(), make([]double, m.States())
	if m.States() > direct {
		v = m.sweep(policy)
	}
	e, err := m.exact(policy, v, m.States() <= direct)
	if err != nil {
		return nil, err
	}
	if _, share := e.Uncertain(); !(share <= visible) && m.States() > direct && m.States() <= fallback {
		iterations := e.Iterations
		if e, err = m.exact(e.Policy, v, true); err != nil {
			return nil, err
		}
		e.Iterations += iterations
	}
	return e, nil
}

const (
	mostIterations = 1000      // a cap on policy iteration; the stated error is then that of where it was
	underflow      = 0x1p-1040 // more than what is lost of an advantage because no number is so small
)

// exact improves the policy until no action has an advantage above rounding, by dense factors where they are asked for.
func (m *MDP) exact(policy []int, v []double, factors bool) (*Optimum, error) {
	n, a := m.R.Dims()
	e := &Optimum{Policy: policy, optimal: make([]bool, n*a)}
	advantages, size := make([]double, n*a), make([]float64, n*a)
	// Goals are of values, as a share of what is added up.
	goals, most, prepare := []float64{0x1p-47, 0x1p-98}, mostIterations, m.factors
	if !factors {
		goals, most, prepare = []float64{0x1p-72}, 30, m.solver
	}
	for e.Iterations = 1; ; e.Iterations++ {
		tolerance := 16 * goals[0] // of an advantage, as a share of what is added up
		if !factors {              // smaller ones change no value by more than rounding
			tolerance = max(tolerance, 0x1p-48*(1-m.Gamma))
		}
		pi := m.greedy(policy)
		solve, err := prepare(pi)
		if err != nil {
			return nil, err
		}
		solve, last, err := m.evaluate(pi, solve, v, goals[0])
		if err != nil {
			return nil, err
		}
		changed := false
		e.Q = m.values(v, advantages, size)
		for s := range n {
			best, now := policy[s], s*a+policy[s]
			for j := range a {
				if i := s*a + j; m.Exists(s, j) && advantages[i].minus(advantages[s*a+best]) > 0 {
					best = j
				}
			}
			if i := s*a + best; advantages[i].minus(advantages[now]) > tolerance*(size[i]+size[now])+underflow {
				e.Policy[s], changed = best, true
			}
		}
		if !changed && len(goals) > 1 {
			goals, changed = goals[1:], true
		}
		if !changed || !(last <= wrong) || e.Iterations == most {
			return e, m.conclude(e, advantages, size, tolerance, solve)
		}
	}
}

// spread raises x [S] in each state to the largest x that actions lead to from there, or to the largest of all where
// this is small. Terminal states lead nowhere, and have 0. Actions that are out [S·A] are not taken.
func (m *MDP) spread(x []float64, small float64, out []bool) {
	most := slices.Max(x)
	for s := range x {
		x[s] = max(x[s], min(most, small))
	}
	for _, t := range m.Terminal {
		x[t] = 0
	}
	if most <= small {
		return
	}
	before, seen := m.predecessors(), make([]bool, len(x))
	order := make([]int, len(x))
	for s := range order {
		order[s] = s
	}
	slices.SortFunc(order, func(s, t int) int { return cmp.Compare(x[t], x[s]) })
	var queue []int
	for _, s := range order {
		for queue = append(queue, s); len(queue) > 0; {
			t := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			if seen[t] {
				continue
			}
			seen[t], x[t] = true, x[s]
			for _, pair := range before[t] {
				if !out[pair] {
					queue = append(queue, int(pair)/m.Actions())
				}
			}
		}
	}
}

// conclude fills the optimum from its Q, the advantages [S·A] behind it and the sizes [S·A] of what these add up.
func (m *MDP) conclude(e *Optimum, advantages []double, size []float64, tolerance float64, solve solver) error {
	n, a := m.R.Dims()
	e.V, e.Error, e.less = make([]float64, n), make([]float64, n), make([]float64, n*a)
	out := make([]bool, n*a) // which actions are certainly not optimal
	for s := range e.V {
		e.V[s] = slices.Max(e.Q.RawRowView(s))
	}
	for i := range out {
		s, now := i/a, i/a*a+e.Policy[i/a]
		out[i] = !m.Exists(s, i%a)
		e.less[i] = max(0, advantages[now].minus(advantages[i]))
		e.optimal[i] = !out[i] && e.less[i] <= tolerance*(size[i]+size[now])+underflow
	}
	steps := slices.Repeat([]float64{1 / (1 - m.Gamma)}, n)
	if m.Gamma == 1 {
		steps = slices.Repeat([]float64{1}, n)
		for _, t := range m.Terminal {
			steps[t] = 0
		}
		solve(steps)
	}
	bound := func() {
		for s := range e.Error { // |max_a advantage| and its rounding
			high, rounding := math.Inf(-1), underflow
			for i := s * a; i < s*a+a; i++ {
				if !out[i] {
					high, rounding = max(high, advantages[i].float()), max(rounding, 0x1p-98*size[i])
				}
			}
			e.Error[s] = math.Abs(high) + rounding
		}
		m.spread(e.Error, (1-m.Gamma)*0x1p-60, out)
		floats.Mul(e.Error, steps)
	}
	bound()
	if _, share := e.Uncertain(); share > visible { // perhaps by what only bad actions lead to
		for i := range out {
			s := i / a
			out[i] = out[i] || s*a+e.Policy[s] != i &&
				advantages[i].float()+m.Gamma*m.Expect(s, i%a, e.Error) < -e.Error[s]
		}
		bound()
	}
	for s := range e.Error {
		e.Error[s] += math.Abs(e.V[s]) * 0x1p-53
		if math.IsNaN(e.V[s]) {
			return fmt.Errorf("mdp: policy iteration at γ=%v did not find the value of state %d", m.Gamma, s)
		}
	}
	return nil
}

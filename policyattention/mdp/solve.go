package mdp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

const (
	direct   = 512  // the number of states up to which systems are solved by dense factors
	fallback = 4096 // the number of states up to which dense factors help where iteration fails
)

// A solver replaces b [S] by an approximate solution x of (I − γP^π) x = b.
type solver func(b []float64)

// solver returns one for the policy pi [S, A].
func (m *MDP) solver(pi *mat.Dense) (solver, error) {
	if m.States() <= direct {
		return m.factors(pi)
	}
	c := m.system(pi)
	return func(b []float64) { c.krylov(b, near) }, nil
}

// leads calls add with γP^π(t|s) of the states t that an action of pi leads to from s, neither s nor terminal. It
// returns the sum of the system's row, 1−γ + γP^π(end|s).
func (m *MDP) leads(pi *mat.Dense, s int, terminal []bool, add func(t int32, x float64)) (keeps float64) {
	if terminal[s] {
		return 1
	}
	keeps = 1 - m.Gamma
	for j, share := range pi.RawRowView(s) {
		w := m.Gamma * share
		if w == 0 {
			continue
		}
		states, p := m.Successors(s, j)
		for k, t := range states {
			if x := float64(w * p[k]); terminal[t] {
				keeps += x
			} else if int(t) != s && x != 0 {
				add(t, x)
			}
		}
	}
	return keeps
}

// factors eliminates without subtractions (Grassmann, Taksar and Heyman, 1985), so that
// every entry of the factors is right to rounding however near I − γP^π is to singular.
func (m *MDP) factors(pi *mat.Dense) (solver, error) {
	n := m.States()
	// γP^π(t|s) for t ≠ s, neither terminal, which elimination turns into factors; the sum of each row of the system;
	// and its diagonal.
	a, keeps, whole := make([]float64, n*n), make([]float64, n), make([]float64, n)
	terminal := m.isTerminal()
	for s := range n {
		keeps[s] = m.leads(pi, s, terminal, func(t int32, x float64) { a[s*n+int(t)] += x })
	}
	for k := range n {
		pivot := a[k*n+k+1 : (k+1)*n]
		whole[k] = keeps[k]
		for _, x := range pivot {
			whole[k] += x
		}
		if whole[k] == 0 {
			return nil, fmt.Errorf("mdp: the policy never ends an episode in state %d: at gamma 1 it has no value", k)
		}
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / whole[k]
			if a[i*n+k] = f; f == 0 {
				continue
			}
			blas64.Axpy(f, vector(pivot), vector(a[i*n+k+1:(i+1)*n]))
			keeps[i] += float64(f * keeps[k])
		}
	}
	return func(x []float64) {
		for i := range n {
			for k, f := range a[i*n : i*n+i] {
				x[i] += float64(f * x[k])
			}
		}
		for i := n - 1; i >= 0; i-- {
			for k, w := range a[i*n+i+1 : (i+1)*n] {
				x[i] += float64(w * x[i+1+k])
			}
			x[i] /= whole[i]
		}
	}, nil
}

// system is I − γP^π by what never cancels: what a state passes on to others and what it keeps back. State i of the
// system is state order[i] of the MDP; the order is such that most of what a state leads to comes before it.
type system struct {
	order []int32
	next  Transitions // γP^π(t|s) for t ≠ s, neither terminal, in the order of t
	after []int       // where in next the states behind the row's own begin
	keeps []float64   // the sum of the row, 1−γ + γP^π(end|s)
	whole []float64   // the diagonal, keeps + Σ next
	slow  bool        // whether γ is too near 1 for apply to subtract sums
}

// system returns that of the policy pi [S, A].
func (m *MDP) system(pi *mat.Dense) *system {
	n, a := m.R.Dims()
	c := &system{order: m.depthFirst(pi), keeps: make([]float64, n), whole: make([]float64, n), after: make([]int, n),
		slow: 1-m.Gamma < 1e-5}
	place, terminal, entries := make([]int32, n), m.isTerminal(), 0
	for i, s := range c.order {
		place[s] = int32(i)
		for j := range a {
			if states, _ := m.Successors(int(s), j); pi.At(int(s), j) != 0 {
				entries += len(states)
			}
		}
	}
	entries = min(entries, n*n)
	c.next = Transitions{Offset: make([]int, 1, n+1), State: make([]int32, 0, entries), P: make([]float64, 0, entries)}
	row, touched := make([]float64, n), make([]int32, 0, n)
	for i, s := range c.order {
		c.keeps[i] = m.leads(pi, int(s), terminal, func(t int32, x float64) {
			if row[place[t]] == 0 {
				touched = append(touched, place[t])
			}
			row[place[t]] += x
		})
		c.whole[i], c.after[i] = c.keeps[i], len(c.next.P)
		slices.Sort(touched)
		for _, t := range touched {
			c.next.Add(int(t), row[t])
			if c.whole[i] += row[t]; int(t) < i {
				c.after[i]++
			}
			row[t] = 0
		}
		touched = touched[:0]
		c.next.EndRow()
	}
	return c
}

// depthFirst returns the states in the order in which a depth-first search along the policy
// leaves them, so that without cycles each comes after all that it leads to.
func (m *MDP) depthFirst(pi *mat.Dense) []int32 {
	n, a := m.R.Dims()
	order, seen := make([]int32, 0, n), make([]bool, n)
	type visit struct {
		state        int32
		action, next int // where to go on
	}
	var stack []visit
	for start := range n {
		if seen[start] {
			continue
		}
		seen[start] = true
		stack = append(stack, visit{state: int32(start)})
	search:
		for len(stack) > 0 {
			at := &stack[len(stack)-1]
			for ; at.action < a; at.action, at.next = at.action+1, 0 {
				if pi.At(int(at.state), at.action) == 0 {
					continue
				}
				states, _ := m.Successors(int(at.state), at.action)
				for at.next < len(states) {
					t := states[at.next]
					at.next++
					if !seen[t] {
						seen[t] = true
						stack = append(stack, visit{state: t})
						continue search
					}
				}
			}
			order = append(order, at.state)
			stack = stack[:len(stack)-1]
		}
	}
	return order
}

// gather returns Σ_k w[k]·x[at[k]] for at in increasing order.
func gather(at []int32, w, x []float64) (sum float64) {
	if n := len(at); n > 8 && int(at[n-1]-at[0]) == n-1 { // they follow each other, as in dense rows
		return dot(w, x[at[0]:at[n-1]+1])
	}
	for k, t := range at {
		sum += float64(w[k] * x[t])
	}
	return sum
}

// D − L − U is the system, of which L are the states before a row's own and U those behind it.

// apply fills y with (D−L)⁻¹ (D−L−U) (D−U)⁻¹ D x = u − (D−L)⁻¹ U u, where u = (D−U)⁻¹ D x,
// in one pass over the system (Eisenstat, 1981).
func (c *system) apply(y, x, rest []float64) {
	if c.slow { // the system behind both, without sums that cancel
		u, from, middle, to := make([]float64, len(x)), c.next.Offset, c.after, c.next.Offset[1:]
		c.before(rest, x)
		c.behind(u, rest, y)
		for i, here := range u {
			y[i] = c.keeps[i]*here +
				differences(c.next.State[from[i]:middle[i]], c.next.P[from[i]:middle[i]], here, u) +
				differences(c.next.State[middle[i]:to[i]], c.next.P[middle[i]:to[i]], here, u)
		}
		return
	}
	c.behind(y, x, rest)
	c.before(rest, rest)
	for i, z := range rest {
		y[i] -= z
	}
}

// differences returns Σ_k w[k]·(here − x[at[k]]).
func differences(at []int32, w []float64, here float64, x []float64) (sum float64) {
	for k, t := range at {
		sum += float64(w[k] * (here - x[t]))
	}
	return sum
}

// before fills z with (D−L)⁻¹ r; they may be the same.
func (c *system) before(z, r []float64) {
	for i := range z {
		from, to := c.next.Offset[i], c.after[i]
		z[i] = (r[i] + gather(c.next.State[from:to], c.next.P[from:to], z)) / c.whole[i]
	}
}

// behind fills u with (D−U)⁻¹ D x, and rest with U u.
func (c *system) behind(u, x, rest []float64) {
	for i := len(u) - 1; i >= 0; i-- {
		from, to := c.after[i], c.next.Offset[i+1]
		rest[i] = gather(c.next.State[from:to], c.next.P[from:to], u)
		u[i] = x[i] + rest[i]/c.whole[i]
	}
}

const (
	near      = 1e-9 // the share of a residual's 2-norm that krylov leaves; refinement asks again for it
	krylovCap = 2000 // iterations
)

// krylov solves to the given share of the residual's 2-norm by BiCGSTAB (van der Vorst, 1992), a
// Gauss–Seidel sweep up before the system and one down behind it. What it returns is the best of its iterates.
func (c *system) krylov(b []float64, tolerance float64) {
	zero := func() []float64 { return make([]float64, len(b)) }
	r, x, best, p, v, t, rest := zero(), zero(), zero(), zero(), zero(), zero(), zero()
	for i, s := range c.order {
		r[i] = b[s]
	}
	if !c.slow {
		c.before(r, r)
	}
	shadow := slices.Clone(r)
	start := math.Sqrt(dot(r, r))
	least := start
	rho, alpha, omega := 1.0, 1.0, 1.0
	for range krylovCap {
		if least <= tolerance*start {
			break
		}
		next := dot(shadow, r)
		if math.Abs(next) < 1e-30*start*start { // a breakdown: begin again from here
			copy(shadow, r)
			clear(p)
			clear(v)
			rho, alpha, omega, next = 1, 1, 1, dot(r, r)
		}
		beta := next / rho * alpha / omega
		for i := range p {
			p[i] = r[i] + float64(beta*(p[i]-float64(omega*v[i])))
		}
		c.apply(v, p, rest)
		alpha = next / dot(shadow, v)
		for i := range r {
			x[i] += float64(alpha * p[i])
			r[i] -= float64(alpha * v[i])
		}
		c.apply(t, r, rest)
		if omega = dot(t, r) / dot(t, t); math.IsNaN(omega) {
			omega = 0
		}
		for i := range r {
			x[i] += float64(omega * r[i])
			r[i] -= float64(omega * t[i])
		}
		rho = next
		size := math.Sqrt(dot(r, r))
		if math.IsNaN(size) || math.IsInf(size, 0) {
			break
		}
		if size < least {
			least = size
			copy(best, x)
		}
	}
	if c.slow {
		c.before(best, best)
	}
	c.behind(x, best, rest)
	for i, s := range c.order {
		b[s] = x[i]
	}
}

func dot(x, y []float64) float64 {
	return blas64.Dot(vector(x), vector(y))
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }

package mdp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// advantage returns r(s,a) + γ E_{S'|s,a} v(S') − v(s) to some 100 bits, the probabilities
// divided by their exact sum, and the size of what is added up. It takes differences of
// values first: where γ is near 1 they are small beside the values.
func (m *MDP) advantage(s, a int, v []double) (x double, size float64) {
	states, p := m.Successors(s, a)
	here, reward := v[s], m.R.At(s, a)
	var sum, total double // Dot2 of Ogita, Rump and Oishi (2005)
	for k, t := range states {
		w, there := p[k], v[t]
		d := twoSum(there.hi, -here.hi)
		product := twoProduct(w, d.hi)
		rest := product.lo + float64(w*(d.lo+(there.lo-here.lo)))
		next := twoSum(sum.hi, product.hi)
		sum = double{next.hi, sum.lo + (next.lo + rest)}
		next = twoSum(total.hi, w)
		total = double{next.hi, total.lo + next.lo}
		size += float64(w * math.Abs(there.hi))
	}
	keeps := twoSum(1, -m.Gamma)
	mean := normal(sum.hi, sum.lo).over(normal(total.hi, total.lo)).times(m.Gamma)
	x = mean.add(here.times(-keeps.hi)).add(here.times(-keeps.lo)).plus(reward)
	return x, size + math.Abs(here.hi) + math.Abs(reward)
}

// values returns Q [S, A] of state values v [S], −∞ where an action does not exist, and fills
// advantages and sizes [S·A]: see advantage.
func (m *MDP) values(v, advantages []double, sizes []float64) *mat.Dense {
	n, a := m.R.Dims()
	q := mat.NewDense(n, a, nil)
	for i := range advantages {
		s, j := i/a, i%a
		if !m.Exists(s, j) {
			q.Set(s, j, math.Inf(-1))
			continue
		}
		advantages[i], sizes[i] = m.advantage(s, j, v)
		q.Set(s, j, v[s].add(advantages[i]).float())
	}
	return q
}

// residual returns r^π + γP^π v − v [S] and the sizes of what is added up, in states that do not end an episode.
// Sizes have a floor at 1e-12 of the largest, so that a value of 0 has rounding too.
func (m *MDP) residual(pi *mat.Dense, v []double) (rest, size []float64) {
	n, a := m.R.Dims()
	rest, size = make([]float64, n), make([]float64, n)
	terminal := m.isTerminal()
	for s := range n {
		if terminal[s] {
			continue
		}
		var sum, total double
		for j := range a {
			if w := pi.At(s, j); w != 0 {
				x, y := m.advantage(s, j, v)
				sum, total = sum.add(x.times(w)), total.plus(w)
				size[s] += float64(w * y)
			}
		}
		rest[s] = sum.over(total).float()
	}
	floor := float64(slices.Max(size)*0x1p-40) + underflow
	for s := range size {
		size[s] += floor
	}
	return rest, size
}

// refine adds corrections to the values v [S] of the policy pi, until one is below the share goal of what is added up
// in each state, or they cease to shrink. It returns the largest share of the last that was added.
func (m *MDP) refine(pi *mat.Dense, solve solver, v []double, goal float64) (last float64) {
	for last = math.Inf(1); last > goal; {
		d, of := m.residual(pi, v)
		// The inverse of I − γP^π has rows that sum to 1/(1−γ).
		if left := floats.Norm(d, math.Inf(1)) / ((1 - m.Gamma) * slices.Min(of)); m.States() > direct && left <= goal {
			return left
		}
		solve(d)
		worst := 0.0
		for s, x := range d {
			worst = max(worst, math.Abs(x)/of[s])
		}
		if !(worst <= last/2) {
			break
		}
		for s, x := range d {
			v[s] = v[s].plus(x)
		}
		if left := worst / last * worst; left > 0 && left <= goal && m.States() > direct {
			return left // as the next correction would be
		}
		last = worst
	}
	return last
}

// evaluate is refine, by dense factors where the solver does not suffice. It returns the one that did.
func (m *MDP) evaluate(pi *mat.Dense, solve solver, v []double, goal float64) (solver, float64, error) {
	last := m.refine(pi, solve, v, goal)
	if last <= wrong || m.States() > fallback {
		return solve, last, nil
	}
	solve, err := m.factors(pi)
	if err != nil {
		return nil, last, err
	}
	clear(v)
	return solve, m.refine(pi, solve, v, goal), nil
}

const (
	wrong   = 1e-9  // the share of what is added up in a state above which an error is no rounding
	visible = 1e-11 // the share of a value, or of 1 where that is smaller, above which an error shows
)

// benign returns whether the rounding of a backup is too small to show.
func (m *MDP) benign() bool { return float64(m.States())*0x1p-52*m.Bound() <= visible }

// value returns V^π [S] to rounding. A large problem takes the values that are given to start with, if any.
func (m *MDP) value(pi *mat.Dense, start []float64) ([]double, error) {
	solve, err := m.solver(pi)
	if err != nil {
		return nil, err
	}
	if start == nil || m.States() <= direct {
		start = m.StateValues(pi, m.R) // r^π
		solve(start)
	}
	v, goal := doubles(start), 0x1p-98
	switch {
	case m.benign():
		goal = 0x1p-47
	case m.States() > direct:
		goal = 0x1p-60
	}
	if _, last, err := m.evaluate(pi, solve, v, goal); err != nil {
		return nil, err
	} else if !(last <= wrong) {
		return nil, fmt.Errorf(
			"mdp: the value of a policy at γ=%v is known only to %.2g of itself; take a smaller gamma", m.Gamma, last)
	}
	return v, nil
}

func doubles(x []float64) []double {
	v := make([]double, len(x))
	for i := range x {
		v[i].hi = x[i]
	}
	return v
}

// greedy returns the policy [S, A] that takes the given action in each state.
func (m *MDP) greedy(policy []int) *mat.Dense {
	s, a := m.R.Dims()
	pi := mat.NewDense(s, a, nil)
	for i, j := range policy {
		pi.Set(i, j, 1)
	}
	return pi
}

// anyPolicy returns a policy to begin with: the first action of each state or, at γ = 1, actions that surely end.
func (m *MDP) anyPolicy() []int {
	if m.proper != nil {
		return slices.Clone(m.proper)
	}
	policy := make([]int, m.States())
	for s := range policy {
		for !m.Exists(s, policy[s]) {
			policy[s]++
		}
	}
	return policy
}

// double is an unevaluated sum hi+lo of two float64 with |lo| at most half an ulp of hi: some 106 bits (Dekker, 1971).
type double struct{ hi, lo float64 }

func (x double) float() float64 { return x.hi + x.lo }

// twoSum returns a+b exactly (Knuth).
func twoSum(a, b float64) double {
	sum := a + b
	part := sum - a
	return double{sum, (a - (sum - part)) + (b - part)}
}

// twoProduct returns a·b exactly, but for underflow, by halves of the factors (Dekker): math.FMA is slow
// beside other arithmetic where the processor's wide registers were in use, as after each preemption.
func twoProduct(a, b float64) double {
	const split, large = 1<<27 + 1, 0x1p990
	p := float64(a * b)
	if !(math.Abs(a) < large && math.Abs(b) < large) {
		return double{p, math.FMA(a, b, -p)}
	}
	c, d := float64(split*a), float64(split*b)
	high, other := c-(c-a), d-(d-b)
	low, rest := a-high, b-other
	return double{p, float64(low*rest) + (float64(low*other) + (float64(high*rest) + (float64(high*other) - p)))}
}

// normal returns hi+lo where |hi| ≥ |lo| (Dekker's fast sum).
func normal(hi, lo float64) double {
	sum := hi + lo
	return double{sum, lo - (sum - hi)}
}

func (x double) plus(b float64) double {
	sum := twoSum(x.hi, b)
	return normal(sum.hi, sum.lo+x.lo)
}

// add returns x+y, with a relative error of some 2⁻¹⁰⁴ whatever their signs.
func (x double) add(y double) double {
	hi, lo := twoSum(x.hi, y.hi), twoSum(x.lo, y.lo)
	hi = normal(hi.hi, hi.lo+lo.hi)
	return normal(hi.hi, hi.lo+lo.lo)
}

// minus returns x−y, rounded.
func (x double) minus(y double) float64 { return x.add(double{-y.hi, -y.lo}).float() }

func (x double) times(b float64) double {
	p := twoProduct(x.hi, b)
	return normal(p.hi, p.lo+float64(x.lo*b))
}

// over returns x/y: a quotient, and one more of what is left.
func (x double) over(y double) double {
	q := x.hi / y.hi
	rest := x.add(y.times(-q))
	return normal(q, rest.float()/y.hi)
}

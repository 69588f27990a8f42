package mdp

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

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

// Shortfall compares the values v [S] of a policy with optimal ones. Episodes begin
// where the start distribution lets them, or anywhere where there is none; the unit is then
// of the states that an optimal action leads to from another one, so that a sink which
// only mistakes lead to is no part of it.
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
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
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

package mdp

import (
	"fmt"
	"slices"
)

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

package mdp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
)

// Transitions are rows of P by successors (compressed sparse rows): row i = s·A+a leads to
// the states State[Offset[i]:Offset[i+1]] with the probabilities P at the same places.
type Transitions struct {
	Offset []int     // [rows+1], from 0
	State  []int32   // in increasing order once Build has seen them
	P      []float64 // as long as State
}

// Add gives the row in the making one more successor.
func (t *Transitions) Add(state int, p float64) {
	t.State, t.P = append(t.State, int32(state)), append(t.P, p)
}

// EndRow ends the row in the making.
func (t *Transitions) EndRow() {
	if t.Offset == nil {
		t.Offset = append(t.Offset, 0)
	}
	t.Offset = append(t.Offset, len(t.State))
}

// Row returns the successors of row i and their probabilities, which must not be changed.
func (t *Transitions) Row(i int) (states []int32, p []float64) {
	from, to := t.Offset[i], t.Offset[i+1]
	return t.State[from:to], t.P[from:to]
}

// Meaning is what a problem says of itself beyond P, r and γ.
type Meaning struct {
	Minimize                bool      // rewards and values are costs with their sign turned, which printing turns back
	Start                   []float64 // [S], the distribution of the first state; nil where there is none
	Terminal                []int     // the states that end an episode: whatever is done there earns 0 for ever
	StateNames, ActionNames []string  // [S] and [A], nil where things are known by number
	// Rows and Columns are the shape of the grid that the states fill row by row, but perhaps for
	// a terminal state behind them; 0 where there is none.
	Rows, Columns int
}

// Label returns the name of a state or an action, or its number where there are no names.
func Label(names []string, i int) string {
	if names == nil {
		return strconv.Itoa(i)
	}
	return names[i]
}

// Model is what Build makes an MDP of.
type Model struct {
	Gamma float64 // γ in [0, 1); 1 where every episode surely ends (see Meaning.Terminal)
	P     Transitions
	// R [S, A] holds rewards, or costs where Minimize is set. A reward of −∞ (a cost of +∞)
	// says that the state does not have that action; P then needs no row for it.
	R *mat.Dense
	Meaning
	// Normalize divides rows of P that are off by more than Rounded, by up to 5 %, too, and takes
	// probabilities down to −Rounded for 0.
	Normalize bool
}

const (
	// Rounded is how far the sum of a row of P may lie from one before it is refused; rows
	// that lie off by more than rounding are divided by their sums.
	Rounded    = 1e-6
	negligible = 1e-12 // the size below which a negative probability is rounding, and 0
	exact      = 1e-15 // how far the sum of a row that was divided by its sum may lie from one
	penalty    = 100   // how many times every other reward one must be to be taken for the mark of an absent action
)

// Build returns the MDP of the model, which it copies. The error names the first input
// that is not what it must be, and what to write instead.
func (model Model) Build() (*MDP, error) {
	if !(model.Gamma >= 0 && model.Gamma <= 1) {
		return nil, fmt.Errorf("mdp: discount gamma is %v, want 0 ≤ gamma < 1, or 1 where episodes surely end",
			model.Gamma)
	}
	if model.R == nil || model.R.IsEmpty() || len(model.P.Offset) == 0 {
		return nil, errors.New("mdp: transitions P and rewards r must not be empty")
	}
	s, a := model.R.Dims()
	if rows := len(model.P.Offset) - 1; rows != s*a {
		return nil, fmt.Errorf("mdp: transitions P have %d rows, want S·A = %d·%d", rows, s, a)
	}
	if s > math.MaxInt32 {
		return nil, fmt.Errorf("mdp: %d states are too many", s)
	}
	m := &MDP{Gamma: model.Gamma, Meaning: model.Meaning}
	if err := m.checkMeaning(s, a); err != nil {
		return nil, err
	}
	if err := m.setRewards(model.R); err != nil {
		return nil, err
	}
	if err := m.setTransitions(model.P, model.Normalize); err != nil {
		return nil, err
	}
	if m.Gamma == 1 {
		if err := m.checkEnds(); err != nil {
			return nil, err
		}
	} else if bound := m.Bound(); bound > math.MaxFloat64/4 {
		return nil, fmt.Errorf("mdp: rewards of %.4g at gamma %v add up to more than a number holds (1.8e308); "+
			"divide all rewards by a constant, which changes no optimal action", m.RMax(), m.Gamma)
	}
	m.warnOfPenalty()
	return m, nil
}

// checkMeaning copies what the problem says of itself, and checks it.
func (m *MDP) checkMeaning(s, a int) error {
	x := &m.Meaning
	if x.Start != nil {
		if x.Start = slices.Clone(x.Start); len(x.Start) != s {
			return fmt.Errorf("mdp: the start distribution has %d states, want %d", len(x.Start), s)
		}
		states := make([]int32, s)
		for i := range states {
			states[i] = int32(i)
		}
		if _, err := repair(states, x.Start, s, false); err != nil {
			return fmt.Errorf("mdp: the start distribution %w", err)
		}
	}
	x.Terminal = slices.Compact(slices.Sorted(slices.Values(x.Terminal)))
	for _, t := range x.Terminal {
		if t < 0 || t >= s {
			return fmt.Errorf("mdp: terminal state %d does not exist, want one of 0 … %d", t, s-1)
		}
	}
	if n := len(x.StateNames); n != 0 && n != s {
		return fmt.Errorf("mdp: %d names of states, want %d", n, s)
	}
	if n := len(x.ActionNames); n != 0 && n != a {
		return fmt.Errorf("mdp: %d names of actions, want %d", n, a)
	}
	x.StateNames, x.ActionNames = slices.Clone(x.StateNames), slices.Clone(x.ActionNames)
	inside := s
	if slices.Contains(x.Terminal, s-1) && x.Columns > 0 && x.Rows == (s-1)/x.Columns {
		inside--
	}
	if (x.Rows != 0 || x.Columns != 0) &&
		(x.Rows < 1 || x.Columns < 1 || inside%x.Columns != 0 || x.Rows != inside/x.Columns) {
		return fmt.Errorf("mdp: a grid of %d rows and %d columns does not hold %d states", x.Rows, x.Columns, s)
	}
	return nil
}

// setRewards copies rewards, turns costs, and notes which actions there are.
func (m *MDP) setRewards(r *mat.Dense) error {
	m.R = mat.DenseCopyOf(r)
	s, a := m.R.Dims()
	name, none := "reward", math.Inf(-1)
	if m.Minimize {
		name, none = "cost", math.Inf(1)
		m.R.Scale(-1, m.R)
	}
	for _, t := range m.Terminal {
		clear(m.R.RawRowView(t))
	}
	for i := range s {
		row, exist := m.R.RawRowView(i), 0
		for j, v := range row {
			switch {
			case math.IsInf(v, -1):
				if m.missing == nil {
					m.missing = make([]bool, s*a)
				}
				m.missing[i*a+j] = true
			case math.IsNaN(v) || math.IsInf(v, 1):
				return fmt.Errorf("mdp: %s r(s=%d,a=%d) is %v, want a finite number, or %v where the state does not "+
					"have the action", name, i, j, r.At(i, j), none)
			default:
				exist++
			}
		}
		if exist == 0 {
			return fmt.Errorf("mdp: state %d has no action: each %s is %v; an end of the episode is a terminal state",
				i, name, none)
		}
	}
	return nil
}

// setTransitions copies P, sorted by successors and without zeros.
func (m *MDP) setTransitions(p Transitions, normalize bool) error {
	s, a := m.R.Dims()
	terminal := m.isTerminal()
	m.next.State, m.next.P = make([]int32, 0, len(p.State)), make([]float64, 0, len(p.P))
	repaired, off := 0, 0.0
	for i := range s * a {
		from := len(m.next.P)
		switch states, weights := p.Row(i); {
		case !m.Exists(i/a, i%a):
		case terminal[i/a]:
			m.next.Add(i/a, 1)
		default:
			m.next.State, m.next.P = append(m.next.State, states...), append(m.next.P, weights...)
			m.next.merge(from)
			was, err := repair(m.next.State[from:], m.next.P[from:], s, normalize)
			if err != nil {
				return fmt.Errorf("mdp: P(·|s=%d,a=%d) %w", i/a, i%a, err)
			}
			m.next.drop(from)
			if off = max(off, was); was > Tolerance {
				repaired++
			}
		}
		m.next.EndRow()
	}
	if repaired > 0 {
		m.warn("%d of %d rows of P sum to one only within %.2g; each was divided by its sum", repaired, s*a, off)
	}
	return nil
}

// merge sorts the row in the making, which begins at from, by states and adds up what it says of each.
func (t *Transitions) merge(from int) {
	sorted := true
	for k := from + 1; k < len(t.State) && sorted; k++ {
		sorted = t.State[k-1] < t.State[k]
	}
	if sorted {
		return
	}
	states, p, order := slices.Clone(t.State[from:]), slices.Clone(t.P[from:]), make([]int, len(t.State)-from)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(states[i], states[j]) })
	t.State, t.P = t.State[:from], t.P[:from]
	for _, k := range order {
		if n := len(t.State); n > from && t.State[n-1] == states[k] {
			t.P[n-1] += p[k]
		} else {
			t.Add(int(states[k]), p[k])
		}
	}
}

// drop takes zeros out of the row in the making.
func (t *Transitions) drop(from int) {
	to := from
	for k := from; k < len(t.P); k++ {
		if t.P[k] != 0 {
			t.State[to], t.P[to] = t.State[k], t.P[k]
			to++
		}
	}
	t.State, t.P = t.State[:to], t.P[:to]
}

// repair sets negative rounding in a distribution over n states to 0 and divides it by its sum
// where that is off by more than rounding. It returns by how much it was, and an error where
// that is too much: Rounded, or 5 % where rows are to be normalized.
func repair(states []int32, row []float64, n int, normalize bool) (off float64, err error) {
	sum := double{}
	for i, p := range row {
		switch state := int(states[i]); {
		case state < 0 || state >= n:
			return 0, fmt.Errorf("leads to state %d, want one of 0 … %d", state, n-1)
		case p < 0 && (p >= -negligible || normalize && p >= -Rounded):
			row[i] = 0
		case p < 0 && p >= -Rounded:
			return 0, fmt.Errorf("has entry %d equal to %v; ask for rows to be normalized (--normalize), and it is "+
				"taken for 0", state, p)
		case !(p >= 0 && p <= math.MaxFloat64):
			return 0, fmt.Errorf("has entry %d equal to %v, want a probability", state, p)
		}
		sum = sum.plus(row[i])
	}
	total := sum.float()
	off = math.Abs(sum.plus(-1).float())
	switch {
	case total == 0:
		return off, errors.New("sums to 0: where the episode ends, make the state terminal (or lead back to it for " +
			"ever at reward 0); where the state does not have the action, make its reward −∞")
	case !(off <= .05):
		return off, fmt.Errorf("sums to %.12g, want 1", total)
	case off > Rounded*(1+1e-6) && !normalize:
		return off, fmt.Errorf("sums to %.12g, want 1 within %g; print more digits, or ask for rows to be normalized "+
			"(--normalize)", total, Rounded)
	case off > exact:
		for i := range row {
			row[i] /= total
		}
	}
	return off, nil
}

// warnOfPenalty warns of rewards that dwarf all others.
func (m *MDP) warnOfPenalty() {
	a, rewards := m.Actions(), m.R.RawMatrix().Data
	low, rest, at := 0.0, 0.0, 0
	for i, v := range rewards {
		if v < low && !math.IsInf(v, -1) {
			low, at = v, i
		}
	}
	for _, v := range rewards {
		if v > low/2 {
			rest = max(rest, math.Abs(v))
		}
	}
	if rest > 0 && -low > penalty*rest {
		name, sign := "reward", 1.0
		if m.Minimize {
			name, sign = "cost", -1
		}
		m.warn("the %s %.4g (state %d, action %d) dwarfs all others, which are at most %.4g in size. If it marks an "+
			"action that does not exist, say so by a mask: a reward of −∞ (a cost of +∞). Otherwise a loss in units "+
			"of it looks small for policies that are useless", name, sign*low, at/a, at%a, rest)
	}
}

func (m *MDP) warn(format string, values ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, values...))
}

package mdpfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// draft is what a file says of a problem: arrays P and r, or transitions one by one.
type draft struct {
	mdp.Model                 // γ is NaN until it is said; build makes P and R
	layout          string    // the axes of the array P, "" where nobody says
	states, actions axis      // what numbers mean
	p, r            *tensor   // arrays; nil where there are none
	list            []arrow   // transitions, where p is nil
	priced          bool      // whether the list has rewards
	pi0             *tensor   // [S, A]
	terminal        []string  // states by label
	first           []mass    // the start distribution by labels
	startAt         []float64 // the start distribution [S]
	notes           []string
}

// arrow is a transition: a probability and a reward, and whether the episode ends with it.
type arrow struct {
	s, a, t int32
	ends    bool
	p, r    float64
}

// mass is the probability of a state.
type mass struct {
	label string
	p     float64
}

// tensor is an array. Of three axes it keeps what is not zero.
type tensor struct {
	shape []int
	flat  []float64       // of up to two axes, row-major; NaN where there is none
	rows  mdp.Transitions // of three axes; row i·shape[1]+j
	none  []bool          // of three axes, the rows that are left out; nil where none is
	lens  []int           // how many rows of the second axis the file has, where these differ
	order order           // of three axes
}

// order says how the rows of an array P follow each other.
type order int

const (
	axes      order = iota // as the layout says
	stacked                // one matrix [S·A, S], shaped as [S, A, S] has it
	perAction              // [A, S, S] whatever the layout
)

func newDraft() *draft {
	return &draft{Model: mdp.Model{Gamma: math.NaN()}, states: axis{what: "state"}, actions: axis{what: "action"}}
}

func (d *draft) note(format string, values ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, values...))
}

// arrow adds a transition between labels.
func (d *draft) arrow(s, a, t string, x arrow) (err error) {
	if len(d.list) >= MaxTransitions {
		return fmt.Errorf("more than %d transitions", MaxTransitions)
	}
	if x.s, err = d.states.at(s); err != nil {
		return err
	}
	if x.a, err = d.actions.at(a); err != nil {
		return err
	}
	if t == "" { // the state and the action are named, and lead nowhere
		return nil
	}
	if x.t, err = d.states.at(t); err != nil {
		return err
	}
	d.list = append(d.list, x)
	return nil
}

// build makes the problem.
func (d *draft) build(o Options) (mdp.Problem, error) {
	if o.Gamma != nil {
		d.Gamma = *o.Gamma
	}
	if o.Layout != "" {
		d.layout = o.Layout
	}
	d.Minimize = d.Minimize || o.Minimize
	d.Normalize = d.Normalize || o.Normalize
	if math.IsNaN(d.Gamma) && o.Gamma == nil {
		return mdp.Problem{}, errors.New(`there is no discount: add "gamma", or give it with --gamma`)
	}
	if d.layout != "" && d.layout != "S,A,S" && d.layout != "A,S,S" {
		return mdp.Problem{}, fmt.Errorf(`layout %q, want "S,A,S" or "A,S,S"`, d.layout)
	}
	transitions := d.fromList
	if d.p != nil {
		transitions = d.fromArrays
	}
	if err := transitions(); err != nil {
		return mdp.Problem{}, err
	}
	if d.r != nil && len(d.r.shape) == 3 {
		d.mean()
	}
	if err := d.meaning(); err != nil {
		return mdp.Problem{}, err
	}
	m, err := d.Build()
	if err != nil {
		return mdp.Problem{}, err
	}
	m.Warnings = append(d.notes, m.Warnings...)
	pi0, err := d.policy(m)
	if err != nil {
		return mdp.Problem{}, err
	}
	problem := mdp.Problem{MDP: m, Pi0: pi0}
	return problem, problem.Check()
}

// fromArrays sets P, and R where it is an array, from arrays.
func (d *draft) fromArrays() error {
	p := d.p
	if len(p.shape) != 3 {
		return fmt.Errorf(`"P" has %d axes, want three: [S][A][S]`, len(p.shape))
	}
	swapped := d.layout == "A,S,S" || p.order == perAction
	if swapped && p.order == stacked {
		p.shape[0], p.shape[1] = p.shape[1], p.shape[0]
	}
	x, y, z := p.shape[0], p.shape[1], p.shape[2]
	const other = `; where its axes are A,S,S (as pymdptoolbox has them), say so: "layout": "A,S,S", or --layout A,S,S`
	switch {
	case swapped && y != z:
		return fmt.Errorf(`"P" has shape %v, want [A, S, S]`, p.shape)
	case !swapped && x != z && y == z:
		return fmt.Errorf(`"P" has shape %v, want [S, A, S]%s`, p.shape, other)
	case !swapped && x != z:
		return fmt.Errorf(`"P" has shape %v, want [S, A, S]: as many successors as states`, p.shape)
	case d.layout == "" && p.order == stacked && y > 1:
		d.note(`row s·A+a of the matrix P was read as P(·|s,a); where row a·S+s is, say so: "layout": "A,S,S", or --layout A,S,S`)
	case d.layout == "" && !swapped && x == y && !p.symmetric():
		d.note(`"P" has as many states as actions, so its axes may be S,A,S, as they were read, or A,S,S%s`, other)
	}
	if swapped {
		p.swap()
	}
	if d.layout == "A,S,S" && d.r != nil && len(d.r.shape) == 3 {
		d.r.swap()
	}
	d.P = p.rows
	return d.rewards(p.shape[0], p.shape[1])
}

// rewards sets R [S, A] from the array r, with NaN where an action does not exist.
func (d *draft) rewards(s, a int) error {
	if err := cmp.Or(d.states.fit(s), d.actions.fit(a)); err != nil {
		return err
	}
	if d.r == nil {
		return errors.New(`there are no rewards: add "r", [S][A], [S][A][S] or [S] (or "costs")`)
	}
	d.R = mat.NewDense(s, a, nil)
	switch r := d.r; {
	case len(r.shape) == 1 && r.shape[0] == s:
		for i, v := range r.flat {
			for j := range a {
				d.R.Set(i, j, v)
			}
		}
	case len(r.shape) == 2 && r.shape[0] == s && r.shape[1] == a:
		copy(d.R.RawMatrix().Data, r.flat)
	case len(r.shape) == 3 && r.shape[0] == s && r.shape[1] == a && r.shape[2] == s:
	default:
		return fmt.Errorf(`"r" has shape %v, want [S, A] = [%d, %d], [S, A, S] or [S]`, r.shape, s, a)
	}
	if d.p != nil && len(d.r.shape) > 1 && !slices.Equal(d.p.lens, d.r.lens) {
		return errors.New(`"P" and "r" do not list the same actions of each state; write null for those that a state does not have`)
	}
	for _, x := range []*tensor{d.p, d.r} {
		if x == nil || x.none == nil {
			continue
		}
		for i, none := range x.none {
			if none {
				d.R.Set(i/a, i%a, math.NaN())
			}
		}
	}
	return nil
}

// fromList sets P, and R where it is no array, from transitions.
func (d *draft) fromList() error {
	if len(d.list) == 0 {
		return errors.New(`there are no transitions: "P" or "transitions" is missing or empty`)
	}
	states, actions := d.states.settle(d), d.actions.settle(d)
	for k := range d.list {
		x := &d.list[k]
		x.s, x.a, x.t = states(x.s), actions(x.a), states(x.t)
	}
	s, a := d.states.len(), d.actions.len()
	if most := 4*len(d.list) + 1<<20; s > most/a {
		return fmt.Errorf("%d states and %d actions, but only %d transitions", s, a, len(d.list))
	}
	if err := d.price(s, a); err != nil {
		return err
	}
	terminal := make([]bool, s+1)
	for _, label := range d.terminal {
		if t, err := d.states.at(label); err == nil { // else meaning says so
			terminal[t] = true
		}
	}
	d.ends(terminal)
	s = d.states.len()
	rows, next, p := make([]int32, len(d.list)), make([]int32, len(d.list)), make([]float64, len(d.list))
	for k, x := range d.list {
		rows[k], next[k], p[k] = x.s*int32(a)+x.a, x.t, x.p
	}
	var err error
	if d.P, err = mdp.Triplets(s*a, rows, next, p); err != nil {
		return err
	}
	d.average(s, a)
	var idle []string
	for i := range s {
		if d.P.Offset[i*a] == d.P.Offset[i*a+a] && !terminal[i] {
			d.Terminal, idle = append(d.Terminal, i), append(idle, d.states.label(i))
		}
	}
	if len(idle) > 0 {
		d.note("%d states have no transitions and were taken as terminal: %s", len(idle), some(idle))
	}
	d.list = nil
	return nil
}

// price has each transition of the list bear its reward.
func (d *draft) price(s, a int) error {
	switch {
	case d.r == nil && !d.priced:
		return errors.New(`there are no rewards: write [state, action, next, probability, reward], or add "r"`)
	case d.r == nil:
		return nil
	case d.priced:
		return errors.New(`rewards stand both in "r" and in the transitions; leave one of them out`)
	}
	if err := d.rewards(s, a); err != nil {
		return err
	}
	for k := range d.list {
		x := &d.list[k]
		if x.r = d.R.At(int(x.s), int(x.a)); len(d.r.shape) == 3 && !math.IsNaN(x.r) {
			states, r := d.r.rows.Row(int(x.s)*a + int(x.a))
			if i, ok := slices.BinarySearch(states, x.t); ok {
				x.r = r[i]
			}
		}
	}
	d.r = nil
	return nil
}

// average sets R to the mean rewards of the list, NaN where an action does not exist.
func (d *draft) average(s, a int) {
	d.R = mat.NewDense(s, a, nil)
	d.R.Apply(func(_, _ int, _ float64) float64 { return math.NaN() }, d.R)
	first, weight := d.R.RawMatrix().Data, make([]float64, s*a)
	sum, mixed := make([]float64, s*a), make([]bool, s*a)
	for _, x := range d.list {
		at := int(x.s)*a + int(x.a)
		if x.p == 0 && !math.IsNaN(first[at]) {
			continue
		}
		if weight[at] == 0 {
			first[at] = x.r
		}
		mixed[at] = mixed[at] || x.r != first[at]
		sum[at], weight[at] = sum[at]+x.p*x.r, weight[at]+x.p
	}
	for at := range first {
		if mixed[at] {
			first[at] = sum[at] / cmp.Or(weight[at], 1)
		}
	}
}

// ends leads transitions that end an episode to a state in which nothing more can come: to
// their successor where it is terminal, has no transitions or only stays for nothing, and
// else to one more state. It ends those episodes and no others.
func (d *draft) ends(terminal []bool) {
	open := make([]bool, d.states.len()) // has transitions that earn something or leave it
	for _, x := range d.list {
		open[x.s] = open[x.s] || x.p != 0 && (x.r != 0 || x.s != x.t)
	}
	end, more := int32(len(open)), false
	for k, x := range d.list {
		switch {
		case !x.ends || terminal[x.t]:
		case open[x.t]:
			d.list[k].t, more = end, true
		default:
			terminal[x.t] = true
			d.Terminal = append(d.Terminal, int(x.t))
		}
	}
	if more {
		d.states.grow("end")
		terminal[end] = true
		d.Terminal = append(d.Terminal, int(end))
	}
}

// mean sets R to the mean of the array r(s,a,s') under P, where the action exists.
func (d *draft) mean() {
	s, a := d.R.Dims()
	reward := make([]float64, s)
	for i := range s * a {
		states, rewards := d.r.rows.Row(i)
		for k, t := range states {
			reward[t] = rewards[k]
		}
		sum, weight := d.R.At(i/a, i%a), 0.0
		next, p := d.P.Row(i)
		for k, t := range next {
			if p[k] != 0 && int(t) < s && t >= 0 {
				sum, weight = sum+p[k]*reward[t], weight+p[k]
			}
		}
		if k := slices.IndexFunc(rewards, func(r float64) bool { return math.IsInf(r, 0) }); weight == 0 && k >= 0 {
			sum = rewards[k] // no such action, and no successors
		}
		d.R.Set(i/a, i%a, sum/cmp.Or(weight, 1))
		for _, t := range states {
			reward[t] = 0
		}
	}
}

// meaning sets what labels stood for, and marks actions that do not exist as mdp.Model does.
func (d *draft) meaning() error {
	s, _ := d.R.Dims()
	for _, label := range d.terminal {
		t, err := d.states.at(label)
		if err != nil {
			return fmt.Errorf(`"terminal": %w`, err)
		}
		for j, v := range d.R.RawRowView(int(t)) {
			if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
				return fmt.Errorf(`state %s is terminal, where nothing is earned, but its reward for action %d is %v; `+
					`write the reward of reaching it at the actions that lead there (r as [S][A][S], or [s, a, s', p, r])`, label, j, v)
			}
		}
		d.Terminal = append(d.Terminal, int(t))
	}
	if d.startAt != nil {
		d.Start = d.startAt
	} else if d.first != nil {
		d.Start = make([]float64, s)
	}
	for _, x := range d.first {
		t, err := d.states.at(x.label)
		if err != nil {
			return fmt.Errorf(`"start": %w`, err)
		}
		d.Start[t] += x.p
	}
	if n := len(d.Start); n > 0 && n < s { // ends adds a state
		d.Start = append(d.Start, make([]float64, s-n)...)
	}
	d.StateNames, d.ActionNames = d.states.names, d.actions.names
	absent := math.Inf(-1)
	if d.Minimize {
		absent = math.Inf(1)
	}
	for i, v := range d.R.RawMatrix().Data {
		if math.IsNaN(v) {
			d.R.RawMatrix().Data[i] = absent
		}
	}
	return nil
}

// single is how far the sums of rows in single precision lie from one at most.
const single = 1e-5

// policy returns π₀, rows of single precision divided by their sums.
func (d *draft) policy(m *mdp.MDP) (*mat.Dense, error) {
	if d.pi0 == nil {
		return m.Uniform(), nil
	}
	s, a := m.R.Dims()
	if len(d.pi0.shape) != 2 || d.pi0.shape[0] > s || d.pi0.shape[1] != a || len(d.pi0.flat) != d.pi0.shape[0]*a {
		return nil, fmt.Errorf(`"pi0" has shape %v, want [S, A] = [%d, %d]`, d.pi0.shape, s, a)
	}
	pi := m.Uniform() // of a state that ends adds
	for i := range d.pi0.shape[0] {
		row := pi.RawRowView(i)
		copy(row, d.pi0.flat[i*a:])
		sum := 0.0
		for j, v := range row {
			if math.IsNaN(v) {
				row[j] = 0
			}
			sum += row[j]
		}
		if off := math.Abs(sum - 1); off > mdp.Tolerance && off <= single {
			for j := range row {
				row[j] /= sum
			}
		}
	}
	return pi, nil
}

// symmetric returns whether the first two of three axes of equal length can be exchanged.
func (t *tensor) symmetric() bool {
	n := t.shape[0]
	for i := range n {
		for j := range i {
			s, p := t.rows.Row(i*n + j)
			u, q := t.rows.Row(j*n + i)
			if !slices.Equal(s, u) || !slices.Equal(p, q) {
				return false
			}
		}
	}
	return true
}

// swap exchanges the first two of three axes.
func (t *tensor) swap() {
	n, m := t.shape[0], t.shape[1]
	var rows mdp.Transitions
	none := make([]bool, 0, n*m)
	for j := range m {
		for i := range n {
			states, p := t.rows.Row(i*m + j)
			rows.State, rows.P = append(rows.State, states...), append(rows.P, p...)
			rows.EndRow()
			if t.none != nil {
				none = append(none, t.none[i*m+j])
			}
		}
	}
	if t.none != nil {
		t.none = none
	}
	t.rows, t.shape[0], t.shape[1] = rows, m, n
}

// axis numbers the states or the actions that a file speaks of.
type axis struct {
	what   string           // "state" or "action"
	names  []string         // by number; nil where numbers are all there is
	number map[string]int32 // by name
	size   int              // where it is known
}

// declare takes the names that a file lists.
func (x *axis) declare(names []string) error {
	x.number = make(map[string]int32, len(names))
	for i, name := range names {
		if _, ok := x.number[name]; ok {
			return fmt.Errorf("two %ss have the name %q", x.what, name)
		}
		x.number[name] = int32(i)
	}
	x.names, x.size = names, len(names)
	return nil
}

// at returns the number of a label: a name, or where no name is one, a number. Where the file
// declares no names, every label is one until settle.
func (x *axis) at(label string) (int32, error) {
	if i, ok := x.number[label]; ok {
		return i, nil
	}
	if x.size == 0 {
		if x.number == nil {
			x.number = map[string]int32{}
		}
		label = strings.Clone(label)
		x.names, x.number[label] = append(x.names, label), int32(len(x.names))
		return x.number[label], nil
	}
	i, err := strconv.Atoi(label)
	if err != nil || i < 0 || i >= x.size || slices.ContainsFunc(x.names, whole) {
		if x.names != nil {
			return 0, fmt.Errorf("there is no %s %q; the %ss are %s", x.what, label, x.what, some(x.names))
		}
		return 0, fmt.Errorf("there is no %s %q; the %ss are 0 … %d", x.what, label, x.what, x.size-1)
	}
	return int32(i), nil
}

// whole returns whether a name is a whole number.
func whole(name string) bool {
	v, err := strconv.Atoi(name)
	return err == nil && strconv.Itoa(v) == name
}

// fit takes the size of an array's axis.
func (x *axis) fit(n int) error {
	if x.size != 0 && x.size != n {
		return fmt.Errorf("%d %ss are declared, and the arrays have %d", x.size, x.what, n)
	}
	x.size = n
	return nil
}

func (x *axis) len() int { return max(x.size, len(x.names)) }

// label returns the name of a number.
func (x *axis) label(i int) string {
	if x.names != nil {
		return x.names[i]
	}
	return strconv.Itoa(i)
}

// grow adds one more.
func (x *axis) grow(name string) {
	if x.size++; x.names == nil {
		return
	}
	for x.number[name] != 0 || name == x.names[0] {
		name += "'"
	}
	x.number[name] = int32(len(x.names))
	x.names = append(x.names, name)
}

// settle ends the numbering. Labels that nobody declared and that are all numbers are put in
// the order of these; where they are 0, 1, 2 … they are no names. It returns the place of
// each provisional number.
func (x *axis) settle(d *draft) func(i int32) int32 {
	same := func(i int32) int32 { return i }
	if x.size != 0 {
		return same
	}
	x.size = len(x.names)
	values, order := make([]int, x.size), make([]int32, x.size)
	for i, name := range x.names {
		if !whole(name) {
			return same
		}
		values[i], _ = strconv.Atoi(name)
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Compare(values[i], values[j]) })
	place, names := make([]int32, x.size), make([]string, x.size)
	for to, i := range order {
		place[i], names[to] = int32(to), x.names[i]
	}
	if values[order[0]] != 0 || values[order[x.size-1]] != x.size-1 {
		d.note("the numbers of %ss are not 0 … %d, and were taken as names: %s", x.what, x.size-1, some(names))
		for i, name := range names {
			x.number[name] = int32(i)
		}
		x.names = names
	} else {
		x.names, x.number = nil, nil
	}
	return func(i int32) int32 { return place[i] }
}

// some lists the first names.
func some(names []string) string {
	const shown = 5
	list := strings.Join(names[:min(len(names), shown)], ", ")
	if len(names) > shown {
		list += fmt.Sprintf(" … (%d)", len(names))
	}
	return list
}

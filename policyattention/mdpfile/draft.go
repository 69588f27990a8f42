package mdpfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// draft is what a file says of a problem. Every reader fills it; build makes the problem.
type draft struct {
	mdp.Model                          // γ is NaN until it is said; build makes P and R
	bytes           int                // the size of the file
	layout          string             // the axes of the array P, "" where nobody says
	states, actions axis               // what numbers mean
	list            []arrow            // transitions by the numbers that the axes gave
	priced          bool               // whether the list has rewards
	p, r            *tensor            // arrays; the list is made of p where there is one
	pi0             *tensor            // [S, A]
	terminal        []string           // states by label
	first           map[string]float64 // the start distribution by labels
	notes           []string
}

// arrow is a transition: a probability and a reward, and whether the episode ends with it. A
// state has the actions that it has arrows of, be their probabilities 0.
type arrow struct {
	s, a, t int32
	ends    bool
	p, r    float64
}

// tensor is an array.
type tensor struct {
	shape    []int
	flat     []float64 // of up to two axes, row-major; NaN where there is none
	entries  []arrow   // of three axes s, a and t, what is not 0, as p; a row that is there has at least one 0
	lens     []int     // how many rows of the second axis the file has, where these differ
	words    []string  // of an array of strings
	stacked  bool      // one matrix [S·A, S], of which shape has the two numbers; its rows are the entries' s
	byAction bool      // axes are A, S, S whatever the layout
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

// remarks are what a file may say of its problem in a few words, see remark.
var remarks = strings.Fields("gamma minimize normalize layout start terminal shape states actions")

// remark takes what a file says of its problem in words or numbers: one, or a list.
func (d *draft) remark(name string, words []string, list bool) (err error) {
	switch name {
	case "states":
		return d.states.take(words, list, d.bytes)
	case "actions":
		return d.actions.take(words, list, d.bytes)
	case "terminal":
		d.terminal = append(d.terminal, words...)
		return nil
	case "start":
		if list {
			d.Start, err = numbers(words, len(words))
			return err
		}
	case "shape":
		words = strings.Fields(strings.Join(words, " "))
		if _, err = fmt.Sscan(strings.Join(words, " "), &d.Rows, &d.Columns); err != nil || len(words) != 2 {
			err = fmt.Errorf("the shape of the grid is %v, want [rows, columns]", words)
		}
		return err
	}
	if len(words) != 1 {
		return fmt.Errorf("%d words or numbers, want 1", len(words))
	}
	switch name {
	case "gamma", "discount":
		d.Gamma, err = number(words[0])
	case "minimize":
		d.Minimize, err = truth(words[0])
	case "normalize":
		d.Normalize, err = truth(words[0])
	case "layout":
		d.layout = words[0]
	case "start":
		d.first = map[string]float64{words[0]: 1}
	}
	return err
}

// number reads a number that is not NaN.
func number(word string) (float64, error) {
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(v) {
		return 0, fmt.Errorf("%.20q is no number", word)
	}
	return v, nil
}

// numbers reads so many words as numbers.
func numbers(words []string, want int) ([]float64, error) {
	if len(words) != want {
		return nil, fmt.Errorf("%d numbers, want %d", len(words), want)
	}
	values := make([]float64, want)
	for i, word := range words {
		var err error
		if values[i], err = number(word); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func truth(word string) (bool, error) {
	is, err := strconv.ParseBool(strings.ToLower(word))
	if err != nil {
		return false, fmt.Errorf("%.20q, want true or false", word)
	}
	return is, nil
}

func (d *draft) build(o Options) (p mdp.Problem, err error) {
	if o.Gamma != nil {
		d.Gamma = *o.Gamma
	}
	d.layout = cmp.Or(o.Layout, d.layout)
	d.Minimize = d.Minimize || o.Minimize
	d.Normalize = d.Normalize || o.Normalize
	if math.IsNaN(d.Gamma) && o.Gamma == nil {
		return p, errors.New(`there is no discount: add "gamma", or give it with --gamma`)
	}
	if d.layout != "" && d.layout != "S,A,S" && d.layout != "A,S,S" {
		return p, fmt.Errorf(`layout %q, want "S,A,S" or "A,S,S"`, d.layout)
	}
	place := d.number
	if d.p != nil {
		place = d.arrays
	}
	for _, step := range []func() error{place, d.price, d.settle, d.meaning} {
		if err := step(); err != nil {
			return p, err
		}
	}
	if p.MDP, err = d.Build(); err != nil {
		return p, err
	}
	p.MDP.Warnings = append(d.notes, p.MDP.Warnings...)
	if p.Pi0, err = d.policy(p.MDP); err != nil {
		return p, err
	}
	return p, p.Check()
}

// arrays takes the transitions of an array P, whose axes become S, A, S.
func (d *draft) arrays() error {
	p, swapped := d.p, d.layout == "A,S,S" || d.p.byAction
	if p.stacked {
		n := p.shape[1]
		a := p.shape[0] / n
		if d.layout == "" && !swapped && a > 1 {
			d.note(`row s·A+a of the matrix P was read as P(·|s,a); where row a·S+s is, say so: ` +
				`"layout": "A,S,S", or --layout A,S,S`)
		}
		if p.shape = []int{n, a, n}; swapped {
			p.shape = []int{a, n, n}
		}
		for k, x := range p.entries {
			p.entries[k].s, p.entries[k].a = x.s/int32(p.shape[1]), x.s%int32(p.shape[1])
		}
	}
	if len(p.shape) != 3 {
		return fmt.Errorf(`"P" has %d axes, want three: [S][A][S]`, len(p.shape))
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
	case len(p.entries) == 0:
		return errEmpty
	case d.layout == "" && !swapped && !p.stacked && x == y && x > 1:
		d.note(`"P" has as many states as actions, so its axes may be S,A,S, as they were read, or A,S,S%s`, other)
	}
	if swapped {
		p.swap()
	}
	if d.layout == "A,S,S" && d.r != nil && len(d.r.shape) == 3 {
		d.r.swap()
	}
	d.list, p.entries = p.entries, nil
	return cmp.Or(d.states.fit(p.shape[0]), d.actions.fit(p.shape[1]))
}

var errEmpty = errors.New(`there are no transitions: "P" or "transitions" is missing or empty`)

// number gives the states and actions of the list the places that they have in the problem.
func (d *draft) number() error {
	if len(d.list) == 0 {
		return errEmpty
	}
	if place := d.states.settle(d); place != nil {
		for k, x := range d.list {
			d.list[k].s, d.list[k].t = place[x.s], place[x.t]
		}
	}
	if place := d.actions.settle(d); place != nil {
		for k, x := range d.list {
			d.list[k].a = place[x.a]
		}
	}
	s, a := d.states.size, d.actions.size
	if most := 8*len(d.list) + 1<<16; s > most/a {
		return fmt.Errorf("%d states and %d actions, but only %d transitions", s, a, len(d.list))
	}
	return nil
}

// price takes the rewards of an array r, NaN where the action does not exist.
func (d *draft) price() error {
	r, s, a := d.r, d.states.size, d.actions.size
	var reward func(pair int, next int32) float64
	switch {
	case r == nil && d.priced:
		return nil
	case r == nil:
		return errors.New(`there are no rewards: add "r", [S][A], [S][A][S] or [S] (or "costs"), ` +
			`or write them as the fifth number of each transition`)
	case r.words != nil:
		return fmt.Errorf(`"r" holds %.20q, want numbers`, r.words[0])
	case d.priced:
		return errors.New(`rewards stand both in "r" and in the transitions; leave one of them out`)
	case d.p != nil && len(r.shape) > 1 && !slices.Equal(d.p.lens, r.lens):
		return errors.New(`"P" and "r" do not list the same actions of each state; write null for those that a ` +
			`state does not have`)
	}
	switch shape := r.shape; {
	case slices.Equal(shape, []int{s}):
		reward = func(pair int, _ int32) float64 { return r.flat[pair/a] }
	case slices.Equal(shape, []int{s, a}):
		reward = func(pair int, _ int32) float64 { return r.flat[pair] }
	case slices.Equal(shape, []int{s, a, s}):
		rows, _ := byRow(r.entries, s, a)
		reward = func(pair int, next int32) float64 {
			states, values := rows.Row(pair)
			if i, ok := slices.BinarySearch(states, next); ok {
				return values[i]
			} else if len(states) == 0 {
				return math.NaN()
			}
			return 0
		}
	default:
		return fmt.Errorf(`"r" has shape %v, want [S, A] = [%d, %d], [S, A, S] or [S]`, shape, s, a)
	}
	for k, x := range d.list {
		d.list[k].r = reward(int(x.s)*a+int(x.a), x.t)
	}
	return nil
}

// byRow returns the probabilities of a list by pairs s·A+a, each pair's in the list's order, and the rewards likewise.
func byRow(list []arrow, s, a int) (t mdp.Transitions, earned []float64) {
	t = mdp.Transitions{Offset: make([]int, s*a+1), State: make([]int32, len(list)), P: make([]float64, len(list))}
	for _, x := range list {
		t.Offset[int(x.s)*a+int(x.a)+1]++
	}
	for i := range s * a {
		t.Offset[i+1] += t.Offset[i]
	}
	at := slices.Clone(t.Offset)
	earned = make([]float64, len(list))
	for _, x := range list {
		k := &at[int(x.s)*a+int(x.a)]
		t.State[*k], t.P[*k], earned[*k] = x.t, x.p, x.r
		*k++
	}
	return t, earned
}

// settle makes P and R.
func (d *draft) settle() error {
	terminal := make([]bool, d.states.size+1) // one more where ends adds a state
	for _, label := range d.terminal {
		t, err := d.states.at(label)
		if err != nil {
			return fmt.Errorf(`"terminal": %w`, err)
		}
		terminal[t] = true
	}
	named := slices.Clone(terminal)
	d.ends(terminal)
	s, a := d.states.size, d.actions.size
	var earned []float64
	if d.P, earned = byRow(d.list, s, a); d.p == nil {
		d.idle(terminal)
	}
	d.list, d.R = nil, mat.NewDense(s, a, nil)
	for i := range s * a {
		from, to := d.P.Offset[i], d.P.Offset[i+1]
		r := math.NaN()
		if from < to {
			r = mean(d.P.P[from:to], earned[from:to])
		}
		d.R.Set(i/a, i%a, r)
	}
	for t, is := range terminal {
		if is {
			d.Terminal = append(d.Terminal, t)
		}
	}
	return d.unpaid(named)
}

// unpaid returns an error where the file has rewards in states that it names as terminal.
func (d *draft) unpaid(terminal []bool) error {
	for t, is := range terminal {
		if !is {
			continue
		}
		values := slices.Clone(d.R.RawRowView(t))
		if d.r != nil && d.r.flat != nil {
			width := len(d.r.flat) / d.r.shape[0]
			values = append(values, d.r.flat[t*width:(t+1)*width]...)
		}
		for j, v := range values {
			if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
				return fmt.Errorf(`state %s is terminal, where nothing is earned, but its reward for action %d is `+
					`%v; write the reward of reaching it at the actions that lead there (r as [S][A][S], or `+
					`[s, a, s', p, r])`, mdp.Label(d.states.names, t), j%d.actions.size, v)
			}
		}
	}
	return nil
}

// mean returns the mean of rewards, and one of them to the bit where all are the same.
func mean(p, r []float64) float64 {
	first, sum, weight, mixed := 0.0, 0.0, 0.0, false
	for k, x := range p {
		if x == 0 && k > 0 {
			continue
		}
		if weight == 0 {
			first = r[k]
		}
		mixed = mixed || r[k] != first
		sum, weight = sum+x*r[k], weight+x
	}
	if mixed {
		return sum / cmp.Or(weight, 1)
	}
	return first
}

// idle takes states without transitions as terminal.
func (d *draft) idle(terminal []bool) {
	var idle []string
	for i, a := 0, d.actions.size; i < d.states.size; i++ {
		if d.P.Offset[i*a] == d.P.Offset[i*a+a] && !terminal[i] {
			terminal[i], idle = true, append(idle, mdp.Label(d.states.names, i))
		}
	}
	if len(idle) > 0 {
		d.note("%d states have no transitions and were taken as terminal: %s", len(idle), some(idle))
	}
}

// ends leads transitions that end an episode to a state in which nothing more can come: to
// their successor where it is terminal, has no transitions or only stays for nothing, and
// else to one more state. It ends those episodes and no others.
func (d *draft) ends(terminal []bool) {
	open := make([]bool, d.states.size) // has transitions that earn something or leave it
	for _, x := range d.list {
		open[x.s] = open[x.s] || x.p != 0 && (x.r != 0 || x.s != x.t)
	}
	end := len(open)
	for k, x := range d.list {
		switch {
		case !x.ends || terminal[x.t]:
		case open[x.t]:
			d.list[k].t, terminal[end] = int32(end), true
		default:
			terminal[x.t] = true
		}
	}
	if terminal[end] {
		d.states.grow("end")
	}
}

// meaning sets what labels stood for, and marks actions that do not exist as mdp.Model does.
func (d *draft) meaning() error {
	s, _ := d.R.Dims()
	if d.Start == nil && len(d.first) > 0 {
		d.Start = make([]float64, s)
	}
	for _, label := range slices.Sorted(maps.Keys(d.first)) {
		t, err := d.states.at(label)
		if err != nil {
			return fmt.Errorf(`"start": %w`, err)
		}
		d.Start[t] += d.first[label]
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

// swap exchanges the first two of three axes.
func (t *tensor) swap() {
	t.shape[0], t.shape[1] = t.shape[1], t.shape[0]
	for k, x := range t.entries {
		t.entries[k].s, t.entries[k].a = x.a, x.s
	}
}

// complete adds a 0 to each row of the first x·y that has no entry: its action is there.
func (t *tensor) complete(x, y int) {
	there := make([]bool, x*y)
	for _, e := range t.entries {
		there[int(e.s)*y+int(e.a)] = true
	}
	for i, is := range there {
		if !is {
			t.entries = append(t.entries, arrow{s: int32(i / y), a: int32(i % y)})
		}
	}
}

// axis numbers the states or the actions that a file speaks of.
type axis struct {
	what   string           // "state" or "action"
	names  []string         // by number; nil where numbers are all there is
	number map[string]int32 // by name
	whole  bool             // whether some name is a whole number
	size   int              // where it is known
}

// take takes the names that a file of so many bytes lists, or how many there are.
func (x *axis) take(words []string, list bool, bytes int) error {
	switch {
	case x.size != 0 || x.names != nil:
		return fmt.Errorf("%ss were spoken of before this; put it before the transitions", x.what)
	case len(words) == 0:
		return fmt.Errorf("there are no %ss", x.what)
	}
	if n, err := strconv.Atoi(words[0]); err == nil && len(words) == 1 && !list {
		// What is not named in the file costs memory.
		if most := 1<<12 + bytes; n < 1 || n > most {
			return fmt.Errorf("%d %ss, want at least 1 and at most %d (the file has %d bytes)", n, x.what, most, bytes)
		}
		return x.fit(n)
	}
	x.number = make(map[string]int32, len(words))
	for i, name := range words {
		if _, ok := x.number[name]; ok {
			return fmt.Errorf("two %ss have the name %q", x.what, name)
		}
		x.number[name] = int32(i)
	}
	x.names, x.size, x.whole = words, len(words), slices.ContainsFunc(words, whole)
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
	if err != nil || i < 0 || i >= x.size || x.whole {
		if x.names != nil {
			return 0, fmt.Errorf("there is no %s %q; the %ss are %s", x.what, label, x.what, some(x.names))
		}
		return 0, fmt.Errorf("there is no %s %q; the %ss are 0 … %d", x.what, label, x.what, x.size-1)
	}
	return int32(i), nil
}

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

// settle ends the numbering. Labels that nobody declared and that are all numbers are put in the order of these; where
// they are 0, 1, 2 … they are no names. It returns the place of each provisional number, nil where it is that.
func (x *axis) settle(d *draft) []int32 {
	if x.size != 0 {
		return nil
	}
	x.size = len(x.names)
	if x.whole = slices.ContainsFunc(x.names, whole); slices.ContainsFunc(x.names, func(name string) bool {
		return !whole(name)
	}) {
		return nil
	}
	value := func(name string) int { v, _ := strconv.Atoi(name); return v }
	sorted := slices.Clone(x.names)
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Compare(value(a), value(b)) })
	place := make([]int32, x.size)
	for to, name := range sorted {
		place[x.number[name]], x.number[name] = int32(to), int32(to)
	}
	if x.names = sorted; value(sorted[0]) == 0 && value(sorted[x.size-1]) == x.size-1 {
		x.names, x.number, x.whole = nil, nil, false
	} else {
		d.note("the numbers of %ss are not 0 … %d, and were taken as names: %s", x.what, x.size-1, some(sorted))
	}
	return place
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

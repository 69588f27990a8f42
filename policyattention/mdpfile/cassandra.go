package mdpfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/mdp"
)

// cassandra reads the format of pomdp-solve (https://pomdp.org/code/pomdp-file-spec.html).
type cassandra struct {
	*draft
	words        []string // the file's, a colon being one
	lines        []int32  // of each word
	at           int
	observations axis
	moves, gains []row // P and the rewards [A·S]
	work         int
}

// row holds numbers by successor, and by −1 that of all others.
type row map[int32]float64

func (r row) of(t int32) float64 {
	if v, ok := r[t]; ok {
		return v
	}
	return r[-1]
}

var errObserved = errors.New("a reward depends on the observation; write R: action : state : next : * value, " +
	"with its mean over the observations of the next state")

// readCassandra reads a .MDP or .POMDP file of pomdp-solve: discount, values, states, actions,
// start, T and R in all their forms (*, uniform, identity, reset, one number, a row, a matrix).
// A state's observations are passed over, as the state itself is seen here; no reward may depend on them.
func readCassandra(d *draft, _ string, data []byte, _ opener) error {
	c := &cassandra{draft: d, observations: axis{what: "observation"}}
	line := int32(0)
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		for word := range strings.FieldsSeq(strings.ReplaceAll(text, ":", " : ")) {
			c.words, c.lines = append(c.words, word), append(c.lines, line)
		}
	}
	for c.at < len(c.words) {
		line := c.lines[c.at]
		if err := c.statement(); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return c.finish()
}

// reserved are the words that begin or end what stands before them.
var reserved = strings.Fields("discount values states actions observations start include exclude T O R uniform " +
	"identity reset")

// next returns the word that stands next, or "" at the end.
func (c *cassandra) next() string {
	if c.at < len(c.words) {
		return c.words[c.at]
	}
	return ""
}

// take passes the word if it stands next.
func (c *cassandra) take(word string) bool {
	if c.next() != word {
		return false
	}
	c.at++
	return true
}

// rest returns the words up to a reserved one.
func (c *cassandra) rest() []string {
	from := c.at
	for c.at < len(c.words) && !slices.Contains(reserved, c.words[c.at]) && c.words[c.at] != ":" {
		c.at++
	}
	return c.words[from:c.at]
}

func (c *cassandra) statement() error {
	kind := c.next()
	c.at++
	include, exclude := kind == "start" && c.take("include"), kind == "start" && c.take("exclude")
	if !c.take(":") {
		return fmt.Errorf("%q, want discount, values, states, actions, observations, start, T, O or R and a colon",
			kind)
	}
	switch kind {
	case "discount", "states", "actions":
		return c.remark(kind, c.rest(), false)
	case "values":
		words := c.rest()
		if len(words) == 0 || !strings.HasPrefix(words[0], "reward") && !strings.HasPrefix(words[0], "cost") {
			return fmt.Errorf("values: %v, want reward or cost", words)
		}
		c.Minimize = strings.HasPrefix(words[0], "cost")
		return nil
	case "observations":
		return c.observations.take(c.rest(), false, c.bytes)
	}
	s, a := c.states.size, c.actions.size
	if s == 0 || a == 0 {
		return fmt.Errorf("%s stands before states and actions", kind)
	}
	if s > (1<<19+16*c.bytes)/a {
		return fmt.Errorf("%d states and %d actions in a file of %d bytes", s, a, c.bytes)
	}
	if c.moves == nil {
		c.moves, c.gains = make([]row, s*a), make([]row, s*a)
	}
	switch kind {
	case "start":
		return c.begin(include, exclude)
	case "T":
		return c.table([]*axis{&c.actions, &c.states, &c.states}, c.transition)
	case "O":
		return c.table([]*axis{&c.actions, &c.states, &c.observations}, func([4]int32, float64) error { return nil })
	case "R":
		seen := &c.observations
		if seen.size == 0 { // an MDP, whose rewards may say so by a fourth *
			seen = &axis{what: "observation", size: 1}
		}
		c.priced = true
		gain := func(key [4]int32, r float64) error { return c.set(c.gains, key, r) }
		return c.table([]*axis{&c.actions, &c.states, &c.states, seen}, gain)
	}
	return fmt.Errorf("%q, want discount, values, states, actions, observations, start, T, O or R", kind)
}

// begin takes the start distribution.
func (c *cassandra) begin(include, exclude bool) error {
	s := c.states.size
	uniform := c.take("uniform")
	words := c.rest()
	switch plain := !include && !exclude && !uniform; {
	case plain && len(words) == s && (s > 1 || strings.Contains(words[0], ".")):
		return c.remark("start", words, true)
	case plain && len(words) != 1:
		return fmt.Errorf("%d words after start, want %d probabilities, a state or uniform", len(words), s)
	}
	if err := c.spend(s); err != nil {
		return err
	}
	listed, others := 1.0, 0.0
	switch {
	case exclude:
		listed, others = 0, 1
	case uniform:
		others = 1
	}
	c.Start = slices.Repeat([]float64{others}, s)
	for _, word := range words {
		t, err := c.states.at(word)
		if err != nil {
			return err
		}
		c.Start[t] = listed
	}
	floats.Scale(1/floats.Sum(c.Start), c.Start)
	return nil
}

// table takes what follows T, O or R: names of the first axes, then numbers for the rest; T and O, which have three
// axes, may have a word for a distribution instead. It calls set for each number, with −1 for what stands for all.
func (c *cassandra) table(axes []*axis, set func(key [4]int32, v float64) error) error {
	key, given := [4]int32{-1, -1, -1, -1}, 0
	for more := true; more; more = c.take(":") {
		word := c.next()
		if c.at++; given == len(axes) {
			return fmt.Errorf("more than %d names", len(axes))
		}
		if word != "*" {
			i, err := axes[given].at(word)
			if err != nil {
				return err
			}
			if given == 3 && axes[3].size > 1 {
				return errObserved
			}
			key[given] = i
		}
		given++
	}
	last, distribution := axes[len(axes)-1].size, len(axes) == 3 && given < 3
	if given == 1 && distribution && c.take("identity") {
		for i := range int32(last) {
			if err := cmp.Or(set([4]int32{key[0], i, -1}, 0), set([4]int32{key[0], i, i}, 1)); err != nil {
				return err
			}
		}
		return nil
	}
	wanted := 1
	for _, x := range axes[given:] {
		if wanted *= x.size; wanted > MaxTransitions {
			return fmt.Errorf("a matrix of more than %d numbers", MaxTransitions)
		}
	}
	var body func(i int) float64
	switch {
	case distribution && c.take("uniform"):
		body = func(int) float64 { return 1 / float64(last) }
	case distribution && c.take("reset"):
		if len(c.Start) != last {
			return errors.New("reset leads to the start distribution, which is not given before")
		}
		body = func(i int) float64 { return c.Start[i%last] }
	default:
		values, err := numbers(c.rest(), wanted)
		if err != nil {
			return err
		}
		body = func(i int) float64 { return values[i] }
	}
	if err := c.spend(wanted); err != nil {
		return err
	}
	for i := range wanted {
		rest := i
		for k := len(axes) - 1; k >= given; k-- {
			key[k], rest = int32(rest%axes[k].size), rest/axes[k].size
		}
		if err := set(key, body(i)); err != nil {
			return err
		}
	}
	return nil
}

// spend counts numbers, and returns an error where a few words stand for very many.
func (c *cassandra) spend(numbers int) error {
	most := 1<<23 + 16*c.bytes
	if c.work += numbers; c.work > most {
		return fmt.Errorf("it stands for more than %d numbers with what is before it; write it as a .csv of "+
			"transitions", most)
	}
	return nil
}

// transition sets the probability of a successor, or of all where key has −1.
func (c *cassandra) transition(key [4]int32, p float64) error {
	if key[2] >= 0 || p == 0 {
		return c.set(c.moves, key, p)
	}
	for key[2] = 0; int(key[2]) < c.states.size; key[2]++ {
		if err := c.set(c.moves, key, p); err != nil {
			return err
		}
	}
	return nil
}

// set sets a number in the rows of an action and a state, or of all where key has −1. What stands for each
// observation is the same for all.
func (c *cassandra) set(rows []row, key [4]int32, v float64) error {
	n := c.states.size
	each := func(i int32, n int) (from, to int) {
		if i < 0 {
			return 0, n
		}
		return int(i), int(i) + 1
	}
	fromA, toA := each(key[0], c.actions.size)
	fromS, toS := each(key[1], n)
	if err := c.spend((toA - fromA) * (toS - fromS)); err != nil {
		return err
	}
	for a := fromA; a < toA; a++ {
		for s := fromS; s < toS; s++ {
			x := &rows[a*n+s]
			switch {
			case key[3] > 0: // the first observation has set it
				if v != x.of(key[2]) {
					return errObserved
				}
			case key[2] < 0 && v == 0:
				*x = nil
			case key[2] < 0:
				*x = row{-1: v}
			case v != x.of(key[2]):
				if *x == nil {
					*x = row{}
				}
				(*x)[key[2]] = v
			}
		}
	}
	return nil
}

// finish lists the transitions and the rewards on them.
func (c *cassandra) finish() error {
	if c.moves == nil {
		return errors.New("there are no states, actions and transitions (states, actions, T)")
	}
	if !c.priced {
		return errors.New("there are no rewards: write R: action : state : next : * value, each perhaps *")
	}
	n := c.states.size
	if c.observations.size > 0 {
		c.note("a POMDP: its observations are passed over, and policies see the state itself")
	}
	for i, x := range c.moves {
		a, s := int32(i/n), int32(i%n)
		kept := len(c.list)
		for _, t := range slices.Sorted(maps.Keys(x)) {
			if x[t] != 0 {
				c.list = append(c.list, arrow{s: s, a: a, t: t, p: x[t], r: c.gains[i].of(t)})
			}
		}
		if len(c.list) == kept {
			return fmt.Errorf("action %s leads nowhere from state %s; write T: %[1]s : %[2]s and a row",
				mdp.Label(c.actions.names, int(a)), mdp.Label(c.states.names, int(s)))
		}
	}
	return nil
}

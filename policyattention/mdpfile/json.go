package mdpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/mdp"
)

const members = `"gamma", "P", "r" or "costs", "transitions", "pi0", "terminal", "start", "states", "actions", "shape", ` +
	`"minimize", "normalize" and "layout"`

// readJSON reads an object of
//
//   - "gamma": the discount γ;
//   - "P": probabilities [S][A][S], or Gymnasium's {s: {a: [[p, s', r, terminated], …]}}, or the name
//     of a file of scipy.sparse.save_npz beside this one ([S·A, S], or a list of [S, S] by action);
//   - "transitions" in place of "P": [[s, a, s', p, r, ends], …], where r and ends may be left out;
//   - "r": rewards [S][A], [S][A][S] or [S], or "costs", which are minimized;
//   - "pi0": the initial policy [S][A], uniform where it is left out;
//   - "terminal": a list of states; "start": a state, {state: p, …} or [S] probabilities;
//   - "states", "actions": names, or how many; "shape": [rows, columns] of a grid;
//   - "minimize", "normalize": true; "layout": "A,S,S" where the axes of P are these.
//
// null (in r, or in place of a row of P) and -Infinity (in r) mark an action that a state does not
// have. Names count as they are written, each once.
func readJSON(d *draft, _ string, data []byte, open opener) error {
	j := &scanner{data: bytes.TrimPrefix(data, []byte("\ufeff"))}
	readers, seen := j.members(d, open), map[string]bool{}
	err := j.object(func(key string) error {
		if seen[key] {
			return fmt.Errorf("%q stands twice", key)
		}
		seen[key] = true
		read, ok := readers[key]
		if _, err := strconv.Atoi(key); err == nil { // Gymnasium's P alone
			read, ok = func() error { return j.choices(d, key) }, true
		}
		if !ok {
			return fmt.Errorf("unknown name %q, want %s", key, members)
		}
		if err := read(); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case j.peek() != 0:
		return errors.New("something follows the JSON of the problem")
	case d.p != nil && d.list != nil:
		return errors.New(`there are both "P" and "transitions"; leave one of them out`)
	case seen["r"] && seen["costs"]:
		return errors.New(`there are both "r" and "costs"; leave one of them out`)
	}
	return nil
}

// members are the readers of what may stand in the object.
func (j *scanner) members(d *draft, open opener) map[string]func() error {
	array := func(to **tensor) func() error {
		return func() (err error) {
			*to, err = j.tensor()
			return err
		}
	}
	flag := func(to *bool) func() error {
		return func() (err error) {
			*to, err = j.bool()
			return err
		}
	}
	return map[string]func() error{
		"gamma": func() (err error) {
			if d.Gamma, err = j.number(); err == nil && math.IsNaN(d.Gamma) {
				err = errors.New("holds null, want a number")
			}
			return err
		},
		"P": func() error {
			switch j.peek() {
			case '{':
				return j.object(func(s string) error { return j.choices(d, s) })
			case '"':
				name, err := j.string()
				if err != nil {
					return err
				}
				return d.matrixFiles([]string{name}, open)
			}
			if names, ok := j.strings(); ok {
				return d.matrixFiles(names, open)
			}
			return array(&d.p)()
		},
		"r": array(&d.r), "pi0": array(&d.pi0), "minimize": flag(&d.Minimize), "normalize": flag(&d.Normalize),
		"costs": func() error {
			d.Minimize = true
			return array(&d.r)()
		},
		"transitions": func() error { return j.array(func(i int) error { return j.transition(d, i) }) },
		"terminal": func() error {
			return j.array(func(int) error {
				label, err := j.label()
				d.terminal = append(d.terminal, label)
				return err
			})
		},
		"start":  func() error { return j.start(d) },
		"states": func() error { return j.names(&d.states) }, "actions": func() error { return j.names(&d.actions) },
		"shape": func() error {
			shape, err := j.tensor()
			if err != nil {
				return err
			}
			return d.grid(shape.flat)
		},
		"layout": func() (err error) {
			d.layout, err = j.string()
			return err
		},
	}
}

// grid takes the shape of a grid.
func (d *draft) grid(shape []float64) error {
	if len(shape) != 2 || shape[0] != math.Floor(shape[0]) || shape[1] != math.Floor(shape[1]) ||
		!(shape[0] >= 1 && shape[1] >= 1 && shape[0]*shape[1] <= MaxTransitions) {
		return fmt.Errorf("the shape of the grid is %v, want [rows, columns]", shape)
	}
	d.Rows, d.Columns = int(shape[0]), int(shape[1])
	return nil
}

// names reads the names of states or actions, or how many there are.
func (j *scanner) names(x *axis) error {
	if x.names != nil {
		return fmt.Errorf("%ss were spoken of before this; put it before the transitions", x.what)
	}
	if j.peek() != '[' {
		n, err := j.number()
		if err != nil {
			return err
		}
		// What is not named in the file costs memory: a file of transitions has one for each state.
		if most := min(len(j.data), MaxTransitions); !(n >= 1 && n <= float64(most)) || n != math.Floor(n) {
			return fmt.Errorf("%v %ss, want names or a number from 1 to %d (the file has %d bytes)", n, x.what, most, len(j.data))
		}
		return x.fit(int(n))
	}
	var names []string
	err := j.array(func(int) error {
		name, err := j.label()
		names = append(names, name)
		return err
	})
	if err != nil {
		return err
	}
	return x.declare(names)
}

// start reads the start distribution.
func (j *scanner) start(d *draft) error {
	switch j.peek() {
	case '{':
		return j.object(func(s string) error {
			p, err := j.number()
			d.first = append(d.first, mass{s, p})
			return err
		})
	case '[':
		x, err := j.tensor()
		if err == nil {
			d.startAt = x.flat
		}
		return err
	}
	label, err := j.label()
	d.first = []mass{{label, 1}}
	return err
}

// transition reads [s, a, s', p, r, ends], of which the last two may be left out.
func (j *scanner) transition(d *draft, at int) error {
	var labels [3]string
	x, n := arrow{}, 0
	err := j.array(func(i int) (err error) {
		switch n++; {
		case i < 3:
			labels[i], err = j.label()
		case i == 3:
			x.p, err = j.number()
		case i == 4:
			x.r, err = j.number()
			d.priced = true
		case i == 5:
			x.ends, err = j.bool()
		}
		return err
	})
	if err == nil && (n < 4 || n > 6) {
		err = errors.New("want [state, action, next, probability, reward]")
	}
	if err == nil {
		err = d.arrow(labels[0], labels[1], labels[2], x)
	}
	if err != nil {
		return fmt.Errorf("transition %d: %w", at, err)
	}
	return nil
}

// choices reads {a: [[p, s', r, terminated], …], …}, or a list of these, of state s.
func (j *scanner) choices(d *draft, s string) error {
	d.priced = true
	choice := func(a string) error {
		return j.array(func(int) error {
			x, next, n := arrow{}, "", 0
			err := j.array(func(i int) (err error) {
				switch n++; i {
				case 0:
					x.p, err = j.number()
				case 1:
					next, err = j.label()
				case 2:
					x.r, err = j.number()
				case 3:
					x.ends, err = j.bool()
				}
				return err
			})
			if err == nil && n != 4 {
				err = errors.New("want [probability, next, reward, terminated]")
			}
			if err == nil {
				err = d.arrow(s, a, next, x)
			}
			if err != nil {
				return fmt.Errorf("state %s, action %s: %w", s, a, err)
			}
			return nil
		})
	}
	if j.peek() == '{' {
		return j.object(choice)
	}
	return j.array(func(a int) error { return choice(strconv.Itoa(a)) })
}

// scanner reads JSON from front to end, and besides what Python's json module writes of numbers
// that JSON has not: -Infinity, Infinity. Package json would take "R" for "r", the last
// of two, and null for 0.
type scanner struct {
	data []byte
	at   int
}

// peek returns the byte at which the next value begins, or 0 at the end.
func (j *scanner) peek() byte {
	for ; j.at < len(j.data); j.at++ {
		switch c := j.data[j.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// wrong says what stands where something else is wanted.
func (j *scanner) wrong(want string) error {
	if j.peek() == 0 {
		return errors.New("not the JSON of a problem: it ends too early")
	}
	stands := j.data[j.at:min(j.at+12, len(j.data))]
	return fmt.Errorf("not the JSON of a problem: %q stands at byte %d, want %s", stands, j.at, want)
}

// list reads a list between two brackets.
func (j *scanner) list(from, to byte, want string, visit func(i int) error) error {
	if j.peek() != from {
		return j.wrong(want)
	}
	j.at++
	if j.peek() == to {
		j.at++
		return nil
	}
	for i := 0; ; i++ {
		if err := visit(i); err != nil {
			return err
		}
		switch j.peek() {
		case ',':
			j.at++
		case to:
			j.at++
			return nil
		default:
			return j.wrong(fmt.Sprintf("a comma or %q", to))
		}
	}
}

func (j *scanner) array(visit func(i int) error) error { return j.list('[', ']', "a list", visit) }

func (j *scanner) object(visit func(key string) error) error {
	return j.list('{', '}', "an object", func(int) error {
		key, err := j.string()
		if err != nil {
			return err
		}
		if j.peek() != ':' {
			return j.wrong("a colon")
		}
		j.at++
		return visit(key)
	})
}

func (j *scanner) string() (s string, err error) {
	if j.peek() != '"' {
		return "", j.wrong("a string")
	}
	for end := j.at + 1; end < len(j.data); end++ {
		switch j.data[end] {
		case '\\':
			end++
		case '"':
			if err := json.Unmarshal(j.data[j.at:end+1], &s); err != nil {
				return "", j.wrong("a string")
			}
			j.at = end + 1
			return s, nil
		}
	}
	return "", j.wrong("a string that ends")
}

// strings reads a list of strings, or nothing where none stands.
func (j *scanner) strings() (list []string, ok bool) {
	before := j.at
	err := j.array(func(int) error {
		s, err := j.string()
		list = append(list, s)
		return err
	})
	if err != nil || list == nil {
		j.at = before
		return nil, false
	}
	return list, true
}

// word returns the bytes up to what ends a number or a literal.
func (j *scanner) word() []byte {
	j.peek()
	end := j.at
	for end < len(j.data) && j.data[end] > ' ' && strings.IndexByte(`,:[]{}"`, j.data[end]) < 0 {
		end++
	}
	return j.data[j.at:end]
}

// number reads a number; NaN is null.
func (j *scanner) number() (v float64, err error) {
	word := j.word()
	switch string(word) {
	case "null":
		v = math.NaN()
	case "-Infinity":
		v = math.Inf(-1)
	case "Infinity":
		v = math.Inf(1)
	case "NaN":
		return 0, fmt.Errorf("NaN stands at byte %d; write null or -Infinity as the reward of an action that does not exist", j.at)
	default:
		if len(word) == 0 || word[0] != '-' && (word[0] < '0' || word[0] > '9') || bytes.ContainsAny(word, "xXnN_") {
			return 0, j.wrong("a number")
		}
		if v, err = strconv.ParseFloat(string(word), 64); errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%.20s at byte %d is too large for a number of double precision", word, j.at)
		} else if err != nil {
			return 0, j.wrong("a number")
		}
	}
	j.at += len(word)
	return v, nil
}

func (j *scanner) bool() (bool, error) {
	switch word := j.word(); string(word) {
	case "true", "false":
		j.at += len(word)
		return len(word) == len("true"), nil
	}
	return false, j.wrong("true or false")
}

// label reads a name or a whole number.
func (j *scanner) label() (string, error) {
	if j.peek() == '"' {
		return j.string()
	}
	word := j.word()
	if _, err := strconv.ParseUint(string(word), 10, 31); err != nil {
		return "", j.wrong("a name or the number of a state or action, from 0")
	}
	j.at += len(word)
	return string(word), nil
}

// tensor reads a list of numbers, of lists of numbers, or of lists of these.
func (j *scanner) tensor() (*tensor, error) {
	t, axes, width := &tensor{}, 1, 0
	var lens []int
	err := j.array(func(i int) error {
		if j.peek() != '[' {
			v, err := j.number()
			t.flat = append(t.flat, v)
			return err
		}
		axes, lens = max(axes, 2), append(lens, 0)
		return j.array(func(k int) error {
			lens[len(lens)-1]++
			if j.peek() == '[' {
				axes = 3
				n, err := j.row(t)
				if width = max(width, n); err == nil && n != width && n != 0 {
					err = fmt.Errorf("%d entries, want %d", n, width)
				}
				if err != nil {
					return fmt.Errorf("[%d][%d]: %w", i, k, err)
				}
				return nil
			}
			v, err := j.number()
			if t.flat = append(t.flat, v); math.IsNaN(v) { // null stands for a number or for a row
				t.endRow(true)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if t.shape = []int{len(t.flat)}; axes > 1 {
		err = t.fill(axes, lens, width)
	}
	return t, err
}

// row reads the next row of three axes, and returns its length.
func (j *scanner) row(t *tensor) (n int, err error) {
	err = j.array(func(k int) error {
		v, err := j.number()
		if n++; v != 0 {
			t.rows.Add(k, v)
		}
		return err
	})
	t.endRow(n == 0)
	if len(t.rows.P) > MaxTransitions {
		err = fmt.Errorf("more than %d numbers that are not 0", MaxTransitions)
	}
	return n, err
}

// endRow ends a row of three axes.
func (t *tensor) endRow(none bool) {
	t.rows.EndRow()
	t.none = append(t.none, none)
}

// fill gives an array of two or three axes its shape: where lists of the second axis have
// different lengths, actions are missing at their ends.
func (t *tensor) fill(axes int, lens []int, width int) error {
	most, least, sum := slices.Max(lens), slices.Min(lens), 0
	for _, n := range lens {
		sum += n
	}
	if axes == 2 && len(t.flat) != sum || axes == 3 && len(t.none) != sum {
		return errors.New("numbers and lists stand side by side")
	}
	if most == 0 || most > (4*sum+1<<20)/len(lens) {
		return fmt.Errorf("lists of %d to %d entries", least, most)
	}
	if t.shape = []int{len(lens), most}; axes == 3 {
		t.shape, t.flat = append(t.shape, width), nil
	} else {
		t.rows, t.none = mdp.Transitions{}, nil
	}
	if least == most {
		return nil
	}
	short := *t
	t.flat, t.none, t.rows.Offset, t.lens = nil, nil, nil, lens
	at := 0
	for _, n := range lens {
		for k := range most {
			switch {
			case axes == 2 && k < n:
				t.flat = append(t.flat, short.flat[at+k])
			case axes == 2:
				t.flat = append(t.flat, math.NaN())
			default:
				from := at + min(k, n)
				t.rows.Offset = append(t.rows.Offset, short.rows.Offset[from])
				t.none = append(t.none, k >= n || short.none[from])
			}
		}
		at += n
	}
	if axes == 3 {
		t.rows.Offset = append(t.rows.Offset, len(t.rows.P))
	}
	return nil
}

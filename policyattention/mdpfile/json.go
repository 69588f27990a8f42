package mdpfile

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.Contains(data, []byte("Infinity")) || bytes.Contains(data, []byte("NaN")) {
		data = quoted(data)
	}
	j := &scanner{jsontext.NewDecoder(bytes.NewBuffer(data))}
	seen := map[string]bool{}
	err := j.object(func(key string) error {
		seen[key] = true
		if _, err := strconv.Atoi(key); err == nil { // Gymnasium's P alone
			return j.choices(d, key)
		}
		if err := j.member(d, key, open); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch _, err := j.ReadToken(); {
	case !errors.Is(err, io.EOF):
		return errors.New("something follows the JSON of the problem")
	case seen["P"] && seen["transitions"]:
		return errors.New(`there are both "P" and "transitions"; leave one of them out`)
	case seen["r"] && seen["costs"]:
		return errors.New(`there are both "r" and "costs"; leave one of them out`)
	}
	return nil
}

// member reads what may stand in the object.
func (j *scanner) member(d *draft, key string, open opener) (err error) {
	switch key {
	case "P":
		return j.probabilities(d, open)
	case "transitions":
		return j.array(func(i int) error {
			if err := j.arrow(d, "satpre", [3]string{}); err != nil {
				return fmt.Errorf("transition %d: %w", i, err)
			}
			return nil
		})
	case "costs":
		d.Minimize = true
		fallthrough
	case "r":
		d.r, err = j.tensor()
		return err
	case "pi0":
		d.pi0, err = j.tensor()
		return err
	case "start":
		if j.PeekKind() == '{' {
			d.first = map[string]float64{}
			return j.object(func(s string) (err error) {
				d.first[s], err = j.number()
				return err
			})
		}
	}
	if !slices.Contains(remarks, key) {
		return errors.New(`unknown name, want some of "P", "r" or "costs", "transitions", "pi0", ` +
			strings.Join(remarks, ", "))
	}
	var words []string
	list := j.PeekKind() == '['
	word := func(int) error {
		t, err := j.next("a name, a number, true or false", '"', '0', 't', 'f')
		words = append(words, t.String())
		return err
	}
	if list {
		err = j.array(word)
	} else {
		err = word(0)
	}
	if err != nil {
		return err
	}
	return d.remark(key, words, list)
}

// probabilities reads P.
func (j *scanner) probabilities(d *draft, open opener) (err error) {
	switch j.PeekKind() {
	case '{':
		return j.object(func(s string) error { return j.choices(d, s) })
	case '"':
		name, err := j.string()
		if err != nil {
			return err
		}
		return d.matrixFiles([]string{name}, open)
	}
	if d.p, err = j.tensor(); err != nil || d.p.words == nil {
		return err
	}
	return d.matrixFiles(d.p.words, open)
}

// arrow reads a transition: a list of the first four or more of what the letters of order stand for, state, action and
// next state (t), probability, reward, and whether the episode ends.
func (j *scanner) arrow(d *draft, order string, labels [3]string) error {
	x, n := arrow{}, 0
	err := j.array(func(i int) (err error) {
		if n++; n > len(order) {
			return fmt.Errorf("it has more than %d entries", len(order))
		}
		switch at := order[i]; at {
		case 'p':
			x.p, err = j.number()
		case 'r':
			x.r, err = j.number()
			d.priced = true
		case 'e':
			x.ends, err = j.bool()
		default:
			labels[strings.IndexByte("sat", at)], err = j.label()
		}
		return err
	})
	if err == nil && n < 4 {
		err = fmt.Errorf("it has %d entries, want [state, action, next, probability, reward, ends] or, of Gymnasium, "+
			"[probability, next, reward, ends]", n)
	}
	if err != nil {
		return err
	}
	return d.arrow(labels[0], labels[1], labels[2], x)
}

// choices reads {a: [[p, s', r, terminated], …], …}, or a list of these, of state s.
func (j *scanner) choices(d *draft, s string) error {
	choice := func(a string) error {
		return j.array(func(int) error {
			if err := j.arrow(d, "ptre", [3]string{s, a}); err != nil {
				return fmt.Errorf("state %s, action %s: %w", s, a, err)
			}
			return nil
		})
	}
	if j.PeekKind() == '{' {
		return j.object(choice)
	}
	return j.array(func(a int) error { return choice(strconv.Itoa(a)) })
}

// scanner reads JSON from front to end, and besides what Python's json module writes of numbers
// that JSON has not: -Infinity, Infinity.
type scanner struct{ *jsontext.Decoder }

// quoted writes them as strings.
func quoted(data []byte) (out []byte) {
	for inString := false; len(data) > 0; {
		n := 1
		switch data[0] {
		case '"':
			inString = !inString
		case '\\':
			n = min(2, len(data))
		case '-', 'I', 'N':
			for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
				if !inString && bytes.HasPrefix(data, []byte(word)) {
					out, data, n = strconv.AppendQuote(out, word), data[len(word):], 0
				}
			}
		}
		out, data = append(out, data[:n]...), data[n:]
	}
	return out
}

// next returns the next token, which must be of one of the kinds.
func (j *scanner) next(want string, kinds ...jsontext.Kind) (jsontext.Token, error) {
	at := j.InputOffset()
	t, err := j.ReadToken() // not the value, which may be deep
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err != nil {
		return t, fmt.Errorf("not the JSON of a problem: %w", err)
	}
	if slices.Contains(kinds, t.Kind()) {
		return t, nil
	}
	text := t.String()
	if t.Kind() == '"' {
		text = strconv.Quote(text)
	}
	return t, fmt.Errorf("%.20s stands behind byte %d, want %s", text, at, want)
}

func (j *scanner) array(visit func(i int) error) error {
	_, err := j.next("a list", '[')
	for i := 0; err == nil && j.PeekKind() != ']'; i++ {
		err = visit(i)
	}
	if err == nil {
		_, err = j.next("the end of a list", ']')
	}
	return err
}

func (j *scanner) object(visit func(key string) error) error {
	_, err := j.next("an object", '{')
	for err == nil && j.PeekKind() != '}' {
		var key string
		if key, err = j.string(); err == nil {
			err = visit(key)
		}
	}
	if err == nil {
		_, err = j.next("the end of an object", '}')
	}
	return err
}

func (j *scanner) string() (string, error) {
	t, err := j.next("a string", '"')
	return t.String(), err
}

// number reads a number; NaN is null.
func (j *scanner) number() (float64, error) {
	t, err := j.next("a number", '0', 'n', '"')
	if err != nil {
		return 0, err
	}
	return value(t)
}

func value(t jsontext.Token) (float64, error) {
	switch text := t.String(); {
	case t.Kind() == 'n':
		return math.NaN(), nil
	case text == "-Infinity" || text == "Infinity" || t.Kind() == '0':
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			err = fmt.Errorf("%.20s is too large for a number of double precision", text)
		}
		return v, err
	case text == "NaN":
		return 0, errors.New("NaN stands there; write null or -Infinity as the reward of an action that does not exist")
	default:
		return 0, fmt.Errorf("%.20q stands there, want a number", text)
	}
}

func (j *scanner) bool() (bool, error) {
	t, err := j.next("true or false", 't', 'f')
	return err == nil && t.Bool(), err
}

// label reads a name or a whole number.
func (j *scanner) label() (string, error) {
	const want = "a name or the number of a state or action, from 0"
	t, err := j.next(want, '"', '0')
	if err == nil && t.Kind() == '0' {
		if _, err = strconv.ParseUint(t.String(), 10, 31); err != nil {
			err = fmt.Errorf("%.20s stands there, want %s", t, want)
		}
	}
	return t.String(), err
}

var errMixed = errors.New("numbers and lists stand side by side")

// tensor reads a list of numbers, of lists of numbers, or of lists of these, or a list of strings.
func (j *scanner) tensor() (*tensor, error) {
	t, width, rows, numbers := &tensor{}, 0, false, false // rows and numbers stand in lists of the list
	var lists [][]float64                                 // NaN for a row, and for null: a number or a row
	err := j.array(func(i int) error {
		if j.PeekKind() != '[' {
			x, err := j.next("a number", '0', 'n', '"')
			if err != nil {
				return err
			}
			v, err := value(x)
			if x.Kind() == '"' && err != nil {
				t.words, err = append(t.words, x.String()), nil
			}
			t.flat = append(t.flat, v)
			return err
		}
		var list []float64
		err := j.array(func(k int) error {
			v, err := math.NaN(), error(nil)
			if j.PeekKind() == '[' {
				rows = true
				if err = j.row(t, arrow{s: int32(i), a: int32(k)}, &width); err != nil {
					err = fmt.Errorf("[%d][%d]: %w", i, k, err)
				}
			} else if v, err = j.number(); !math.IsNaN(v) {
				numbers = true
			}
			list = append(list, v)
			return err
		})
		lists = append(lists, list)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case t.flat != nil && lists != nil, rows && numbers, t.words != nil && len(t.words) != len(t.flat):
		return nil, errMixed
	case lists == nil:
		t.shape = []int{len(t.flat)}
		return t, nil
	}
	if err = t.fill(lists); rows {
		t.shape, t.flat = append(t.shape, width), nil
	}
	return t, err
}

// row adds a row of three axes at the place of x, which is as long as those before it, or empty.
func (j *scanner) row(t *tensor, x arrow, width *int) error {
	before, n := len(t.entries), 0
	err := j.array(func(k int) error {
		v, err := j.number()
		if n++; v != 0 {
			x.t, x.p = int32(k), v
			t.entries = append(t.entries, x)
		}
		return err
	})
	if n > 0 && len(t.entries) == before {
		t.entries = append(t.entries, x)
	}
	switch *width = max(*width, n); {
	case err != nil:
		return err
	case len(t.entries) > MaxTransitions:
		return fmt.Errorf("more than %d numbers that are not 0", MaxTransitions)
	case n != *width && n != 0:
		return fmt.Errorf("%d entries, want %d", n, *width)
	}
	return nil
}

// fill makes an array of two axes: where lists have different lengths, actions are missing at their ends.
func (t *tensor) fill(lists [][]float64) error {
	most, sum := 0, 0
	for _, list := range lists {
		t.lens = append(t.lens, len(list))
		most, sum = max(most, len(list)), sum+len(list)
	}
	if most == 0 || most > (4*sum+1<<20)/len(lists) {
		return fmt.Errorf("lists of %d to %d entries", slices.Min(t.lens), most)
	}
	if t.shape = []int{len(lists), most}; sum == most*len(lists) {
		t.lens = nil
	}
	for _, list := range lists {
		t.flat = append(append(t.flat, list...), slices.Repeat([]float64{math.NaN()}, most-len(list))...)
	}
	return nil
}

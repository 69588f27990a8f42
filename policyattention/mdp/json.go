package mdp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gonum.org/v1/gonum/mat"
)

// file is the JSON form of a problem.
type file struct {
	Gamma *float64      `json:"gamma"`
	P     [][][]float64 `json:"P"`             // [S][A][S]
	R     [][]float64   `json:"r"`             // [S][A]
	Pi0   [][]float64   `json:"pi0,omitempty"` // [S][A]
}

// Decode reads a problem from its JSON form
//
//	{"gamma": 0.9, "P": [S][A][S], "r": [S][A], "pi0": [S][A]}
//
// where pi0 may be left out and is then the uniform policy. Names count as they are
// written, each once, and null is no number.
func Decode(data []byte) (Problem, error) {
	f, err := decodeFile(data)
	if err != nil {
		return Problem{}, err
	}
	if f.Gamma == nil {
		return Problem{}, errors.New(`mdp: "gamma" is missing`)
	}
	if len(f.P) == 0 || len(f.R) == 0 {
		return Problem{}, errors.New(`mdp: "P" or "r" is missing or empty`)
	}
	r, err := fromRows("r", f.R)
	if err != nil {
		return Problem{}, err
	}
	states, actions := r.Dims()
	if len(f.P) != states {
		return Problem{}, fmt.Errorf(`mdp: "P" has %d states, "r" has %d`, len(f.P), states)
	}
	p := mat.NewDense(states*actions, states, nil)
	for s, perAction := range f.P {
		if len(perAction) != actions {
			return Problem{}, fmt.Errorf(`mdp: "P"[%d] has %d actions, want %d`, s, len(perAction), actions)
		}
		for a, row := range perAction {
			if len(row) != states {
				return Problem{}, fmt.Errorf(`mdp: "P"[%d][%d] has %d successors, want %d`, s, a, len(row), states)
			}
			p.SetRow(s*actions+a, row)
		}
	}
	var pi0 *mat.Dense
	if f.Pi0 != nil {
		if pi0, err = fromRows("pi0", f.Pi0); err != nil {
			return Problem{}, err
		}
	}
	return NewProblem(*f.Gamma, p, r, pi0)
}

// decodeFile reads the members one by one: package json alone would take "R" for "r",
// the last of two, and null for 0. Libraries that refuse these would add 50 kB and more to the
// page's program, compressed (go-json-experiment 50, jsonv2 92).
func decodeFile(data []byte) (f file, err error) {
	members := map[string]struct {
		shape string
		value any
	}{
		"gamma": {"a number", &f.Gamma}, "P": {"[S][A][S] numbers", &f.P},
		"r": {"[S][A] numbers (of r(s, a, s'), the mean over s')", &f.R}, "pi0": {"[S][A] numbers", &f.Pi0},
	}
	bad := func(err error) (file, error) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return file{}, fmt.Errorf("mdp: not the JSON of an MDP: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil {
		return bad(err)
	} else if start != json.Delim('{') {
		return file{}, fmt.Errorf(`mdp: not the JSON of an MDP: it starts with %v, want an object of "gamma", "P", "r" and "pi0"`, start)
	}
	seen := map[string]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return bad(err)
		}
		key, _ := name.(string)
		member, ok := members[key]
		switch {
		case !ok:
			return file{}, fmt.Errorf(`mdp: unknown name %q, want "gamma", "P", "r" and "pi0"`, key)
		case seen[key]:
			return file{}, fmt.Errorf("mdp: %q stands twice", key)
		}
		seen[key] = true
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return bad(fmt.Errorf("%q: %w", key, err))
		}
		if bytes.Contains(raw, []byte("null")) && !bytes.Contains(raw, []byte(`"`)) {
			return file{}, fmt.Errorf("mdp: %q holds null, want %s", key, member.shape)
		}
		if err := json.Unmarshal(raw, member.value); err != nil {
			if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
				return file{}, fmt.Errorf("mdp: %q holds %s at byte %d of it, want %s", key, wrong.Value, wrong.Offset, member.shape)
			}
			return bad(err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return bad(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return file{}, errors.New("mdp: something follows the JSON of the MDP")
	}
	return f, nil
}

// Encode writes the JSON form of a problem, which Decode reads.
func Encode(w io.Writer, problem Problem) error {
	m := problem.MDP
	f := file{Gamma: &m.Gamma, R: ToRows(m.R)}
	for s := range m.States() {
		perAction := make([][]float64, m.Actions())
		for a := range perAction {
			perAction[a] = m.Next(s, a)
		}
		f.P = append(f.P, perAction)
	}
	if problem.Pi0 != nil {
		f.Pi0 = ToRows(problem.Pi0)
	}
	return json.NewEncoder(w).Encode(f)
}

// fromRows returns the matrix with the given rows, which must have one length.
func fromRows(name string, rows [][]float64) (*mat.Dense, error) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, fmt.Errorf("mdp: %q is empty", name)
	}
	x := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("mdp: %q[%d] has %d entries, want %d", name, i, len(row), len(rows[0]))
		}
		x.SetRow(i, row)
	}
	return x, nil
}

// ToRows returns the rows of x as slices that share its memory.
func ToRows(x *mat.Dense) [][]float64 {
	rows := make([][]float64, x.RawMatrix().Rows)
	for i := range rows {
		rows[i] = x.RawRowView(i)
	}
	return rows
}

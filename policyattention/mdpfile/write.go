package mdpfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/floats"

	"icrl/internal/npz"
	"icrl/policyattention/mdp"
)

// dense is the number of states up to which P is written as an array [S, A, S].
const dense = 64

// Write writes a problem to a .json or .npz file, which appears whole or not at
// all. Its bytes depend on the problem alone.
func Write(path string, problem mdp.Problem) error {
	return write(path, map[string]func(w io.Writer) error{
		".json": func(w io.Writer) error { return Encode(w, problem) },
		".npz":  func(w io.Writer) error { return npz.Encode(w, arraysOf(problem)) },
	})
}

// write has the content of a file written by the writer of its kind.
func write(path string, writers map[string]func(w io.Writer) error) error {
	var buf bytes.Buffer
	ext := strings.ToLower(filepath.Ext(path))
	err := fmt.Errorf("unknown file type %q", ext)
	if writer, ok := writers[ext]; ok {
		err = writer(&buf)
	}
	if err == nil {
		err = renameio.WriteFile(path, buf.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("mdpfile: %s: %w", path, err)
	}
	return nil
}

// document is the JSON form of a problem, in an order in which it can be read.
type document struct {
	Gamma       float64       `json:"gamma"`
	States      []string      `json:"states,omitempty"`
	Actions     []string      `json:"actions,omitempty"`
	P           [][][]float64 `json:"P,omitempty"`
	Transitions [][4]any      `json:"transitions,omitempty"`
	R           [][]*float64  `json:"r,omitempty"`
	Costs       [][]*float64  `json:"costs,omitempty"`
	Pi0         [][]float64   `json:"pi0,omitempty"`
	Terminal    []any         `json:"terminal,omitempty"`
	Start       []float64     `json:"start,omitempty"`
	Shape       []int         `json:"shape,omitempty"`
}

// Encode writes the JSON form of a problem: transitions one by one where there are many states.
func Encode(w io.Writer, problem mdp.Problem) error {
	m := problem.MDP
	doc := document{Gamma: m.Gamma, States: m.StateNames, Actions: m.ActionNames, Start: m.Start}
	if m.Rows > 0 {
		doc.Shape = []int{m.Rows, m.Columns}
	}
	for _, t := range m.Terminal {
		doc.Terminal = append(doc.Terminal, label(m.StateNames, t))
	}
	for s := range m.States() {
		rewards, rows := make([]*float64, m.Actions()), make([][]float64, m.Actions())
		for a := range m.Actions() {
			if !m.Exists(s, a) {
				continue
			}
			r := price(m, m.R.At(s, a))
			rewards[a] = &r
			if m.States() <= dense {
				rows[a] = m.Next(s, a)
				continue
			}
			next, p := m.Successors(s, a)
			for k, t := range next {
				doc.Transitions = append(doc.Transitions,
					[4]any{label(m.StateNames, s), label(m.ActionNames, a), label(m.StateNames, int(t)), p[k]})
			}
		}
		doc.R = append(doc.R, rewards)
		if m.States() <= dense {
			doc.P = append(doc.P, rows)
		}
	}
	if m.Minimize {
		doc.R, doc.Costs = nil, doc.R
	}
	if problem.Pi0 != nil {
		doc.Pi0 = mdp.ToRows(problem.Pi0)
	}
	return json.NewEncoder(w).Encode(doc)
}

// label is a name, or a number where there are no names.
func label(names []string, i int) any {
	if names != nil {
		return names[i]
	}
	return i
}

// price returns a reward or a value as its file has it: turned back where it is a cost.
func price(m *mdp.MDP, v float64) float64 {
	if m.Minimize {
		return 0 - v // never −0
	}
	return v
}

// arraysOf returns the arrays of a problem: P by its rows where there are many states.
func arraysOf(problem mdp.Problem) map[string]npz.Array {
	m := problem.MDP
	s, a := m.R.Dims()
	r := make([]float64, 0, s*a)
	states, probabilities, ends := []float64{}, []float64{}, []float64{0}
	for i := range s * a {
		r = append(r, price(m, m.R.At(i/a, i%a)))
		next, p := m.Successors(i/a, i%a)
		for _, t := range next {
			states = append(states, float64(t))
		}
		probabilities = append(probabilities, p...)
		ends = append(ends, float64(len(states)))
	}
	arrays := map[string]npz.Array{"gamma": {Data: []float64{m.Gamma}}}
	put := func(name string, data []float64, shape ...int) {
		if len(data) > 0 {
			arrays[name] = npz.Array{Shape: shape, Data: data}
		}
	}
	if m.Minimize {
		put("costs", r, s, a)
	} else {
		put("r", r, s, a)
	}
	if s <= dense {
		put("P", m.DenseP().RawMatrix().Data, s, a, s)
	} else {
		put("P_data", probabilities, len(states))
		put("P_indices", states, len(states))
		put("P_indptr", ends, len(ends))
		put("P_shape", []float64{float64(s * a), float64(s)}, 2)
		arrays["layout"] = npz.Array{Words: []string{"S,A,S"}}
	}
	if problem.Pi0 != nil {
		put("pi0", problem.Pi0.RawMatrix().Data, s, a)
	}
	put("start", m.Start, s)
	for name, names := range map[string][]string{"states": m.StateNames, "actions": m.ActionNames} {
		if names != nil {
			arrays[name] = npz.Array{Words: names}
		}
	}
	var terminal []string
	for _, t := range m.Terminal {
		terminal = append(terminal, fmt.Sprint(label(m.StateNames, t)))
	}
	if terminal != nil {
		arrays["terminal"] = npz.Array{Words: terminal}
	}
	if m.Rows > 0 {
		put("shape", []float64{float64(m.Rows), float64(m.Columns)}, 2)
	}
	return arrays
}

// WriteSolution writes a policy [S, A] and its values Q [S, A], and with them V(s) = ⟨π(·|s), Q(s,·)⟩,
// by the names of states and actions that the problem has:
//
//   - .csv: the columns state, action, probability, q, v, a line for each action that exists;
//   - .json: {"states", "actions", "policy", "v", "q"}, null for actions that do not exist;
//   - .npz: the arrays policy, q, v, states, actions;
//   - .svg: a picture of the grid, where the problem says its shape.
//
// Values of costs are costs.
func WriteSolution(path string, m *mdp.MDP, policy, q [][]float64) error {
	x := solution{m: m, policy: policy, q: make([][]float64, len(q)), v: make([]float64, len(q))}
	for s, row := range q {
		x.q[s] = make([]float64, len(row))
		for a, value := range row {
			if x.q[s][a] = price(m, value); m.Exists(s, a) {
				x.v[s] += policy[s][a] * x.q[s][a]
			}
		}
	}
	return write(path, map[string]func(w io.Writer) error{".csv": x.csv, ".json": x.json, ".npz": x.npz, ".svg": x.svg})
}

// solution is a solved problem, values as its file has them.
type solution struct {
	m         *mdp.MDP
	policy, q [][]float64 // [S, A]
	v         []float64   // [S]
}

func (x solution) csv(w io.Writer) error {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	table := csv.NewWriter(w)
	rows := [][]string{{"state", "action", "probability", "q", "v"}}
	for s, row := range x.policy {
		for a, p := range row {
			if x.m.Exists(s, a) {
				rows = append(rows, []string{fmt.Sprint(label(x.m.StateNames, s)), fmt.Sprint(label(x.m.ActionNames, a)),
					number(p), number(x.q[s][a]), number(x.v[s])})
			}
		}
	}
	return table.WriteAll(rows)
}

func (x solution) json(w io.Writer) error {
	q := make([][]*float64, len(x.q))
	for s, row := range x.q {
		q[s] = make([]*float64, len(row))
		for a := range row {
			if x.m.Exists(s, a) {
				q[s][a] = &row[a]
			}
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"states": x.m.StateNames, "actions": x.m.ActionNames, "policy": x.policy, "q": q, "v": x.v})
}

func (x solution) npz(w io.Writer) error {
	s, a := x.m.States(), x.m.Actions()
	arrays := map[string]npz.Array{"v": {Shape: []int{s}, Data: x.v}}
	for name, rows := range map[string][][]float64{"policy": x.policy, "q": x.q} {
		array := npz.Array{Shape: []int{s, a}}
		for _, row := range rows {
			array.Data = append(array.Data, row...)
		}
		arrays[name] = array
	}
	for name, names := range map[string][]string{"states": x.m.StateNames, "actions": x.m.ActionNames} {
		if names != nil {
			arrays[name] = npz.Array{Words: names}
		}
	}
	return npz.Encode(w, arrays)
}

// arrows draw actions by what people call moves.
var arrows = map[string]string{
	"up": "↑", "north": "↑", "n": "↑", "u": "↑", "down": "↓", "south": "↓", "s": "↓", "d": "↓",
	"left": "←", "west": "←", "w": "←", "l": "←", "right": "→", "east": "→", "e": "→", "r": "→",
	"ne": "↗", "nw": "↖", "se": "↘", "sw": "↙", "stay": "•",
}

// svg draws the grid: a square is as dark as its state is valuable, and bears the likeliest action.
func (x solution) svg(w io.Writer) error {
	const side = 48
	m := x.m
	if m.Rows == 0 {
		return fmt.Errorf(`the problem does not say the shape of its grid: "shape": [rows, columns]`)
	}
	low, high, inside := math.Inf(1), math.Inf(-1), x.v[:m.Rows*m.Columns]
	for _, v := range inside {
		low, high = min(low, v), max(high, v)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" text-anchor="middle">`+"\n",
		m.Columns*side, m.Rows*side)
	for s, v := range inside {
		left, top, share := s%m.Columns*side, s/m.Columns*side, 0.5
		if high > low {
			share = (v - low) / (high - low)
		}
		if m.Minimize {
			share = 1 - share
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" stroke="gray" fill="hsl(210 60%% %.0f%%)"/>`, left, top, side, side, 95-45*share)
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="9">%.4g</text>`, left+side/2, top+side-5, v)
		if mark := x.mark(s); mark != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="18">`, left+side/2, top+side/2+3)
			if err := xml.EscapeText(&b, []byte(mark)); err != nil {
				return err
			}
			b.WriteString("</text>")
		}
		b.WriteString("\n")
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// mark returns the likeliest action of a state as it is drawn: nothing in a terminal state.
func (x solution) mark(s int) string {
	if slices.Contains(x.m.Terminal, s) {
		return ""
	}
	name := fmt.Sprint(label(x.m.ActionNames, floats.MaxIdx(x.policy[s])))
	if arrow, ok := arrows[strings.ToLower(name)]; ok {
		return arrow
	}
	return name
}

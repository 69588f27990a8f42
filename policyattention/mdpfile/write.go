package mdpfile

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// WriteSolution writes a policy [S, A] and its values Q [S, A], and with them V(s) = ⟨π(·|s), Q(s,·)⟩,
// by the names of states and actions that the problem has:
//
//   - .csv: the columns state, action, probability, q, v, a line for each action that exists;
//   - .json: {"states", "actions", "policy", "v", "q"}, null for actions that do not exist;
//   - .npz: the arrays policy, q, v, states, actions;
//   - .svg: a picture of the grid, where the problem says its shape.
//
// Values of costs are costs. The file appears whole or not at all.
func WriteSolution(path string, m *mdp.MDP, policy, q *mat.Dense) error {
	x := solution{m: m, policy: policy, q: mat.DenseCopyOf(q), v: make([]float64, m.States())}
	x.q.Apply(func(s, a int, value float64) float64 {
		if m.Minimize {
			value = 0 - value // a cost as its file has it, never −0
		}
		if m.Exists(s, a) {
			x.v[s] += policy.At(s, a) * value
		}
		return value
	}, x.q)
	var content bytes.Buffer
	ext := strings.ToLower(filepath.Ext(path))
	writer, ok := map[string]func(w io.Writer) error{".csv": x.csv, ".json": x.json, ".npz": x.npz, ".svg": x.svg}[ext]
	err := fmt.Errorf("unknown file type %q", ext)
	if ok {
		err = writer(&content)
	}
	if err == nil {
		err = renameio.WriteFile(path, content.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("mdpfile: %s: %w", path, err)
	}
	return nil
}

// solution is a solved problem, values as its file has them.
type solution struct {
	m         *mdp.MDP
	policy, q *mat.Dense // [S, A]
	v         []float64  // [S]
}

func (x solution) csv(w io.Writer) error {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	rows := [][]string{{"state", "action", "probability", "q", "v"}}
	for s, v := range x.v {
		for a, p := range x.policy.RawRowView(s) {
			if x.m.Exists(s, a) {
				rows = append(rows, []string{mdp.Label(x.m.StateNames, s), mdp.Label(x.m.ActionNames, a),
					number(p), number(x.q.At(s, a)), number(v)})
			}
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (x solution) json(w io.Writer) error {
	q := make([][]*float64, len(x.v))
	for s, row := range mdp.ToRows(x.q) {
		q[s] = make([]*float64, len(row))
		for a := range row {
			if x.m.Exists(s, a) {
				q[s][a] = &row[a]
			}
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"states": x.m.StateNames, "actions": x.m.ActionNames, "policy": mdp.ToRows(x.policy),
		"q": q, "v": x.v})
}

func (x solution) npz(w io.Writer) error {
	archive := npz.NewWriter(w)
	err := errors.Join(archive.Write("policy", x.policy), archive.Write("q", x.q), archive.Write("v", x.v))
	if x.m.StateNames != nil {
		err = errors.Join(err, archive.Write("states", x.m.StateNames))
	}
	if x.m.ActionNames != nil {
		err = errors.Join(err, archive.Write("actions", x.m.ActionNames))
	}
	return errors.Join(err, archive.Close())
}

// arrows draw actions by what people call moves.
var arrows = map[string]string{
	"up": "↑", "north": "↑", "n": "↑", "u": "↑", "down": "↓", "south": "↓", "s": "↓", "d": "↓",
	"left": "←", "west": "←", "w": "←", "l": "←", "right": "→", "east": "→", "e": "→", "r": "→",
	"ne": "↗", "nw": "↖", "se": "↘", "sw": "↙", "stay": "•",
}

// svg draws the grid: a square is as dark as its state is valuable, and bears the likeliest action unless that ends.
func (x solution) svg(w io.Writer) error {
	const side = 48
	m := x.m
	if m.Rows == 0 {
		return fmt.Errorf(`the problem does not say the shape of its grid: "shape": [rows, columns]`)
	}
	inside := x.v[:m.Rows*m.Columns]
	low, high := floats.Min(inside), floats.Max(inside)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" `+
		`text-anchor="middle">`+"\n", m.Columns*side, m.Rows*side)
	for s, v := range inside {
		left, top, share := s%m.Columns*side, s/m.Columns*side, 0.5
		if high > low {
			share = (v - low) / (high - low)
		}
		if m.Minimize {
			share = 1 - share
		}
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" stroke="gray" fill="hsl(210 60%% %.0f%%)"/>`, left,
			top, side, side, 95-45*share)
		fmt.Fprintf(w, `<text x="%d" y="%d" font-size="9">%.4g</text>`, left+side/2, top+side-5, v)
		if !slices.Contains(m.Terminal, s) {
			name := mdp.Label(m.ActionNames, floats.MaxIdx(x.policy.RawRowView(s)))
			fmt.Fprintf(w, `<text x="%d" y="%d" font-size="18">`, left+side/2, top+side/2+3)
			if err := xml.EscapeText(w, []byte(cmp.Or(arrows[strings.ToLower(name)], name))); err != nil {
				return err
			}
			fmt.Fprint(w, "</text>")
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w, "</svg>")
	return err
}

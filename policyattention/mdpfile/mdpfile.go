// Package mdpfile reads problems (an MDP and an initial policy) from the files that people have, and writes their
// solutions. A format is a file of this package; each says what it reads. Its readers run in the web page too: what a
// file claims takes no more memory than its size and the caps below allow.
package mdpfile

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/renameio/v2"
	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

const (
	MaxBytes       = 2 << 30 // the size above which a file is refused, unpacked if it is packed by gzip
	MaxTransitions = 1 << 25 // how many transitions a file may have (nonzero entries of P)
	maxPacked      = 32      // how many times its size a file packed by gzip may take
)

// Options say what a file does not, also as flags of the command. The zero value adds nothing. The layout A,S,S is
// that of pymdptoolbox.
type Options struct {
	Gamma     *float64 `help:"Discount γ, in place of the file's."`
	Layout    string   `help:"Axes of an array P, in place of the file's." placeholder:"S,A,S|A,S,S"`
	Minimize  bool     `help:"Rewards are costs."`
	Normalize bool     `help:"Divide rows of P by their sums."` // see mdp.Model
}

// opener reads a file that another one names, or one beside it.
type opener func(name string) ([]byte, error)

// Read reads a problem from a file: see the formats' functions. The MDP's warnings name what was taken for granted.
func Read(path string, o Options) (mdp.Problem, error) {
	data, err := load(path)
	if err != nil {
		return mdp.Problem{}, fmt.Errorf("mdpfile: %w", err)
	}
	return decode(path, data, o, func(name string) ([]byte, error) {
		if filepath.Base(name) != name {
			return nil, fmt.Errorf("%q: want the name of a file beside this one", name)
		}
		return load(filepath.Join(filepath.Dir(path), name))
	})
}

// Decode reads a problem from the content of one file of the name.
func Decode(name string, data []byte, o Options) (mdp.Problem, error) {
	return decode(name, data, o, func(string) ([]byte, error) { return nil, fs.ErrNotExist })
}

func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes, the cap is %d", path, info.Size(), int64(MaxBytes))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return unpack(data)
}

// unpack returns what data packed by gzip hold, and other data as they are.
func unpack(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	most := min(MaxBytes, 1<<20+maxPacked*len(data))
	content, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("gzip: %w", err)
	case len(content) > most:
		return nil, fmt.Errorf("gzip: it holds more than %d bytes; unpack it first", most)
	}
	return content, nil
}

// formats are the ends of names of the files that Read knows, and what reads their content.
var formats = map[string]func(d *draft, name string, data []byte, open opener) error{
	".json": readJSON, ".npz": readNPZ, ".csv": readCSV, ".tsv": readCSV,
	".mdp": readCassandra, ".pomdp": readCassandra, ".tra": readPRISM,
}

func decode(name string, data []byte, o Options, open opener) (p mdp.Problem, err error) {
	defer func() {
		if err != nil {
			p, err = mdp.Problem{}, fmt.Errorf("mdpfile: %s: %w", name, err)
		}
	}()
	if data, err = unpack(data); err != nil {
		return p, err
	}
	ext := extension(name, data)
	read, ok := formats[ext]
	switch {
	case slices.Contains([]string{".srew", ".trew", ".rew", ".lab", ".sta"}, ext):
		return p, errors.New("rewards, labels and states of PRISM are read beside its .tra file; name that one")
	case !ok:
		return p, fmt.Errorf("unknown file type %q, want .json, .npz, .csv, .mdp, .pomdp (Cassandra) or .tra "+
			"(PRISM), each perhaps with .gz behind", ext)
	case ext != ".npz" && !utf8.Valid(data):
		return p, errors.New("its text is not UTF-8; save it as such")
	}
	d := &draft{Model: mdp.Model{Gamma: math.NaN()}, bytes: len(data), states: axis{what: "state"},
		actions: axis{what: "action"}}
	if err := read(d, name, data, open); err != nil {
		return p, err
	}
	return d.build(o)
}

// extension goes by the content where it is unmistakable, and else by the name.
func extension(name string, data []byte) string {
	ext := strings.ToLower(filepath.Ext(trimGzip(name)))
	switch start := bytes.TrimLeft(data[:min(len(data), 1<<10)], " \t\r\n\ufeff"); {
	case bytes.HasPrefix(data, []byte("PK")):
		return ".npz"
	case bytes.HasPrefix(start, []byte("{")) && ext != ".csv":
		return ".json"
	case ext != "":
		return ext
	case bytes.ContainsAny(firstLine(start), ",\t"):
		return ".csv"
	case bytes.IndexByte(firstLine(start), ':') > 0:
		return ".mdp"
	}
	return ""
}

func trimGzip(name string) string {
	if strings.EqualFold(filepath.Ext(name), ".gz") {
		return name[:len(name)-len(".gz")]
	}
	return name
}

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

// svg draws the grid: a square is as dark as its state is valuable, and bears the likeliest action unless the state is
// terminal.
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

// Package mdpfile reads problems (an MDP and an initial policy) from the files that people have, and writes their
// solutions. A format is a file of this package; each says what it reads. Its readers run in the web page too: what a
// file claims takes no more memory than its size and the caps below allow.
package mdpfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"icrl/policyattention/mdp"
)

const (
	MaxBytes       = 2 << 30 // the size above which a file is refused, unpacked if it is packed by gzip
	MaxTransitions = 1 << 25 // how many transitions a file may have (nonzero entries of P)
	maxPacked      = 32      // how many times its size a file packed by gzip may take
)

// Options say what a file does not, also as flags of the command. The zero value adds nothing.
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

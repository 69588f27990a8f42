// Package mdpfile reads and writes problems (an MDP and an initial policy) as
// JSON and NumPy files.
package mdpfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/mdp"
)

// MaxBytes is the size above which a file is refused: enough for 1,000 states
// and 10 actions written densely.
const MaxBytes = 512 << 20

// Read reads a problem from a .json file (see mdp.Decode) or an .npz file with
// arrays gamma (one element), P [S, A, S], r [S, A] and, optionally, pi0 [S, A],
// of the types that npz.Decode takes. The rows of P and pi0 in single precision are
// divided by their sums, which lie within 1e-5 of one.
func Read(path string) (mdp.Problem, error) {
	info, err := os.Stat(path)
	if err != nil {
		return mdp.Problem{}, fmt.Errorf("mdpfile: %w", err)
	}
	if info.Size() > MaxBytes {
		return mdp.Problem{}, fmt.Errorf("mdpfile: %s has %d bytes, the cap is %d", path, info.Size(), MaxBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return mdp.Problem{}, fmt.Errorf("mdpfile: %w", err)
	}
	var problem mdp.Problem
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".json":
		problem, err = mdp.Decode(data)
	case ".npz":
		problem, err = decodeNPZ(data)
	default:
		err = fmt.Errorf("unknown file type %q, want .json or .npz", ext)
	}
	if err != nil {
		return mdp.Problem{}, fmt.Errorf("mdpfile: %s: %w", path, err)
	}
	return problem, nil
}

// Write writes a problem to a .json or .npz file, which appears whole or not at
// all. Its bytes depend on the problem alone.
func Write(path string, problem mdp.Problem) error {
	var buf bytes.Buffer
	var err error
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".json":
		err = mdp.Encode(&buf, problem)
	case ".npz":
		err = encodeNPZ(&buf, problem)
	default:
		err = fmt.Errorf("unknown file type %q, want .json or .npz", ext)
	}
	if err == nil {
		err = renameio.WriteFile(path, buf.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("mdpfile: %s: %w", path, err)
	}
	return nil
}

func decodeNPZ(data []byte) (mdp.Problem, error) {
	arrays, err := npz.Decode(data, MaxBytes)
	if err != nil {
		return mdp.Problem{}, err
	}
	for _, name := range []string{"gamma", "P", "r"} {
		if _, ok := arrays[name]; !ok {
			return mdp.Problem{}, fmt.Errorf("there is no array %q; want gamma, P [S, A, S], r [S, A] and perhaps pi0 [S, A]", name)
		}
	}
	gamma, p, r := arrays["gamma"], arrays["P"], arrays["r"]
	if len(gamma.Data) != 1 {
		return mdp.Problem{}, fmt.Errorf("array \"gamma\" has %d elements, want 1", len(gamma.Data))
	}
	if len(r.Shape) != 2 || len(r.Data) == 0 {
		return mdp.Problem{}, fmt.Errorf("array \"r\" has shape %v, want [S, A]", r.Shape)
	}
	s, a := r.Shape[0], r.Shape[1]
	if len(p.Shape) != 3 || p.Shape[0] != s || p.Shape[1] != a || p.Shape[2] != s {
		return mdp.Problem{}, fmt.Errorf("array \"P\" has shape %v, want [S, A, S] = [%d, %d, %d]", p.Shape, s, a, s)
	}
	transitions := mat.NewDense(s*a, s, p.Data)
	if err := normalizeSingle(transitions, "P", p); err != nil {
		return mdp.Problem{}, err
	}
	var pi0 *mat.Dense
	if x, ok := arrays["pi0"]; ok {
		if len(x.Shape) != 2 || x.Shape[0] != s || x.Shape[1] != a {
			return mdp.Problem{}, fmt.Errorf("array \"pi0\" has shape %v, want [S, A] = %v", x.Shape, r.Shape)
		}
		pi0 = mat.NewDense(s, a, x.Data)
		if err := normalizeSingle(pi0, "pi0", x); err != nil {
			return mdp.Problem{}, err
		}
	}
	return mdp.NewProblem(gamma.Data[0], transitions, mat.NewDense(s, a, r.Data), pi0)
}

// normalizeSingle normalizes the rows of the array called name if they are of single
// precision.
func normalizeSingle(rows *mat.Dense, name string, x npz.Array) error {
	if !x.Single {
		return nil
	}
	if err := mdp.NormalizeRows(rows); err != nil {
		return fmt.Errorf("array %q: %w", name, err)
	}
	return nil
}

func encodeNPZ(w io.Writer, problem mdp.Problem) error {
	m := problem.MDP
	s, a := m.R.Dims()
	arrays := map[string]npz.Array{
		"gamma": {Data: []float64{m.Gamma}},
		"P":     {Shape: []int{s, a, s}, Data: m.DenseP().RawMatrix().Data},
		"r":     {Shape: []int{s, a}, Data: m.R.RawMatrix().Data},
	}
	if problem.Pi0 != nil {
		arrays["pi0"] = npz.Array{Shape: []int{s, a}, Data: problem.Pi0.RawMatrix().Data}
	}
	return npz.Encode(w, arrays)
}

package mdpfile

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// archive is what an .npz file holds.
type archive map[string]*tensor

// get returns an array, an empty one where there is none.
func (x archive) get(name string) *tensor {
	if t := x[name]; t != nil {
		return t
	}
	return &tensor{}
}

// readNPZ reads arrays of the names that a JSON file has: gamma, P [S, A, S], r or costs, pi0, terminal, start, states,
// actions, shape, minimize, normalize, layout. In place of P there may be transitions one by one (arrays state, action,
// next, probability, reward and perhaps ends, of one length), or what SciPy's sparse matrices are made of, as
// scipy.sparse.save_npz names it (data, indices, indptr, shape, format; or row, col): one matrix [S·A, S], whose row
// s·A+a is P(·|s,a) (a·S+s with the layout "A,S,S"). A reward of −∞ marks an action that a state does not have.
func readNPZ(d *draft, _ string, data []byte, _ opener) error {
	x, err := readArchive(data)
	if err != nil {
		return err
	}
	sparse := cmp.Or(x["indptr"], x["row"], x["offsets"]) != nil
	if err := x.known(sparse); err != nil {
		return err
	}
	for _, name := range remarks {
		if words := x.labels(name); words != nil && !(name == "shape" && sparse) { // a sparse matrix's is its own
			if err := d.remark(name, words, len(x[name].shape) > 0); err != nil {
				return fmt.Errorf("array %q: %w", name, err)
			}
		}
	}
	switch {
	case x["P"] != nil:
		d.p = x["P"]
	case sparse:
		var m *tensor
		if m, err = x.matrix(); err != nil {
			return fmt.Errorf("sparse matrix: %w", err)
		}
		d.p, err = stack([]*tensor{m})
	default:
		err = x.list(d)
	}
	if err != nil {
		return err
	}
	d.Minimize = d.Minimize || x["costs"] != nil
	d.r, d.pi0 = cmp.Or(x["r"], x["costs"]), x["pi0"]
	if d.r == nil && !d.priced && sparse {
		return errors.New(`one sparse matrix alone; write {"gamma": …, "r": …, "P": "NAME.npz"} into a .json ` +
			"file beside it, or add gamma and r to it: numpy.savez(name, gamma=…, r=…, **numpy.load(matrix))")
	}
	return nil
}

// known returns an error where an array is not what readNPZ takes, or one contradicts another.
func (x archive) known(sparse bool) error {
	if x["r"] != nil && x["costs"] != nil {
		return errors.New(`there are both "r" and "costs"; leave one of them out`)
	}
	if p, next := x["P"] != nil, x["next"] != nil; p && next || sparse && (p || next) {
		return errors.New(`there is P twice: as an array, transitions and sparse matrices, only one is wanted`)
	}
	names := append(strings.Fields("P r costs pi0 state action next probability reward ends"), remarks...)
	if sparse {
		names = append(names, strings.Fields("data indices indptr format row col _is_array")...)
	}
	for name := range x {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown array %q, want some of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// readArchive refuses archives that inflate to more than 256 MiB and 256 times their size, see readArray.
func readArchive(data []byte) (archive, error) {
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("npz: not an .npz archive: %w", err)
	}
	x, left, most := archive{}, int64(1<<28+256*len(data)), min(4*MaxTransitions, 1<<18+32*len(data))
	elements := 0
	for _, file := range files.File {
		name, t := strings.TrimSuffix(file.Name, ".npy"), &tensor{}
		x[name] = t
		err := readArray(file, &left, func(r *npReader) (err error) {
			switch t.shape = r.shape; {
			case len(r.shape) > 3:
				return fmt.Errorf("shape %v, want at most three axes", r.shape)
			case len(r.shape) == 3:
				return t.cube(r, len(data))
			}
			if elements += r.elements; elements > most {
				return fmt.Errorf("more than %d elements with the arrays before it; save it unpacked, by numpy.savez",
					most)
			}
			if strings.ContainsAny(r.kind, "US") {
				t.words, err = r.strings()
				return err
			}
			if t.flat, err = r.array(); slices.ContainsFunc(t.flat, math.IsNaN) {
				return errors.New("it holds NaN; write -inf as the reward (inf as the cost) of an action that does " +
					"not exist")
			}
			if name == "terminal" && r.kind == "|b1" { // the places at which it holds true
				holds := t.flat
				t.flat = []float64{}
				for i, v := range holds {
					if v != 0 {
						t.flat = append(t.flat, float64(i))
					}
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("npz: array %q: %w", name, err)
		}
	}
	return x, nil
}

// cube reads the numbers of three axes that are not zero. A packed file stands for many
// times its size, but not without end.
func (t *tensor) cube(r *npReader, size int) error {
	x, y, width, most := r.shape[0], r.shape[1], r.shape[2], min(MaxTransitions, 1<<18+8*size)
	if x*y > most {
		return fmt.Errorf("%d rows, want at most %d", x*y, most)
	}
	t.entries = make([]arrow, 0, min(x*y*width, most, 1<<10+size/8)) // of what is not packed, all
	err := r.nonzeros(func(i int, v float64) error {
		switch {
		case math.IsNaN(v):
			return fmt.Errorf("element %d is NaN; write -inf as the reward of an action that does not exist", i)
		case len(t.entries) == most:
			return fmt.Errorf("more than %d numbers that are not 0; save it unpacked, by numpy.savez", most)
		}
		row := i / width
		t.entries = append(t.entries, arrow{s: int32(row / y), a: int32(row % y), t: int32(i % width), p: v})
		return nil
	})
	t.complete(x, y)
	return err
}

// stack makes P of one matrix [S·A, S], or of [S, S] for each action.
func stack(matrices []*tensor) (*tensor, error) {
	s := matrices[0].shape[1]
	t := &tensor{shape: []int{0, s}, stacked: true, byAction: len(matrices) > 1}
	for _, m := range matrices {
		switch {
		case t.byAction && (m.shape[0] != s || m.shape[1] != s):
			return nil, fmt.Errorf("sparse matrices of shapes %v and %v, want [S, S] of each action",
				matrices[0].shape, m.shape)
		case m.shape[0]%s != 0:
			return nil, fmt.Errorf("a sparse matrix of shape %v, want [S·A, S]", m.shape)
		}
		for _, x := range m.entries {
			x.s += int32(t.shape[0])
			t.entries = append(t.entries, x)
		}
		t.shape[0] += m.shape[0]
	}
	return t, nil
}

// matrix returns the sparse matrix that scipy.sparse.save_npz has written.
func (x archive) matrix() (*tensor, error) {
	shape, values := x.get("shape").flat, x.get("data").flat
	if len(shape) != 2 || !(shape[0] >= 1 && shape[1] >= 1 && shape[0] <= MaxTransitions && shape[1] <= math.MaxInt32) {
		return nil, fmt.Errorf("shape %v, want [rows, columns]", shape)
	}
	rows, columns := int(shape[0]), int(shape[1])
	if rows > 8*len(values)+1<<16 {
		return nil, fmt.Errorf("%d rows, but only %d numbers", rows, len(values))
	}
	kind := "csr"
	if words := x.get("format").words; len(words) == 1 {
		kind = words[0]
	} else if x["row"] != nil {
		kind = "coo"
	}
	var lines, entries []float64
	switch kind {
	case "coo":
		lines, entries = x.get("row").flat, x.get("col").flat
	case "csr", "csc":
		entries = x.get("indices").flat
		for i, end := range x.get("indptr").flat {
			if !(end >= float64(len(lines)) && end <= float64(len(values))) {
				return nil, fmt.Errorf("indptr[%d] is %v, want the numbers from 0 to %d in order", i, end, len(values))
			}
			for len(lines) < int(end) {
				lines = append(lines, float64(i-1))
			}
		}
		if kind == "csc" {
			lines, entries = entries, lines
		}
	default:
		return nil, fmt.Errorf("format %q, want csr, csc or coo (matrix.tocsr() makes it one)", kind)
	}
	if len(lines) != len(values) || len(entries) != len(values) {
		return nil, fmt.Errorf("%d numbers at %d rows and %d columns", len(values), len(lines), len(entries))
	}
	t := &tensor{shape: []int{rows, columns}}
	for k, v := range values {
		row, column := lines[k], entries[k]
		if !(row >= 0 && row < float64(rows) && column >= 0 && column < float64(columns)) ||
			row != math.Floor(row) || column != math.Floor(column) {
			return nil, fmt.Errorf("entry %d stands at row %v and column %v of %d and %d", k, row, column, rows,
				columns)
		}
		t.entries = append(t.entries, arrow{s: int32(row), t: int32(column), p: v})
	}
	t.complete(rows, 1)
	return t, nil
}

// list takes transitions one by one, of which numbers or strings name states and actions.
func (x archive) list(d *draft) error {
	var labels [3][]string
	for i, name := range []string{"state", "action", "next"} {
		if labels[i] = x.labels(name); labels[i] == nil {
			return fmt.Errorf("there is no array %q; want P [S, A, S], r [S, A] and gamma, or transitions "+
				"(state, action, next, probability, reward), or a sparse matrix as scipy.sparse.save_npz writes it",
				name)
		}
	}
	p, r, ends := x.get("probability").flat, x.get("reward").flat, x.get("ends").flat
	d.priced = r != nil
	for k := range p {
		if k >= min(len(labels[0]), len(labels[1]), len(labels[2])) || r != nil && len(r) != len(p) || ends != nil &&
			len(ends) != len(p) {
			return errors.New("state, action, next, probability, reward and ends differ in length")
		}
		t := arrow{p: p[k]}
		if r != nil {
			t.r = r[k]
		}
		t.ends = ends != nil && ends[k] != 0
		if err := d.arrow(labels[0][k], labels[1][k], labels[2][k], t); err != nil {
			return fmt.Errorf("transition %d: %w", k, err)
		}
	}
	return nil
}

// labels returns an array of names or whole numbers as labels, or nil.
func (x archive) labels(name string) []string {
	list := x.get(name).words
	for _, v := range x.get(name).flat {
		list = append(list, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return list
}

// matrixFiles takes P from files of scipy.sparse.save_npz.
func (d *draft) matrixFiles(names []string, open opener) (err error) {
	matrices := make([]*tensor, len(names))
	for i, name := range names {
		data, err := open(name)
		var x archive
		if err == nil {
			x, err = readArchive(data)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("it is not beside this file; one .npz may hold everything: " +
				"numpy.savez(name, gamma=…, r=…, **numpy.load(matrix))")
		}
		if err == nil {
			matrices[i], err = x.matrix()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	d.p, err = stack(matrices)
	return err
}

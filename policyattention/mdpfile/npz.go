package mdpfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// readNPZ reads arrays of the names that a JSON file has: gamma, P [S, A, S], r or costs, pi0,
// terminal, start, states, actions, shape, minimize, normalize, layout. In place of P there may
// be transitions one by one (arrays state, action, next, probability, reward and perhaps ends, of one
// length), or what SciPy's sparse matrices are made of, as scipy.sparse.save_npz names it (data,
// indices, indptr, shape, format; or row, col): one matrix [S·A, S], whose row s·A+a is
// P(·|s,a) (a·S+s with the layout "A,S,S"), or with P0_, P1_ … before these names a matrix [S, S]
// of each action. A reward of −∞ marks an action that a state does not have.
func readNPZ(d *draft, _ string, data []byte, _ opener) error {
	x, err := readArchive(data)
	if err != nil {
		return err
	}
	prefixes := x.prefixes()
	if err := x.known(prefixes); err != nil {
		return err
	}
	if err := x.extras(d, !slices.Contains(prefixes, "")); err != nil {
		return err
	}
	switch {
	case x["P"] != nil:
		d.p = x["P"]
	case len(prefixes) == 0:
		err = x.list(d)
	default:
		var matrices []*tensor
		for _, prefix := range prefixes {
			m, err := x.matrix(prefix)
			if err != nil {
				return fmt.Errorf("sparse matrix %q: %w", prefix, err)
			}
			matrices = append(matrices, m)
		}
		d.p, err = stack(matrices)
	}
	if err != nil {
		return err
	}
	d.Minimize = d.Minimize || x["costs"] != nil
	d.r, d.pi0 = cmp.Or(x["r"], x["costs"]), x["pi0"]
	if d.r == nil && !d.priced && slices.Equal(prefixes, []string{""}) {
		return errors.New(`one sparse matrix alone; write {"gamma": …, "r": …, "P": "NAME.npz"} into a .json ` +
			"file beside it, or add gamma and r to it: numpy.savez(name, gamma=…, r=…, **numpy.load(matrix))")
	}
	return nil
}

// known returns an error where an array is not what readNPZ takes, or one contradicts another.
func (x archive) known(prefixes []string) error {
	if x["r"] != nil && x["costs"] != nil {
		return errors.New(`there are both "r" and "costs"; leave one of them out`)
	}
	if p, next := x["P"] != nil, x["next"] != nil; p && next || len(prefixes) > 0 && (p || next) {
		return errors.New(`there is P twice: as an array, transitions and sparse matrices, only one is wanted`)
	}
	names := append(strings.Fields("P r costs pi0 state action next probability reward ends"), remarks...)
	for _, prefix := range prefixes {
		for _, name := range strings.Fields("data indices indptr shape format row col _is_array") {
			names = append(names, prefix+name)
		}
	}
	for name := range x {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown array %q, want some of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func readArchive(data []byte) (archive, error) {
	x, all, most := archive{}, 0, min(4*MaxTransitions, 1<<18+32*len(data))
	err := eachArray(data, func(name string, r *npReader) (err error) {
		t := &tensor{shape: r.Shape}
		x[name] = t
		switch len(r.Shape) {
		case 3:
			return t.cube(r, len(data))
		case 0, 1, 2:
		default:
			return fmt.Errorf("shape %v, want at most three axes", r.Shape)
		}
		elements := 1
		for _, n := range r.Shape {
			elements *= n
		}
		if all += elements; all > most {
			return fmt.Errorf("more than %d elements with the arrays before it; save it unpacked, by numpy.savez", most)
		}
		if strings.ContainsAny(r.Type, "US") {
			t.words, err = r.Strings()
			return err
		}
		if t.flat, err = r.array(); slices.ContainsFunc(t.flat, math.IsNaN) {
			return errors.New("it holds NaN; write -inf as the reward (inf as the cost) of an action that does not " +
				"exist")
		}
		if name == "terminal" && r.Type == "|b1" { // the places at which it holds true
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
	return x, err
}

// cube reads the numbers of three axes that are not zero. A packed file stands for many
// times its size, but not without end.
func (t *tensor) cube(r *npReader, size int) error {
	rows, width, most := r.Shape[0]*r.Shape[1], r.Shape[2], min(MaxTransitions, 1<<18+8*size)
	if rows > most {
		return fmt.Errorf("%d rows, want at most %d", rows, most)
	}
	entries := min(rows*width, most, 1<<10+size/8) // of what is not packed, all
	places, values := make([]int32, 0, entries), make([]float64, 0, entries)
	err := r.Nonzeros(func(i int, v float64) error {
		switch {
		case math.IsNaN(v):
			return fmt.Errorf("element %d is NaN; write -inf as the reward of an action that does not exist", i)
		case len(values) == most:
			return fmt.Errorf("more than %d numbers that are not 0; save it unpacked, by numpy.savez", most)
		}
		places, values = append(places, int32(i)), append(values, v)
		return nil
	})
	t.rows = byRow(rows, len(values), 1, func(k int) (int, int32, float64) {
		i := int(places[k])
		return i / width, int32(i % width), values[k]
	})
	return err
}

// prefixes returns what stands before the names of sparse matrices, in the order of the
// numbers in them.
func (x archive) prefixes() []string {
	found := map[string]bool{}
	for name := range x {
		for _, end := range []string{"indptr", "row", "offsets"} {
			if prefix, ok := strings.CutSuffix(name, end); ok {
				found[prefix] = true
			}
		}
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.Trim(s, "P_"))
		return n
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int { return number(a) - number(b) })
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
		for i := range m.shape[0] {
			states, p := m.rows.Row(i)
			t.rows.State, t.rows.P = append(t.rows.State, states...), append(t.rows.P, p...)
			t.rows.EndRow()
		}
		t.shape[0] += m.shape[0]
	}
	return t, nil
}

// matrix returns the sparse matrix whose arrays have names with the prefix.
func (x archive) matrix(prefix string) (*tensor, error) {
	shape, values := x.get(prefix+"shape").flat, x.get(prefix+"data").flat
	if len(shape) != 2 || !(shape[0] >= 1 && shape[1] >= 1 && shape[0] <= MaxTransitions && shape[1] <= math.MaxInt32) {
		return nil, fmt.Errorf("shape %v, want [rows, columns]", shape)
	}
	rows, columns := int(shape[0]), int(shape[1])
	if rows > 8*len(values)+1<<16 {
		return nil, fmt.Errorf("%d rows, but only %d numbers", rows, len(values))
	}
	kind := "csr"
	if words := x.get(prefix + "format").words; len(words) == 1 {
		kind = words[0]
	} else if x[prefix+"row"] != nil {
		kind = "coo"
	}
	var lines, entries []float64
	switch kind {
	case "coo":
		lines, entries = x.get(prefix+"row").flat, x.get(prefix+"col").flat
	case "csr", "csc":
		entries = x.get(prefix + "indices").flat
		for i, end := range x.get(prefix + "indptr").flat {
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
	for k := range values {
		row, column := lines[k], entries[k]
		if !(row >= 0 && row < float64(rows) && column >= 0 && column < float64(columns)) ||
			row != math.Floor(row) || column != math.Floor(column) {
			return nil, fmt.Errorf("entry %d stands at row %v and column %v of %d and %d", k, row, column, rows,
				columns)
		}
	}
	return &tensor{shape: []int{rows, columns}, rows: byRow(rows, len(values), 1, func(k int) (int, int32, float64) {
		return int(lines[k]), int32(entries[k]), values[k]
	})}, nil
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

// extras takes what a problem says of itself; shape, where that is not a sparse matrix's.
func (x archive) extras(d *draft, shape bool) error {
	for _, name := range remarks {
		words := x.labels(name)
		if words == nil || name == "shape" && !shape {
			continue
		}
		list := len(x[name].shape) > 0
		if err := d.remark(name, words, list); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return nil
}

// matrixFiles takes P from files of scipy.sparse.save_npz.
func (d *draft) matrixFiles(names []string, open opener) error {
	var matrices []*tensor
	for _, name := range names {
		data, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("it is not beside this file; one .npz may hold everything: " +
				"numpy.savez(name, gamma=…, r=…, **numpy.load(matrix))")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		x, err := readArchive(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m, err := x.matrix("")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		matrices = append(matrices, m)
	}
	var err error
	d.p, err = stack(matrices)
	return err
}

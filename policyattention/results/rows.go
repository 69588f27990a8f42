// Package results asks stored rows for the numbers of the paper's tables and figures. A question is
// a chain of verbs; to ask another one, write another chain.
//
//	store := results.Open("artifacts/paper")
//	loss := store.Block("benchmark").At(20).By(results.Method, results.S)
//	oracle := store.Block("benchmark").Where(results.Method.Is("exact-pmd")).At(20).By(results.S)
//	table := loss.Median().WithInterval().Against(oracle).Ratio().WithInterval().WithTail()
//
// Rows are selected (Where, At), grouped (By), and become a Table, to which each further verb adds
// columns. What goes wrong on the way is kept and returned by [Table.Shown].
package results

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/parquet-go/parquet-go"
	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/rows"
)

// Column names a column of rows.
type Column string

// Columns of closed loops. T is the horizon that [Rows.At] chooses.
const (
	Method Column = "method"
	Recipe Column = "recipe"
	S      Column = "s"
	Seed   Column = "seed"
	Step   Column = "step"
	Family Column = "family"
	T      Column = "t"
)

// Filter keeps rows by the value of a column.
type Filter struct {
	column Column
	values []string
	not    bool
}

// None is the value of text that is empty.
const None = "none"

// Is keeps the rows whose value is one of these: strings or numbers.
func (c Column) Is(values ...any) Filter {
	f := Filter{column: c}
	for _, v := range values {
		text := fmt.Sprint(v)
		if text == None {
			text = ""
		}
		f.values = append(f.values, text)
	}
	return f
}

// Not keeps the rows whose value is none of these.
func (c Column) Not(values ...any) Filter {
	f := c.Is(values...)
	f.not = true
	return f
}

// Store reads the rows of a preset, each file once.
type Store struct {
	Folder string            // such as artifacts/paper
	Labels map[string]string // of methods that this package does not know, by name

	mu     sync.Mutex
	read   map[string]*data
	claims func() ([]Judged, error) // the paper's
	tables map[string]func() Table  // by name, each made once
}

// Open returns the store of a preset's folder, which holds rows/<block>.parquet.
func Open(folder string) *Store {
	s := &Store{Folder: folder, read: map[string]*data{}, tables: map[string]func() Table{}}
	s.claims = sync.OnceValues(func() ([]Judged, error) { return s.Claims(ThePaper) })
	for _, b := range builders() {
		s.tables[b.name] = sync.OnceValue(func() Table { return b.build(s) })
	}
	return s
}

// data are the columns of a Parquet file.
type data struct {
	all     []int // the rows, from 0
	columns map[Column]*column
}

// column holds numbers, NaN where null, or places in names.
type column struct {
	values []float64
	names  []string // the different texts; nil in a column of numbers
}

// Rows are some rows of a block, or the error that kept them from being found.
type Rows struct {
	block    string
	data     *data
	labels   map[string]string
	at       []int // of the columns, ascending; shared, so it is never changed
	fixed    []Filter
	horizons []int // 0 for rows without rounds
	of       Column
	err      error
}

// Block returns the rows of a block.
func (s *Store) Block(name string) Rows { return s.File(filepath.Join("rows", name+".parquet"), name) }

// File returns the rows of any Parquet file below the folder, under a name for queries.
func (s *Store) File(path, name string) Rows {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.read[path]
	if !ok {
		var err error
		if d, err = readParquet(filepath.Join(s.Folder, path)); err != nil {
			return Rows{block: name, data: &data{}, err: err}
		}
		s.read[path] = d
	}
	return Rows{block: name, data: d, labels: s.Labels, of: "loss", at: d.all, horizons: []int{0}}
}

// Columns lists the columns of the rows.
func (r Rows) Columns() []Column { return slices.Sorted(maps.Keys(r.data.columns)) }

// Where keeps the rows that pass all filters.
func (r Rows) Where(filters ...Filter) Rows {
	for _, f := range filters {
		fails, err := r.test(f)
		if r.err = cmp.Or(r.err, err); r.err != nil {
			r.at = nil
			return r
		}
		r.at, r.fixed = slices.DeleteFunc(slices.Clone(r.at), fails), append(slices.Clone(r.fixed), f)
	}
	return r
}

// test returns whether a row fails to pass a filter.
func (r Rows) test(f Filter) (func(int) bool, error) {
	c, ok := r.data.columns[f.column]
	if !ok {
		return nil, fmt.Errorf("results: block %s: no column %q, want one of %q", r.block, f.column, r.Columns())
	}
	var want []float64
	for _, v := range f.values {
		x, err := float64(slices.Index(c.names, v)), error(nil)
		if c.names == nil {
			x, err = strconv.ParseFloat(v, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("results: block %s: column %s holds numbers, not %q", r.block, f.column, v)
		}
		want = append(want, x)
	}
	return func(i int) bool { return slices.Contains(want, c.values[i]) == f.not }, nil
}

// At takes the policies returned after these rounds, and residuals as means over the rounds before.
func (r Rows) At(horizons ...int) Rows {
	r.horizons = horizons
	return r
}

// Of takes another column than the loss.
func (r Rows) Of(c Column) Rows {
	r.of = c
	return r
}

// Number returns a column of numbers.
func (r Rows) Number(c Column) (values []float64) {
	if x := r.data.columns[c]; x != nil && x.names == nil {
		for _, i := range r.at {
			values = append(values, x.values[i])
		}
	}
	return values
}

// Values returns the different values of a column in the order of their first row.
func (r Rows) Values(c Column) (values []string) {
	for _, i := range r.at {
		if v := r.data.value(c, i); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

func (d *data) value(c Column, i int) string {
	x := d.columns[c]
	switch {
	case x == nil:
		return ""
	case x.names != nil:
		return x.names[int(x.values[i])]
	}
	return strconv.FormatFloat(x.values[i], 'g', -1, 64)
}

// cell is a number, or a text's place in its column's names.
func (d *data) cell(c Column, i int) float64 {
	if d.columns[c] == nil {
		return 0
	}
	return d.columns[c].values[i]
}

// group is a table [runs][problems] of one column, with what its rows share.
type group struct {
	key    map[Column]string
	block  string
	of     Column
	runs   []string // their seeds, ascending
	sample [][]float64
}

// groups groups rows by columns and horizon, in the order of the columns' values.
func (r Rows) groups(columns []Column) ([]group, error) {
	if r.err != nil {
		return nil, r.err
	}
	parts, order, key := map[string][]int{}, []string{}, ""
	for k, i := range r.at {
		differs := func(c Column) bool { return r.data.cell(c, i) != r.data.cell(c, r.at[k-1]) }
		if k == 0 || slices.ContainsFunc(columns, differs) {
			key = ""
			for _, c := range columns {
				key += r.data.value(c, i) + "\x00"
			}
		}
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], i)
	}
	var all []group
	for _, key := range order {
		for _, t := range r.horizons {
			g, err := r.group(columns, parts[key], t)
			if err != nil {
				return nil, fmt.Errorf("results: block %s: %w", r.block, err)
			}
			if g.sample != nil {
				all = append(all, g)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b group) int {
		for _, c := range columns {
			if d := compare(c, a.key[c], b.key[c]); d != 0 {
				return d
			}
		}
		return 0
	})
	return all, nil
}

// compare orders values of a column: methods as tables do, numbers by size, other text not at all.
func compare(c Column, a, b string) int {
	if c == Method || c == Recipe {
		return cmp.Compare(rank(a), rank(b))
	}
	x, _ := strconv.ParseFloat(a, 64) // 0 of other text
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// group collects the values of some rows at a horizon, 0 for rows without rounds.
func (r Rows) group(columns []Column, at []int, t int) (group, error) {
	g := group{key: map[Column]string{}, block: r.block, of: r.of}
	if t > 0 {
		at = slices.DeleteFunc(slices.Clone(at), func(i int) bool {
			round := int(r.data.cell("round", i)) // residuals of the rounds before made the policy returned after t
			return r.of == "loss" && round != t || r.of != "loss" && round >= t
		})
	}
	if len(at) == 0 {
		return g, nil
	}
	for _, f := range r.fixed {
		if len(f.values) == 1 && f.values[0] != "" && !f.not {
			g.key[f.column] = f.values[0]
		}
	}
	for _, c := range columns {
		if v := r.data.value(c, at[0]); v != "" {
			g.key[c] = v
		}
	}
	if t > 0 {
		g.key[T] = strconv.Itoa(t)
	}
	of := r.data.columns[r.of]
	if of == nil || of.names != nil {
		return g, fmt.Errorf("no column of numbers %q", r.of)
	}
	for _, c := range []Column{Method, Recipe, S, Step, Family} {
		k := slices.IndexFunc(at, func(i int) bool { return r.data.cell(c, i) != r.data.cell(c, at[0]) })
		if k >= 0 {
			return g, fmt.Errorf("a group with %s %q and %q: choose one, or group by %s", c, r.data.value(c, at[0]),
				r.data.value(c, at[k]), c)
		}
	}
	runs := map[float64]map[float64][]float64{} // values by seed and problem
	for _, i := range at {
		seed, problem := r.data.cell(Seed, i)+r.data.cell("run", i), float64(i) // or each row is one
		if r.data.columns["problem"] != nil {
			problem = r.data.cell("problem", i)
		}
		if runs[seed] == nil {
			runs[seed] = map[float64][]float64{}
		}
		runs[seed][problem] = append(runs[seed][problem], of.values[i])
	}
	for _, seed := range slices.Sorted(maps.Keys(runs)) {
		var run []float64
		for _, problem := range slices.Sorted(maps.Keys(runs[seed])) {
			v, err := r.reduce(runs[seed][problem], t)
			if err != nil {
				return g, fmt.Errorf("%v, seed %v, problem %v: %w", g.key, seed, problem, err)
			}
			run = append(run, v)
		}
		g.runs, g.sample = append(g.runs, strconv.FormatFloat(seed, 'f', -1, 64)), append(g.sample, run)
	}
	return g, nil
}

// reduce is the one value of a problem: its loss, or the mean over rounds of a residual.
func (r Rows) reduce(values []float64, t int) (mean float64, err error) {
	want := 1
	if r.of != "loss" {
		want = max(want, t)
	}
	if len(values) != want {
		return 0, fmt.Errorf("%d values, want %d", len(values), want)
	}
	for _, v := range values {
		mean += v / float64(want)
	}
	return mean, nil
}

// readParquet reads the columns of a file.
func readParquet(path string) (*data, error) {
	d := &data{columns: map[Column]*column{}}
	var now Column // which comes, in parts, value by value
	var c *column
	n, err := rows.Scan(path, func(name string, v parquet.Value) {
		if c == nil || Column(name) != now {
			now = Column(name)
			if d.columns[now] == nil {
				d.columns[now] = &column{}
			}
			c = d.columns[now]
		}
		value := math.NaN() // null
		switch v.Kind() {
		case parquet.ByteArray:
			b := v.ByteArray()
			at := slices.IndexFunc(c.names, func(name string) bool { return name == string(b) })
			if at < 0 {
				at, c.names = len(c.names), append(c.names, string(b))
			}
			value = float64(at)
		case parquet.Double:
			value = v.Double()
		case parquet.Int32, parquet.Int64:
			value = float64(v.Int64())
		case parquet.Boolean:
			value = map[bool]float64{true: 1}[v.Boolean()]
		}
		c.values = append(c.values, value)
	})
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if excess := d.columns["excess"]; excess != nil { // of block any, which holds no losses
		loss := floats.AddTo(make([]float64, n), d.columns["exact"].values, excess.values)
		d.columns["loss"] = &column{values: loss}
	}
	for i := range n {
		d.all = append(d.all, i)
	}
	return d, nil
}

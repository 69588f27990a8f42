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
	study  func() (*study, error)
	claims func() ([]Judged, error) // the paper's
	tables map[string]func() Table  // by name, each made once
}

// Open returns the store of a preset's folder, which holds rows/<block>.parquet.
func Open(folder string) *Store {
	s := &Store{Folder: folder, read: map[string]*data{}, tables: map[string]func() Table{}}
	s.study = sync.OnceValues(s.readStudy)
	s.claims = sync.OnceValues(func() ([]Judged, error) { return s.Claims(ThePaper) })
	for _, b := range builders() {
		s.tables[b.name] = sync.OnceValue(func() Table { return b.build(s) })
	}
	return s
}

// data are the columns of a Parquet file.
type data struct {
	n      int
	all    []int // 0 to n−1
	text   map[Column][]string
	number map[Column][]float64 // NaN where null
}

// Rows are some rows of a block, or the error that kept them from being found.
type Rows struct {
	block    string
	data     *data
	labels   map[string]string
	at       []int // of the columns, ascending; shared, so it is never changed
	fixed    []Filter
	horizons []int
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
			return Rows{block: name, err: err}
		}
		s.read[path] = d
	}
	return Rows{block: name, data: d, labels: s.Labels, of: "loss", at: d.all}
}

// Columns lists the columns of the rows.
func (r Rows) Columns() []Column {
	if r.err != nil {
		return nil
	}
	return append(slices.Sorted(maps.Keys(r.data.text)), slices.Sorted(maps.Keys(r.data.number))...)
}

// Where keeps the rows that pass all filters.
func (r Rows) Where(filters ...Filter) Rows {
	for _, f := range filters {
		if r.err != nil {
			return r
		}
		passes, err := r.test(f)
		if err != nil {
			r.err = fmt.Errorf("results: block %s: %w", r.block, err)
			return r
		}
		at := make([]int, 0, len(r.at))
		for _, i := range r.at {
			if passes(i) {
				at = append(at, i)
			}
		}
		r.at, r.fixed = at, append(slices.Clone(r.fixed), f)
	}
	return r
}

// test returns whether a row passes a filter.
func (r Rows) test(f Filter) (func(int) bool, error) {
	if values, ok := r.data.text[f.column]; ok {
		return func(i int) bool { return slices.Contains(f.values, values[i]) != f.not }, nil
	}
	numbers, ok := r.data.number[f.column]
	if !ok {
		return nil, fmt.Errorf("no column %q, want one of %q", f.column, r.Columns())
	}
	var want []float64
	for _, v := range f.values {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return nil, fmt.Errorf("column %s holds numbers, not %q", f.column, v)
		}
		want = append(want, x)
	}
	return func(i int) bool { return slices.Contains(want, numbers[i]) != f.not }, nil
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
	if r.err == nil && r.data.number[c] != nil {
		for _, i := range r.at {
			values = append(values, r.data.number[c][i])
		}
	}
	return values
}

// Values returns the different values of a column in the order of their first row.
func (r Rows) Values(c Column) (values []string) {
	if r.err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, i := range r.at {
		if v := r.data.value(c, i); !seen[v] {
			seen[v], values = true, append(values, v)
		}
	}
	return values
}

func (d *data) value(c Column, i int) string {
	if values, ok := d.text[c]; ok {
		return values[i]
	}
	if values, ok := d.number[c]; ok {
		return strconv.FormatFloat(values[i], 'g', -1, 64)
	}
	return ""
}

// alike reports whether two rows have the same values.
func (d *data) alike(columns []Column, i, j int) bool {
	for _, c := range columns {
		text, number := d.text[c], d.number[c]
		if text != nil && text[i] != text[j] || number != nil && number[i] != number[j] {
			return false
		}
	}
	return true
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
	horizons := r.horizons
	if horizons == nil {
		horizons = []int{0}
	}
	parts, order, key := map[string][]int{}, []string{}, ""
	for k, i := range r.at {
		if k == 0 || !r.data.alike(columns, i, r.at[k-1]) {
			key = ""
			for _, c := range columns {
				if c != T {
					key += r.data.value(c, i) + "\x00"
				}
			}
		}
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], i)
	}
	var all []group
	for _, key := range order {
		for _, t := range horizons {
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
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return 0
	}
	return cmp.Compare(x, y)
}

// group collects the values of some rows at a horizon, 0 for rows without rounds.
func (r Rows) group(columns []Column, at []int, t int) (group, error) {
	g := group{key: map[Column]string{}, block: r.block, of: r.of}
	if t > 0 {
		at = slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !r.covers(i, t) })
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
		if v := r.data.value(c, at[0]); c != T && v != "" {
			g.key[c] = v
		}
	}
	if t > 0 {
		g.key[T] = strconv.Itoa(t)
	}
	values, ok := r.data.number[r.of]
	if !ok {
		return g, fmt.Errorf("no column of numbers %q", r.of)
	}
	for _, c := range []Column{Method, Recipe, S, Step, Family} {
		for _, i := range at {
			if !r.data.alike([]Column{c}, i, at[0]) {
				return g, fmt.Errorf("a group with %s %q and %q: choose one, or group by %s",
					c, r.data.value(c, at[0]), r.data.value(c, i), c)
			}
		}
	}
	runs := map[float64]map[float64][]float64{} // values by seed and problem
	for _, i := range at {
		seed, problem := r.data.cell(Seed, i)+r.data.cell("run", i), float64(i) // or each row is one
		if r.data.number["problem"] != nil {
			problem = r.data.cell("problem", i)
		}
		if runs[seed] == nil {
			runs[seed] = map[float64][]float64{}
		}
		runs[seed][problem] = append(runs[seed][problem], values[i])
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

func (d *data) cell(c Column, i int) float64 {
	if d.number[c] == nil {
		return 0
	}
	return d.number[c][i]
}

// covers reports whether row i is of horizon t: of the policy returned after t rounds, or one of
// the rounds before it, whose residuals made it.
func (r Rows) covers(i, t int) bool {
	round := int(r.data.cell("round", i))
	if r.of == "loss" {
		return round == t
	}
	return round < t
}

// reduce is the one value of a problem: its loss, or the mean over rounds of a residual.
func (r Rows) reduce(values []float64, t int) (mean float64, err error) {
	if r.of == "loss" || t == 0 {
		if len(values) != 1 {
			return 0, fmt.Errorf("%d values, want one", len(values))
		}
		return values[0], nil
	}
	if len(values) != t {
		return 0, fmt.Errorf("%d rounds, want %d", len(values), t)
	}
	for _, v := range values {
		mean += v / float64(t)
	}
	return mean, nil
}

// readParquet reads the columns of a file.
func readParquet(path string) (d *data, err error) {
	d = &data{text: map[Column][]string{}, number: map[Column][]float64{}}
	var now Column // which comes, in parts, value by value
	var text []string
	var number []float64
	next := func(c Column) {
		if text != nil {
			d.text[now] = text
		}
		if number != nil {
			d.number[now] = number
		}
		now, text, number = c, d.text[c], d.number[c]
	}
	d.n, err = rows.Scan(path, func(c string, v parquet.Value) {
		if Column(c) != now {
			next(Column(c))
		}
		switch v.Kind() {
		case parquet.ByteArray:
			if b := v.ByteArray(); len(text) > 0 && text[len(text)-1] == string(b) {
				text = append(text, text[len(text)-1]) // which share their memory
			} else {
				text = append(text, string(b))
			}
		case parquet.Double:
			number = append(number, v.Double())
		case parquet.Int32, parquet.Int64:
			number = append(number, float64(v.Int64()))
		case parquet.Boolean:
			number = append(number, map[bool]float64{true: 1}[v.Boolean()])
		default:
			number = append(number, math.NaN()) // null
		}
	})
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	next("")
	for i, excess := range d.number["excess"] { // of block any, which holds no losses
		d.number["loss"] = append(d.number["loss"], d.number["exact"][i]+excess)
	}
	for i := range d.n {
		d.all = append(d.all, i)
	}
	return d, nil
}

package rows

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
)

// Tables are what one run leaves, or all runs of a block together. A run has few of them, each in a file
// named after its block; of those that share a file a block has one.
type Tables struct {
	Rounds   []Round   `file:"rows/%s"`
	Policies []Policy  `file:"policies/%s"`
	Choices  []Choice  `file:"choices/%s"`
	Tuned    []Tuned   `file:"rows/%s"`
	Rules    []Rule    `file:"rows/%s"`
	Fits     []Fit     `file:"rows/%s-steps"`
	Backups  []Backup  `file:"rows/%s"`
	Measures []Measure `file:"rows/%s-numbers"`
	Equal    []Equal   `file:"rows/%s"`
	Any      []Any     `file:"rows/%s"`
	Losses   []Loss    `file:"losses%s"` // of training runs, which are of no block: its name is empty
}

// row is a row of a table; run names what left it.
type row interface{ run() any }

func (k Key) run() any { return k }

func (e Equal) run() any {
	return Equal{Method: e.Method, S: e.S, Information: e.Information, N: e.N, Untuned: e.Untuned}
}

func (a Any) run() any { return Any{Set: a.Set, Recipe: a.Recipe, Seed: a.Seed} }

func (l Loss) run() any { return Loss{Training: l.Training} }

// all lists the tables, slices that can be set.
func (t *Tables) all() (all []reflect.Value) {
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		all = append(all, v.Field(i))
	}
	return all
}

// Condition names what a method is told in block equal-sharpness: the information, of how many transitions a round,
// and whether its step sizes are the published ones.
func Condition(information string, n int, untuned bool) string {
	if n > 0 {
		information += fmt.Sprintf(", n = %d", n)
	}
	if untuned {
		information += ", untuned"
	}
	return information
}

func path(folder, block string, table int) string {
	file := reflect.TypeFor[Tables]().Field(table).Tag.Get("file")
	return filepath.Join(folder, fmt.Sprintf(file, block)+".parquet")
}

// Len is the number of all rows.
func (t Tables) Len() (n int) {
	for _, x := range t.all() {
		n += x.Len()
	}
	return n
}

// Append adds rows behind those of the same table.
func (t *Tables) Append(other Tables) {
	for i, x := range t.all() {
		x.Set(reflect.AppendSlice(x, other.all()[i]))
	}
}

// SetKey gives all rows a key: those of tables whose rows have one.
func (t *Tables) SetKey(key Key) {
	for _, x := range t.all() {
		for i := range x.Len() {
			if of := x.Index(i).FieldByName("Key"); of.IsValid() {
				of.Set(reflect.ValueOf(key))
			}
		}
	}
}

// Write stores the tables that have rows in a folder, as those of a block.
func (t Tables) Write(folder, block string) error {
	for i, x := range t.all() {
		if x.Len() > 0 {
			if err := Write(path(folder, block, i), x.Interface()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadBlock reads the tables of a block in a folder; where there is no file there are no rows.
func ReadBlock(folder, block string) (t Tables, err error) {
	found := map[string]error{} // by file: nil where a table has its columns
	for i, x := range t.all() {
		path := path(folder, block, i)
		if before, tried := found[path]; tried && !errors.Is(before, errColumns) {
			continue
		}
		if err := read(path, x); !errors.Is(err, fs.ErrNotExist) {
			found[path] = err
		}
	}
	for _, err := range found {
		if err != nil {
			return Tables{}, err
		}
	}
	return t, nil
}

// Split parts the rows of a block by the runs that left them.
func (t Tables) Split() map[any]*Tables {
	runs := map[any]*Tables{}
	for which, x := range t.all() {
		for i := 0; i < x.Len(); {
			run, j := x.Index(i).Interface().(row).run(), i+1
			for j < x.Len() && x.Index(j).Interface().(row).run() == run {
				j++
			}
			if runs[run] == nil {
				runs[run] = &Tables{}
			}
			to := runs[run].all()[which]
			to.Set(reflect.AppendSlice(to, x.Slice(i, j)))
			i = j
		}
	}
	return runs
}

// problem returns that of a row, false where it is of none.
func problem(row reflect.Value) (int32, bool) {
	f := row.FieldByName("Problem")
	if !f.IsValid() {
		return 0, false
	}
	return int32(f.Int()), true
}

// On keeps the rows of some problems, and those that are of no problem.
func (t Tables) On(some func(problem int32) bool) (kept Tables) {
	for i, x := range t.all() {
		to := kept.all()[i]
		for j := range x.Len() {
			if p, ok := problem(x.Index(j)); !ok || some(p) {
				to.Set(reflect.Append(to, x.Index(j)))
			}
		}
	}
	return kept
}

// Whole reports whether there are equally many rows on each of so many problems, and none on others.
func (t Tables) Whole(problems int) bool {
	for _, x := range t.all() {
		counts := map[int32]int{}
		for j := range x.Len() {
			if p, ok := problem(x.Index(j)); ok {
				counts[p]++
			}
		}
		for p, n := range counts {
			if len(counts) != problems || p < 0 || int(p) >= problems || n != counts[0] {
				return false
			}
		}
	}
	return true
}

// Compare tells of every row of a run that was made again and is not in the stored tables: text and
// integers must be equal, and numbers agree to a tolerance, relative where they are large, beside their rounding.
func (t Tables) Compare(again Tables, tolerance float64, differs func(row int, what string)) {
	for i, stored := range t.all() {
		compare(stored, again.all()[i], tolerance, differs)
	}
}

func compare(stored, again reflect.Value, tolerance float64, differs func(row int, what string)) {
	fields, at := leaves(stored.Type().Elem()), 0
	names := slices.DeleteFunc(slices.Clone(fields), func(f []int) bool {
		kind := stored.Type().Elem().FieldByIndex(f).Type.Kind()
		return kind == reflect.Float64 || kind == reflect.Slice
	})
	for i := range again.Len() {
		want, from := again.Index(i), at
		wrong := func(f []int) bool { return !alike(stored.Index(at).FieldByIndex(f), want.FieldByIndex(f), tolerance) }
		for at < stored.Len() && slices.ContainsFunc(names, wrong) {
			at++
		}
		if at == stored.Len() {
			differs(0, fmt.Sprintf("there is no row %v", brief(want, names)))
			at = from
			continue
		}
		if k := slices.IndexFunc(fields, wrong); k >= 0 {
			name := want.Type().FieldByIndex(fields[k]).Name
			differs(at+1, fmt.Sprintf("%v: %s is %v, computed again it is %v", brief(want, names), name,
				stored.Index(at).FieldByIndex(fields[k]), want.FieldByIndex(fields[k])))
		}
		at++
	}
}

// alike reports whether entries agree, and lists entry by entry; numbers that are not finite agree with themselves.
func alike(a, b reflect.Value, tolerance float64) bool {
	switch {
	case a.Kind() == reflect.Slice:
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = alike(a.Index(i), b.Index(i), tolerance)
		}
		return same
	case !a.CanFloat():
		return a.Equal(b)
	}
	x, y := a.Float(), b.Float()
	return x == y || math.IsNaN(x) && math.IsNaN(y) ||
		math.Abs(x-y) <= tolerance*max(1, math.Abs(y))+Rounding*math.Abs(y)
}

// brief names a row by its text and integers.
func brief(r reflect.Value, fields [][]int) (names []string) {
	for _, f := range fields {
		if v := r.FieldByIndex(f); v.CanInt() || v.Kind() == reflect.String && v.Len() > 0 {
			names = append(names, fmt.Sprintf("%s=%v", r.Type().FieldByIndex(f).Name, v))
		}
	}
	return names
}

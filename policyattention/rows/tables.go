package rows

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// Tables are what one run leaves, or all runs of a block together. A run has few of them.
type Tables struct {
	Rounds   []Round
	Policies []Policy
	Choices  []Choice
	Tuned    []Tuned
	Rules    []Rule
	Fits     []Fit
	Backups  []Backup
	Measures []Measure
	Equal    []Equal
	Any      []Any
	Locks    []Lock
}

// row is a row of a table; run names what left it.
type row interface{ run() any }

func (k Key) run() any { return k }

func (e Equal) run() any {
	return Equal{Method: e.Method, S: e.S, Information: e.Information, N: e.N, Untuned: e.Untuned}
}

func (a Any) run() any { return Any{Set: a.Set, Seed: a.Seed} }

func (l Lock) run() any { return Lock{Part: l.Part, Actor: l.Actor} }

// table is one of Tables.
type table interface {
	path(folder, block string) string
	len() int
	write(path string) error
	read(path string) error
	append(other table)
	split(into func(run any) *Tables, which int)
	on(problem func(int32) bool) table
	compare(again table, tolerance float64, differs func(row int, what string))
}

// of is a table of rows R, which lies in a file named after its block.
type of[R row] struct {
	rows *[]R
	file string
}

// all lists the tables. Of those that share a file a block has one.
func (t *Tables) all() []table {
	return []table{
		of[Round]{&t.Rounds, "rows/%s"}, of[Policy]{&t.Policies, "policies/%s"}, of[Choice]{&t.Choices, "choices/%s"},
		of[Tuned]{&t.Tuned, "rows/%s"}, of[Rule]{&t.Rules, "rows/%s"}, of[Fit]{&t.Fits, "rows/%s-steps"},
		of[Backup]{&t.Backups, "rows/%s"}, of[Measure]{&t.Measures, "rows/%s-imitation"},
		of[Equal]{&t.Equal, "rows/%s"}, of[Any]{&t.Any, "rows/%s"}, of[Lock]{&t.Locks, "rows/%s"},
	}
}

func (o of[R]) path(folder, block string) string {
	return filepath.Join(folder, fmt.Sprintf(o.file, block)+".parquet")
}

func (o of[R]) len() int { return len(*o.rows) }

func (o of[R]) write(path string) error { return Write(path, *o.rows) }

func (o of[R]) read(path string) (err error) {
	*o.rows, err = Read[R](path)
	return err
}

func (o of[R]) append(other table) { *o.rows = append(*o.rows, *other.(of[R]).rows...) }

func (o of[R]) split(into func(run any) *Tables, which int) {
	for i := 0; i < len(*o.rows); {
		run, j := (*o.rows)[i].run(), i+1
		for j < len(*o.rows) && (*o.rows)[j].run() == run {
			j++
		}
		to := into(run).all()[which].(of[R])
		*to.rows = append(*to.rows, (*o.rows)[i:j]...)
		i = j
	}
}

func (o of[R]) on(problem func(int32) bool) table {
	field, ok := reflect.TypeFor[R]().FieldByName("Problem")
	some := slices.Clone(*o.rows)
	if ok {
		some = slices.DeleteFunc(some, func(r R) bool {
			return !problem(int32(reflect.ValueOf(r).FieldByIndex(field.Index).Int()))
		})
	}
	return of[R]{&some, o.file}
}

// Len is the number of all rows.
func (t Tables) Len() (n int) {
	for _, x := range t.all() {
		n += x.len()
	}
	return n
}

// Append adds rows behind those of the same table.
func (t *Tables) Append(other Tables) {
	for i, x := range t.all() {
		x.append(other.all()[i])
	}
}

// Write stores the tables that have rows in a folder, as those of a block.
func (t Tables) Write(folder, block string) error {
	for _, x := range t.all() {
		if x.len() > 0 {
			if err := x.write(x.path(folder, block)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadBlock reads the tables of a block in a folder; where there is no file there are no rows.
func ReadBlock(folder, block string) (t Tables, err error) {
	read, failed := map[string]bool{}, map[string]error{}
	for _, x := range t.all() {
		path := x.path(folder, block)
		if read[path] {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := x.read(path); err == nil {
			read[path] = true
		} else if failed[path] == nil || errors.Is(failed[path], errColumns) {
			failed[path] = err
		}
	}
	for path, err := range failed {
		if !read[path] {
			return Tables{}, err
		}
	}
	return t, nil
}

// Split parts the rows of a block by the runs that left them.
func (t Tables) Split() map[any]*Tables {
	runs := map[any]*Tables{}
	into := func(run any) *Tables {
		if runs[run] == nil {
			runs[run] = &Tables{}
		}
		return runs[run]
	}
	for i, x := range t.all() {
		x.split(into, i)
	}
	return runs
}

// On keeps the rows of some problems, and those that are of no problem.
func (t Tables) On(problem func(int32) bool) (some Tables) {
	for i, x := range t.all() {
		some.all()[i].append(x.on(problem))
	}
	return some
}

// Compare tells of every row of a run that was made again and is not in the stored tables: text and
// integers must be equal, and numbers agree to a tolerance, relative where they are large.
func (t Tables) Compare(again Tables, tolerance float64, differs func(row int, what string)) {
	for i, x := range t.all() {
		x.compare(again.all()[i], tolerance, differs)
	}
}

func (o of[R]) compare(again table, tolerance float64, differs func(row int, what string)) {
	fields := leaves(reflect.TypeFor[R](), nil)
	at := 0
	for _, want := range *again.(of[R]).rows {
		w := reflect.ValueOf(want)
		from := at
		for at < len(*o.rows) && !alike(reflect.ValueOf((*o.rows)[at]), w, fields, math.Inf(1)) {
			at++
		}
		if at == len(*o.rows) {
			differs(0, fmt.Sprintf("there is no row %v", brief(w, fields)))
			at = from
			continue
		}
		got := reflect.ValueOf((*o.rows)[at])
		for _, f := range fields {
			if !alike(got, w, [][]int{f}, tolerance) {
				name := w.Type().FieldByIndex(f).Name
				differs(at+1, fmt.Sprintf("%v: %s is %v, computed again it is %v", brief(w, fields), name, got.FieldByIndex(f), w.FieldByIndex(f)))
				break
			}
		}
		at++
	}
}

// alike reports whether fields agree, numbers to a tolerance.
func alike(x, y reflect.Value, fields [][]int, tolerance float64) bool {
	for _, f := range fields {
		switch a, b := x.FieldByIndex(f), y.FieldByIndex(f); a.Kind() {
		case reflect.Float64:
			if !close(a.Float(), b.Float(), tolerance) {
				return false
			}
		case reflect.Slice:
			if math.IsInf(tolerance, 1) {
				continue
			}
			if a.Len() != b.Len() {
				return false
			}
			for i := range a.Len() {
				if e := a.Index(i); e.CanFloat() && !close(e.Float(), b.Index(i).Float(), tolerance) || e.CanInt() && e.Int() != b.Index(i).Int() {
					return false
				}
			}
		default:
			if !a.Equal(b) {
				return false
			}
		}
	}
	return true
}

// close reports whether numbers agree; those that are not finite agree with themselves.
func close(x, y, tolerance float64) bool {
	return math.IsInf(tolerance, 1) || x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= tolerance*max(1, math.Abs(y))
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

// Whole reports whether there are equally many rows on each of so many problems, and none on others.
func (t Tables) Whole(problems int) bool {
	for _, x := range t.all() {
		counts := make([]int, problems)
		others := x.on(func(p int32) bool {
			if 0 <= p && int(p) < problems {
				counts[p]++
				return false
			}
			return true
		})
		if x.len() == 0 || others.len() == x.len() && slices.Max(counts) == 0 { // rows of no problem
			continue
		}
		if others.len() > 0 || slices.Min(counts) != slices.Max(counts) {
			return false
		}
	}
	return true
}

// Package evidence stores what is measured of a method beside its trained weights, and
// compares it with what is measured again.
package evidence

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/gomlx/compute"

	"icrl/policyattention/artifact"
)

// File is the name of the evidence in its folder.
const File = "evidence.json"

// Write stores v as JSON in dir: the file appears complete, or not at all.
func Write(dir string, v any) error { return artifact.WriteJSON(filepath.Join(dir, File), v, " ") }

// Read reads evidence that Write stored in dir.
func Read[E any](dir string) (*E, error) {
	e := new(E)
	if err := artifact.ReadJSON(filepath.Join(dir, File), e); err != nil {
		return nil, err
	}
	return e, nil
}

// Run is a training whose weights evidence is measured of.
type Run[R comparable] struct {
	Name   string // of its file, e.g. "linear-looped-1"
	Kind   string // the same without the seed
	Recipe R
}

// Path is where the weights of a run are in dir.
func (r Run[R]) Path(dir string) string { return filepath.Join(dir, r.Name+".safetensors") }

// Make trains in dir what is missing of runs, measures the evidence and stores it there. Progress
// gets the name of each run before it begins; it may be nil.
func Make[R comparable, T, E any](ctx context.Context, on compute.Backend, dir string, runs []Run[R],
	train func(recipe R, ctx context.Context, on compute.Backend, path string) (T, error), progress func(name string), measure func(dir string) (*E, error)) (*E, error) {
	for _, r := range runs {
		if progress != nil {
			progress(r.Name)
		}
		if _, err := train(r.Recipe, ctx, on, r.Path(dir)); err != nil {
			return nil, err
		}
	}
	e, err := measure(dir)
	if err != nil {
		return nil, err
	}
	return e, Write(dir, e)
}

// Each visits what runs have left in dir. It returns an error if a file is missing or of another
// recipe than its run's.
func Each[R comparable, T any](dir string, runs []Run[R], read func(path string) (T, error), recipe func(T) R, visit func(Run[R], T) error) error {
	for _, r := range runs {
		t, err := read(r.Path(dir))
		if err != nil {
			return err
		}
		if recipe(t) != r.Recipe {
			return fmt.Errorf("%s is of another recipe", r.Path(dir))
		}
		if err := visit(r, t); err != nil {
			return err
		}
	}
	return nil
}

// Verify makes the evidence in dir again from nothing but the trained weights there and returns
// what differs, and what broken finds in what is stored and in what is measured again.
func Verify[E any](dir string, measure func(dir string) (*E, error), broken func(*E) []string) ([]string, error) {
	stored, err := Read[E](dir)
	if err != nil {
		return nil, err
	}
	again, err := measure(dir)
	if err != nil {
		return nil, err
	}
	return slices.Concat(Differences(stored, again), broken(stored), broken(again)), nil
}

// Differences lists, in their order, where two values of one type differ. Numbers may differ
// by a relative 1e-6 and an absolute 1e-12, which sums in another order keep. Fields with the
// tag verify:"rounding" are rounding errors, which differ between machines; they are only
// asked to be finite and not negative on both sides.
func Differences(stored, again any) []string {
	return differences("", reflect.ValueOf(stored), reflect.ValueOf(again))
}

func differences(at string, x, y reflect.Value) []string {
	var found []string
	differ := func() []string { return []string{fmt.Sprintf("%s is %v, want %v", at, x, y)} }
	switch x.Kind() {
	case reflect.Pointer:
		return differences(at, x.Elem(), y.Elem())
	case reflect.Slice:
		if x.Len() != y.Len() {
			return []string{fmt.Sprintf("%s has %d rows, want %d", at, x.Len(), y.Len())}
		}
		for i := range x.Len() {
			found = append(found, differences(fmt.Sprintf("%s[%d]", at, i), x.Index(i), y.Index(i))...)
		}
	case reflect.Struct:
		for i := range x.NumField() {
			field := x.Type().Field(i)
			name := at + "." + field.Name
			if field.Tag.Get("verify") != "rounding" {
				found = append(found, differences(name, x.Field(i), y.Field(i))...)
				continue
			}
			for _, v := range []float64{x.Field(i).Float(), y.Field(i).Float()} {
				if !(v >= 0 && v <= math.MaxFloat64) {
					found = append(found, fmt.Sprintf("%s is %v, want a finite number ≥ 0", name, v))
				}
			}
		}
	case reflect.Float64:
		if a, b := x.Float(), y.Float(); !(math.Abs(a-b) <= 1e-6*math.Abs(b)+1e-12) {
			return differ()
		}
	default:
		if !x.Equal(y) {
			return differ()
		}
	}
	return found
}

// Moments returns the mean of values and its standard error, which is 0 for one value.
func Moments(values []float64) (mean, standard float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if n < 2 {
		return mean, 0
	}
	for _, v := range values {
		standard += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(standard / (n * (n - 1)))
}

// Layers returns what trials find of layers, one row for each from the first on. It returns an error if there
// is no trial or no layer, and a trial's own.
func Layers[Row any](layers, trials int, trial func(trial int, rows []Row) error) ([]Row, error) {
	if trials < 1 || layers < 1 {
		return nil, fmt.Errorf("%d trials of %d layers, want at least one of each", trials, layers)
	}
	rows := make([]Row, layers)
	for i := range trials {
		if err := trial(i, rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

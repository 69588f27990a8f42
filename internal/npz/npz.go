// Package npz writes NumPy .npz archives of float64 arrays of any rank, and reads
// archives of real numbers as such, through the npyio library.
package npz

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sbinet/npyio/npy"
	"github.com/sbinet/npyio/npz"
)

// Array is a float64 array in C (row-major) order; the product of Shape is
// len(Data). A nil Shape is a scalar.
type Array struct {
	Shape  []int
	Data   []float64
	Single bool // the numbers were read from single precision; Encode ignores it
}

// Encode writes the named arrays in the order of their names. The bytes depend
// on the arrays alone.
func Encode(w io.Writer, arrays map[string]Array) error {
	archive := npz.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		value, err := nested(arrays[name])
		if err != nil {
			return fmt.Errorf("npz: array %q: %w", name, err)
		}
		if err := archive.Write(name+".npy", value); err != nil {
			return fmt.Errorf("npz: array %q: %w", name, err)
		}
	}
	return archive.Close()
}

// nested returns a as the Go array type [n]…[m]float64, from which npyio takes
// the shape.
func nested(a Array) (any, error) {
	n, t := 1, reflect.TypeFor[float64]()
	for _, k := range slices.Backward(a.Shape) {
		if k < 1 {
			return nil, fmt.Errorf("shape %v is empty", a.Shape)
		}
		if k > len(a.Data)/n { // a product of sizes could overflow
			return nil, fmt.Errorf("%d elements for shape %v", len(a.Data), a.Shape)
		}
		n, t = n*k, reflect.ArrayOf(k, t)
	}
	if n != len(a.Data) {
		return nil, fmt.Errorf("%d elements for shape %v", len(a.Data), a.Shape)
	}
	flat := reflect.ValueOf(a.Data)
	pointer := flat.Convert(reflect.PointerTo(reflect.ArrayOf(n, reflect.TypeFor[float64]()))).UnsafePointer()
	return reflect.NewAt(t, pointer).Elem().Interface(), nil
}

// Decode reads all arrays of an archive, in C or Fortran order and of the types
// NumPy gives to real numbers: float64, float32, int64 or int32, little-endian. It
// returns an error on arrays of more than so many bytes in all, on other types, on integers
// beyond ±2⁵³, and on shapes that the archive's size cannot hold.
func Decode(data []byte, most int) (map[string]Array, error) {
	archive, err := npz.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("npz: not an .npz archive: %w", err)
	}
	arrays, left := map[string]Array{}, most
	for _, name := range archive.Keys() {
		key := strings.TrimSuffix(name, ".npy")
		content, err := inflate(archive, name, left)
		if err != nil {
			return nil, fmt.Errorf("npz: array %q: %w", key, err)
		}
		if len(content) > left {
			return nil, fmt.Errorf("npz: array %q: more than %d bytes with those before it", key, most)
		}
		left -= len(content)
		if arrays[key], err = decodeArray(content); err != nil {
			return nil, fmt.Errorf("npz: array %q: %w", key, err)
		}
	}
	return arrays, nil
}

// inflate returns what an entry of an archive holds, or a byte more than most.
func inflate(archive *npz.Reader, name string, most int) (content []byte, err error) {
	defer malformed(&err)
	entry, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer entry.Close()
	// npyio takes a short read, which a decompressor may give at any time, for a
	// whole one; memory gives none. Reading to the end also checks the CRC.
	return io.ReadAll(io.LimitReader(entry, int64(most)+1))
}

// malformed makes an error of npyio's panics on some malformed headers.
func malformed(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("malformed: %v", r)
	}
}

func decodeArray(content []byte) (_ Array, err error) {
	defer malformed(&err)
	memory := bytes.NewReader(content)
	array, err := npy.NewReader(memory)
	if err != nil {
		return Array{}, err
	}
	d := array.Header.Descr
	kind, ok := kinds[d.Type]
	if !ok {
		return Array{}, fmt.Errorf("type %q, want little-endian float64, float32, int64 or int32, as numpy.asarray(x, float) is", d.Type)
	}
	n := 1
	for _, k := range d.Shape {
		if k < 0 || (k > 0 && n > len(content)/k) {
			return Array{}, fmt.Errorf("its %d bytes cannot hold the shape %v", len(content), d.Shape)
		}
		n *= k
	}
	if memory.Len() != kind.bytes*n {
		return Array{}, fmt.Errorf("%d bytes of numbers for shape %v", memory.Len(), d.Shape)
	}
	a := Array{Shape: d.Shape, Data: []float64{}, Single: d.Type == "<f4"}
	if n == 0 {
		return a, nil
	}
	if a.Data, err = kind.read(array, n); err != nil {
		return Array{}, err
	}
	if d.Fortran {
		a.Data = rowMajor(a.Data, a.Shape)
	}
	return a, nil
}

// kinds are the types of numbers by their names in a header.
var kinds = map[string]struct {
	bytes int
	read  func(r *npy.Reader, n int) ([]float64, error)
}{
	"<f8": {8, read[float64]},
	"<f4": {4, read[float32]},
	"<i8": {8, read[int64]},
	"<i4": {4, read[int32]},
}

// read reads n numbers, of which float64 must hold each.
func read[T float64 | float32 | int64 | int32](r *npy.Reader, n int) ([]float64, error) {
	values := make([]T, n)
	if err := r.Read(&values); err != nil {
		return nil, err
	}
	data := make([]float64, n)
	for i, v := range values {
		data[i] = float64(v)
		if whole, ok := any(v).(int64); ok && (whole > 1<<53 || whole < -1<<53) {
			return nil, fmt.Errorf("element %d is %d, and float64 holds integers up to 2⁵³ only", i, whole)
		}
	}
	return data, nil
}

// rowMajor reorders data of a shape from Fortran (first index fastest) to C order.
func rowMajor(data []float64, shape []int) []float64 {
	ordered := make([]float64, len(data))
	index := make([]int, len(shape))
	for _, v := range data {
		at := 0
		for k, n := range shape {
			at = at*n + index[k]
		}
		ordered[at] = v
		for k := range index {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return ordered
}

// Package npz reads and writes NumPy .npz archives of float64 arrays of any
// rank, through the npyio library.
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
	Shape []int
	Data  []float64
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

// Decode reads all arrays of an archive. It errs on anything but little-endian
// float64 in C order, and on shapes that the archive's size cannot hold.
func Decode(data []byte) (map[string]Array, error) {
	archive, err := npz.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("npz: not an .npz archive: %w", err)
	}
	arrays := map[string]Array{}
	for _, name := range archive.Keys() {
		key := strings.TrimSuffix(name, ".npy")
		if arrays[key], err = decodeArray(archive, name, len(data)); err != nil {
			return nil, fmt.Errorf("npz: array %q: %w", key, err)
		}
	}
	return arrays, nil
}

// maxInflation bounds the bytes per archive byte that deflate can stand for.
const maxInflation = 1032

func decodeArray(archive *npz.Reader, name string, archiveBytes int) (_ Array, err error) {
	// npyio panics on some malformed headers.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	entry, err := archive.Open(name)
	if err != nil {
		return Array{}, err
	}
	defer entry.Close()
	// npyio takes a short read, which a decompressor may give at any time, for a
	// whole one; memory gives none. Reading to the end also checks the CRC.
	content, err := io.ReadAll(io.LimitReader(entry, int64(maxInflation*archiveBytes)))
	if err != nil {
		return Array{}, err
	}
	memory := bytes.NewReader(content)
	array, err := npy.NewReader(memory)
	if err != nil {
		return Array{}, err
	}
	d := array.Header.Descr
	if d.Type != "<f8" || d.Fortran {
		return Array{}, fmt.Errorf("type %q (Fortran order: %t), want little-endian float64 in C order, as numpy.ascontiguousarray(x, float) is", d.Type, d.Fortran)
	}
	n := 1
	for _, k := range d.Shape {
		if k < 0 || (k > 0 && n > len(content)/k) {
			return Array{}, fmt.Errorf("its %d bytes cannot hold the shape %v", len(content), d.Shape)
		}
		n *= k
	}
	if memory.Len() != 8*n {
		return Array{}, fmt.Errorf("%d bytes of numbers for shape %v", memory.Len(), d.Shape)
	}
	a := Array{Shape: d.Shape, Data: make([]float64, n)}
	if n > 0 {
		if err := array.Read(&a.Data); err != nil {
			return Array{}, err
		}
	}
	return a, nil
}

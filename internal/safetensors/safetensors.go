// Package safetensors reads and writes named arrays in the safetensors format
// (https://huggingface.co/docs/safetensors): eight bytes with the length of a JSON header, the header, and the raw
// little-endian values. Python reads such a file with safetensors.numpy.load_file, and a person with a hex dump.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// maxHeader is the format's own limit on the length of the header.
const maxHeader = 100_000_000

// Tensor is a named array in row-major order.
type Tensor struct {
	Name  string
	Shape []int // dimensions; empty for a scalar
	Data  any   // []float32, []float64, []int32 or []int64, as long as the product of Shape
}

// types are the element types by the format's names.
var types = map[string]reflect.Type{
	"F32": reflect.TypeFor[float32](), "F64": reflect.TypeFor[float64](),
	"I32": reflect.TypeFor[int32](), "I64": reflect.TypeFor[int64](),
}

// File is the content of a safetensors file.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor // in the order of their bytes
}

// Get returns the values of a tensor, and an error if there is none of the name or its elements are of another type.
func Get[T float32 | float64 | int32 | int64](f *File, name string) ([]T, error) {
	i := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("safetensors: no tensor %q", name)
	}
	values, ok := f.Tensors[i].Data.([]T)
	if !ok {
		return nil, fmt.Errorf("safetensors: tensor %q holds %T, want %T", name, f.Tensors[i].Data, values)
	}
	return values, nil
}

// Floats returns a function that gets tensors of float32 by name.
func Floats(f *File) func(name string) ([]float32, error) {
	return func(name string) ([]float32, error) { return Get[float32](f, name) }
}

// header is the JSON object before the data.
type header struct {
	Metadata map[string]string `json:"__metadata__"`
	Tensors  map[string]entry  `json:",embed"`
}

// entry describes one tensor in the header.
type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // of the first byte, and of the one after the last
}

// WriteFile stores the file at path: it appears complete, or not at all.
func WriteFile(path string, f *File) error {
	b, err := Marshal(f)
	if err != nil {
		return err
	}
	// Beside path, so that what a killed process leaves goes with the folder.
	if err := renameio.WriteFile(path, b, 0o644, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("safetensors: writing %s: %w", path, err)
	}
	return nil
}

// ReadFile returns the content of the file at path.
func ReadFile(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return f, nil
}

// Marshal returns the bytes of the file, which are a function of its content.
func Marshal(f *File) ([]byte, error) {
	all := map[string]any{}
	if len(f.Metadata) > 0 {
		all["__metadata__"] = f.Metadata
	}
	var data []byte
	for _, t := range f.Tensors {
		if _, twice := all[t.Name]; twice || t.Name == "__metadata__" {
			return nil, fmt.Errorf("safetensors: tensor name %q is taken", t.Name)
		}
		e := entry{Shape: t.Shape, Offsets: []int64{int64(len(data)), 0}}
		for name, of := range types {
			if reflect.TypeOf(t.Data) == reflect.SliceOf(of) {
				e.DType = name
			}
		}
		if e.DType == "" {
			return nil, fmt.Errorf("safetensors: tensor %q holds %T, want F32, F64, I32 or I64", t.Name, t.Data)
		}
		length := reflect.ValueOf(t.Data).Len()
		if n, err := count(t.Shape); err != nil || n != length {
			return nil, fmt.Errorf("safetensors: tensor %q of shape %v holds %d values", t.Name, t.Shape, length)
		}
		var err error
		if data, err = binary.Append(data, binary.LittleEndian, t.Data); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		e.Offsets[1] = int64(len(data))
		all[t.Name] = e
	}
	text, err := json.Marshal(all, json.Deterministic(true), jsontext.EscapeForHTML(true)) // keys in sorted order
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	// Spaces align the data, so that readers can map it into memory.
	text = append(text, bytes.Repeat([]byte{' '}, (8-len(text)%8)%8)...)
	if len(text) > maxHeader {
		return nil, fmt.Errorf("safetensors: header of %d bytes, want at most %d", len(text), maxHeader)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(out, text...), data...), nil
}

// Unmarshal parses the bytes of a file. Tensors must cover the data without gap or overlap, as the format demands.
func Unmarshal(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("safetensors: file of %d bytes ends before the header's length", len(b))
	}
	length := binary.LittleEndian.Uint64(b)
	if length > maxHeader {
		return nil, fmt.Errorf("safetensors: no safetensors file, or a broken one: a header of %d bytes", length)
	}
	if length > uint64(len(b)-8) {
		return nil, fmt.Errorf("safetensors: header of %d bytes, but only %d follow", length, len(b)-8)
	}
	text, data := b[8:8+length], b[8+length:]
	var h header
	if err := json.Unmarshal(text, &h, json.RejectUnknownMembers(true)); err != nil { // a repeated name, too
		return nil, fmt.Errorf("safetensors: header is not valid JSON: %w", err)
	}
	names := slices.SortedFunc(maps.Keys(h.Tensors), func(a, b string) int {
		return cmp.Or(slices.Compare(h.Tensors[a].Offsets, h.Tensors[b].Offsets), strings.Compare(a, b))
	})
	f := &File{Metadata: h.Metadata}
	var end int64
	for _, name := range names {
		e := h.Tensors[name]
		if len(e.Offsets) != 2 {
			return nil, fmt.Errorf("safetensors: tensor %q has no data_offsets, or not two", name)
		}
		first, last := e.Offsets[0], e.Offsets[1]
		switch {
		case first != end:
			return nil, fmt.Errorf("safetensors: a gap or an overlap: tensor %q begins at byte %d, not at %d", name,
				first, end)
		case last < first || last > int64(len(data)):
			return nil, fmt.Errorf("safetensors: tensor %q ends at byte %d, the data have %d", name, last, len(data))
		}
		end = last
		values, err := decode(e, data[first:last])
		if err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q %w", name, err)
		}
		f.Tensors = append(f.Tensors, Tensor{Name: name, Shape: e.Shape, Data: values})
	}
	if end != int64(len(data)) {
		return nil, fmt.Errorf("safetensors: %d bytes of data, but the tensors end at %d", len(data), end)
	}
	return f, nil
}

// decode returns the numbers of a tensor, a slice of its type.
func decode(e entry, b []byte) (any, error) {
	n, err := count(e.Shape)
	if err != nil {
		return nil, err
	}
	of, ok := types[e.DType]
	if !ok {
		return nil, fmt.Errorf("has type %q, want F32, F64, I32 or I64", e.DType)
	}
	// A division, because n times size may overflow.
	if size := int(of.Size()); len(b)%size != 0 || n != len(b)/size {
		return nil, fmt.Errorf("has %d bytes, want %d values of %d bytes", len(b), n, size)
	}
	values := reflect.MakeSlice(reflect.SliceOf(of), n, n).Interface()
	_, err = binary.Decode(b, binary.LittleEndian, values)
	return values, err
}

// count returns the number of values of a shape.
func count(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > int(^uint(0)>>1)/d {
			return 0, fmt.Errorf("has shape %v, want sizes ≥ 0 with a product that fits an integer", shape)
		}
		n *= d
	}
	return n, nil
}

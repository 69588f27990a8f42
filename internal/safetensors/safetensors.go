// Package safetensors reads and writes named arrays in the safetensors format
// (https://huggingface.co/docs/safetensors): eight bytes with the length of a
// JSON header, the header, and the raw little-endian values. Python reads such
// a file with safetensors.numpy.load_file, and a person with a hex dump.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// maxHeader is the format's own limit on the length of the header.
const maxHeader = 100_000_000

// metadataKey is the header's entry for free-form text.
const metadataKey = "__metadata__"

// Tensor is a named array in row-major order.
type Tensor struct {
	Name  string
	Shape []int // dimensions; empty for a scalar
	Data  any   // []float32, []float64, []int32 or []int64, as long as the product of Shape
}

// Number lists the element types, which the format calls F32, F64, I32 and I64.
type Number interface {
	float32 | float64 | int32 | int64
}

// File is the content of a safetensors file.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor // in the order of their bytes
}

// Get returns the values and the shape of the tensor called name. It returns an error if
// the file has no such tensor or its elements are of another type.
func Get[T Number](f *File, name string) (values []T, shape []int, err error) {
	for _, t := range f.Tensors {
		if t.Name != name {
			continue
		}
		values, ok := t.Data.([]T)
		if !ok {
			return nil, nil, fmt.Errorf("safetensors: tensor %q holds %T, want %T", name, t.Data, values)
		}
		return values, t.Shape, nil
	}
	return nil, nil, fmt.Errorf("safetensors: no tensor %q", name)
}

// Floats returns a function that gets tensors of float32 by name.
func Floats(f *File) func(name string) ([]float32, error) {
	return func(name string) ([]float32, error) {
		values, _, err := Get[float32](f, name)
		return values, err
	}
}

// entry describes one tensor in the header.
type entry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets *[2]int64 `json:"data_offsets"`
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
	header := map[string]any{}
	if len(f.Metadata) > 0 {
		header[metadataKey] = f.Metadata
	}
	var data []byte
	for _, t := range f.Tensors {
		if _, twice := header[t.Name]; twice || t.Name == metadataKey {
			return nil, fmt.Errorf("safetensors: tensor name %q is taken", t.Name)
		}
		start := int64(len(data))
		dtype, length := "", 0
		switch v := t.Data.(type) {
		case []float32:
			dtype, length = "F32", len(v)
		case []float64:
			dtype, length = "F64", len(v)
		case []int32:
			dtype, length = "I32", len(v)
		case []int64:
			dtype, length = "I64", len(v)
		default:
			return nil, fmt.Errorf("safetensors: tensor %q holds %T, want a slice of float32, float64, int32 or int64", t.Name, t.Data)
		}
		if n, err := count(t.Shape); err != nil || n != length {
			return nil, fmt.Errorf("safetensors: tensor %q has %d values, which shape %v does not hold", t.Name, length, t.Shape)
		}
		var err error
		if data, err = binary.Append(data, binary.LittleEndian, t.Data); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{} // a scalar is [], not null
		}
		header[t.Name] = entry{DType: dtype, Shape: shape, Offsets: &[2]int64{start, int64(len(data))}}
	}
	text, err := json.Marshal(header) // keys in sorted order
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

// Unmarshal parses the bytes of a file. The data must be covered by the
// tensors without gap or overlap, as the format demands.
func Unmarshal(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("safetensors: file of %d bytes ends before the header's length", len(b))
	}
	length := binary.LittleEndian.Uint64(b)
	if length > maxHeader {
		return nil, fmt.Errorf("safetensors: this is no safetensors file, or a broken one: it starts with a header of %d bytes, want at most %d", length, maxHeader)
	}
	if length > uint64(len(b)-8) {
		return nil, fmt.Errorf("safetensors: header of %d bytes, but only %d follow", length, len(b)-8)
	}
	text, data := b[8:8+length], b[8+length:]
	entries, metadata, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		for i := range x {
			if x[i] != y[i] {
				if x[i] < y[i] {
					return -1
				}
				return 1
			}
		}
		return strings.Compare(a, b)
	})
	f := &File{Metadata: metadata}
	var end int64
	for _, name := range names {
		e := entries[name]
		if e.Offsets[0] != end {
			return nil, fmt.Errorf("safetensors: tensor %q begins at byte %d of the data, want %d (a gap or an overlap)", name, e.Offsets[0], end)
		}
		if e.Offsets[1] < end || e.Offsets[1] > int64(len(data)) {
			return nil, fmt.Errorf("safetensors: tensor %q ends at byte %d, want between %d and the data's %d", name, e.Offsets[1], end, len(data))
		}
		end = e.Offsets[1]
		values, err := decode(e, data[e.Offsets[0]:end])
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

// parseHeader reads the JSON object entry by entry, which lets it refuse a
// repeated name.
func parseHeader(text []byte) (map[string]entry, map[string]string, error) {
	bad := func(err error) error { return fmt.Errorf("safetensors: header is not valid JSON: %w", err) }
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if open, err := d.Token(); err != nil {
		return nil, nil, bad(err)
	} else if open != json.Delim('{') {
		return nil, nil, bad(fmt.Errorf("it begins with %v, want an object", open))
	}
	entries := map[string]entry{}
	var metadata map[string]string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, bad(err)
		}
		name := key.(string)
		if name == metadataKey {
			if metadata != nil {
				return nil, nil, bad(fmt.Errorf("%q twice", name))
			}
			if err := d.Decode(&metadata); err != nil {
				return nil, nil, bad(err)
			}
			continue
		}
		if _, twice := entries[name]; twice {
			return nil, nil, bad(fmt.Errorf("tensor %q twice", name))
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, nil, bad(fmt.Errorf("tensor %q: %w", name, err))
		}
		if e.Offsets == nil {
			return nil, nil, bad(fmt.Errorf("tensor %q has no data_offsets", name))
		}
		entries[name] = e
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, bad(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, bad(errors.New("something follows the object"))
	}
	return entries, metadata, nil
}

func decode(e entry, b []byte) (any, error) {
	n, err := count(e.Shape)
	if err != nil {
		return nil, err
	}
	switch e.DType {
	case "F32":
		return numbers[float32](n, b, 4)
	case "F64":
		return numbers[float64](n, b, 8)
	case "I32":
		return numbers[int32](n, b, 4)
	case "I64":
		return numbers[int64](n, b, 8)
	}
	return nil, fmt.Errorf("has type %q, want F32, F64, I32 or I64", e.DType)
}

// numbers decodes n numbers of the given size from b.
func numbers[T Number](n int, b []byte, size int) ([]T, error) {
	// A division, because n times size may overflow.
	if len(b)%size != 0 || n != len(b)/size {
		return nil, fmt.Errorf("has %d bytes, want %d values of %d bytes", len(b), n, size)
	}
	values := make([]T, n)
	_, err := binary.Decode(b, binary.LittleEndian, values)
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

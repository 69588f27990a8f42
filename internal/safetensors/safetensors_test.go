package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

func example() *File {
	return &File{
		Metadata: map[string]string{"config": `{"a":1}`},
		Tensors: []Tensor{
			{Name: "z", Shape: []int{2, 2}, Data: []float32{1, -2.5, float32(math.Inf(1)), 0}},
			{Name: "b", Shape: []int{1}, Data: []int64{-1}},
			{Name: "a", Shape: []int{}, Data: []float64{math.Pi}},
			{Name: "none", Shape: []int{0, 3}, Data: []int32{}},
		},
	}
}

// raw builds a file from a header as written.
func raw(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	testkit.Check(t, WriteFile(path, example()))
	got := testkit.Must(ReadFile(path))(t)
	if !reflect.DeepEqual(got, example()) {
		t.Errorf("read back %+v, want %+v", got, example())
	}
	values, err := Get[float32](got, "z")
	if err != nil || len(values) != 4 {
		t.Errorf("Get: %v %v", values, err)
	}
	if _, err := Get[float64](got, "z"); err == nil {
		t.Error("Get with a wrong type does not err")
	}
	if _, err := Get[float64](got, "y"); err == nil {
		t.Error("Get of a missing tensor does not err")
	}
}

// TestLayout states the bytes that the format's description demands.
func TestLayout(t *testing.T) {
	got := testkit.Must(Marshal(&File{Tensors: []Tensor{{Name: "w", Shape: []int{2}, Data: []float32{1, 2}}}}))(t)
	want := raw(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  `, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	good := testkit.Must(Marshal(example()))(t)
	const empty = `{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "ends before"},
		{"huge header", bytes.Repeat([]byte{0xff}, 16), "header of"},
		{"header cut", good[:40], "only"},
		{"data cut", good[:len(good)-1], "ends at byte"},
		{"data appended", append(bytes.Clone(good), 0), "tensors end at"},
		{"no object", raw(`[]`), "not valid JSON"},
		{"bad JSON", raw(`{"w":`), "not valid JSON"},
		{"two objects", raw(`{}{}`), "not valid JSON"},
		{"twice", raw(`{"w":` + empty + `,"w":` + empty + `}`), "duplicate"},
		{"unknown field", raw(`{"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}}`), "unknown"},
		{"no offsets", raw(`{"w":{"dtype":"F32","shape":[0]}}`), "no data_offsets"},
		{"overlap", raw(`{"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},`+
			`"w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 1, 2, 3, 4, 5, 6), "overlap"},
		{"gap", raw(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`, 1, 2, 3, 4, 5), "gap"},
		{"backwards", raw(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,-4]}}`), "ends at byte"},
		{"wrong type", raw(`{"w":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, 1, 2), "type"},
		{"wrong shape", raw(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "bytes"},
		{"negative size", raw(`{"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "shape"},
		{"overflow", raw(`{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`), "shape"},
	} {
		_, err := Unmarshal(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestMarshalErrors(t *testing.T) {
	for _, c := range []struct {
		tensors []Tensor
		want    string
	}{
		{[]Tensor{{Name: "w", Shape: []int{3}, Data: []float32{1}}}, "shape"},
		{[]Tensor{{Name: "w", Shape: []int{1}, Data: []uint8{1}}}, "holds"},
		{[]Tensor{{Name: "w", Shape: []int{1}, Data: []float32{1}}, {Name: "w", Shape: []int{1}, Data: []float32{1}}},
			"taken"},
		{[]Tensor{{Name: "__metadata__", Shape: []int{1}, Data: []float32{1}}}, "taken"},
	} {
		if _, err := Marshal(&File{Tensors: c.tensors}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.tensors, err, c.want)
		}
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "no", "such", "folder"), example()); err == nil {
		t.Error("writing into a missing folder does not err")
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading an absent file: %v", err)
	}
}

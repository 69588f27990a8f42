package mdpfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npz"

	"icrl/internal/testkit"
)

// arraysOf reads all arrays of an archive.
func arraysOf(data []byte) (map[string]npArray, error) {
	arrays := map[string]npArray{}
	err := eachArray(data, func(name string, r *npReader) (err error) {
		arrays[name], err = r.array()
		return err
	})
	return arrays, err
}

func archiveOf(t testing.TB, arrays map[string]npArray) []byte {
	t.Helper()
	var buf bytes.Buffer
	testkit.Check(t, encodeArrays(&buf, arrays))
	return buf.Bytes()
}

func TestArrays(t *testing.T) {
	want := map[string]npArray{
		"scalar": {Data: []float64{0.9}},
		"line":   {Shape: []int{3}, Data: []float64{1, math.Inf(-1), math.SmallestNonzeroFloat64}},
		"cube":   {Shape: []int{2, 1, 2}, Data: []float64{1, 2, 3, 4}},
	}
	data := archiveOf(t, want)
	got := testkit.Must(arraysOf(data))(t)
	for name, a := range want {
		if b := got[name]; !reflect.DeepEqual(a.Data, b.Data) || len(a.Shape) != len(b.Shape) ||
			(len(a.Shape) > 0 && !reflect.DeepEqual(a.Shape, b.Shape)) {
			t.Errorf("%s: wrote %v, read %v", name, a, b)
		}
	}
	if !bytes.Equal(data, archiveOf(t, want)) {
		t.Error("writing twice gave different bytes")
	}
}

// TestNumPy reads what NumPy writes: testdata/numpy-kinds.npz holds x = arange(24).reshape(2,
// 3, 4) in four types, f8 and i4 in Fortran order; t = x[0].T as NumPy stores a
// transpose, in Fortran order; and one dimension and none.
func TestNumPy(t *testing.T) {
	data := testkit.Must(os.ReadFile("testdata/numpy-kinds.npz"))(t)
	got := testkit.Must(arraysOf(data))(t)
	cube := npArray{Shape: []int{2, 3, 4}}
	for i := range 24 {
		cube.Data = append(cube.Data, float64(i))
	}
	transpose := npArray{Shape: []int{4, 3}, Data: []float64{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}}
	want := map[string]npArray{
		"c8": cube, "f8": cube, "f4": {Shape: cube.Shape, Data: cube.Data, Single: true}, "i8": cube, "i4": cube,
		"t":    transpose,
		"line": {Shape: []int{4}, Data: []float64{0, 1, 2, 3}}, "scalar": {Data: []float64{7}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestArraysRefused(t *testing.T) {
	short := map[string]npArray{"x": {Shape: []int{2}, Data: []float64{1}}}
	if err := encodeArrays(&bytes.Buffer{}, short); err == nil ||
		!strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a wrong shape gave %v", err)
	}
	for _, shape := range [][]int{{1 << 62, 4}, {1 << 32, 1 << 32}, {4, 1 << 62}} {
		arrays := map[string]npArray{"x": {Shape: shape, Data: []float64{1}}}
		if err := encodeArrays(&bytes.Buffer{}, arrays); err == nil ||
			!strings.Contains(err.Error(), "1 elements") {
			t.Errorf("shape %v gave %v", shape, err)
		}
	}
	for want, values := range map[string]any{
		"element 1 lies beyond 2⁵³": []int64{1 << 53, 1<<53 + 1},
		`type "<u2"`:                []uint16{1},
		`type "<c16"`:               []complex128{1},
	} {
		var buf bytes.Buffer
		w := npz.NewWriter(&buf)
		testkit.Check(t, errors.Join(w.Write("x.npy", values), w.Close()))
		if _, err := arraysOf(buf.Bytes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %s", values, err, want)
		}
	}
	whole := archiveOf(t, map[string]npArray{"x": {Shape: []int{4}, Data: []float64{1, 2, 3, 4}}})
	for cut := range len(whole) {
		if _, err := arraysOf(whole[:cut]); err == nil {
			t.Fatalf("an archive cut to %d of %d bytes was read", cut, len(whole))
		}
	}
}

// TestBomb: what unpacks to very much more than its size is refused before it takes long.
func TestBomb(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	into, err := w.Create("x.npy")
	testkit.Check(t, err)
	header := "{'descr': '|i1', 'fortran_order': False, 'shape': (2, 300000000), }\n"
	fmt.Fprintf(into, "\x93NUMPY\x01\x00%c\x00%s", len(header), header)
	for range 600 {
		into.Write(make([]byte, 1e6)) //nolint:errcheck // a buffer takes all
	}
	testkit.Check(t, w.Close())

	err = eachArray(buf.Bytes(), func(_ string, r *npReader) error {
		return r.Nonzeros(func(int, float64) error { return nil })
	})
	if err == nil || !strings.Contains(err.Error(), "very much more") {
		t.Errorf("error %v", err)
	}
}

// TestClaims: a header that claims more than the archive holds takes no memory.
func TestClaims(t *testing.T) {
	whole := archiveOf(t, map[string]npArray{"x": {Shape: []int{9, 9}, Data: make([]float64, 81)}})
	for _, shape := range []string{"(9,900000000)", "(900000000,99)", "(-9, 9)", "(9, 8)", "(9, 10)"} {
		data := npyOf(t, whole)
		data = bytes.Replace(data, []byte("(9, 9)"), []byte(shape), 1)
		binary.LittleEndian.PutUint16(data[8:], uint16(len(data)-81*8-10))
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		entry := testkit.Must(w.Create("x.npy"))(t)
		if _, err := entry.Write(data); err != nil {
			t.Fatal(err)
		}
		testkit.Check(t, w.Close())
		if _, err := arraysOf(buf.Bytes()); err == nil {
			t.Errorf("shape %s was read", shape)
		}
	}
}

// npyOf returns the one entry of an archive.
func npyOf(t *testing.T, data []byte) []byte {
	t.Helper()
	r := testkit.Must(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	entry := testkit.Must(r.File[0].Open())(t)
	return testkit.Must(io.ReadAll(entry))(t)
}

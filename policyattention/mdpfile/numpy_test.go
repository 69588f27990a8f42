package mdpfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

// array is what an archive holds.
type array struct {
	shape  []int
	values []float64
}

// arraysOf reads all arrays of an archive, those of three axes from their entries.
func arraysOf(data []byte) (map[string]array, error) {
	x, err := readArchive(data)
	arrays := map[string]array{}
	for name, t := range x {
		if len(t.shape) == 3 {
			t.flat = make([]float64, t.shape[0]*t.shape[1]*t.shape[2])
			for _, e := range t.entries {
				t.flat[(int(e.s)*t.shape[1]+int(e.a))*t.shape[2]+int(e.t)] = e.p
			}
		}
		arrays[name] = array{t.shape, t.flat}
	}
	return arrays, err
}

// TestNumPy reads what NumPy writes: testdata/numpy-kinds.npz holds x = arange(24).reshape(2,
// 3, 4) in four types, f8 and i4 in Fortran order; t = x[0].T as NumPy stores a
// transpose, in Fortran order; and one dimension and none.
func TestNumPy(t *testing.T) {
	data := testkit.Must(os.ReadFile("testdata/numpy-kinds.npz"))(t)
	got := testkit.Must(arraysOf(data))(t)
	cube := array{shape: []int{2, 3, 4}}
	for i := range 24 {
		cube.values = append(cube.values, float64(i))
	}
	want := map[string]array{
		"c8": cube, "f8": cube, "f4": cube, "i8": cube, "i4": cube,
		"t":    {[]int{4, 3}, []float64{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
		"line": {[]int{4}, []float64{0, 1, 2, 3}}, "scalar": {nil, []float64{7}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestArraysRefused(t *testing.T) {
	for want, values := range map[string]any{
		"element 1 lies beyond 2⁵³": []int64{1 << 53, 1<<53 + 1},
		`type "<u2"`:                []uint16{1},
		`type "<c16"`:               []complex128{1},
	} {
		data := []byte(archived(t, map[string]any{"x": values}))
		if _, err := arraysOf(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %s", values, err, want)
		}
	}
	whole := []byte(archived(t, map[string]any{"x": []float64{1, 2, 3, 4}}))
	for cut := range len(whole) {
		if _, err := arraysOf(whole[:cut]); err == nil {
			t.Fatalf("an archive cut to %d of %d bytes was read", cut, len(whole))
		}
	}
}

// npzOf is an archive of one array of one-byte numbers: what its header says, and zeros.
func npzOf(t *testing.T, shape string, zeros int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	into := testkit.Must(w.Create("x.npy"))(t)
	header := "{'descr': '|i1', 'fortran_order': False, 'shape': " + shape + ", }\n"
	fmt.Fprintf(into, "\x93NUMPY\x01\x00%c\x00%s", len(header), header)
	for ; zeros > 0; zeros -= 1e6 {
		into.Write(make([]byte, min(zeros, 1e6))) //nolint:errcheck // a buffer takes all
	}
	testkit.Check(t, w.Close())
	return b.Bytes()
}

// TestBomb: what unpacks to very much more than its size is refused before it takes long.
func TestBomb(t *testing.T) {
	_, err := readArchive(npzOf(t, "(2, 1, 300000000)", 600e6))
	if err == nil || !strings.Contains(err.Error(), "very much more") {
		t.Errorf("error %v", err)
	}
}

// TestClaims: a header that claims more than the archive holds takes no memory.
func TestClaims(t *testing.T) {
	for _, shape := range []string{"(9, 900000000)", "(900000000, 99)", "(-9, 9)", "(9, 8)", "(9, 10)"} {
		if _, err := arraysOf(npzOf(t, shape, 81)); err == nil {
			t.Errorf("shape %s was read", shape)
		}
	}
	if got, err := arraysOf(npzOf(t, "(9, 9)", 81)); err != nil || len(got["x"].values) != 81 {
		t.Errorf("81 numbers: %v, %v", got, err)
	}
}

package artifact

import (
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publish makes an artifact with one file in a store and returns its folder.
func publish(t *testing.T, s Store, text string, seconds float64, omitted ...string) string {
	t.Helper()
	folder := filepath.Join(s.Root, "group", "one-00")
	unlock, err := s.Lock(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	err = s.Publish(folder, func(dir string) (*Manifest, error) {
		m := &Manifest{Name: "one", Hash: "00"}
		m.Cost.WallSeconds = seconds
		for _, name := range omitted {
			m.Omitted = map[string]string{name: ""}
		}
		return m, errors.Join(m.Add("of", map[string]int{"b": 1, "a": 2}), os.WriteFile(filepath.Join(dir, "x"), []byte(text), 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// What was left half-written by the dead goes, and nothing stays but locks.
func TestPublish(t *testing.T) {
	s := Store{t.TempDir()}
	folder := filepath.Join(s.Root, "group", "one-00")
	if _, err := Open("one", "00", folder); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	dead := s.Work(folder) + "-123"
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	publish(t, s, "text", 1)
	m, err := Open("one", "00", folder)
	if err != nil {
		t.Fatal(err)
	}
	// printf text | sha256sum
	if got := m.Digest("x"); got != "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1" {
		t.Errorf("digest %s", got)
	}
	if got := string(m.Get("of")); got != "{\n    \"a\": 2,\n    \"b\": 1\n  }" || m.Get("else") != nil {
		t.Errorf("it is of %s", got)
	}
	if _, err := Open("one", "01", folder); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("another hash: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(s.Root, WorkFolder, "*"))
	if err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("%v was left, %v", left, err)
	}
}

func TestFailure(t *testing.T) {
	s := Store{t.TempDir()}
	folder := filepath.Join(s.Root, "one-00")
	if f, err := s.Failure(folder); f != nil || err != nil {
		t.Errorf("before: %v, %v", f, err)
	}
	if err := s.Fail(folder, "one", errors.New("why")); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Failure(folder); err != nil || f.Task != "one" || f.Error != "why" {
		t.Errorf("%v, %v", f, err)
	}
	for range 2 {
		if err := s.Forgive(folder); err != nil {
			t.Error(err)
		}
	}
	if f, err := s.Failure(folder); f != nil || err != nil {
		t.Errorf("after: %v, %v", f, err)
	}
}

// Of results that differ in cost alone the one with the smallest seal is taken, whatever
// their order.
func TestChoose(t *testing.T) {
	a, b, c := publish(t, Store{t.TempDir()}, "text", 1), publish(t, Store{t.TempDir()}, "text", 2), publish(t, Store{t.TempDir()}, "other", 1)
	one, err := Choose("one", "00", []string{a, b})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Choose("one", "00", []string{filepath.Join(t.TempDir(), "one-00"), b, a})
	if err != nil || one.Folder != two.Folder {
		t.Errorf("%s, then %s, %v", one.Folder, two.Folder, err)
	}
	if _, err := Choose("one", "00", []string{a, b, c}); !errors.Is(err, ErrConflict) {
		t.Errorf("other results: %v", err)
	}
	s := Store{t.TempDir()}
	target := filepath.Join(s.Root, "group", "one-00")
	for _, want := range []bool{true, false} {
		if did, err := s.Adopt(one, target); did != want || err != nil {
			t.Errorf("%v, %v, want %v", did, err, want)
		}
		one.Folder = target
	}
	if err := os.WriteFile(filepath.Join(b, "x"), []byte("tEXT"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Choose("one", "00", []string{a, b}); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a changed file: %v", err)
	}
}

// Numbers come back with the bits they had; the same table has the same bytes.
func TestTable(t *testing.T) {
	dir, columns := t.TempDir(), []string{"a", "b"}
	want := [][]float64{{1. / 3, math.NaN()}, {math.Inf(-1), 5e-324}}
	var digests []string
	for _, name := range []string{"x", "y"} {
		path := filepath.Join(dir, name)
		if err := WriteTable(path, columns, want); err != nil {
			t.Fatal(err)
		}
		digest, err := FileDigest(path)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Error("other bytes")
	}
	got, err := ReadTable(filepath.Join(dir, "x"), columns)
	same := func(x, y []float64) bool {
		return slices.EqualFunc(x, y, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b })
	}
	if err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, other := range [][]string{{"a"}, {"a", "c"}, {"a", "b", "c"}} {
		if _, err := ReadTable(filepath.Join(dir, "x"), other); err == nil {
			t.Errorf("read with the columns %q", other)
		}
	}
	path := filepath.Join(dir, "z")
	if err := WriteLines(path, gzip.BestCompression, columns, [][]string{{"1", "x"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTable(path, columns); err == nil || !strings.Contains(err.Error(), "row 1, column b") {
		t.Errorf("text where a number belongs: %v", err)
	}
	if err := WriteLines(path, 10, columns, nil); err == nil {
		t.Error("a level that gzip has not was taken")
	}
}

func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "x.json")
	if err := WriteJSON(path, map[string]int{"a": 1}, " "); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{\n \"a\": 1\n}\n" {
		t.Errorf("%q, %v", text, err)
	}
	joined, err := JoinObjects(struct{}{}, map[string]int{"b": 1}, struct{}{}, map[string]int{"a": 2})
	if err != nil || string(joined) != `{"b":1,"a":2}` {
		t.Errorf("%s, %v", joined, err)
	}
	if _, err := JoinObjects([]int{1}); err == nil {
		t.Error("a list was joined")
	}
}

// An artifact that comes from elsewhere takes over what copies may lack, wherever it is.
func TestAdoptKeepsOmitted(t *testing.T) {
	for _, tc := range []struct {
		what          string
		mine, foreign bool // which copy has the file
		want          bool
	}{{"mine", true, false, true}, {"the other", false, true, true}, {"none", false, false, false}} {
		s, other := Store{t.TempDir()}, Store{t.TempDir()}
		mine, foreign := publish(t, s, "text", 1, "x"), publish(t, other, "text", 2, "x")
		for folder, has := range map[string]bool{mine: tc.mine, foreign: tc.foreign} {
			if !has {
				if err := os.Remove(filepath.Join(folder, "x")); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, err := Open("one", "00", foreign)
		if err != nil {
			t.Fatal(err)
		}
		if did, err := s.Adopt(Choice{foreign, m}, mine); !did || err != nil {
			t.Errorf("%s: %v, %v", tc.what, did, err)
		}
		if text, err := os.ReadFile(filepath.Join(mine, "x")); (err == nil && string(text) == "text") != tc.want {
			t.Errorf("%s has the file: afterwards %q, %v", tc.what, text, err)
		}
		if after, err := Open("one", "00", mine); err != nil || after.Seal != m.Seal {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
}

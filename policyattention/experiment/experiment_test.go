package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// smoke returns the root of a complete set of smoke artifacts, made once.
var smoke = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "experiment")
	if err != nil {
		return "", err
	}
	made = dir
	store, err := Open(dir, "smoke", "go")
	if err != nil {
		return "", err
	}
	for _, cell := range store.Preset.Plan() {
		if _, err := store.Evaluate(context.Background(), cell); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// made is the folder to remove at the end, if it was made.
var made string

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(made) // "" removes nothing
	os.Exit(code)
}

// open returns a store on a copy of the smoke artifacts, which a test may spoil.
func open(t *testing.T) *Store {
	t.Helper()
	dir, err := smoke()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	store, err := Open(work, "smoke", "go")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestEvaluateOnce(t *testing.T) {
	s := open(t)
	for _, cell := range s.Preset.Plan() {
		e, err := s.Find(cell)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(filepath.Join(e.Folder, manifestFile))
		if err != nil {
			t.Fatal(err)
		}
		if e, err = s.Evaluate(t.Context(), cell); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(filepath.Join(e.Folder, manifestFile))
		if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
			t.Errorf("%s was computed again", cell.Name())
		}
	}
	left, err := filepath.Glob(filepath.Join(s.Root(), workFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if filepath.Ext(path) != ".lock" {
			t.Errorf("%s was left behind", path)
		}
	}
}

func TestMissing(t *testing.T) {
	s, err := Open(t.TempDir(), "smoke", "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range s.Preset.Plan() {
		if _, err := s.Find(cell); !errors.Is(err, ErrMissing) {
			t.Fatalf("%s: %v, want ErrMissing", cell.Name(), err)
		}
	}
}

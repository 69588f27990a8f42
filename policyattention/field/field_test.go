package field

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// Every tick opens, but for those of S5RL that wait for artifacts of its training: they print
// only where these are.
func TestMap(t *testing.T) {
	cells, err := Map(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Systems()) * len(Capabilities()); len(cells) != want {
		t.Fatalf("%d cells, want %d", len(cells), want)
	}
	trained, err := filepath.Glob(filepath.Join(root, "artifacts/paper/train/s5rl-S8-*/weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		absent := len(trained) == 0 && c.System == "S5RL" && c.Capability != Softmax && c.Capability != ReturnError
		if (c.Missing != nil) != absent || (c.Mark == "") != absent {
			t.Errorf("%s, %s: mark %q, %v", c.System, c.Capability, c.Mark, c.Missing)
		}
	}
}

// The marks are those of the paper's Table 1, cell by cell.
func TestMarksAreThePapers(t *testing.T) {
	for name, want := range map[string]string{
		"Wang et al. 2025":       "emp. yes no yes no",
		"Xie et al. 2026":        "yes yes no yes no",
		"Liang–Lai 2026":         "linear yes yes yes no",
		"Algorithm Distillation": "yes implicit yes yes no",
		"PolicyAttention":        "yes yes yes yes yes",
	} {
		found := false
		for _, s := range Systems() {
			if s.Name != name {
				continue
			}
			found = true
			var got []string
			for _, c := range Capabilities() {
				got = append(got, s.Ticks[c].Mark)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %s", name, got, want)
			}
		}
		if !found {
			t.Errorf("no row %s", name)
		}
	}
}

// A tick without its evidence does not print: in an empty repository nothing but "no" is left,
// and a test that is named in a comment only is not there.
func TestMissingEvidenceDoesNotPrint(t *testing.T) {
	cells, err := Map(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if c.Mark != No && (c.Mark != "" || !errors.Is(c.Missing, ErrMissing)) {
			t.Errorf("%s, %s: mark %q, %v", c.System, c.Capability, c.Mark, c.Missing)
		}
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "policyattention", "some")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	source := "package some\n\n// func TestGone(t *testing.T) {\n\n// It is there.\nfunc TestHere(t *testing.T) {\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "some_test.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (Evidence{Test: "some.TestGone"}).Open(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("a test in a comment: %v", err)
	}
	got, err := (Evidence{Test: "some.TestHere"}).Open(dir)
	if want := "policyattention/some/some_test.go\n// It is there.\nfunc TestHere(t *testing.T)"; err != nil || filepath.ToSlash(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := (Evidence{}).Open(dir); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("evidence that names nothing: %v", err)
	}
}

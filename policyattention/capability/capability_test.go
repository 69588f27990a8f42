package capability

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A tick without its evidence does not print: in an empty repository nothing but "no" is left,
// and a test that is named in a comment only is not there.
func TestMissingEvidenceDoesNotPrint(t *testing.T) {
	if _, err := Map(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "no source code") {
		t.Errorf("artifacts without their repository: %v", err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "policyattention"), 0o755); err != nil {
		t.Fatal(err)
	}
	cells, err := Map(root, []System{{Name: "some", Ticks: map[Capability]Tick{Softmax: Yes(Test("some.TestHere")), Learned: Word("emp.", Files("*.json")), Control: Yes()}}})
	if err != nil {
		t.Fatal(err)
	}
	claimed := 0
	for _, c := range cells {
		if c.Mark == No {
			continue
		}
		claimed++
		if c.Mark != "" || !errors.Is(c.Missing, ErrMissing) {
			t.Errorf("%s, %s: mark %q, %v", c.System, c.Capability, c.Mark, c.Missing)
		}
	}
	if claimed != 3 {
		t.Errorf("%d cells that claim something, want 3", claimed)
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
	// Claims.
	qualifies := Claim("It learns", "S = 8: qualifies")
	if _, err := qualifies.Open(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("no claims: %v", err)
	}
	paper := filepath.Join(dir, "artifacts", "paper")
	if err := os.MkdirAll(paper, 0o755); err != nil {
		t.Fatal(err)
	}
	for measured, opens := range map[string]bool{
		"S = 8: qualifies (.8 to .3)\nS = 16: –":                     true,
		"S = 8: does not qualify (.8 to .7)\nS = 16: qualifies (.9)": false,
		"S = 8: – (not yet run)":                                     false,
	} {
		text, err := json.Marshal(map[string]any{"Rows": [][]string{{"2", "It learns", "stated", measured, "holds"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(paper, "claims.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := qualifies.Open(dir); (err == nil) != opens || err != nil && !errors.Is(err, ErrMissing) {
			t.Errorf("%q: %v, opens %v", measured, err, opens)
		}
	}
	// Half of a file is no evidence.
	if err := os.WriteFile(filepath.Join(paper, "claims.json"), []byte(`{"Rows": [["2", "It`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Evidence{qualifies, Files("paper/*.json")} {
		if _, err := e.Open(dir); err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "claims.json") {
			t.Errorf("%+v in a file that was cut: %v", e, err)
		}
	}
}

func TestShares(t *testing.T) {
	if got := Shares([]float64{1, -3, 0}); !slices.Equal(got, []float64{.25, .75, 0}) {
		t.Errorf("shares %v", got)
	}
	if got := Shares([]float64{0, 0}); !slices.Equal(got, []float64{0, 0}) {
		t.Errorf("shares of nothing: %v", got)
	}
}

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/field/xie"
)

// What is stored is printed; the map is read from the repository that artifacts lie in;
// evidence that differs is found.
func TestField(t *testing.T) {
	stored := filepath.Join("..", "..", "..", "artifacts")
	for command, want := range map[string]string{
		"map":  "| Wang et al. 2025       | arXiv 2405.13861 | emp.    | ✓          | –       | ✓       | –            |",
		"wang": "P[−1, −1]",
		"xie":  "Theorem 2",
	} {
		if code, stdout, stderr := call("--artifacts", stored, "field", command); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("field %s: exit code %d, %q, %q", command, code, stdout, stderr)
		}
		code, stdout, _ := call("--artifacts", stored, "--json", "field", command)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("field %s as JSON: exit code %d, %.100q", command, code, stdout)
		}
	}
	empty := filepath.Join(t.TempDir(), "artifacts")
	if code, _, stderr := call("--artifacts", empty, "field", "map"); code != exitFailure || !strings.Contains(stderr, "no source code") {
		t.Errorf("without a repository: exit code %d, %q", code, stderr)
	}
	if code, _, stderr := call("--artifacts", empty, "field", "verify"); code != exitFailure || !strings.Contains(stderr, "evidence.json") {
		t.Errorf("nothing to verify: exit code %d, %q", code, stderr)
	}
	// "verify" does not ask for it: a folder of one's own has none.
	if code, stdout, stderr := call("--artifacts", empty, "--preset", "paper", "evaluate", "benchmark/exact-pmd-S8"); code != 0 {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if _, stdout, stderr := call("--artifacts", empty, "--preset", "paper", "verify"); !strings.Contains(stdout, "1 cells") || strings.Contains(stdout, "field") {
		t.Errorf("a folder of one's own: %q, %q", stdout, stderr)
	}
	// A key of the JSON is one of the evidence's.
	_, stdout, _ := call("--artifacts", stored, "--json", "field", "xie")
	var e xie.Evidence
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || len(e.Contraction) == 0 {
		t.Errorf("%d rows of contraction, %v", len(e.Contraction), err)
	}
}

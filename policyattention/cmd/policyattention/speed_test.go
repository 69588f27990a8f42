package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/bench"
)

// What was measured is printed, as much as there is; without anything the user
// learns what makes it.
func TestSpeed(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := call("speed", "--dir", dir); code != 1 || !strings.Contains(stderr, "make bench") {
		t.Errorf("without measurements: exit code %d, %q", code, stderr)
	}
	c := bench.Comparison{Results: []bench.Result{{Row: "actor S=4", Program: "JAX, scan", Setting: "1 × 2", Best: 12}}}
	if err := c.Write(filepath.Join(dir, "bench.json")); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call("speed", "--dir", dir); code != 0 || !strings.Contains(stdout, "JAX, scan") || strings.Contains(stdout, "LayerNorm") {
		t.Errorf("the comparison alone: exit code %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ := call("--json", "speed", "--dir", dir); code != 0 || !strings.Contains(stdout, `"comparison"`) {
		t.Errorf("as JSON: exit code %d, %q", code, stdout)
	}
	if err := os.WriteFile(filepath.Join(dir, "profile.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("speed", "--dir", dir); code != 1 || !strings.Contains(stderr, "profile.json") {
		t.Errorf("a damaged file: exit code %d, %q", code, stderr)
	}
}

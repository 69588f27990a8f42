package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
)

// digests returns those of what a preset's folder holds, by file, but for what made it at what cost.
func digests(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"train/*/*", "new/*/*/*/*", "rows/*", "policies/*", "*.parquet", ".*.*"} {
		for _, path := range testkit.Must(filepath.Glob(filepath.Join(root, pattern)))(t) {
			if filepath.Base(path) != "run.json" {
				all[strings.TrimPrefix(path, root)] = testkit.Must(experiment.FileDigest(path))(t)
			}
		}
	}
	return all
}

// A training run and an evaluation on it are killed with SIGKILL in the middle
// and run again: the results are those of an undisturbed run.
func TestGridKilled(t *testing.T) {
	plain, killed := t.TempDir(), t.TempDir()
	stdout := says(t, 0, "", "--artifacts", plain, "--preset", "smoke", "--json", "plan")
	var lines []listed
	testkit.Check(t, json.Unmarshal([]byte(stdout), &lines))
	var indices []string
	for _, l := range lines {
		if l.Name == "proximal-plain-S4-14100" || l.Name == "frontier/policyattention-S4-14100-5" {
			indices = append(indices, strconv.Itoa(l.Index))
		}
	}
	if len(indices) != 2 {
		t.Fatalf("tasks %v", indices)
	}
	args := func(artifacts, index string) []string {
		return []string{"--artifacts", artifacts, "--preset", "smoke", "--backend", "go", "grid", "run", index}
	}
	for i, index := range indices {
		says(t, 0, ": done", args(plain, index)...)
		cmd := command(t.Context(), args(killed, index)...)
		testkit.Check(t, cmd.Start())
		// The folder of what is being made appears before the first step, and that of its result.
		begun := []string{"*-*[0-9a-f]", "*-new"}[i]
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			found, err := filepath.Glob(filepath.Join(killed, "smoke", ".work", begun))
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("no work was begun: %v", err)
			}
			if len(found) > 0 {
				break
			}
		}
		testkit.Check(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatal("the task ended before it was killed")
		}
		says(t, 0, ": done", args(killed, index)...) // after the kill
		says(t, 0, "was done", args(killed, index)...)
	}
	left, err := filepath.Glob(filepath.Join(killed, "smoke", ".work", "*[0-9a-f]"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	got, want := digests(t, filepath.Join(killed, "smoke")), digests(t, filepath.Join(plain, "smoke"))
	if len(want) < 4 || !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

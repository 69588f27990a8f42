package experiment_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

// A program of another module that adds a method to the command plans, runs, stores, verifies and
// tabulates it.
func TestMethodFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	root, dir := testkit.Must(filepath.Abs("../.."))(t), t.TempDir()
	testkit.Check(t, os.CopyFS(dir, os.DirFS("testdata/outside")))
	sums := testkit.Must(os.ReadFile(filepath.Join(root, "go.sum")))(t)
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	mod := fmt.Sprintf("module example.org/outside\n\ngo 1.27.3\n\nrequire icrl v0.0.0\n\nreplace icrl => %s\n", root)
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.Command(name, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "GOPROXY=off", "GOMLX_BACKEND=go")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "build", "-mod=mod", "-o", "outside", ".")
	for _, tc := range []struct{ command, want string }{
		{"plan", "benchmark/conservative-S8"}, {"evaluate", "benchmark/conservative-S8"},
		{"verify --whole", "2 evaluations (0 not yet run"}, {"table benchmark", "| conservative policy iteration "},
	} {
		args := append([]string{"--preset", "outside"}, strings.Fields(tc.command)...)
		if out := run("./outside", args...); !strings.Contains(out, tc.want) {
			t.Errorf("%s: %s, want %q", tc.command, out, tc.want)
		}
	}
}

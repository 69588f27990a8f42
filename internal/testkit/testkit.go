// Package testkit holds what tests of many packages share. Tests that import it compute in
// pure Go where they name no backend, and so do the programs they start: XLA compiles their
// small networks for longer than they run. Those of XLA name it, and its compiler then leaves
// LLVM's optimizations out, which are half of its time and no part of what a graph means.
package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func init() {
	for name, value := range map[string]string{
		"GOMLX_BACKEND": "go", "XLA_FLAGS": "--xla_backend_optimization_level=0",
	} {
		if os.Getenv(name) == "" {
			os.Setenv(name, value)
		}
	}
}

// Must returns a function that ends a test on an error and otherwise returns the value, as
// in testkit.Must(os.ReadFile(path))(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return v
	}
}

// Check ends a test on an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Smoke returns the artifacts folder in which scripts/smoke.sh has all results of preset
// smoke, made by the code as it is. Every package that asks reads the same files: a test
// that changes some does so on a copy. With -short it skips the test.
func Smoke(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs all results of preset smoke")
	}
	return Must(smoke())(t)
}

var smoke = sync.OnceValues(func() (string, error) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	root := filepath.Dir(string(module))
	out, err := exec.Command(filepath.Join(root, "scripts/smoke.sh")).Output()
	if failed, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("scripts/smoke.sh: %w\n%s", err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
})

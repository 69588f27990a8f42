// Package testkit holds what tests of many packages share. Where they import it, XLA's compiler leaves LLVM's
// optimizations out, which are half of its time and no part of what a graph means.
package testkit

import (
	"os"
	"testing"
)

func init() {
	if os.Getenv("XLA_FLAGS") == "" {
		os.Setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
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

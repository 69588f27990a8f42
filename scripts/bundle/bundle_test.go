// Package bundle tests the bundle for GPU machines through XLA's plugin for the
// CPU: the same programs and the same way of execution.
package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and moves a quarter of a gigabyte")
	}
	if _, err := os.Stat("../../.local/pjrt/pjrt_c_api_cpu_plugin.so"); err != nil {
		t.Skip(err)
	}
	away := t.TempDir()
	folder := filepath.Join(away, "policyattention-linux-amd64")
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=/usr/bin:/bin", "PJRT_PLUGIN_LIBRARY_PATH=" + filepath.Join(folder, "pjrt"), "HOME=" + t.TempDir(), "BENCH_FLAGS=--runs actor --seconds 0.1 --steps-per-call 1 --together 1"}
		if strings.HasSuffix(name, "bundle.sh") {
			cmd.Env = os.Environ()
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	built := filepath.Join(t.TempDir(), "policyattention-linux-amd64")
	run(".", "./bundle.sh", built)
	// Nothing may be taken from where it was built.
	run(away, "tar", "-xzf", built+".tar.gz")
	if err := os.RemoveAll(built); err != nil {
		t.Fatal(err)
	}
	artifacts := filepath.Join(folder, "artifacts")
	program := func(args ...string) string {
		return run(away, filepath.Join(folder, "policyattention"), append([]string{"--artifacts", artifacts, "--preset", "smoke"}, args...)...)
	}
	// Two runs at once, in loops on the device: as on a GPU.
	program("--artifacts", t.TempDir(), "--backend", "xla:cpu", "train", "--together", "2", "--steps-per-call", "4", "proximal-plain-S4-14100", "proximal-plain-S4-14101")
	// XLA compiles for long, so the rest is done in pure Go, and of that what one method needs.
	testkit.Check(t, os.CopyFS(artifacts, os.DirFS(testkit.Smoke(t))))
	left := testkit.Must(filepath.Glob(filepath.Join(artifacts, "smoke", "*", "pmd-target-*")))(t)
	if len(left) == 0 {
		t.Fatal("no training run is to be left")
	}
	for _, folder := range left {
		testkit.Check(t, os.RemoveAll(folder))
	}
	flags := []string{"--backend", "go", "--preset", "smoke", "--together", "2", "--steps-per-call", "4"}
	out := run(away, filepath.Join(folder, "run.sh"), flags...)
	if !strings.Contains(out, "benchmark/pmd-target-S4-14100") {
		t.Errorf("run.sh: %s", out)
	}
	program("grid", "status")
	if out := program("--backend", "go", "verify"); !strings.Contains(out, "0 discrepancies") {
		t.Error(out)
	}
	cmd := exec.Command(filepath.Join(folder, "run.sh"), append(flags[2:], "--artifacts", t.TempDir())...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `no PJRT plugin called "cuda"`) {
		t.Errorf("without a CUDA plugin: %v\n%s", err, out)
	}
}

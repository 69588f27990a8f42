//go:build cgo && (amd64 || arm64)

package xla

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"golang.org/x/sys/unix"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
)

// onSeveral returns an xla:cpu with options for a test, which it skips on a single processor.
func onSeveral(t *testing.T, options string) compute.Backend {
	t.Helper()
	if runtime.NumCPU() < 2 {
		t.Skip("on one processor")
	}
	return testkit.XLA(t, options)
}

// A core's thread runs on its processor alone, and no other thread is kept there.
func TestCores(t *testing.T) {
	b := onSeveral(t, ",shared_buffers")
	allowed := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		return set
	}
	cores := testkit.Must(backend.Cores(b, 2))(t)
	if len(cores) != 2 {
		t.Fatalf("%d cores, want 2", len(cores))
	}
	var own [2]unix.CPUSet
	for i, c := range cores {
		failure := errors.New("failure")
		err := c.Do(func() error {
			testkit.SumOfSquares(t, c.Backend)
			own[i] = allowed()
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("core %d returned %v", i, err)
		}
		if own[i].Count() != 1 {
			t.Errorf("core %d may run on %d processors", i, own[i].Count())
		}
		config := func(b compute.Backend) string { return b.(interface{ Config() string }).Config() }
		if got, want := config(c.Backend), config(b); got != want {
			t.Errorf("core %d is configured %q, want %q", i, got, want)
		}
		c.Close()
	}
	if own[0] == own[1] {
		t.Error("both cores are one processor")
	}
	if here := allowed(); here.Count() != runtime.NumCPU() {
		t.Errorf("this thread may run on %d processors of %d", here.Count(), runtime.NumCPU())
	}

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cores = testkit.Must(backend.Cores(b, 2))(t)
	if len(cores) != 1 || cores[0].Backend != b {
		t.Fatalf("with GOMAXPROCS at 1: %v", cores)
	}
	cores[0].Close()
	testkit.SumOfSquares(t, b) // still open
}

// The threads of XLA's compiler, which start with the first program of a process, may
// run on all processors, also where a Core asks for that program.
func TestCompilerIsKeptOnNoProcessor(t *testing.T) {
	const child = "ICRL_TEST_FIRST_PROGRAM"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		return
	}
	b := onSeveral(t, "")
	cores := testkit.Must(backend.Cores(b, 2))(t)
	before := testkit.Must(threads(""))(t)
	testkit.Check(t, cores[0].Do(func() error {
		testkit.SumOfSquares(t, cores[0].Backend)
		return nil
	}))
	after := testkit.Must(threads(""))(t)
	for _, id := range after {
		var set unix.CPUSet
		if slices.Contains(before, id) || unix.SchedGetaffinity(id, &set) != nil { // or it has ended
			continue
		}
		if set.Count() < runtime.NumCPU() {
			t.Errorf("thread %d, started when a core compiled, is kept on %d of %d processors", id, set.Count(),
				runtime.NumCPU())
		}
	}
	for _, c := range cores {
		c.Close()
	}
}

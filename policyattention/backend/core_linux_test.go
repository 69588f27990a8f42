package backend

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A core's thread runs on its processor alone, and no other thread is kept there.
func TestCores(t *testing.T) {
	b, err := New("xla:cpu")
	if errors.Is(err, ErrNoPlugin) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	if runtime.NumCPU() < 2 {
		t.Skip("on one processor")
	}
	allowed := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		return set
	}
	cores, err := Cores(b, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(cores) != 2 {
		t.Fatalf("%d cores, want 2", len(cores))
	}
	var own [2]unix.CPUSet
	for i, c := range cores {
		failure := errors.New("failure")
		err := c.Do(func() error {
			sumOfSquares(t, c.Backend)
			own[i] = allowed()
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("core %d returned %v", i, err)
		}
		if own[i].Count() != 1 {
			t.Errorf("core %d may run on %d processors", i, own[i].Count())
		}
		c.Close()
	}
	if own[0] == own[1] {
		t.Error("both cores are one processor")
	}
	if attr, err := unix.SchedGetAttr(monitor, 0); err != nil || attr.Policy != unix.SCHED_IDLE {
		t.Errorf("thread %d of Go's runtime: %+v, %v", monitor, attr, err)
	}
	if here := allowed(); here.Count() != runtime.NumCPU() {
		t.Errorf("this thread may run on %d processors of %d", here.Count(), runtime.NumCPU())
	}

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if cores, err = Cores(b, 2); err != nil {
		t.Fatal(err)
	}
	if len(cores) != 1 || cores[0].Backend != b {
		t.Fatalf("with GOMAXPROCS at 1: %v", cores)
	}
	cores[0].Close()
	sumOfSquares(t, b) // still open
}

package backend

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// What a program that this one starts has used is its own, however large this one is.
func TestPeakOfAChild(t *testing.T) {
	if os.Getenv("USAGE_CHILD") != "" {
		fmt.Print(PeakMemory())
		os.Exit(0)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the system's own count is taken as it is")
	}
	const size = 256 << 20
	held := make([]byte, size)
	for i := range held {
		held[i] = 1
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPeakOfAChild$")
	child.Env = append(os.Environ(), "USAGE_CHILD=1")
	out, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil || peak <= 0 || peak >= size {
		t.Errorf("the child's peak is %s, this program holds %d bytes", out, len(held))
	}
}

// A loop that ends by the processor's clock, and memory that has been written to: both
// bounds are exact but for the system's own counting, which is in pages and ticks.
func TestUsage(t *testing.T) {
	const work, size = 20 * time.Millisecond, 64 << 20
	began, spins := ProcessorTime(), 0
	for ProcessorTime() < began+work {
		spins++
	}
	held := make([]byte, size)
	for i := range held {
		held[i] = byte(spins)
	}
	if peak := PeakMemory(); peak < size || peak > 1<<40 {
		t.Errorf("%d bytes after writing to %d", peak, len(held))
	}
}

package backend

import (
	"testing"
	"time"
)

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

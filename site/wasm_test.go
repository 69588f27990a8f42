package main

import (
	"errors"
	"testing"
)

// TestJoinSegments joins two of three data segments by hand, and refuses what is cut off.
func TestJoinSegments(t *testing.T) {
	const before = "\x00asm\x01\x00\x00\x00" + "\x0b\x16\x03" + // data section of 22 bytes, 3 segments
		"\x00\x41\x10\x0b\x02ab" + "\x00\x41\x1a\x0b\x01c" + "\x00\x41\x80\x08\x0b\x01d" + "\x00" // 16, 26, 1024
	const after = "\x00asm\x01\x00\x00\x00" + "\x0b\x18\x02" +
		"\x00\x41\x10\x0b\x0bab\x00\x00\x00\x00\x00\x00\x00\x00c" + "\x00\x41\x80\x08\x0b\x01d"
	got, err := joinSegments([]byte(before))
	if err != nil || string(got) != after {
		t.Errorf("joined segments are %q, %v, want %q", got, err, after)
	}
	for _, n := range []int{3, 9, 12, 20, len(before) - 2} {
		if _, err := joinSegments([]byte(before[:n])); !errors.Is(err, errNoWasm) {
			t.Errorf("%d bytes of it: %v", n, err)
		}
	}
}

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// TestShrink takes the lines out of two functions' tables, made by hand, and refuses what is cut off.
func TestShrink(t *testing.T) {
	word := binary.LittleEndian.AppendUint32
	table := func(lines string, file, line, preempt, unit, start uint32, names string) []byte {
		memory := append([]byte("data\xf1\xff\xff\xff\x00\x00\x01\x08"), make([]byte, 64)...)
		at := func(offset int, v uint32) { binary.LittleEndian.PutUint32(memory[4+offset:], v) }
		at(8, 1)    // functions
		at(40, 72)  // units, then files
		at(56, 80)  // lines
		at(64, 100) // functions
		memory = append(memory, names...)
		memory = append(memory, lines...)
		memory = word(word(memory, 0), 12) // the table of functions: one, 12 bytes on
		memory = word(memory, 7)           // and its end
		for _, v := range []uint32{0, 3, 0, 0, 1, file, line, 2, unit, start, 0} {
			memory = word(memory, v)
		}
		return word(word(memory, preempt), 8) // stack maps from 8 on
	}
	//                stack      files              maps                lines
	before := table("\x00\x02\x81\x01\x00\x02\x03\x00\x00\x05\x06\x01\x00\x04\x05\x00\x00\x00\x00\x00", 4, 13, 4, 1, 99,
		"unitfile")
	after := table("\x00\x02\x81\x01\x00\x00\x00\x00\x00\x05\x06\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0, 0, 0, 0, 0,
		"\x00\x00\x00\x00\x00\x00\x00\x00")
	program := func(segments ...[]byte) []byte {
		var body []byte
		address := 1000
		for _, s := range segments {
			body = append(signed(append(body, 0, 0x41), address), 0x0b)
			body = append(binary.AppendUvarint(body, uint64(len(s))), s...)
			address += len(s)
		}
		body = append(binary.AppendUvarint(nil, uint64(len(segments))), body...)
		return append(binary.AppendUvarint([]byte("\x00asm\x01\x00\x00\x00\x0b"), uint64(len(body))), body...)
	}
	whole := program(before[:60], before[60:])
	got, err := shrink(whole)
	if err != nil || !bytes.Equal(got, program(after)) {
		t.Errorf("shrunk: %v\n%q, want\n%q", err, got, program(after))
	}
	for _, n := range []int{3, 9, 12, 20, len(whole) - 2} {
		if _, err := shrink(whole[:n]); !errors.Is(err, errNoWasm) {
			t.Errorf("%d bytes of it: %v", n, err)
		}
	}
}

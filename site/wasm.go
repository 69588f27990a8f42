package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errNoWasm = errors.New("not a WebAssembly program of Go's linker")

// shrink writes a program's data so that they compress better. Go's linker leaves out each run of eight zeros, at the
// price of a segment's header for it: 57,000 of them, which compress worse than the zeros do. One segment holds them
// all here. And the linker writes which instruction comes from which line of which file, of which a page says nothing.
func shrink(wasm []byte) ([]byte, error) {
	const header, data = 8, 11 // bytes before the first section; the number of the data section
	if len(wasm) < header {
		return nil, errNoWasm
	}
	out, r := append([]byte(nil), wasm[:header]...), reader{rest: wasm[header:]}
	for len(r.rest) > 0 {
		kind, body := r.take(1), r.take(r.number())
		if r.failed {
			return nil, errNoWasm
		}
		if kind[0] == data {
			section := reader{rest: body}
			first, memory := section.memory()
			if section.failed || stripLines(memory) != nil {
				return nil, errNoWasm
			}
			body = append(signed([]byte{1, 0, 0x41}, first), 0x0b)
			body = append(binary.AppendUvarint(body, uint64(len(memory))), memory...)
		}
		out = binary.AppendUvarint(append(out, kind[0]), uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// reader reads numbers and bytes until something is missing.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed = r.failed || n < 0 || n > len(r.rest); r.failed {
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// number reads an unsigned number. The addresses of data are positive, so they are read as such.
func (r *reader) number() int {
	v, n := binary.Uvarint(r.rest)
	r.take(n)
	r.failed = r.failed || n <= 0
	return int(v)
}

// memory returns what a data section writes, from the first address that it writes to on.
func (r *reader) memory() (first int, memory []byte) {
	const most = 1 << 26 // the end of the highest address
	first, last, memory := most, 0, make([]byte, most)
	for n := r.number(); n > 0 && !r.failed; n-- {
		r.take(2) // of memory 0, at a constant
		at := r.number()
		r.take(1)
		data := r.take(r.number())
		r.failed = r.failed || at < 0 || at > most-len(data)
		if !r.failed {
			first, last = min(first, at), max(last, at+copy(memory[at:], data))
		}
	}
	return first, memory[min(first, last):last]
}

// stripLines takes the tables of files and lines out of what Go's runtime knows of its functions (its pclntab,
// see runtime.pcHeader and runtime._func), which panics alone would print.
func stripLines(memory []byte) error {
	word := func(at int) int { return int(binary.LittleEndian.Uint32(memory[at:])) }
	// Go 1.20's magic number, no padding, instructions of one byte, pointers of eight.
	table := bytes.Index(memory, []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8})
	if table < 0 {
		return errNoWasm
	}
	functions := word(table + 8)
	units, lines, end := table+word(table+40), table+word(table+56), table+word(table+64)
	needed := make([]bool, end-lines) // of the tables that are encoded between lines and end
	need := func(at int) {
		for first := true; at > 0; first = false { // pairs of numbers, of which a zero ends all but the first
			if !first && memory[lines+at] == 0 {
				needed[at] = true
				return
			}
			for range 2 {
				for more := true; more; at++ {
					needed[at], more = true, memory[lines+at]&0x80 != 0
				}
			}
		}
	}
	for i := range functions {
		f := end + word(end+8*i+4)
		need(word(f + 16)) // the stack's size at each instruction
		clear(memory[f+20 : f+28])
		clear(memory[f+32 : f+40])
		for j := range word(f + 28) {
			if j == 0 || j == 2 || j == 3 { // where to preempt, what is inlined, which arguments live
				clear(memory[f+44+4*j : f+48+4*j])
			} else {
				need(word(f + 44 + 4*j))
			}
		}
	}
	for i, keep := range needed {
		if !keep {
			memory[lines+i] = 0
		}
	}
	clear(memory[units:lines])
	return nil
}

// signed appends a number that is not negative as a signed one: its last byte's sixth bit is zero.
func signed(out []byte, n int) []byte {
	for n >= 0x40 {
		out = append(out, byte(n&0x7f)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

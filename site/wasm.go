package main

import (
	"encoding/binary"
	"errors"
)

// joined is the largest gap between data segments that is filled with zeros.
const joined = 64

// errNoWasm says that a file is not what Go's linker writes.
var errNoWasm = errors.New("not a WebAssembly program of Go's linker")

// joinSegments joins data segments of a program that lie close together. Go's linker leaves out each run of
// eight zeros, at the price of a segment's header for it: 58,000 of them, which compress worse than the
// zeros do.
func joinSegments(wasm []byte) ([]byte, error) {
	const header, data = 8, 11 // bytes before the first section; the number of the data section
	if len(wasm) < header {
		return nil, errNoWasm
	}
	out, r := append([]byte(nil), wasm[:header]...), reader{rest: wasm[header:]}
	for len(r.rest) > 0 && !r.failed {
		kind := r.take(1)
		body := r.take(r.number())
		if r.failed {
			break
		}
		if kind[0] == data {
			section := reader{rest: body}
			if body = section.segments(); section.failed {
				return nil, errNoWasm
			}
		}
		out = binary.AppendUvarint(append(out, kind[0]), uint64(len(body)))
		out = append(out, body...)
	}
	if r.failed {
		return nil, errNoWasm
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

// segments returns a data section with its segments joined.
func (r *reader) segments() []byte {
	type segment struct {
		at   int
		data []byte
	}
	var list []segment
	for range r.number() {
		r.take(2) // of memory 0, at a constant
		at := r.number()
		r.take(1)
		data := r.take(r.number())
		if r.failed {
			return nil
		}
		if n := len(list) - 1; n >= 0 {
			if gap := at - list[n].at - len(list[n].data); gap >= 0 && gap <= joined {
				list[n].data = append(append(list[n].data, make([]byte, gap)...), data...)
				continue
			}
		}
		list = append(list, segment{at, append([]byte(nil), data...)})
	}
	out := binary.AppendUvarint(nil, uint64(len(list)))
	for _, s := range list {
		out = append(signed(append(out, 0, 0x41), s.at), 0x0b)
		out = append(binary.AppendUvarint(out, uint64(len(s.data))), s.data...)
	}
	return out
}

// signed appends a number that is not negative as a signed one: its last byte's sixth bit is zero.
func signed(out []byte, n int) []byte {
	for n >= 0x40 {
		out = append(out, byte(n&0x7f)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

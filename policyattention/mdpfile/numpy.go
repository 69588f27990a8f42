package mdpfile

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sbinet/npyio/npy"
)

// npReader reads one array of an archive, once, as it is inflated.
type npReader struct {
	shape    []int
	kind     string // NumPy's name of the type, such as <f8
	elements int
	size     int // bytes of an element
	fortran  bool
	from     io.Reader
}

// readArray visits one array, in C or Fortran order, and takes the bytes that it inflates to from those that are left;
// it need not fit in memory. It returns the error of the visit, and one where these do not suffice, or where the array
// is not of little-endian numbers or strings, or holds more or less than its shape takes.
func readArray(file *zip.File, left *int64, visit func(r *npReader) error) (err error) {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	limited := &io.LimitedReader{R: content, N: *left}
	defer func() {
		if *left = limited.N; *left == 0 {
			err = errors.New("it unpacks to very much more than its size; save it unpacked, by numpy.savez")
		}
	}()
	from := bufio.NewReaderSize(limited, 1<<16)
	r, err := header(from)
	if err != nil {
		return err
	}
	if err := visit(r); err != nil {
		return err
	}
	// Reading to the end also checks the CRC.
	if rest, err := io.Copy(io.Discard, from); err != nil {
		return err
	} else if rest > 0 {
		return fmt.Errorf("%d bytes more than the shape %v takes", rest, r.shape)
	}
	return nil
}

// longest is the longest header in bytes that is read: NumPy's take 128.
const longest = 1 << 16

// header reads the header of an array, on some malformed ones of which npyio panics.
func header(from *bufio.Reader) (r *npReader, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed: %v", p)
		}
	}()
	start, err := from.Peek(12)
	if err != nil {
		return nil, errors.New("truncated: no header")
	}
	if start[6] >= 2 && binary.LittleEndian.Uint32(start[8:]) > longest {
		return nil, errors.New("malformed: a header of more than 64 KiB")
	}
	array, err := npy.NewReader(from)
	if err != nil {
		return nil, err
	}
	d := array.Header.Descr
	r = &npReader{shape: d.Shape, kind: d.Type, elements: 1, fortran: d.Fortran, from: from}
	if r.size, err = strconv.Atoi(strings.TrimLeft(d.Type, "<|=")[1:]); err != nil || r.size < 0 || r.size > longest {
		return nil, fmt.Errorf("type %q, want little-endian numbers or strings, as numpy.asarray(x, float) is", d.Type)
	}
	if d.Type[1] == 'U' {
		r.size *= 4
	}
	for _, k := range d.Shape {
		if k < 0 || k > 0 && r.elements > math.MaxInt32/k {
			return nil, fmt.Errorf("shape %v is too large", d.Shape)
		}
		r.elements *= k
	}
	return r, nil
}

// nonzeros calls yield for each number that is not 0, in the order of the file, with its index in row-major order.
func (r *npReader) nonzeros(yield func(i int, v float64) error) error {
	number, ok := kinds[r.kind]
	if !ok {
		return fmt.Errorf("type %q, want little-endian float64, float32 or integers, as numpy.asarray(x, float) is",
			r.kind)
	}
	chunk := make([]byte, 1<<10*r.size)
	for i := 0; i < r.elements; {
		n := min(len(chunk), (r.elements-i)*r.size)
		if _, err := io.ReadFull(r.from, chunk[:n]); err != nil {
			return fmt.Errorf("truncated: the shape %v takes %d numbers: %w", r.shape, r.elements, err)
		}
		if bytes.Count(chunk[:n], []byte{0}) == n {
			i += n / r.size
			continue
		}
		for at := 0; at < n; at += r.size {
			v := number(chunk[at:])
			if math.IsNaN(v) && r.kind[1] == 'i' {
				return fmt.Errorf("element %d lies beyond 2⁵³, up to which float64 holds integers", i)
			}
			if v != 0 {
				if err := yield(r.place(i), v); err != nil {
					return err
				}
			}
			i++
		}
	}
	return nil
}

// place returns the row-major index of an element by its place in the file.
func (r *npReader) place(i int) int {
	if !r.fortran {
		return i
	}
	at, stride := 0, r.elements // the first index is the fastest
	for _, n := range r.shape {
		stride /= n
		at += i % n * stride
		i /= n
	}
	return at
}

// array reads the numbers as an array in row-major order.
func (r *npReader) array() ([]float64, error) {
	values := []float64{}
	grow := func(n int) { values = append(values, make([]float64, max(0, n-len(values)))...) }
	// What is inflated is what grows: a header alone can claim any size.
	err := r.nonzeros(func(i int, v float64) error {
		grow(i + 1)
		values[i] = v
		return nil
	})
	if err == nil {
		grow(r.elements)
	}
	return values, err
}

// strings reads an array of strings (NumPy's U and S).
func (r *npReader) strings() ([]string, error) {
	if r.kind[1] != 'U' && r.kind[1] != 'S' || r.elements*max(r.size, 1) > 1<<28 {
		return nil, fmt.Errorf("type %q and shape %v, want strings, as numpy.asarray(x, str) is", r.kind, r.shape)
	}
	var all []string
	element := make([]byte, r.size)
	for range r.elements {
		if _, err := io.ReadFull(r.from, element); err != nil {
			return nil, err
		}
		text := string(element)
		if r.kind[1] == 'U' {
			runes := make([]rune, 0, r.size/4)
			for at := 0; at < r.size; at += 4 {
				runes = append(runes, rune(binary.LittleEndian.Uint32(element[at:])))
			}
			text = string(runes)
		}
		all = append(all, strings.TrimRight(text, "\x00"))
	}
	return all, nil
}

// kinds read a number of a type.
var kinds = map[string]func(b []byte) float64{
	"<f8": func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
	"<f4": func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) },
	"<i8": func(b []byte) float64 { return exact(int64(binary.LittleEndian.Uint64(b))) },
	"<i4": func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) },
	"<i2": func(b []byte) float64 { return float64(int16(binary.LittleEndian.Uint16(b))) },
	"|i1": func(b []byte) float64 { return float64(int8(b[0])) },
	"|u1": func(b []byte) float64 { return float64(b[0]) },
	"|b1": func(b []byte) float64 { return float64(b[0] & 1) },
}

// exact returns v, or NaN where float64 does not hold it.
func exact(v int64) float64 {
	if v > 1<<53 || v < -1<<53 {
		return math.NaN()
	}
	return float64(v)
}

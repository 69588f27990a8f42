package artifact

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
)

// WriteTable writes a gzipped table of numbers whose bytes depend on it alone. NaN stands
// for an empty field.
func WriteTable(path string, columns []string, rows [][]float64) error {
	lines := make([][]string, len(rows))
	for i, row := range rows {
		for _, v := range row {
			lines[i] = append(lines[i], Field(v, -1))
		}
	}
	return WriteLines(path, gzip.DefaultCompression, columns, lines)
}

// Field writes a number with so many significant digits, with as many as tell it apart
// for −1; NaN is an empty field.
func Field(v float64, digits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// Number is the inverse of Field.
func Number(field string) (float64, error) {
	if field == "" {
		return math.NaN(), nil
	}
	return strconv.ParseFloat(field, 64)
}

// WriteLines writes a gzipped table of text, at one of gzip's levels. Its bytes depend on
// its arguments alone.
func WriteLines(path string, level int, columns []string, lines [][]string) error {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, level)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	w := csv.NewWriter(z)
	w.Write(columns)  //nolint:errcheck // Error tells
	w.WriteAll(lines) //nolint:errcheck // the same
	if err := errors.Join(w.Error(), z.Close()); err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	if err := renameio.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// ReadTable reads a table that WriteTable wrote with these columns.
func ReadTable(path string, columns []string) ([][]float64, error) {
	lines, err := ReadLines(path, columns)
	if err != nil {
		return nil, err
	}
	rows, err := parseTable(columns, lines)
	if err != nil {
		return nil, fmt.Errorf("artifact: %s: %w", path, err)
	}
	return rows, nil
}

func parseTable(columns []string, lines [][]string) ([][]float64, error) {
	rows := make([][]float64, len(lines))
	for n, line := range lines {
		rows[n] = make([]float64, len(columns))
		for i, field := range line {
			var err error
			if rows[n][i], err = Number(field); err != nil {
				return nil, fmt.Errorf("row %d, column %s: %w", n+1, columns[i], err)
			}
		}
	}
	return rows, nil
}

// ReadLines reads a table that WriteLines wrote with these columns.
func ReadLines(path string, columns []string) ([][]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	lines, err := parseLines(b, columns)
	if err != nil {
		return nil, fmt.Errorf("artifact: %s: %w", path, err)
	}
	return lines, nil
}

// maxTable bounds the unpacked size of a table in bytes.
const maxTable = 256 << 20

func parseLines(b []byte, columns []string) ([][]string, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxTable+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxTable {
		return nil, fmt.Errorf("more than %d bytes", maxTable)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = len(columns)
	lines, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("no header")
	}
	for i, want := range columns {
		if lines[0][i] != want {
			return nil, fmt.Errorf("column %d is %q, want %q", i+1, lines[0][i], want)
		}
	}
	return lines[1:], nil
}

// CopyFile copies a file.
func CopyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = renameio.WriteFile(to, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// Stack joins tables [N][K] of one shape [S, A] into an array [N, K, S, A].
func Stack(tables [][]*mat.Dense) npz.Array {
	s, a := tables[0][0].Dims()
	out := npz.Array{Shape: []int{len(tables), len(tables[0]), s, a}}
	for _, row := range tables {
		for _, x := range row {
			for i := range s {
				out.Data = append(out.Data, x.RawRowView(i)...)
			}
		}
	}
	return out
}

// Unstack is the inverse of Stack. It returns an error on another shape than n, k, s, a.
func Unstack(a npz.Array, n, k, states, actions int) ([][]*mat.Dense, error) {
	if want := []int{n, k, states, actions}; !slices.Equal(a.Shape, want) {
		return nil, fmt.Errorf("shape %v, want %v", a.Shape, want)
	}
	tables := make([][]*mat.Dense, n)
	size := states * actions
	for i := range tables {
		for j := range k {
			at := (i*k + j) * size
			tables[i] = append(tables[i], mat.NewDense(states, actions, a.Data[at:at+size:at+size]))
		}
	}
	return tables, nil
}

// WriteArrays writes arrays as .npz.
func WriteArrays(path string, arrays map[string]npz.Array) error {
	var buf bytes.Buffer
	err := npz.Encode(&buf, arrays)
	if err == nil {
		err = renameio.WriteFile(path, buf.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// maxArrays bounds the bytes of the arrays of a file.
const maxArrays = 1 << 30

// ReadArrays reads arrays from .npz.
func ReadArrays(path string) (map[string]npz.Array, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	arrays, err := npz.Decode(b, maxArrays)
	if err != nil {
		return nil, fmt.Errorf("artifact: %s: %w", path, err)
	}
	return arrays, nil
}

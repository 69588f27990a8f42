package experiment

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

	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
)

var nan = math.NaN() // an empty field

// writeCSV writes a gzipped table of numbers whose bytes depend on it alone.
// NaN stands for an empty field.
func writeCSV(path string, header []string, rows [][]float64) error {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := csv.NewWriter(z)
	if err := w.Write(header); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	record := make([]string, len(header))
	for _, row := range rows {
		for i, v := range row {
			record[i] = formatCell(v)
		}
		if err := w.Write(record); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	w.Flush()
	if err := errors.Join(w.Error(), z.Close()); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func formatCell(v float64) string {
	if v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// maxTable bounds the unpacked size of a table in bytes.
const maxTable = 256 << 20

// readCSV reads a table that writeCSV wrote with this header.
func readCSV(path string, header []string) ([][]float64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	rows, err := parseCSV(b, header)
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", path, err)
	}
	return rows, nil
}

func parseCSV(b []byte, header []string) ([][]float64, error) {
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
	r.FieldsPerRecord, r.ReuseRecord = len(header), true
	var rows [][]float64
	for line := 0; ; line++ {
		record, err := r.Read()
		if err == io.EOF {
			if line == 0 {
				return nil, errors.New("no header")
			}
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 0 {
			for i, want := range header {
				if record[i] != want {
					return nil, fmt.Errorf("column %d is %q, want %q", i+1, record[i], want)
				}
			}
			continue
		}
		row := make([]float64, len(header))
		for i, field := range record {
			if field == "" {
				row[i] = nan
			} else if row[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("row %d, column %s: %w", line, header[i], err)
			}
		}
		rows = append(rows, row)
	}
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// stack joins tables [N][K] of one shape [S, A] into an array [N, K, S, A].
func stack(tables [][]*mat.Dense) npz.Array {
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

// unstack is the inverse of stack. It returns an error on another shape than n, k, s, a.
func unstack(a npz.Array, n, k, states, actions int) ([][]*mat.Dense, error) {
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

func writeArrays(path string, arrays map[string]npz.Array) error {
	var buf bytes.Buffer
	err := npz.Encode(&buf, arrays)
	if err == nil {
		err = os.WriteFile(path, buf.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func readArrays(path string) (map[string]npz.Array, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	arrays, err := npz.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", path, err)
	}
	return arrays, nil
}

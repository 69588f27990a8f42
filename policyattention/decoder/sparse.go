package decoder

import "gonum.org/v1/gonum/mat"

// sparse is a matrix without its zero entries; rows without entries are dropped. A product with it has the bits of the
// full product wherever the vector is finite, because the terms left out are zero.
//
// All sums run in index order, and float64 conversions keep compilers from fusing products into them, so results have
// the same bits everywhere.
type sparse struct {
	rows    []sparseRow
	columns [][]entry // the same by columns, rows by their place in rows
}

// sparseRow is row at of the full matrix.
type sparseRow struct {
	at      int
	entries []entry
}

// entry is a number of a vector other than zero, and where it is.
type entry struct {
	at    int
	value float64
}

// compress returns m without zeros and without the rows and columns for which
// row and col, where given, are false.
func compress(m *mat.Dense, row, col []bool) *sparse {
	s := &sparse{columns: make([][]entry, m.RawMatrix().Cols)}
	for i := range m.RawMatrix().Rows {
		if row != nil && !row[i] {
			continue
		}
		r := sparseRow{at: i}
		for j, v := range m.RawRowView(i) {
			if v != 0 && (col == nil || col[j]) {
				r.entries = append(r.entries, entry{j, v})
				s.columns[j] = append(s.columns[j], entry{len(s.rows), v})
			}
		}
		if r.entries != nil {
			s.rows = append(s.rows, r)
		}
	}
	return s
}

// mul stores the products of the rows with x in dst, by the columns at which x may be other than zero, in increasing
// order.
func (s *sparse) mul(dst, x []float64, at []int) {
	clear(dst)
	for _, j := range at {
		for _, e := range s.columns[j] {
			dst[e.at] += float64(e.value * x[j])
		}
	}
}

// addTo adds the full product with x to dst.
func (s *sparse) addTo(dst, x []float64) {
	for _, r := range s.rows {
		sum := 0.0
		for _, e := range r.entries {
			sum += float64(e.value * x[e.at])
		}
		dst[r.at] += sum
	}
}

// nonzero reports which rows and columns of m hold a non-zero entry.
func nonzero(m *mat.Dense) (row, col []bool) {
	rows, cols := m.Dims()
	row, col = make([]bool, rows), make([]bool, cols)
	for i := range rows {
		for j, v := range m.RawRowView(i) {
			if v != 0 {
				row[i], col[j] = true, true
			}
		}
	}
	return row, col
}

// both returns the indices set in x and in y.
func both(x, y []bool) []bool {
	z := make([]bool, len(x))
	for i := range z {
		z[i] = x[i] && y[i]
	}
	return z
}

package network

import "gonum.org/v1/gonum/mat"

// sparse is a matrix without its zero entries, by rows; rows without entries
// are dropped. A product with it has the bits of the full product wherever the
// vector is finite, because the terms left out are zero.
//
// All sums of the package run in index order, and float64 conversions keep
// compilers from fusing products into them, so results have the same bits
// everywhere.
type sparse struct {
	row   []int // row[i] is the index of stored row i in the full matrix
	start []int // entries start[i]:start[i+1] belong to stored row i
	col   []int
	val   []float64

	columns [][]entry // the same by columns, rows by their place in row
}

// entry is a non-zero entry of a column.
type entry struct {
	row int
	val float64
}

// compress returns m without zeros and without the rows and columns for which
// row and col, where given, are false.
func compress(m *mat.Dense, row, col []bool) *sparse {
	s := &sparse{start: []int{0}, columns: make([][]entry, m.RawMatrix().Cols)}
	for i := range m.RawMatrix().Rows {
		if row != nil && !row[i] {
			continue
		}
		for j, v := range m.RawRowView(i) {
			if v != 0 && (col == nil || col[j]) {
				s.col = append(s.col, j)
				s.val = append(s.val, v)
				s.columns[j] = append(s.columns[j], entry{len(s.row), v})
			}
		}
		if len(s.val) > s.start[len(s.row)] {
			s.row = append(s.row, i)
			s.start = append(s.start, len(s.val))
		}
	}
	return s
}

// dot returns the product of stored row i with x.
func (s *sparse) dot(i int, x []float64) float64 {
	lo, hi := s.start[i], s.start[i+1]
	val, sum := s.val[lo:hi], 0.0
	for n, c := range s.col[lo:hi] {
		sum += float64(val[n] * x[c])
	}
	return sum
}

// mul stores the products of the stored rows with x in dst, one a stored row, by the
// columns at which x may be other than zero, in increasing order.
func (s *sparse) mul(dst, x []float64, at []int) {
	clear(dst)
	for _, j := range at {
		for _, e := range s.columns[j] {
			dst[e.row] += float64(e.val * x[j])
		}
	}
}

// addTo adds the full product with x to dst.
func (s *sparse) addTo(dst, x []float64) {
	for i, r := range s.row {
		dst[r] += s.dot(i, x)
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

package decoder

import "gonum.org/v1/gonum/mat"

// sparse is a matrix without its zero entries, by rows; rows without entries are dropped. A product with it has the
// bits of the full product wherever the vector is finite, because the terms left out are zero.
//
// All sums run in index order, and float64 conversions keep compilers from fusing products into them, so results have
// the same bits everywhere.
type sparse []sparseRow

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

// compress returns m without zeros.
func compress(m *mat.Dense) (s sparse) {
	for i := range m.RawMatrix().Rows {
		r := sparseRow{at: i}
		for j, v := range m.RawRowView(i) {
			if v != 0 {
				r.entries = append(r.entries, entry{j, v})
			}
		}
		if r.entries != nil {
			s = append(s, r)
		}
	}
	return s
}

func (r sparseRow) dot(x []float64) (sum float64) {
	for _, e := range r.entries {
		sum += float64(e.value * x[e.at])
	}
	return sum
}

// mul stores the products of the rows with x in dst, which is zero elsewhere.
func (s sparse) mul(dst, x []float64) {
	for _, r := range s {
		dst[r.at] = r.dot(x)
	}
}

// addTo adds the full product with x to dst.
func (s sparse) addTo(dst, x []float64) {
	for _, r := range s {
		dst[r.at] += r.dot(x)
	}
}

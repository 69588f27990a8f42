//go:build amd64 && goexperiment.simd

package simd

import "sync"

// A product is computed in tiles of tileRows × tileColumns entries of the result, which
// stay in registers over depth terms of their sums.
const tileRows, tileColumns, depth = 8, 2 * lanes, 256

// panel holds parts of both sides over depth terms: tileColumns columns of the right-hand
// one, row by row, and the last rows of the left-hand one where they are fewer than tileRows.
type panel struct {
	right [depth * tileColumns]float32
	left  [tileRows * depth]float32
}

var panels = sync.Pool{New: func() any { return new(panel) }}

// matrices are the factors [m, k] and [k, n] of a product, the second one with its axes
// exchanged if transposed.
type matrices struct {
	m, n, k    int
	transposed bool
}

// dot is DotGeneral of batches of matrices.
func dot(n *node, inputs []*buffer) writer {
	d := dataOf[dotData](n)
	a, b := floats(inputs[0]), floats(inputs[1])
	if a == nil || b == nil {
		return nil
	}
	if d.ContractingSize == 0 {
		return func(out []float32, _ int) { clear(out) }
	}
	if d.LHSCrossSize == 1 && d.RHSCrossSize > 1 {
		return nil // the library is faster
	}
	s := matrices{d.LHSCrossSize, d.RHSCrossSize, d.ContractingSize, d.Layout == 1}
	return func(out []float32, workers int) {
		columns := (s.n + tileColumns - 1) / tileColumns
		work := d.BatchSize * s.m * columns * tileColumns * s.k / lanes
		parallel(workers, d.BatchSize*columns, work, func(from, to int) {
			p := panels.Get().(*panel)
			defer panels.Put(p)
			for i := from; i < to; i++ {
				batch, column := i/columns, i%columns*tileColumns
				x, y, z := at(start(a), batch*s.m*s.k), at(start(b), batch*s.k*s.n), at(start(out), batch*s.m*s.n)
				if s.n == 1 {
					s.vector(z, x, y)
				} else {
					s.columns(z, x, y, column, p)
				}
			}
		})
	}
}

// vector writes the product with a single column y.
func (s matrices) vector(z, x, y pointer) {
	tail := first(s.k % lanes)
	for i := range s.m {
		var s0, s1 vector
		k, row := 0, at(x, i*s.k)
		for ; k+2*lanes <= s.k; k += 2 * lanes {
			s0 = load(at(row, k)).MulAdd(load(at(y, k)), s0)
			s1 = load(at(row, k+lanes)).MulAdd(load(at(y, k+lanes)), s1)
		}
		if k+lanes <= s.k {
			s0 = load(at(row, k)).MulAdd(load(at(y, k)), s0)
			k += lanes
		}
		if k < s.k {
			s1 = loadFirst(at(row, k), tail).MulAdd(loadFirst(at(y, k), tail), s1)
		}
		*(*float32)(at(z, i)) = sum(s0.Add(s1))
	}
}

// columns writes up to tileColumns columns of a product, from a column on.
func (s matrices) columns(z, x, y pointer, column int, p *panel) {
	width := min(tileColumns, s.n-column)
	left, right := first(width), first(max(0, width-lanes))
	packed, some := pointer(&p.right), pointer(&p.left)
	add := uint16(0)
	for from := 0; from < s.k; from += depth {
		terms := min(depth, s.k-from)
		if s.transposed {
			exchange(packed, at(y, column*s.k+from), width, terms, s.k, tileColumns)
		} else {
			for k := range terms {
				row := at(y, (from+k)*s.n+column)
				store(at(packed, k*tileColumns), loadFirst(row, left))
				store(at(packed, k*tileColumns+lanes), loadFirst(at(row, lanes), right))
			}
		}
		for i := 0; i < s.m; i += tileRows {
			rows, a, stride := min(tileRows, s.m-i), at(x, i*s.k+from), s.k
			if rows < tileRows {
				for row := range rows {
					copyRow(at(some, row*depth), at(a, row*s.k), terms)
				}
				a, stride = some, depth
			}
			tile(at(z, i*s.n+column), a, packed, terms, stride, s.n, rows, left.ToBits(), right.ToBits(), add)
		}
		add = 1<<lanes - 1
	}
}

// tile adds terms products to a tile of z where add has its bits set, or else sets it to
// their sum: the first rows of tileRows rows, and the columns of left and right. All rows
// of x are read. The strides are entries from one row to the next.
//
// The registers that Go's compiler uses for vectors are too few for a tile.
//
//go:noescape
func tile(z, x, packed pointer, terms, strideX, strideZ, rows int, left, right, add uint16)

// sum adds the lanes of x.
func sum(x vector) float32 {
	x8 := x.GetHi().Add(x.GetLo())
	x4 := x8.GetHi().Add(x8.GetLo())
	x4 = x4.AddPairs(x4)
	return x4.GetElem(0) + x4.GetElem(1)
}

//go:build amd64 && goexperiment.simd

package simd

import (
	"sync"

	. "icrl/internal/avx512"
)

// A product is computed for columns entries of each row of the result at a time, over depth
// terms of their sums.
const columns, depth = 4 * Lanes, 256

// together is how many rows of the left-hand side [Product] reads at once.
const together = 12

// panel holds parts of both sides over depth terms: columns of the right-hand one, and the
// last rows of the left-hand one, after which nothing may be read.
type panel struct {
	right [depth * columns]float32
	left  [together * depth]float32
}

var pool = sync.Pool{New: func() any { return new(panel) }}

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
		panels := (s.n + columns - 1) / columns
		work := d.BatchSize * s.m * panels * columns * s.k / Lanes
		parallel(workers, d.BatchSize*panels, work, func(from, to int) {
			p := pool.Get().(*panel)
			defer pool.Put(p)
			for i := from; i < to; i++ {
				batch, column := i/panels, i%panels*columns
				x, y, z := At(Start(a), batch*s.m*s.k), At(Start(b), batch*s.k*s.n), At(Start(out), batch*s.m*s.n)
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
func (s matrices) vector(z, x, y Pointer) {
	tail := First(s.k % Lanes)
	for i := range s.m {
		var s0, s1 Vector
		k, row := 0, At(x, i*s.k)
		for ; k+2*Lanes <= s.k; k += 2 * Lanes {
			s0 = Load(At(row, k)).MulAdd(Load(At(y, k)), s0)
			s1 = Load(At(row, k+Lanes)).MulAdd(Load(At(y, k+Lanes)), s1)
		}
		if k+Lanes <= s.k {
			s0 = Load(At(row, k)).MulAdd(Load(At(y, k)), s0)
			k += Lanes
		}
		if k < s.k {
			s1 = LoadFirst(At(row, k), tail).MulAdd(LoadFirst(At(y, k), tail), s1)
		}
		*(*float32)(At(z, i)) = Sum(s0.Add(s1))
	}
}

// columns writes some columns of a product, from a column on.
func (s matrices) columns(z, x, y Pointer, column int, p *panel) {
	width, packed, last := min(columns, s.n-column), Pointer(&p.right), Pointer(&p.left)
	for from := 0; from < s.k; from += depth {
		terms := min(depth, s.k-from)
		if s.transposed {
			PackTransposed(packed, At(y, column*s.k+from), s.k, terms, width)
		} else {
			Pack(packed, At(y, from*s.n+column), s.n, terms, width)
		}
		product := Product{N: width, K: terms, StepA: 1, B: packed, StrideB: Packed, StrideC: s.n, Add: from > 0}
		whole := s.m / together * together
		if whole > 0 {
			product.M, product.A, product.RowA, product.C = whole, At(x, from), s.k, At(z, column)
			product.Run()
		}
		if whole < s.m {
			for row := range s.m - whole {
				CopyRow(At(last, row*depth), At(x, (whole+row)*s.k+from), terms)
			}
			product.M, product.A, product.RowA, product.C = s.m-whole, last, depth, At(z, whole*s.n+column)
			product.Run()
		}
	}
}

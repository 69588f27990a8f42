//go:build amd64 && goexperiment.simd

package avx512

import "math"

// Product is C = A·B + bias, of matrices [M, K] and [K, N].
//
// It is computed in tiles of 6 rows and 3 or 4 vectors, or of 12 rows and 1 or 2, that stay
// in registers over their sums. All rows of a tile of A are read, and all of its vectors of B:
// up to 11 rows after the last of A, and 15 entries after the last of each row of B, have to
// be there. They count for nothing.
type Product struct {
	M, N, K int
	// Entry (i, k) of A is RowA·i + StepA·k after A. So A may be a matrix as it lies in
	// memory or its transpose.
	A           Pointer
	RowA, StepA int
	// Rows of B are StrideB after each other, or in panels of 64 columns, see Pack, if StrideB
	// is Packed.
	B       Pointer
	StrideB int
	C       Pointer
	StrideC int
	Bias    Pointer // [N], or nil for none
	Add     bool    // adds the product to what C holds
	ReLU    bool    // the result is max(·, 0)
}

// Packed is the stride of a matrix in panels.
const Packed = -1

// panel is how many columns a panel has, and terms about how many of a sum are added at
// once, so that the part of B fits into the first cache.
const panel, terms = 4 * Lanes, 80

// tile is what the functions in assembly read. Distances are in bytes.
type tile struct {
	c, a, b, init                 Pointer
	k, rowA, stepA, rowB, rowC, m int
	mask, add                     uint64 // lanes of the last vector, lanes of C that are added
	floor                         float32
}

// tiles1 … tiles4 compute the m rows of a product with so many vectors of columns: with init
// [columns], plus C where the lanes of add are set, and at least floor.
//
// The registers that Go's compiler uses for vectors are too few for a tile.
//
//go:noescape
func tiles1(t *tile)

//go:noescape
func tiles2(t *tile)

//go:noescape
func tiles3(t *tile)

//go:noescape
func tiles4(t *tile)

var zeros [panel]float32

// NegativeInfinity is −∞.
var NegativeInfinity = float32(math.Inf(-1))

// Run computes the product. Without rows, M = 0, it does nothing.
func (p *Product) Run() {
	if p.M == 0 {
		return // the functions in assembly compute at least one tile
	}
	parts := (p.K + terms - 1) / terms
	for column := 0; column < p.N; column += panel {
		width := min(panel, p.N-column)
		b, strideB := At(p.B, column), p.StrideB
		if strideB == Packed {
			b, strideB = At(p.B, column*p.K), (width+Lanes-1)/Lanes*Lanes
		}
		for part := range parts {
			from, to := part*p.K/parts, (part+1)*p.K/parts
			t := tile{
				c: At(p.C, column), a: At(p.A, from*p.StepA), b: At(b, from*strideB), init: Pointer(&zeros),
				k: to - from, rowA: 4 * p.RowA, stepA: 4 * p.StepA, rowB: 4 * strideB, rowC: 4 * p.StrideC, m: p.M,
				mask: 1<<((width-1)%Lanes+1) - 1, floor: NegativeInfinity,
			}
			if p.Add || part > 0 {
				t.add = 1<<Lanes - 1
			}
			if p.Bias != nil && part == 0 {
				t.init = At(p.Bias, column)
			}
			if p.ReLU && part == parts-1 {
				t.floor = 0
			}
			switch (width + Lanes - 1) / Lanes {
			case 1:
				tiles1(&t)
			case 2:
				tiles2(&t)
			case 3:
				tiles3(&t)
			default:
				tiles4(&t)
			}
		}
	}
}

// PackedSize is the number of entries of a matrix [k, n] in panels.
func PackedSize(k, n int) int { return k * ((n + Lanes - 1) / Lanes * Lanes) }

// Pack writes a matrix [k, n], with rows stride after each other, in panels of 64 columns,
// one after the other and each row by row. The last one has the columns that are left, up to
// a multiple of Lanes.
func Pack(dst, src Pointer, stride, k, n int) {
	for column := 0; column < n; column += panel {
		width := min(panel, n-column)
		room := (width + Lanes - 1) / Lanes * Lanes
		for i := range k {
			CopyRow(At(dst, column*k+i*room), At(src, i*stride+column), width)
		}
	}
}

// PackTransposed is Pack of the transpose [k, n] of a matrix [n, k].
func PackTransposed(dst, src Pointer, stride, k, n int) {
	for column := 0; column < n; column += panel {
		width := min(panel, n-column)
		Exchange(At(dst, column*k), At(src, column*stride), width, k, stride, (width+Lanes-1)/Lanes*Lanes)
	}
}

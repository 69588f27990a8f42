//go:build amd64 && goexperiment.simd

package avx512

import "simd/archsimd"

// Exchange writes a matrix of rows and columns transposed. Rows lie from apart in src and
// columns to apart in dst.
func Exchange(dst, src Pointer, rows, columns, from, to int) {
	for i := 0; i < rows; i += Lanes {
		for j := 0; j < columns; j += Lanes {
			exchangeBlock(At(dst, j*to+i), At(src, i*from+j), min(Lanes, rows-i), min(Lanes, columns-j), from, to)
		}
	}
}

// low and high of a step s take from two vectors, of rows s apart, the lanes without and
// with s in their number: the step exchanges that digit between rows and lanes.
func digit(s int) (low, high archsimd.Uint32x16) {
	var l, h [Lanes]uint32
	for i := range Lanes {
		if i&s == 0 {
			l[i], h[i] = uint32(i), uint32(i+s)
		} else {
			l[i], h[i] = uint32(Lanes+i-s), uint32(Lanes+i)
		}
	}
	return archsimd.LoadUint32x16(&l), archsimd.LoadUint32x16(&h)
}

var (
	low8, high8 = digit(8)
	low4, high4 = digit(4)
	low2, high2 = digit(2)
	low1, high1 = digit(1)
)

// exchangeBlock is Exchange of at most 16 rows and columns.
func exchangeBlock(dst, src Pointer, rows, columns, from, to int) {
	wide, tall := First(columns), First(rows)
	// Rows that are not there are others once more, and not stored.
	row := func(i int) Vector { return LoadFirst(At(src, min(i, rows-1)*from), wide) }
	column := func(i int, x Vector) {
		if i < columns {
			StoreFirst(At(dst, i*to), x, tall)
		}
	}
	r0 := row(0)
	r1 := row(1)
	r2 := row(2)
	r3 := row(3)
	r4 := row(4)
	r5 := row(5)
	r6 := row(6)
	r7 := row(7)
	r8 := row(8)
	r9 := row(9)
	r10 := row(10)
	r11 := row(11)
	r12 := row(12)
	r13 := row(13)
	r14 := row(14)
	r15 := row(15)
	r0, r8 = r0.ConcatPermute(r8, low8), r0.ConcatPermute(r8, high8)
	r1, r9 = r1.ConcatPermute(r9, low8), r1.ConcatPermute(r9, high8)
	r2, r10 = r2.ConcatPermute(r10, low8), r2.ConcatPermute(r10, high8)
	r3, r11 = r3.ConcatPermute(r11, low8), r3.ConcatPermute(r11, high8)
	r4, r12 = r4.ConcatPermute(r12, low8), r4.ConcatPermute(r12, high8)
	r5, r13 = r5.ConcatPermute(r13, low8), r5.ConcatPermute(r13, high8)
	r6, r14 = r6.ConcatPermute(r14, low8), r6.ConcatPermute(r14, high8)
	r7, r15 = r7.ConcatPermute(r15, low8), r7.ConcatPermute(r15, high8)
	r0, r4 = r0.ConcatPermute(r4, low4), r0.ConcatPermute(r4, high4)
	r1, r5 = r1.ConcatPermute(r5, low4), r1.ConcatPermute(r5, high4)
	r2, r6 = r2.ConcatPermute(r6, low4), r2.ConcatPermute(r6, high4)
	r3, r7 = r3.ConcatPermute(r7, low4), r3.ConcatPermute(r7, high4)
	r8, r12 = r8.ConcatPermute(r12, low4), r8.ConcatPermute(r12, high4)
	r9, r13 = r9.ConcatPermute(r13, low4), r9.ConcatPermute(r13, high4)
	r10, r14 = r10.ConcatPermute(r14, low4), r10.ConcatPermute(r14, high4)
	r11, r15 = r11.ConcatPermute(r15, low4), r11.ConcatPermute(r15, high4)
	r0, r2 = r0.ConcatPermute(r2, low2), r0.ConcatPermute(r2, high2)
	r1, r3 = r1.ConcatPermute(r3, low2), r1.ConcatPermute(r3, high2)
	r4, r6 = r4.ConcatPermute(r6, low2), r4.ConcatPermute(r6, high2)
	r5, r7 = r5.ConcatPermute(r7, low2), r5.ConcatPermute(r7, high2)
	r8, r10 = r8.ConcatPermute(r10, low2), r8.ConcatPermute(r10, high2)
	r9, r11 = r9.ConcatPermute(r11, low2), r9.ConcatPermute(r11, high2)
	r12, r14 = r12.ConcatPermute(r14, low2), r12.ConcatPermute(r14, high2)
	r13, r15 = r13.ConcatPermute(r15, low2), r13.ConcatPermute(r15, high2)
	r0, r1 = r0.ConcatPermute(r1, low1), r0.ConcatPermute(r1, high1)
	r2, r3 = r2.ConcatPermute(r3, low1), r2.ConcatPermute(r3, high1)
	r4, r5 = r4.ConcatPermute(r5, low1), r4.ConcatPermute(r5, high1)
	r6, r7 = r6.ConcatPermute(r7, low1), r6.ConcatPermute(r7, high1)
	r8, r9 = r8.ConcatPermute(r9, low1), r8.ConcatPermute(r9, high1)
	r10, r11 = r10.ConcatPermute(r11, low1), r10.ConcatPermute(r11, high1)
	r12, r13 = r12.ConcatPermute(r13, low1), r12.ConcatPermute(r13, high1)
	r14, r15 = r14.ConcatPermute(r15, low1), r14.ConcatPermute(r15, high1)
	column(0, r0)
	column(1, r1)
	column(2, r2)
	column(3, r3)
	column(4, r4)
	column(5, r5)
	column(6, r6)
	column(7, r7)
	column(8, r8)
	column(9, r9)
	column(10, r10)
	column(11, r11)
	column(12, r12)
	column(13, r13)
	column(14, r14)
	column(15, r15)
}

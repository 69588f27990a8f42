//go:build amd64 && goexperiment.simd

package native

import (
	. "icrl/internal/avx512"
	"icrl/internal/numeric"
)

// matrix has rows that are stride entries apart.
type matrix struct {
	start  Pointer
	stride int
}

// row is the address of a row.
func (m matrix) row(i int) Pointer { return At(m.start, i*m.stride) }

// from is the matrix without the rows before i.
func (m matrix) from(i int) matrix { return matrix{m.row(i), m.stride} }

// columns is the matrix without the columns before j.
func (m matrix) columns(j int) matrix { return matrix{At(m.start, j), m.stride} }

// normalize writes rows x [n, width] with mean 0 and variance 1, the factors of that, and
// gain·normal + bias:
//
//	normal = (x − mean x)·inverse,  inverse = 1/√(var x + ε).
func normalize(x, normal, y matrix, inverse, gain, bias Pointer, n, width int) {
	for i := range n {
		row, into, out := x.row(i), normal.row(i), y.row(i)
		var s Vector
		for j := 0; j < width; j += Lanes {
			s = s.Add(LoadFirst(At(row, j), First(width-j)))
		}
		mean := Everywhere(Sum(s) / float32(width))
		s = Vector{}
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			d := LoadFirst(At(row, j), m).Sub(mean).Masked(m)
			s = d.MulAdd(d, s)
		}
		scale := 1 / sqrt(Sum(s)/float32(width)+numeric.LayerNormEpsilon)
		*(*float32)(At(inverse, i)) = scale
		factor := Everywhere(scale)
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			d := LoadFirst(At(row, j), m).Sub(mean).Mul(factor)
			StoreFirst(At(into, j), d, m)
			StoreFirst(At(out, j), d.MulAdd(LoadFirst(At(gain, j), m), LoadFirst(At(bias, j), m)), m)
		}
	}
}

// affine writes rows gain·x + bias.
func affine(x, y matrix, gain, bias Pointer, n, width int) {
	for j := 0; j < width; j += Lanes {
		m := First(width - j)
		g, b := LoadFirst(At(gain, j), m), LoadFirst(At(bias, j), m)
		for i := range n {
			StoreFirst(At(y.row(i), j), LoadFirst(At(x.row(i), j), m).MulAdd(g, b), m)
		}
	}
}

// normalizeBack adds to dx what slopes dy [n, width] of gain·normal + bias are for x, and to
// dGain and dBias what they are for those:
//
//	dx += inverse·(g − mean g − normal·mean(g·normal)),  g = gain·dy.
func normalizeBack(dy, normal, dx matrix, inverse, gain, dGain, dBias Pointer, n, width int) {
	for i := range n {
		slopes, row, into := dy.row(i), normal.row(i), dx.row(i)
		var s, product Vector
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			g := LoadFirst(At(slopes, j), m).Mul(LoadFirst(At(gain, j), m))
			s = s.Add(g)
			product = g.MulAdd(LoadFirst(At(row, j), m), product)
		}
		mean, along := Everywhere(-Sum(s)/float32(width)), Everywhere(-Sum(product)/float32(width))
		factor := Everywhere(*(*float32)(At(inverse, i)))
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			d := LoadFirst(At(slopes, j), m).MulAdd(LoadFirst(At(gain, j), m), mean)
			d = LoadFirst(At(row, j), m).MulAdd(along, d)
			StoreFirst(At(into, j), d.MulAdd(factor, LoadFirst(At(into, j), m)), m)
		}
	}
	for j := 0; j < width; j += Lanes {
		m := First(width - j)
		g, b := LoadFirst(At(dGain, j), m), LoadFirst(At(dBias, j), m)
		for i := range n {
			d := LoadFirst(At(dy.row(i), j), m)
			g, b = d.MulAdd(LoadFirst(At(normal.row(i), j), m), g), b.Add(d)
		}
		StoreFirst(At(dGain, j), g, m)
		StoreFirst(At(dBias, j), b, m)
	}
}

// addRows adds the rows of x [n, width] to sums [width].
func addRows(sums Pointer, x matrix, n, width int) {
	j := 0
	for ; j+4*Lanes <= width; j += 4 * Lanes { // four sums at a time hide how long one takes
		s0, s1, s2, s3 := Load(At(sums, j)), Load(At(sums, j+Lanes)), Load(At(sums, j+2*Lanes)), Load(At(sums, j+3*Lanes))
		for i := range n {
			row := At(x.row(i), j)
			s0, s1, s2, s3 = s0.Add(Load(row)), s1.Add(Load(At(row, Lanes))), s2.Add(Load(At(row, 2*Lanes))), s3.Add(Load(At(row, 3*Lanes)))
		}
		Store(At(sums, j), s0)
		Store(At(sums, j+Lanes), s1)
		Store(At(sums, j+2*Lanes), s2)
		Store(At(sums, j+3*Lanes), s3)
	}
	for ; j < width; j += Lanes {
		m := First(width - j)
		s := LoadFirst(At(sums, j), m)
		for i := range n {
			s = s.Add(LoadFirst(At(x.row(i), j), m))
		}
		StoreFirst(At(sums, j), s, m)
	}
}

// reluBack sets slopes [n, width] to 0 where the outputs y of a ReLU are 0.
func reluBack(slopes, y matrix, n, width int) {
	var zero Vector
	for i := range n {
		row, out := slopes.row(i), y.row(i)
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			StoreFirst(At(row, j), LoadFirst(At(row, j), m).Masked(LoadFirst(At(out, j), m).Greater(zero)), m)
		}
	}
}

// copyRows copies rows of width entries.
func copyRows(to, from matrix, n, width int) {
	for i := range n {
		CopyRow(to.row(i), from.row(i), width)
	}
}

// addMatrix adds rows of width entries to others.
func addMatrix(to, x matrix, n, width int) {
	for i := range n {
		for j := 0; j < width; j += Lanes {
			m := First(width - j)
			StoreFirst(At(to.row(i), j), LoadFirst(At(to.row(i), j), m).Add(LoadFirst(At(x.row(i), j), m)), m)
		}
	}
}

// zero sets rows of width entries to 0.
func zero(x matrix, n, width int) {
	for i := range n {
		for j := 0; j < width; j += Lanes {
			StoreFirst(At(x.row(i), j), Vector{}, First(width-j))
		}
	}
}

// softmax replaces the first seen of scores by their weights softmax(scale·score), and those
// after them, up to a multiple of Lanes from the end on, by 0.
func softmax(scores Pointer, seen, end int, scale float32) {
	factor := Everywhere(scale)
	least := Everywhere(negativeInfinity)
	top := least
	for j := 0; j < seen; j += Lanes {
		m := First(seen - j)
		top = top.Max(LoadFirst(At(scores, j), m).Merge(least, m))
	}
	shift := Everywhere(-scale * Greatest(top))
	var total Vector
	j := 0
	for ; j < seen; j += Lanes {
		e := Exponential(Load(At(scores, j)).MulAdd(factor, shift)).Masked(First(seen - j))
		total = total.Add(e)
		Store(At(scores, j), e)
	}
	for ; j < end; j += Lanes {
		Store(At(scores, j), Vector{})
	}
	inverse := Everywhere(1 / Sum(total))
	for j = 0; j < seen; j += Lanes {
		Store(At(scores, j), Load(At(scores, j)).Mul(inverse))
	}
}

// softmaxBack replaces slopes of weights by those of their scores,
//
//	scale·weight·(slope − ⟨weights, slopes⟩),
//
// up to a multiple of Lanes from the end on, where weights are 0 from seen on.
func softmaxBack(slopes, weights Pointer, seen, end int, product, scale float32) {
	mean, factor := Everywhere(product), Everywhere(scale)
	j := 0
	for ; j < seen; j += Lanes {
		w := Load(At(weights, j))
		// Slopes that no product has written may be anything.
		s := Load(At(slopes, j)).Sub(mean).Masked(First(seen - j))
		Store(At(slopes, j), s.Mul(w.Mul(factor)))
	}
	for ; j < end; j += Lanes {
		Store(At(slopes, j), Vector{})
	}
}

// dot is ⟨x, y⟩ of n entries.
func dot(x, y Pointer, n int) float32 {
	var s Vector
	for j := 0; j < n; j += Lanes {
		m := First(n - j)
		s = LoadFirst(At(x, j), m).MulAdd(LoadFirst(At(y, j), m), s)
	}
	return Sum(s)
}

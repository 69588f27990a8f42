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
	if width == 4*Lanes {
		normalize4(x, normal, y, inverse, gain, bias, n)
		return
	}
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

// normalize4 is normalize of rows of four vectors, as the paper's networks have them. They
// stay in registers.
func normalize4(x, normal, y matrix, inverse, gain, bias Pointer, n int) {
	const width = 4 * Lanes
	for i := range n {
		row, into, out := x.row(i), normal.row(i), y.row(i)
		x0, x1, x2, x3 := Load(row), Load(At(row, Lanes)), Load(At(row, 2*Lanes)), Load(At(row, 3*Lanes))
		mean := Everywhere(Sum(x0.Add(x1).Add(x2.Add(x3))) * (1. / width))
		x0, x1, x2, x3 = x0.Sub(mean), x1.Sub(mean), x2.Sub(mean), x3.Sub(mean)
		square := x0.MulAdd(x0, x1.Mul(x1)).Add(x2.MulAdd(x2, x3.Mul(x3)))
		scale := 1 / sqrt(Sum(square)*(1./width)+numeric.LayerNormEpsilon)
		*(*float32)(At(inverse, i)) = scale
		factor := Everywhere(scale)
		x0, x1, x2, x3 = x0.Mul(factor), x1.Mul(factor), x2.Mul(factor), x3.Mul(factor)
		Store(into, x0)
		Store(At(into, Lanes), x1)
		Store(At(into, 2*Lanes), x2)
		Store(At(into, 3*Lanes), x3)
		Store(out, x0.MulAdd(Load(gain), Load(bias)))
		Store(At(out, Lanes), x1.MulAdd(Load(At(gain, Lanes)), Load(At(bias, Lanes))))
		Store(At(out, 2*Lanes), x2.MulAdd(Load(At(gain, 2*Lanes)), Load(At(bias, 2*Lanes))))
		Store(At(out, 3*Lanes), x3.MulAdd(Load(At(gain, 3*Lanes)), Load(At(bias, 3*Lanes))))
	}
}

// divide writes rows x [n, columns] over the root mean square of rows h [n, width]:
//
//	y = x/√(mean h² + ε).
func divide(y, x, h matrix, n, columns, width int) {
	if width == 4*Lanes && columns == width && x == h {
		divide4(y, h, n)
		return
	}
	for i := range n {
		row, from, into := h.row(i), x.row(i), y.row(i)
		var square Vector
		for j := 0; j < width; j += Lanes {
			v := LoadFirst(At(row, j), First(width-j))
			square = v.MulAdd(v, square)
		}
		factor := Everywhere(1 / sqrt(Sum(square)/float32(width)+numeric.LayerNormEpsilon))
		for j := 0; j < columns; j += Lanes {
			m := First(columns - j)
			StoreFirst(At(into, j), LoadFirst(At(from, j), m).Mul(factor), m)
		}
	}
}

// divide4 is divide of the rows themselves, of four vectors.
func divide4(y, h matrix, n int) {
	const width = 4 * Lanes
	for i := range n {
		row, into := h.row(i), y.row(i)
		x0, x1, x2, x3 := Load(row), Load(At(row, Lanes)), Load(At(row, 2*Lanes)), Load(At(row, 3*Lanes))
		square := x0.MulAdd(x0, x1.Mul(x1)).Add(x2.MulAdd(x2, x3.Mul(x3)))
		factor := Everywhere(1 / sqrt(Sum(square)*(1./width)+numeric.LayerNormEpsilon))
		Store(into, x0.Mul(factor))
		Store(At(into, Lanes), x1.Mul(factor))
		Store(At(into, 2*Lanes), x2.Mul(factor))
		Store(At(into, 3*Lanes), x3.Mul(factor))
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

// column is a vector of queries in scores of a head, which have a row for each key: start is
// its entry in the first one. Lane i sees the keys before seen+i; end is where none is seen
// any more.
type column struct {
	start             Pointer
	stride, seen, end int
}

func (c column) key(i int) Pointer { return At(c.start, i*c.stride) }

// clear sets keys from the end on to 0.
func (c column) clear(to int) {
	for i := c.end; i < to; i++ {
		Store(c.key(i), Vector{})
	}
}

// softmax replaces scores by their weights softmax(scale·score), which are 0 for keys that a
// query does not see.
func (c column) softmax(scale float32) {
	seen := min(c.seen, c.end)
	Softmax(c.start, c.stride, seen, c.end-seen, scale)
}

// softmaxBack replaces slopes of weights by those of their scores:
//
//	scale·weight·(slope − ⟨weights, slopes⟩).
func (c column) softmaxBack(weights column, scale float32) {
	var product Vector
	for i := range c.end {
		product = Load(c.key(i)).MulAdd(Load(weights.key(i)), product)
	}
	factor := Everywhere(scale)
	for i := range c.end {
		Store(c.key(i), Load(c.key(i)).Sub(product).Mul(Load(weights.key(i)).Mul(factor)))
	}
}

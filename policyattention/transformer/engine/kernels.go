package engine

import (
	"math"

	"icrl/internal/numeric"
)

// lanes is how many entries vectors have: rows of matrices have room for a multiple of it.
const lanes = 16

// panel is how many columns of a matrix are side by side where it is packed, see [pack].
const panel = 4 * lanes

// tile is C = A·B + bias, of matrices [m, k] and [k, n] with n ≤ panel. Entry (i, k) of A is
// a[rowA·i + stepA·k]: A may be a matrix as it lies in memory or its transpose. Kernels read, and
// do not count, up to 11 rows after the last of A, and 15 entries after the last of each row of B.
type tile[F Float] struct {
	m, n, k     int
	a, b, c     []F
	rowA, stepA int
	rowB, rowC  int
	bias        []F  // [n], or nil for none
	add, relu   bool // adds the product to what C holds; the result is max(·, 0)
}

// kernels are what a pass is made of. All of them work in place on rows as they lie in memory.
type kernels[F Float] struct {
	tile func(t tile[F])
	// softmax replaces scores of 16 queries, with a row for each key, by the weights softmax(score/root). All lanes see
	// the first seen keys, at least one; of the next some ones lane i sees the first i; weights of others are 0.
	softmax func(scores matrix[F], seen, some int, root F)
	// softmaxBack replaces slopes of 16 queries' weights by scores': weight·(slope − ⟨weights, slopes⟩)/root.
	softmaxBack func(slopes, weights matrix[F], keys int, root F)
	// normalize writes rows x [n, width] with mean 0 and variance 1, the factors of that, and
	// y = gain·normal + bias: normal = (x − mean x)·inverse, inverse = 1/√(var x + ε).
	normalize func(x, normal, y matrix[F], inverse, gain, bias []F, n, width int)
	// normalizeBack adds to dx what slopes dy [n, width] of y are for x, and to dGain and dBias
	// what they are for those: dx += inverse·(g − mean g − normal·mean(g·normal)), g = gain·dy.
	normalizeBack func(dy, normal, dx matrix[F], inverse, gain, dGain, dBias []F, n, width int)
	// reluBack sets slopes [n, width] to 0 where the outputs y of a ReLU are 0.
	reluBack func(slopes, y matrix[F], n, width int)
	// exchange writes src [rows, columns] transposed.
	exchange func(dst, src matrix[F], rows, columns int)
	adamw    func(params, gradient, m, v, average []F, r *[10]F)
}

// kernelsOf returns those of path for float32, and for float64 those in plain Go. These add in the order of the indices
// and round every product, so that results have the same bits on every platform.
func kernelsOf[F Float]() *kernels[F] {
	all := &kernels[F]{tile: portableTile[F], softmax: portableSoftmax[F], softmaxBack: portableSoftmaxBack[F],
		normalize: portableNormalize[F], normalizeBack: portableNormalizeBack[F], reluBack: portableReluBack[F],
		exchange: portableExchange[F], adamw: portableAdamW[F]}
	if k, ok := any(all).(*kernels[float32]); ok {
		vectors(k, path)
	}
	return all
}

// portableTile adds four terms at a time to each sum, in their order: the bits are those of one after another, and sums
// are loaded and stored a quarter as often. Terms of a factor 0, which one-hots and ReLUs have many of, are left out.
func portableTile[F Float](t tile[F]) {
	var sums [panel]F
	for i := range t.m {
		row := t.c[i*t.rowC:][:t.n]
		y := sums[:t.n]
		clear(y)
		if t.bias != nil {
			copy(y, t.bias)
		}
		var v [4]F
		var w [4][]F
		n := 0
		for k := range t.k {
			u := t.a[i*t.rowA+k*t.stepA]
			if u == 0 {
				continue
			}
			v[n], w[n] = u, t.b[k*t.rowB:][:len(y)]
			if n++; n < len(v) {
				continue
			}
			n = 0
			v0, v1, v2, v3 := v[0], v[1], v[2], v[3]
			w0, w1, w2, w3 := w[0][:len(y)], w[1][:len(y)], w[2][:len(y)], w[3][:len(y)]
			for j, sum := range y {
				y[j] = sum + F(v0*w0[j]) + F(v1*w1[j]) + F(v2*w2[j]) + F(v3*w3[j])
			}
		}
		for k := range n {
			for j, u := range w[k] {
				y[j] += F(v[k] * u)
			}
		}
		for j, v := range y {
			if t.add {
				v += row[j]
			}
			if t.relu {
				v = max(v, 0)
			}
			row[j] = v
		}
	}
}

func portableSoftmax[F Float](scores matrix[F], seen, some int, root F) {
	for lane := range lanes {
		sees, top, total := min(seen+lane, seen+some), F(math.Inf(-1)), F(0)
		for i := range sees {
			at := &scores.data[i*scores.stride+lane]
			*at /= root
			top = max(top, *at)
		}
		for i := range seen + some {
			at := &scores.data[i*scores.stride+lane]
			if i >= sees {
				*at = 0
				continue
			}
			*at = F(numeric.Exp(float64(*at - top)))
			total += *at
		}
		for i := range sees {
			scores.data[i*scores.stride+lane] /= total
		}
	}
}

func portableSoftmaxBack[F Float](slopes, weights matrix[F], keys int, root F) {
	for lane := range lanes {
		product := F(0)
		for i := range keys {
			product += F(slopes.data[i*slopes.stride+lane] * weights.data[i*weights.stride+lane])
		}
		for i := range keys {
			at := &slopes.data[i*slopes.stride+lane]
			*at = (*at - product) * weights.data[i*weights.stride+lane] / root
		}
	}
}

func portableNormalize[F Float](x, normal, y matrix[F], inverse, gain, bias []F, n, width int) {
	gain, bias = gain[:width], bias[:width]
	for i := range n {
		row, into, out := x.row(i)[:width], normal.row(i)[:width], y.row(i)[:width]
		mean, variance := F(0), F(0)
		for _, v := range row {
			mean += v
		}
		mean /= F(width)
		for j, v := range row {
			into[j] = v - mean
			variance += F(into[j] * into[j])
		}
		inverse[i] = 1 / F(math.Sqrt(float64(variance/F(width)+numeric.LayerNormEpsilon)))
		for j, v := range into {
			into[j] = F(v * inverse[i])
			out[j] = F(into[j]*gain[j]) + bias[j]
		}
	}
}

func portableNormalizeBack[F Float](dy, normal, dx matrix[F], inverse, gain, dGain, dBias []F, n, width int) {
	gain, dGain, dBias = gain[:width], dGain[:width], dBias[:width]
	for i := range n {
		slopes, row, into := dy.row(i)[:width], normal.row(i)[:width], dx.row(i)[:width]
		mean, along := F(0), F(0)
		for j, v := range slopes {
			g := F(v * gain[j])
			mean += g
			along += F(g * row[j])
			dGain[j] += F(v * row[j])
			dBias[j] += v
		}
		mean, along = mean/F(width), along/F(width)
		for j, v := range slopes {
			into[j] += F(inverse[i] * (F(v*gain[j]) - mean - F(row[j]*along)))
		}
	}
}

func portableReluBack[F Float](slopes, y matrix[F], n, width int) {
	for i := range n {
		row := slopes.row(i)[:width]
		for j, v := range y.row(i)[:width] {
			if !(v > 0) {
				row[j] = 0
			}
		}
	}
}

func portableExchange[F Float](dst, src matrix[F], rows, columns int) {
	for i := range rows {
		for j, v := range src.row(i)[:columns] {
			dst.data[j*dst.stride+i] = v
		}
	}
}

// portableAdamW is a step with rates β₁, 1−β₁, β₂, 1−β₂ (the second and fourth for a gradient that is
// yet to be scaled), 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), ε, the decay of
// weights, the learning rate, and the share of the new parameters in their average.
func portableAdamW[F Float](params, gradient, m, v, average []F, r *[10]F) {
	for i, g := range gradient {
		m[i] = F(r[0]*m[i]) + F(r[1]*g)
		v[i] = F(r[2]*v[i]) + F(r[3]*F(g*g))
		update := F(m[i]*r[4])/(F(math.Sqrt(float64(F(v[i]*r[5]))))+r[6]) + F(r[7]*params[i])
		params[i] -= F(r[8] * update)
		average[i] += F(r[9] * (params[i] - average[i]))
	}
}

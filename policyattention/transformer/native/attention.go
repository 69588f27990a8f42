//go:build amd64 && goexperiment.simd

package native

import (
	"math"

	. "icrl/internal/avx512"
)

// rows is how many queries or keys are taken at once, the number of rows of a product's
// tiles. Most of what the mask hides is left out so.
const rows = 12

// attention is softmax attention of b sequences with T keys and values, [b·T, width], and
// with the last queries tokens' queries [b·queries, width]. Weights have a row for each key,
// so that a softmax takes vectors of queries and adds up no lanes.
type attention struct {
	Pass
	b, queries int
	q, k, v    matrix
	weights    matrix // [b·Heads·T, queries]
	y          matrix // [b·queries, width]
}

func (p Pass) dim() int { return p.Network.Width / p.Network.Heads }

func (p Pass) scale() float32 { return float32(1 / math.Sqrt(float64(p.dim()))) }

// seen is how many keys query i sees.
func (a *attention) seen(i int) int {
	if a.Network.Unordered {
		return a.T
	}
	return min(a.T, a.T-a.queries+i+1)
}

// sees is the first query that sees key i.
func (a *attention) sees(i int) int {
	if a.Network.Unordered {
		return 0
	}
	return max(0, i-(a.T-a.queries))
}

// of is the part of a head of a matrix with so many tokens of each sequence.
func (a *attention) of(m matrix, tokens, sequence, head int) matrix {
	return m.from(sequence * tokens).columns(head * a.dim())
}

// column is the vector of queries from i on in scores of a head.
func (a *attention) column(scores matrix, i int) column {
	return column{At(scores.start, i), scores.stride, a.seen(i), a.seen(min(i+Lanes, a.queries) - 1)}
}

// scores writes x·y for keys x [T, dim] and queries y [queries, dim] that see them. turned is
// for yᵀ.
func (a *attention) scores(scores, x, y, turned matrix) {
	Exchange(turned.start, y.start, a.queries, a.dim(), y.stride, turned.stride)
	for first := 0; first < a.T; first += rows {
		from := a.sees(first) / Lanes * Lanes
		times(scores.from(first).columns(from), x.from(first), turned.columns(from), min(rows, a.T-first), a.queries-from, a.dim())
	}
}

// overKeys writes the sums over keys of weights × x [T, dim] for all queries.
func (a *attention) overKeys(y, weights, x matrix) {
	for first := 0; first < a.queries; first += rows {
		n := min(rows, a.queries-first)
		timesTransposed(y.from(first), weights.columns(first), x, n, a.dim(), a.seen(first+n-1))
	}
}

// overQueries writes the sums over queries of weights × x [queries, dim] for all keys.
func (a *attention) overQueries(y, weights, x matrix) {
	for first := 0; first < a.T; first += rows {
		from := a.sees(first)
		times(y.from(first), weights.from(first).columns(from), x.from(from), min(rows, a.T-first), a.dim(), a.queries-from)
	}
}

// forward writes weights and y. It needs a matrix [dim, T].
func (a *attention) forward(turned matrix) {
	for s := range a.b {
		for head := range a.Network.Heads {
			weights := a.weights.from((s*a.Network.Heads + head) * a.T)
			a.scores(weights, a.of(a.k, a.T, s, head), a.of(a.q, a.queries, s, head), turned)
			for i := 0; i < a.queries; i += Lanes {
				c := a.column(weights, i)
				c.softmax(a.scale())
				c.clear(min(a.T, c.end+rows))
			}
			a.overKeys(a.of(a.y, a.queries, s, head), weights, a.of(a.v, a.T, s, head))
		}
	}
}

// backward writes slopes of queries, keys and values from those of y. It needs matrices
// [T, queries] and [dim, T].
func (a *attention) backward(dy, dq, dk, dv, slopes, turned matrix) {
	for s := range a.b {
		for head := range a.Network.Heads {
			weights, dy := a.weights.from((s*a.Network.Heads+head)*a.T), a.of(dy, a.queries, s, head)
			a.scores(slopes, a.of(a.v, a.T, s, head), dy, turned)
			for i := 0; i < a.queries; i += Lanes {
				c := a.column(slopes, i)
				c.softmaxBack(a.column(weights, i), a.scale())
				c.clear(min(a.T, c.end+rows))
			}
			a.overKeys(a.of(dq, a.queries, s, head), slopes, a.of(a.k, a.T, s, head))
			a.overQueries(a.of(dk, a.T, s, head), slopes, a.of(a.q, a.queries, s, head))
			a.overQueries(a.of(dv, a.T, s, head), weights, dy)
		}
	}
}

// times writes x·w, [m, k]·[k, n].
func times(y, x, w matrix, m, n, k int) {
	p := Product{M: m, N: n, K: k, A: x.start, RowA: x.stride, StepA: 1, B: w.start, StrideB: w.stride, C: y.start, StrideC: y.stride}
	p.Run()
}

// timesTransposed writes xᵀ·w for x [k, m] and w [k, n].
func timesTransposed(y, x, w matrix, m, n, k int) {
	p := Product{M: m, N: n, K: k, A: x.start, RowA: 1, StepA: x.stride, B: w.start, StrideB: w.stride, C: y.start, StrideC: y.stride}
	p.Run()
}

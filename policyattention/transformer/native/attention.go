//go:build amd64 && goexperiment.simd

package native

import (
	"math"

	. "icrl/internal/avx512"
)

// queryBlock is how many queries are taken at once: their scores are computed for the keys
// up to the last one, so that most of what the mask hides is not. It is the number of rows
// of a product's tiles.
const queryBlock = 12

// attention is softmax attention of b sequences with T keys and values, [b·T, width], and
// with the last queries tokens' queries [b·queries, width].
type attention struct {
	Pass
	b, queries int
	q, k, v    matrix
	weights    matrix // [b·Heads·queries, T]
	y          matrix // [b·queries, width]
}

func (p Pass) dim() int { return p.Network.Width / p.Network.Heads }

func (p Pass) scale() float32 { return float32(1 / math.Sqrt(float64(p.dim()))) }

// seen is how many keys query i sees.
func (a *attention) seen(i int) int {
	if a.Network.Unordered {
		return a.T
	}
	return a.T - a.queries + i + 1
}

// block returns the number of queries of a block and the keys that one of them sees.
func (a *attention) block(first int) (n, keys int) {
	n = min(queryBlock, a.queries-first)
	return n, a.seen(first + n - 1)
}

// forward writes weights and y. It needs a matrix with the stride of weights.
func (a *attention) forward(turned matrix) {
	dim, scale := a.dim(), a.scale()
	for s := range a.b {
		for head := range a.Network.Heads {
			q, y := a.q.from(s*a.queries).columns(head*dim), a.y.from(s*a.queries).columns(head*dim)
			k, v := a.k.from(s*a.T).columns(head*dim), a.v.from(s*a.T).columns(head*dim)
			weights := a.weights.from((s*a.Network.Heads + head) * a.queries)
			Exchange(turned.start, k.start, a.T, dim, k.stride, turned.stride)
			for first := 0; first < a.queries; first += queryBlock {
				n, keys := a.block(first)
				times(weights.from(first), q.from(first), turned, n, keys, dim)
				for i := range n {
					softmax(weights.row(first+i), a.seen(first+i), min(keys+queryBlock, weights.stride), scale)
				}
				times(y.from(first), weights.from(first), v, n, dim, keys)
			}
		}
	}
}

// backward writes slopes of queries, keys and values from those of y. It needs a matrix
// [queries, T] and another one with as long rows.
func (a *attention) backward(dy, dq, dk, dv, slopes, turned matrix) {
	dim, scale := a.dim(), a.scale()
	for s := range a.b {
		for head := range a.Network.Heads {
			of := func(m matrix, tokens int) matrix { return m.from(s * tokens).columns(head * dim) }
			q, y, dy, dq := of(a.q, a.queries), of(a.y, a.queries), of(dy, a.queries), of(dq, a.queries)
			k, v, dk, dv := of(a.k, a.T), of(a.v, a.T), of(dk, a.T), of(dv, a.T)
			weights := a.weights.from((s*a.Network.Heads + head) * a.queries)
			Exchange(turned.start, v.start, a.T, dim, v.stride, turned.stride)
			for first := 0; first < a.queries; first += queryBlock {
				n, keys := a.block(first)
				times(slopes.from(first), dy.from(first), turned, n, keys, dim)
				for i := first; i < first+n; i++ {
					// ⟨weights, their slopes⟩ is ⟨dy, y⟩ (Dao et al., arXiv 2205.14135).
					softmaxBack(slopes.row(i), weights.row(i), a.seen(i), min(keys+queryBlock, weights.stride), dot(dy.row(i), y.row(i), dim), scale)
				}
				times(dq.from(first), slopes.from(first), k, n, dim, keys)
			}
			for first := 0; first < a.T; first += queryBlock {
				n := min(queryBlock, a.T-first)
				// Of the blocks of queries, the first one that sees these keys.
				from := max(0, first-(a.T-a.queries)) / queryBlock * queryBlock
				if a.Network.Unordered {
					from = 0
				}
				timesTransposed(dk.from(first), slopes.from(from).columns(first), q.from(from), n, dim, a.queries-from)
				timesTransposed(dv.from(first), weights.from(from).columns(first), dy.from(from), n, dim, a.queries-from)
			}
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

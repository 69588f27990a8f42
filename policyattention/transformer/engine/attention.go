package engine

import "math"

// rows is how many queries or keys are taken at once, the number of rows of a product's
// tiles. Most of what the mask hides is left out so.
const rows = 12

// attention is softmax attention of sequences with keys and values of all their tokens, [b·t,
// width], and with the last queries tokens' queries [b·queries, width]. Weights have a row for each
// key, so that a softmax takes vectors of queries and adds up no lanes.
type attention[F Float] struct {
	*Network[F]
	b, t, queries int
	q, k, v       matrix[F]
	weights       matrix[F] // [b·Heads·t, queries]
	y             matrix[F] // [b·queries, width]
}

func (a *attention[F]) dim() int { return a.Config.Width / a.Config.Heads }

// root is what products of queries and keys are divided by.
func (a *attention[F]) root() F { return F(math.Sqrt(float64(a.dim()))) }

// seen is how many keys query i sees.
func (a *attention[F]) seen(i int) int {
	if a.Config.Unordered {
		return a.t
	}
	return min(a.t, a.t-a.queries+i+1)
}

// sees is the first query that sees key i.
func (a *attention[F]) sees(i int) int {
	if a.Config.Unordered {
		return 0
	}
	return max(0, i-(a.t-a.queries))
}

// heads calls f for each head of each sequence, with where its keys and its queries are: their
// first rows and column.
func (a *attention[F]) heads(f func(weights matrix[F], keys, queries func(m matrix[F]) matrix[F])) {
	for s := range a.b {
		for head := range a.Config.Heads {
			column := head * a.dim()
			f(a.weights.from((s*a.Config.Heads+head)*a.t),
				func(m matrix[F]) matrix[F] { return m.from(s * a.t).columns(column) },
				func(m matrix[F]) matrix[F] { return m.from(s * a.queries).columns(column) })
		}
	}
}

// scores writes x·y for keys x [t, dim] and queries y [queries, dim] that see them, by way of
// yᵀ in turned; and calls f for vectors of queries: the number of the first one, how many keys
// all see, and how many some more see. After those it leaves zeros.
func (a *attention[F]) scores(scores, x, y, turned matrix[F], f func(first, seen, some int)) {
	a.kernels.exchange(turned, y, (a.queries+7)/8*8, a.dim())
	width := (a.queries + lanes - 1) / lanes * lanes
	for first := 0; first < a.t; first += rows {
		for from := a.sees(first) / lanes * lanes; from < width; from += panel {
			a.kernels.tile(tile[F]{
				m: min(rows, a.t-first), n: min(panel, width-from), k: a.dim(),
				a: x.from(first).data, rowA: x.stride, stepA: 1, b: turned.columns(from).data, rowB: turned.stride,
				c: scores.from(first).columns(from).data, rowC: scores.stride,
			})
		}
	}
	for first := 0; first < a.queries; first += lanes {
		seen, end := a.seen(first), a.seen(min(first+lanes, a.queries)-1)
		f(first, seen, end-seen)
		clearRows(scores.from(end).columns(first), min(a.t, end+rows)-end, lanes)
	}
}

// overKeys writes the sums over keys of weights × x [t, dim] for all queries.
func (a *attention[F]) overKeys(y, weights, x matrix[F]) {
	for first := 0; first < a.queries; first += rows {
		n := min(rows, a.queries-first)
		a.times(y.from(first), weights.columns(first), 1, weights.stride, x, n, a.seen(first+n-1))
	}
}

// overQueries writes the sums over queries of weights × x [queries, dim] for all keys.
func (a *attention[F]) overQueries(y, weights, x matrix[F]) {
	for first := 0; first < a.t; first += rows {
		from := a.sees(first)
		a.times(y.from(first), weights.from(first).columns(from), weights.stride, 1, x.from(from),
			min(rows, a.t-first), a.queries-from)
	}
}

// times writes x·w for x [m, k], as it lies or transposed, and w [k, dim].
func (a *attention[F]) times(y, x matrix[F], rowX, stepX int, w matrix[F], m, k int) {
	for column := 0; column < a.dim(); column += panel {
		a.kernels.tile(tile[F]{
			m: m, n: min(panel, a.dim()-column), k: k, a: x.data, rowA: rowX, stepA: stepX,
			b: w.columns(column).data, rowB: w.stride, c: y.columns(column).data, rowC: y.stride,
		})
	}
}

// forward writes weights and y. It needs a matrix [dim, t].
func (a *attention[F]) forward(turned matrix[F]) {
	if a.t == 1 { // a token that sees itself alone has all the weight
		for i := range a.b * a.Config.Heads {
			a.weights.row(i)[0] = 1
		}
		copyRows(a.y, a.v, a.b, a.Config.Width)
		return
	}
	a.heads(func(weights matrix[F], keys, queries func(matrix[F]) matrix[F]) {
		a.scores(weights, keys(a.k), queries(a.q), turned, func(first, seen, some int) {
			a.kernels.softmax(weights.columns(first), seen, some, a.root())
		})
		a.overKeys(queries(a.y), weights, keys(a.v))
	})
}

// backward writes slopes of queries, keys and values from those of y. It needs matrices
// [t, queries] and [dim, t].
func (a *attention[F]) backward(dy, dq, dk, dv, slopes, turned matrix[F]) {
	if a.t == 1 {
		clearRows(dq, a.b, a.Config.Width)
		clearRows(dk, a.b, a.Config.Width)
		copyRows(dv, dy, a.b, a.Config.Width)
		return
	}
	a.heads(func(weights matrix[F], keys, queries func(matrix[F]) matrix[F]) {
		a.scores(slopes, keys(a.v), queries(dy), turned, func(first, seen, some int) {
			a.kernels.softmaxBack(slopes.columns(first), weights.columns(first), seen+some, a.root())
		})
		a.overKeys(queries(dq), slopes, keys(a.k))
		a.overQueries(keys(dk), slopes, queries(a.q))
		a.overQueries(keys(dv), weights, queries(dy))
	})
}

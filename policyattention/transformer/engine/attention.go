package engine

import (
	"fmt"
	"math"
	"runtime"
)

// rows is how many queries or keys are taken at once, as rows of a tile. Most of what the mask hides is left out so.
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

// heads calls f for each head of each sequence, with where its keys and its queries are: their first rows and column.
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
		from := a.sees(first) / lanes * lanes
		a.times(scores.from(first).columns(from), x.from(first), x.stride, 1, turned.columns(from),
			min(rows, a.t-first), a.dim(), width-from, false)
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
		a.times(y.from(first), weights.columns(first), 1, weights.stride, x, n, a.seen(first+n-1), a.dim(), false)
	}
}

// overQueries writes the sums over queries of weights × x [queries, dim] for all keys.
func (a *attention[F]) overQueries(y, weights, x matrix[F]) {
	for first := 0; first < a.t; first += rows {
		from := a.sees(first)
		a.times(y.from(first), weights.from(first).columns(from), weights.stride, 1, x.from(from),
			min(rows, a.t-first), a.queries-from, a.dim(), false)
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

// backward writes slopes of queries, keys and values from those of y. It needs matrices [t, queries] and [dim, t].
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

// Cache holds the keys and values of the first tokens of sequences, as many of each, so that later ones can be taken
// through the network without them.
type Cache[F Float] struct {
	Sequences    int
	Length, Room int       // tokens of each that are held, and how many there is room for
	keys, values matrix[F] // [Layers·Sequences·(Room+rows), Width], since kernels read on, see [tile]
}

// NewCache returns an empty cache of sequences with room for so many tokens of each.
func (n *Network[F]) NewCache(sequences, tokens int) *Cache[F] {
	var r room[F]
	m := r.rows(n.Config.Layers*sequences*(tokens+rows), n.Config.Width)
	all := func() matrix[F] { return matrix[F]{make([]F, r.size), m.stride} }
	return &Cache[F]{Sequences: sequences, Room: tokens, keys: all(), values: all()}
}

// cached is what comes before the tokens of a pass, whose first sequence has a place in a cache.
type cached[F Float] struct {
	of            *Cache[F]
	first, length int
	alternatives  bool
}

// Extend takes k more tokens of each of B sequences [B, k, Features] through the network and returns their outputs [B,
// k, Outputs]. The new ones follow one another, and are in the cache afterwards; or they are alternatives, each of them
// as if it were the only new one, and the cache is left as it was. It returns an error for an unordered network, whose
// outputs for earlier tokens depend on later ones, for a cache that has no room, and for another number of tokens.
func (n *Network[F]) Extend(of *Cache[F], k int, tokens []F, alternatives bool) ([]F, error) {
	p, err := n.parted(Pass{of.Sequences, k, k}, len(tokens))
	if err != nil {
		return nil, err
	}
	if n.Config.Unordered || n.Config.Group > 0 {
		return nil, fmt.Errorf("engine: an unordered network has no use for a cache")
	}
	needed := of.Length + k
	if alternatives {
		needed = of.Length + 1
	}
	if needed > of.Room {
		return nil, fmt.Errorf("engine: a cache holds %d of %d tokens, want room for %d", of.Length, of.Room, needed)
	}
	size := max(1, min((p.B+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), BlockTokens/k))
	outputs, err := n.blocks(p, size, tokens, cached[F]{of: of, length: of.Length, alternatives: alternatives})
	if !alternatives {
		of.Length += k
	}
	return outputs, err
}

// attend is the attention of a layer to what is in caches and to the new tokens.
func (s *pass[F]) attend(layer int, a *attention[F]) {
	if s.before.of == nil {
		a.forward(s.turned)
		return
	}
	together := s.T // new tokens that follow one another
	if s.before.alternatives {
		together = 1
	}
	for first := 0; first < s.B*s.T; first += together {
		of := s.before.of
		at := (layer*of.Sequences + s.before.first + first/s.T) * (of.Room + rows)
		keys, values := of.keys.from(at), of.values.from(at)
		one := *a
		one.b, one.t, one.queries = 1, s.before.length+together, together
		copyRows(keys.from(s.before.length), a.k.from(first), together, s.Config.Width)
		copyRows(values.from(s.before.length), a.v.from(first), together, s.Config.Width)
		one.q, one.k, one.v, one.y = a.q.from(first), keys, values, a.y.from(first)
		one.forward(s.turned)
	}
}

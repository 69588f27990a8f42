package decoder

import (
	"encoding/binary"
	"math"

	"icrl/internal/numeric"
)

// cache is the key–value cache of one head.
//
// Tokens with bitwise equal keys get equal attention weights, so the cache holds, for each distinct key, how many
// tokens have it and the sum of their values: with G distinct keys,
//
//	Σ_j w_j v_j / Σ_j w_j = Σ_g e_g (Σ_{j∈g} v_j) / Σ_g e_g n_g
//
// is softmax attention with the terms of its sums grouped, and a token costs O(G), however many came before. Where all
// keys differ this is the ordinary cache. The weights e of a repeated query are kept too while no new key has arrived.
//
// A head with a shift (see Head) has keys that differ in one slot alone, y, and the grouping goes on: for queries with
// x in that slot, w_j = e_g exp(x y_j), so that sums over a group hold exp(x y_j − t_g) and exp(x y_j − t_g) v_j
// for t_g the largest x y_j. They are made anew when a query with another x comes. Without a shift x and y are 0.
type cache struct {
	key, value, query, mixed []float64 // the token at hand
	shift                    int       // the slot of y, or 0

	ids    []int     // of each token, the number of its key without y
	y      []float64 // of each token
	values []float64 // [tokens, len(value)]

	keys   interner  // of keys without y
	summed int       // tokens that the sums hold
	x      float64   // of the sums
	count  []float64 // of each distinct key, the sum over its tokens of exp(x y_j − t_g)
	sum    []float64 // [distinct keys, len(value)], of exp(x y_j − t_g) v_j
	top    []float64 // t_g of each distinct key

	queries interner
	weights [][]float64 // e of each distinct query, for the keys known at the time
	spare   []float64   // of a query whose weights are not kept
	at      []int       // non-zero entries of the query at hand
}

const maxKept = 1 << 21 // weights of a head, 16 MiB

func newCache(score, value, shift int) cache {
	return cache{shift: shift, key: make([]float64, score), query: make([]float64, score),
		value: make([]float64, value), mixed: make([]float64, value),
		keys: interner{number: map[string]int{}}, queries: interner{number: map[string]int{}}}
}

func (c *cache) reset() {
	c.keys.reset()
	c.queries.reset()
	c.count, c.sum = c.count[:0], c.sum[:0]
	for q, w := range c.weights {
		c.weights[q] = w[:0]
	}
	c.ids, c.y, c.values, c.summed = c.ids[:0], c.y[:0], c.values[:0], 0
}

// add appends the token with c.key and c.value.
func (c *cache) add() {
	y := 0.0
	if c.shift > 0 {
		y, c.key[c.shift] = c.key[c.shift], 0
	}
	c.ids, c.y, c.values = append(c.ids, c.keys.id(c.key)), append(c.y, y), append(c.values, c.value...)
}

// gather brings the sums up to date, for queries with x.
func (c *cache) gather(x float64) {
	n := len(c.value)
	if x != c.x {
		c.x, c.summed, c.count, c.sum = x, 0, c.count[:0], c.sum[:0]
	}
	for ; c.summed < len(c.y); c.summed++ {
		g, z, value := c.ids[c.summed], float64(x*c.y[c.summed]), c.values[c.summed*n:c.summed*n+n]
		if g == len(c.count) { // keys come in the order of their numbers
			c.count, c.sum, c.top = append(c.count, 1), append(c.sum, value...), append(c.top[:g], z)
			continue
		}
		sum, w := c.sum[g*n:g*n+n], 1.0
		switch top := c.top[g]; {
		case z > top:
			less := numeric.Exp(top - z)
			c.count[g] *= less
			for i := range sum {
				sum[i] *= less
			}
			c.top[g] = z
		case z < top:
			w = numeric.Exp(z - top)
		}
		c.count[g] += w
		for i, v := range value {
			sum[i] += float64(w * v)
		}
	}
}

// attend stores in c.mixed the mean of the values so far, weighted by the softmax of their keys' scores under c.query.
func (c *cache) attend() {
	x := 0.0
	if c.shift > 0 {
		x = c.query[c.shift]
	}
	c.gather(x)
	e := c.expScores()
	clear(c.mixed)
	total, n := 0.0, len(c.mixed)
	for g, w := range e {
		if w == 0 { // underflow: its terms are zero
			continue
		}
		total += float64(w * c.count[g])
		for i, v := range c.sum[g*n : g*n+n] {
			c.mixed[i] += float64(w * v)
		}
	}
	for i := range c.mixed {
		c.mixed[i] /= total
	}
}

// expScores returns exp(score − greatest score) for each distinct key. Those of a query that comes again are kept as
// long as no new key has arrived, and there is room for them.
func (c *cache) expScores() []float64 {
	known, q := len(c.count), 0
	if c.shift == 0 {
		q = c.queries.id(c.query)
	}
	if c.shift > 0 || q*known > maxKept {
		c.spare = c.scores(c.spare[:0])
		return c.spare
	}
	if q >= len(c.weights) {
		c.weights = append(c.weights, make([][]float64, q+1-len(c.weights))...)
	}
	if len(c.weights[q]) != known {
		c.weights[q] = c.scores(c.weights[q][:0])
	}
	return c.weights[q]
}

// scores appends exp(score − greatest score) of each distinct key to e.
func (c *cache) scores(e []float64) []float64 {
	c.at = c.at[:0]
	for i, v := range c.query {
		if v != 0 { // the terms of the others are zero
			c.at = append(c.at, i)
		}
	}
	top := math.Inf(-1)
	for g := range c.count {
		score, key := 0.0, c.keys.data[g*len(c.key):][:len(c.key)]
		for _, i := range c.at {
			score += float64(c.query[i] * key[i])
		}
		score += c.top[g]
		e, top = append(e, score), max(top, score)
	}
	for g, score := range e {
		e[g] = numeric.Exp(score - top)
	}
	return e
}

// interner numbers distinct vectors, bit by bit, in order of appearance.
type interner struct {
	data   []float64 // [distinct, width]
	number map[string]int
	key    []byte // places and bits of what is not zero in the vector at hand
}

func (t *interner) reset() {
	t.data = t.data[:0]
	clear(t.number)
}

// id returns the number of x.
func (t *interner) id(x []float64) int {
	t.key = t.key[:0]
	for i, v := range x {
		if bits := math.Float64bits(v); bits != 0 {
			t.key = binary.LittleEndian.AppendUint32(t.key, uint32(i))
			t.key = binary.LittleEndian.AppendUint64(t.key, bits)
		}
	}
	id, ok := t.number[string(t.key)]
	if !ok {
		id = len(t.number)
		t.number[string(t.key)] = id
		t.data = append(t.data, x...)
	}
	return id
}

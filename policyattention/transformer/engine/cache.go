package engine

import (
	"fmt"
	"runtime"
)

// Cache holds the keys and values of the first tokens of sequences, as many of each, so that later ones can be taken
// through the network without them.
type Cache[F Float] struct {
	Sequences    int
	Length, Room int         // tokens of each that are held, and how many there is room for
	keys, values []matrix[F] // of each layer [Sequences·(Room+rows), Width], since kernels read on, see [tile]
}

// NewCache returns an empty cache of sequences with room for so many tokens of each.
func (n *Network[F]) NewCache(sequences, tokens int) *Cache[F] {
	c := &Cache[F]{Sequences: sequences, Room: tokens}
	for range n.Config.Layers {
		for _, all := range []*[]matrix[F]{&c.keys, &c.values} {
			r, count := &room[F]{}, sequences*(tokens+rows)
			r.rows(count, n.Config.Width)
			*all = append(*all, (&room[F]{memory: make([]F, r.size)}).rows(count, n.Config.Width))
		}
	}
	return c
}

// cached is what comes before the tokens of a pass, whose first sequence has a place in a cache.
type cached[F Float] struct {
	of            *Cache[F]
	first, length int
	alternatives  bool
}

// Extend takes k more tokens of each of B sequences [B, k, Features] through the network and returns
// their outputs [B, k, Outputs]. The new ones follow one another, and are in the cache afterwards; or they
// are alternatives, each of them as if it were the only new one, and the cache is left as it was. It returns
// an error for an unordered network, whose outputs for earlier tokens depend on later ones, for a cache that
// has no room, and for another number of tokens.
func (n *Network[F]) Extend(of *Cache[F], k int, tokens []F, alternatives bool) ([]F, error) {
	c, p := n.Config, Pass{of.Sequences, k, k}
	if err := n.check(p, len(tokens), p.B*k*c.Outputs); err != nil {
		return nil, err
	}
	if c.Unordered || c.Group > 0 {
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
		at := (s.before.first + first/s.T) * (s.before.of.Room + rows)
		keys, values := s.before.of.keys[layer].from(at), s.before.of.values[layer].from(at)
		one := *a
		one.b, one.t, one.queries = 1, s.before.length+together, together
		copyRows(keys.from(s.before.length), a.k.from(first), together, s.Config.Width)
		copyRows(values.from(s.before.length), a.v.from(first), together, s.Config.Width)
		one.q, one.k, one.v, one.y = a.q.from(first), keys, values, a.y.from(first)
		one.forward(s.turned)
	}
}

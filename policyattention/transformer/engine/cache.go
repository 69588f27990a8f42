package engine

import (
	"fmt"
	"runtime"

	"icrl/internal/numeric"
)

// Cache holds the keys and values of the first tokens of a sequence, so that later ones can be taken
// through the network without them.
type Cache[F Float] struct {
	Length, Room int         // tokens held, and how many there is room for
	keys, values []matrix[F] // of each layer [Room, Width]
}

// NewCache returns an empty cache with room for so many tokens.
func (n *Network[F]) NewCache(tokens int) *Cache[F] {
	c := &Cache[F]{Room: tokens}
	count := &room[F]{}
	count.rows(tokens+rows, n.Config.Width) // kernels read rows after the last, see [tile]
	for range n.Config.Layers {
		for _, all := range []*[]matrix[F]{&c.keys, &c.values} {
			*all = append(*all, (&room[F]{memory: make([]F, count.size)}).rows(tokens+rows, n.Config.Width))
		}
	}
	return c
}

// caches are those of the sequences of a pass, all of one length, before its tokens.
type caches[F Float] struct {
	of           []*Cache[F]
	length       int
	alternatives bool
}

// Extend takes k more tokens of each of B sequences [B, k, Features] through the network and returns
// their outputs [B, k, Outputs]. All sequences have as many tokens in their caches. The new ones follow
// one another, and are in the caches afterwards; or they are alternatives, each of them as if it were
// the only new one, and the caches are left as they were. It returns an error for an unordered network,
// whose outputs for earlier tokens depend on later ones, for caches that differ in length or have no
// room, and for another number of tokens.
func (n *Network[F]) Extend(of []*Cache[F], k int, tokens []F, alternatives bool) ([]F, error) {
	c, b := n.Config, len(of)
	outputs := make([]F, max(0, b*k*c.Outputs))
	if err := n.check(Pass{b, k, k}, len(tokens), len(outputs)); err != nil {
		return nil, err
	}
	if c.Unordered || c.Group > 0 {
		return nil, fmt.Errorf("engine: an unordered network has no use for a cache")
	}
	needed := of[0].Length + k
	if alternatives {
		needed = of[0].Length + 1
	}
	for i, cache := range of {
		if cache.Length != of[0].Length || needed > cache.Room {
			return nil, fmt.Errorf("engine: cache %d holds %d of %d tokens, want %d, and room for %d", i, cache.Length,
				cache.Room, of[0].Length, needed)
		}
	}
	size := max(1, min((b+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), BlockTokens/k))
	err := numeric.Parallel((b+size-1)/size, func(i int) error {
		first := i * size
		part := of[first:min(b, first+size)]
		s := &pass[F]{Network: n, Pass: Pass{len(part), k, k}, before: caches[F]{part, of[0].Length, alternatives}}
		s.do(tokens[first*k*c.Features:], false, nil, func() {
			copyRows(matrix[F]{outputs[first*k*c.Outputs:], c.Outputs}, s.out, len(part)*k, c.Outputs)
		})
		return nil
	})
	if !alternatives {
		for _, cache := range of {
			cache.Length += k
		}
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
		cache := s.before.of[first/s.T]
		one := *a
		one.b, one.t, one.queries = 1, s.before.length+together, together
		copyRows(cache.keys[layer].from(s.before.length), a.k.from(first), together, s.Config.Width)
		copyRows(cache.values[layer].from(s.before.length), a.v.from(first), together, s.Config.Width)
		one.q, one.k, one.v, one.y = a.q.from(first), cache.keys[layer], cache.values[layer], a.y.from(first)
		one.forward(s.turned)
	}
}

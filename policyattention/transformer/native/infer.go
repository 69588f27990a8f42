//go:build amd64 && goexperiment.simd

package native

import (
	"simd/archsimd"
	"sync"

	. "icrl/internal/avx512"
)

// groups is in how many groups the chunks of a batch are. Goroutines take whole groups, and how
// many there are changes no result.
const groups = 4

// chunk is how many sequences Infer takes at once: groups have equally many, if they can.
func (p Pass) chunk() int {
	n := (p.B + max(1, BlockTokens/p.T) - 1) / max(1, BlockTokens/p.T)
	n = (n + groups - 1) / groups * groups
	return (p.B + n - 1) / n
}

// chunks calls, for every chunk of b sequences from first on, the function that start returned
// in its goroutine, of which there are at most so many, and then its done.
func (p Pass) chunks(workers int, start func() (f func(first, b int), done func())) {
	size := p.chunk()
	n := (p.B + size - 1) / size
	work := func(from, to int) {
		f, done := start()
		defer done()
		for i := from * n / groups; i < to*n/groups; i++ {
			f(i*size, min(size, p.B-i*size))
		}
		archsimd.ClearAVXUpperBits()
	}
	workers = max(1, min(workers, groups))
	var all sync.WaitGroup
	for i := 1; i < workers; i++ {
		all.Go(func() { work(i*groups/workers, (i+1)*groups/workers) })
	}
	work(0, groups/workers)
	all.Wait()
}

// inference is what a goroutine works with for a chunk of sequences. All layers share it.
type inference struct {
	Pass
	*weights
	tokens, x       matrix // with a 1 after their features, and over the root mean square [tokens, Features+1]
	h, y, z         matrix // [tokens, Width]
	attention       attention
	up, out, turned matrix // [tokens, Hidden], [b·K, Outputs], [dim, T]
}

func (p Pass) inference(w *weights, r *room) *inference {
	c, b := p.Network, p.chunk()
	n := b * p.T
	s := &inference{
		Pass: p, weights: w, tokens: r.rows(n, c.Features+1), x: r.rows(n, c.Features+1),
		h: r.rows(n, c.Width), y: r.rows(n, c.Width), z: r.rows(n, max(c.Width, c.Features+1)),
		attention: attention{
			Pass: p, b: b,
			q: r.rows(n, c.Width), k: r.rows(n, c.Width), v: r.rows(n, c.Width),
			weights: r.rows(n*c.Heads, p.T), y: r.rows(n, c.Width),
		},
		up: r.rows(n, c.Hidden), out: r.rows(b*p.K, c.Outputs), turned: r.rows(p.dim(), p.T),
	}
	r.size += p.beyond()
	return s
}

// Infer takes tokens [B, T, Features] through the network of parameters that Fold has folded,
// to outputs [B, K, Outputs], in at most so many goroutines. They are those of Forward, but for
// rounding. It returns an error for a slice of another length.
func (p Pass) Infer(folded, tokens, outputs []float32, workers int) error {
	c := p.Network
	if err := p.check(length{"folded parameters", len(folded), FoldedSize(c)}, p.tokens(tokens), p.outputs(outputs)); err != nil {
		return err
	}
	w := &weights{foldedPlaces(c), Start(folded)}
	p.chunks(workers, func() (func(first, b int), func()) {
		var s *inference
		done := kind{p, forInference, false}.memory(func(r *room) { s = p.inference(w, r) })
		return func(first, b int) {
			copyRows(s.tokens, matrix{At(Start(tokens), first*p.T*c.Features), c.Features}, b*p.T, c.Features)
			s.infer(b)
			copyRows(matrix{At(Start(outputs), first*p.K*c.Outputs), c.Outputs}, s.out, b*p.K, c.Outputs)
		}, done
	})
	return nil
}

// infer takes b sequences through the network.
func (s *inference) infer(b int) {
	c, n, a, h := s.Network, b*s.T, &s.attention, s.h
	a.b, a.queries = b, s.T
	for i := range n {
		*(*float32)(At(s.tokens.row(i), c.Features)) = 1
	}
	s.weights.forward(s.embed, s.tokens, h, n, false, false)
	for l, w := range s.body {
		x := s.y
		if l == 0 {
			x = s.x
			divide(x, s.tokens, h, n, c.Features+1, c.Width)
		} else {
			divide(x, h, h, n, c.Width, c.Width)
		}
		s.weights.forward(w.k, x, a.k, n, false, false)
		s.weights.forward(w.v, x, a.v, n, false, false)
		if l == c.Layers-1 && s.K < s.T {
			a.queries, n = s.K, b*s.K
			s.last(s.z, x, b, w.q.in)
			x = s.z
		}
		s.weights.forward(w.q, x, a.q, n, false, false)
		a.forward(s.turned)
		if a.queries < s.T {
			s.last(s.y, h, b, c.Width)
			h, s.y, s.h = s.y, h, s.y
		}
		s.weights.forward(w.out, a.y, h, n, true, false)
		divide(s.y, h, h, n, c.Width, c.Width)
		s.weights.forward(w.up, s.y, s.up, n, false, true)
		s.weights.forward(w.down, s.up, h, n, true, false)
	}
	divide(s.y, h, h, n, c.Width, c.Width)
	s.weights.forward(s.head, s.y, s.out, n, false, false)
}

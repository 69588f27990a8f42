//go:build amd64 && goexperiment.simd

package native

import (
	"fmt"
	"math"
	"simd/archsimd"
	"sync"

	. "icrl/internal/avx512"
)

// Available says whether this processor and build have what a Pass needs.
var Available = archsimd.X86.AVX512()

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// room lays out matrices one after the other from a first entry on, or only counts.
type room struct {
	start Pointer
	size  int
}

// rows makes room for a matrix [n, width]. Its rows start on vectors, and are not a multiple
// of 512 bytes apart: those would meet in few places of the first cache.
func (r *room) rows(n, width int) matrix {
	m := matrix{r.start, (width + Lanes - 1) / Lanes * Lanes}
	if m.stride%(8*Lanes) == 0 {
		m.stride += Lanes
	}
	if r.start != nil {
		m.start = At(r.start, r.size)
	}
	r.size += n * m.stride
	return m
}

func (r *room) entries(n int) Pointer { return r.rows(1, n).start }

// place makes room for n entries and returns which one is the first.
func (r *room) place(n int) int {
	at := (r.size + Lanes - 1) / Lanes * Lanes
	r.size = at + n
	return at
}

// beyond is how many entries are read after the last row of a matrix of the widest rows, see
// [Product].
func (p Pass) beyond() int {
	c := p.Network
	return (rows + 1) * (max(c.Features, c.Width, c.Hidden, c.Outputs, p.T) + 2*Lanes)
}

// aligned returns n entries that start on a vector.
func aligned(n int) Pointer {
	all := make([]float32, n+Lanes)
	start := Start(all)
	return At(start, int(-uintptr(start)%64/4))
}

// layer is what a block of the network keeps for the way back. The last one has all but
// keys and values of the last K tokens only.
type layer struct {
	normal1, normal2   matrix
	inverse1, inverse2 Pointer
	attention          attention
	up                 matrix
}

// activations is what all blocks keep.
type activations struct {
	tokens  matrix
	layers  []layer
	normal  matrix
	inverse Pointer
}

// activations lays them out.
func (p Pass) activations(r *room) activations {
	c, b := p.Network, p.B
	x := activations{tokens: r.rows(b*p.T, c.Features), layers: make([]layer, c.Layers)}
	for l := range x.layers {
		queries := p.T
		if l == c.Layers-1 {
			queries = p.K
		}
		all, some := b*p.T, b*queries
		x.layers[l] = layer{
			normal1: r.rows(all, c.Width), inverse1: r.entries(all),
			attention: attention{
				Pass: p, b: b, queries: queries,
				q: r.rows(some, c.Width), k: r.rows(all, c.Width), v: r.rows(all, c.Width),
				weights: r.rows(all*c.Heads, queries), y: r.rows(some, c.Width),
			},
			normal2: r.rows(some, c.Width), inverse2: r.entries(some),
			up: r.rows(some, c.Hidden),
		}
	}
	x.normal, x.inverse = r.rows(b*p.K, c.Width), r.entries(b*p.K)
	return x
}

// Saved is the number of entries that Forward keeps for Backward.
func (p Pass) Saved() int {
	r := &room{}
	p.activations(r)
	return r.size + p.beyond()
}

// call is what a pass works with: the weights, and what only the next layer needs.
type call struct {
	Pass
	*weights

	// Matrices [tokens, Width].
	h, y, z, dh, dq, dk, dv matrix
	out                     matrix // [b·K, Outputs]
	dUp                     matrix // [tokens, Hidden]
	slopes, turned          matrix // of a head, [T, T] and [dim, T]
}

// layOut lays out a call, or counts how much room it takes.
func (p Pass) layOut(w *weights, r *room, back bool) *call {
	c, n := p.Network, p.B*p.T
	s := &call{Pass: p, weights: w}
	s.h, s.y, s.z = r.rows(n, c.Width), r.rows(n, c.Width), r.rows(n, c.Width)
	s.turned, s.out = r.rows(p.dim(), p.T), r.rows(p.B*p.K, c.Outputs)
	if back {
		s.dh, s.dq, s.dk, s.dv = r.rows(n, c.Width), r.rows(n, c.Width), r.rows(n, c.Width), r.rows(n, c.Width)
		s.slopes, s.dUp = r.rows(p.T, p.T), r.rows(n, c.Hidden)
	}
	r.size += p.beyond()
	return s
}

// pools keeps memory, a sync.Pool for each kind.
var pools sync.Map

// kind is what memory is for.
type kind struct {
	p    Pass
	use  use
	back bool
}

type use int

const (
	forCall use = iota
	forInference
)

// memory takes memory from the pool of its kind and lays it out. done gives it back.
func (k kind) memory(layOut func(r *room)) (done func()) {
	pooled, _ := pools.LoadOrStore(k, &sync.Pool{})
	pool := pooled.(*sync.Pool)
	memory, _ := pool.Get().(*Pointer)
	if memory == nil {
		r := &room{}
		layOut(r)
		start := aligned(r.size)
		memory = &start
	}
	layOut(&room{start: *memory})
	return func() { pool.Put(memory) }
}

// call calls f with what it works with, in the forward pass or on the way back.
func (p Pass) call(prepared []float32, back bool, f func(s *call)) {
	var s *call
	done := kind{p, forCall, back}.memory(func(r *room) { s = p.layOut(&weights{placesOf(p.Network), Start(prepared)}, r, back) })
	defer done()
	f(s)
	archsimd.ClearAVXUpperBits()
}

// Forward takes tokens [B, T, Features] through the network of parameters that Prepare
// arranged, to outputs [B, K, Outputs]. What Backward needs goes to saved [Saved]. It returns
// an error for a slice of another length.
func (p Pass) Forward(prepared, tokens, outputs, saved []float32) error {
	c := p.Network
	if err := p.check(p.prepared(prepared), p.tokens(tokens), p.outputs(outputs), p.kept(saved)); err != nil {
		return err
	}
	p.call(prepared, false, func(s *call) {
		x := p.activations(&room{start: Start(saved)})
		copyRows(x.tokens, matrix{Start(tokens), c.Features}, p.B*p.T, c.Features)
		s.forward(x)
		copyRows(matrix{Start(outputs), c.Outputs}, s.out, p.B*p.K, c.Outputs)
	})
	return nil
}

// forward takes all sequences through the network.
func (s *call) forward(x activations) {
	b, width, n := s.B, s.Network.Width, s.B*s.T
	h, y := s.h, s.y
	s.weights.forward(s.embed, x.tokens, h, n, false, false)
	for l := range x.layers {
		layer, w := &x.layers[l], &s.body[l]
		a, queried := &layer.attention, y
		s.normalize(w.norm1, h, layer.normal1, y, layer.inverse1, n, width)
		s.weights.forward(w.k, y, a.k, n, false, false)
		s.weights.forward(w.v, y, a.v, n, false, false)
		if a.queries < s.T {
			s.last(s.z, y, b, width)
			queried, n = s.z, b*a.queries
		}
		s.weights.forward(w.q, queried, a.q, n, false, false)
		a.forward(s.turned)
		if a.queries < s.T {
			s.last(y, h, b, width)
			h, y = y, s.z
		}
		s.weights.forward(w.out, a.y, h, n, true, false)
		s.normalize(w.norm2, h, layer.normal2, y, layer.inverse2, n, width)
		s.weights.forward(w.up, y, layer.up, n, false, true)
		s.weights.forward(w.down, layer.up, h, n, true, false)
	}
	s.normalize(s.norm, h, x.normal, y, x.inverse, n, width)
	s.weights.forward(s.head, y, s.out, n, false, false)
}

// last copies the rows of the last K tokens of b sequences.
func (p Pass) last(to, from matrix, b, width int) {
	for i := range b {
		copyRows(to.from(i*p.K), from.from((i+1)*p.T-p.K), p.K, width)
	}
}

// Backward adds to gradient [Size] that of a scalar whose slopes for the outputs of Forward
// are slope [B, K, Outputs]. It returns an error for a slice of another length.
func (p Pass) Backward(prepared, saved, slope, gradient []float32) error {
	c := p.Network
	if err := p.check(p.prepared(prepared), p.kept(saved), p.outputs(slope), length{"entries of the gradient", len(gradient), c.Size()}); err != nil {
		return err
	}
	p.call(prepared, true, func(s *call) {
		copyRows(s.out, matrix{Start(slope), c.Outputs}, p.B*p.K, c.Outputs)
		s.backward(p.activations(&room{start: Start(saved)}), Start(gradient))
	})
	return nil
}

// backward adds to gradient what all sequences give.
func (s *call) backward(x activations, gradient Pointer) {
	b, width, n := s.B, s.Network.Width, s.B*s.K
	y, dy, dh, other := s.y, s.z, s.dh, s.h
	s.affine(s.norm, x.normal, y, n, width)
	s.weights.backward(s.head, gradient, y, s.out, dy, n, false)
	zero(dh, n, width)
	s.normalizeBack(s.norm, gradient, dy, x.normal, dh, x.inverse, n, width)
	for l := len(x.layers) - 1; l >= 0; l-- {
		layer, w := &x.layers[l], &s.body[l]
		a := &layer.attention
		s.weights.backward(w.down, gradient, layer.up, dh, s.dUp, n, false)
		reluBack(s.dUp, layer.up, n, s.Network.Hidden)
		s.affine(w.norm2, layer.normal2, y, n, width)
		s.weights.backward(w.up, gradient, y, s.dUp, dy, n, false)
		s.normalizeBack(w.norm2, gradient, dy, layer.normal2, dh, layer.inverse2, n, width)
		s.weights.backward(w.out, gradient, a.y, dh, other, n, false)
		a.backward(other, s.dq, s.dk, s.dv, s.slopes, s.turned)
		n = b * s.T
		s.affine(w.norm1, layer.normal1, y, n, width)
		s.weights.backward(w.k, gradient, y, s.dk, dy, n, false)
		s.weights.backward(w.v, gradient, y, s.dv, dy, n, true)
		if a.queries == s.T {
			s.weights.backward(w.q, gradient, y, s.dq, dy, n, true)
		} else {
			s.last(other, y, b, width)
			s.weights.backward(w.q, gradient, other, s.dq, y, b*s.K, false)
			s.addLast(dy, y, b)
			zero(other, n, width)
			s.addLast(other, dh, b)
			dh, other = other, dh
		}
		s.normalizeBack(w.norm1, gradient, dy, layer.normal1, dh, layer.inverse1, n, width)
	}
	s.weights.backward(s.embed, gradient, x.tokens, dh, matrix{}, n, false)
}

// addLast adds rows to those of the last K tokens of b sequences.
func (s *call) addLast(to, from matrix, b int) {
	for i := range b {
		addMatrix(to.from((i+1)*s.T-s.K), from.from(i*s.K), s.K, s.Network.Width)
	}
}

// length is how many entries a slice has and should have.
type length struct {
	of        string
	got, want int
}

func (p Pass) prepared(x []float32) length {
	return length{"prepared parameters", len(x), PreparedSize(p.Network)}
}

func (p Pass) tokens(x []float32) length {
	return length{"entries of tokens", len(x), p.B * p.T * p.Network.Features}
}

func (p Pass) outputs(x []float32) length {
	return length{"entries of outputs", len(x), p.B * p.K * p.Network.Outputs}
}

func (p Pass) kept(x []float32) length { return length{"saved entries", len(x), p.Saved()} }

func (p Pass) check(lengths ...length) error {
	if p.B < 1 || p.T < 1 || p.K < 1 || p.K > p.T {
		return fmt.Errorf("native: outputs of the last %d tokens of %d sequences of %d", p.K, p.B, p.T)
	}
	for _, x := range lengths {
		if x.got != x.want {
			return fmt.Errorf("native: %d %s, want %d", x.got, x.of, x.want)
		}
	}
	return nil
}

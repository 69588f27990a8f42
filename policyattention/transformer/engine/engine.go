// Package engine computes the network of package transformer in plain Go, forward and backward,
// and the steps of its optimizer: for training on CPUs, for loops of many small passes, and for
// the page, which is without GoMLX. [transformer.Network] defines what it computes.
//
// It takes a few sequences through the whole network at a time, so that what kernels leave in a
// core's caches is there on the way back. Activations are matrices with a row for each token: each
// product takes its factors as they lie in memory, those for the slopes of weights too, and only
// weights are rearranged, once for all passes of a step.
//
// Networks of float64 are computed in the order of the indices, with the same bits on every
// platform. For float32 there are kernels for AVX-512 and for AVX2 with FMA, chosen by what the
// processor has (GODEBUG=cpu.avx512f=off or cpu.avx2=off leaves them out), and the same portable ones
// elsewhere. Results are of the same bits on the same kernels, however many cores there are and
// whatever else is in a batch.
//
// The kernels are in assembly and not in Go's simd/archsimd, which exists only where a program is
// built with GOEXPERIMENT=simd: built without it, programs would be many times slower and not say so.
package engine

import (
	"fmt"
	"math"
	"sync"

	"icrl/policyattention/transformer"
)

// Float is the type of a network's numbers: float32 is fast, float64 the same everywhere.
type Float interface{ float32 | float64 }

// Network is a transformer with parameters. Its passes may be made at the same time.
type Network[F Float] struct {
	Config  transformer.Config
	at      *places
	params  []F
	kernels *kernels[F]
	memory  sync.Pool // of *[]F
}

// path chooses the kernels of networks of float32.
var path = paths()[0]

// New returns the network of c with the flat parameters [Size]. It returns an error for an invalid
// c, another number of parameters, and one that is not finite.
func New[F Float](c transformer.Config, params []float32) (*Network[F], error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := &Network[F]{Config: c, at: placesOf(c), kernels: portable[F]()}
	if k, ok := any(n.kernels).(*kernels[float32]); ok {
		vectors(k, path)
	}
	if len(params) != c.Size() {
		return nil, fmt.Errorf("engine: %d parameters, want %d", len(params), c.Size())
	}
	n.params = make([]F, n.at.size)
	for i, v := range params {
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("engine: parameter %d is %v, want a finite number", i, v)
		}
		n.params[i] = F(v)
	}
	n.pack()
	return n, nil
}

// pack packs weights for products, as they are and transposed.
func (n *Network[F]) pack() {
	for _, l := range n.at.linears() {
		weights := matrix[F]{n.params[l.weight:], l.stride}
		panels(n.params[l.packed:], l.in, l.out, func(column, width int, rows matrix[F]) {
			copyRows(rows, weights.columns(column), l.in, width)
		})
		panels(n.params[l.transposed:], l.out, l.in, func(column, width int, rows matrix[F]) {
			n.kernels.exchange(rows, weights.from(column), width, l.out)
		})
	}
}

// product is C = A·B + bias of matrices [m, k] and [k, n], with B packed.
func (n *Network[F]) product(t tile[F], columns int) {
	packed, c, bias := t.b, t.c, t.bias
	for column := 0; column < columns; column += panel {
		t.n = min(panel, columns-column)
		t.b, t.rowB, t.c = packed[column*t.k:], (t.n+lanes-1)/lanes*lanes, c[column:]
		if bias != nil {
			t.bias = bias[column:]
		}
		n.kernels.tile(t)
	}
}

// forward writes x·W + b for rows of x, or adds it to what y holds.
func (n *Network[F]) forward(l linear, x, y matrix[F], rows int, add, relu bool) {
	n.product(tile[F]{
		m: rows, k: l.in, a: x.data, rowA: x.stride, stepA: 1, b: n.params[l.packed:], c: y.data, rowC: y.stride,
		bias: n.params[l.weight+l.in*l.stride:], add: add, relu: relu,
	}, l.out)
}

// backward adds to gradient what slopes dy of the outputs for rows of inputs x, which a 1 follows,
// are for weights and bias; and writes to dx, or adds to it, what they are for the inputs.
func (n *Network[F]) backward(l linear, gradient []F, x, dy, dx matrix[F], rows int, add bool) {
	for column := 0; column < l.out; column += panel {
		n.kernels.tile(tile[F]{
			m: l.in + 1, n: min(panel, l.out-column), k: rows, a: x.data, rowA: 1, stepA: x.stride,
			b: dy.data[column:], rowB: dy.stride, c: gradient[l.weight+column:], rowC: l.stride, add: true,
		})
	}
	if dx.data != nil {
		n.product(tile[F]{
			m: rows, k: l.out, a: dy.data, rowA: dy.stride, stepA: 1, b: n.params[l.transposed:],
			c: dx.data, rowC: dx.stride, add: add,
		}, l.in)
	}
}

// use calls f with memory for so many entries, and some after them.
func (n *Network[F]) use(layOut func(r *room[F]), f func()) {
	count := &room[F]{}
	layOut(count)
	size := count.size + (rows+1)*count.widest // kernels read rows after the last, see [tile]
	memory, _ := n.memory.Get().(*[]F)
	if memory == nil || len(*memory) < size {
		all := make([]F, size)
		memory = &all
	}
	layOut(&room[F]{memory: *memory})
	f()
	n.memory.Put(memory)
}

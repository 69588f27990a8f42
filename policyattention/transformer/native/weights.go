//go:build amd64 && goexperiment.simd

package native

import (
	"fmt"
	"simd/archsimd"
	"sync"

	. "icrl/internal/avx512"
	"icrl/policyattention/transformer"
)

// linear is a linear map: where its weights [in, out] and its bias are in the flat vector,
// stride being that of a row, and where the panels of the weights are and, for the way back,
// those of their transpose.
type linear struct {
	in, out, stride    int
	weight, bias       int
	panels, transposed int
}

// norm is the places of gain and bias of a LayerNorm.
type norm struct{ gain, bias int }

// places are where the parameters of a network are, in a vector of so many entries.
type places struct {
	embed, head linear
	body        []block
	norm        norm
	size        int
}

// weights are the parameters of a network.
type weights struct {
	*places
	start Pointer
}

// block is the parameters of a block.
type block struct {
	norm1, norm2           norm
	q, k, v, out, up, down linear
}

// layouts keeps what placesOf returns, by network.
var layouts sync.Map

// placesOf returns where Prepare puts the parameters of a network: the flat vector as it is, and
// then panels.
func placesOf(c transformer.Config) *places {
	if w, ok := layouts.Load(c); ok {
		return w.(*places)
	}
	r, at := &room{size: c.Size()}, map[string]int{}
	for _, t := range c.Layout() {
		at[t.Name] = t.Offset
	}
	part := func(name string, in, out, column, stride int) linear {
		return linear{
			in: in, out: out, stride: stride, weight: at[name+".weight"] + column, bias: at[name+".bias"] + column,
			panels: r.place(PackedSize(in, out)), transposed: r.place(PackedSize(out, in)),
		}
	}
	whole := func(name string, in, out int) linear { return part(name, in, out, 0, out) }
	w := &places{embed: whole("embed", c.Features, c.Width)}
	for l := range c.Layers {
		name := fmt.Sprintf("blocks.%d.", l)
		third := func(i int) linear { return part(name+"qkv", c.Width, c.Width, i*c.Width, 3*c.Width) }
		w.body = append(w.body, block{
			norm1: norm{at[name+"norm1.gain"], at[name+"norm1.bias"]},
			norm2: norm{at[name+"norm2.gain"], at[name+"norm2.bias"]},
			q:     third(0), k: third(1), v: third(2),
			out: whole(name+"out", c.Width, c.Width),
			up:  whole(name+"up", c.Width, c.Hidden), down: whole(name+"down", c.Hidden, c.Width),
		})
	}
	w.norm = norm{at["norm.gain"], at["norm.bias"]}
	w.head = whole("head", c.Width, c.Outputs)
	w.size = r.size
	layouts.Store(c, w)
	return w
}

// linears calls f for each linear map.
func (w *places) linears(f func(l linear)) {
	f(w.embed)
	for _, b := range w.body {
		for _, l := range []linear{b.q, b.k, b.v, b.out, b.up, b.down} {
			f(l)
		}
	}
	f(w.head)
}

// PreparedSize is the number of entries that Prepare writes.
func PreparedSize(c transformer.Config) int { return placesOf(c).size }

// Prepare arranges parameters [Size] for Forward and Backward, to [PreparedSize]. It returns
// an error for a slice of another length.
func Prepare(c transformer.Config, params, into []float32) error {
	w := placesOf(c)
	if len(params) != c.Size() || len(into) != w.size {
		return fmt.Errorf("native: %d parameters prepared in %d entries, want %d in %d", len(params), len(into), c.Size(), w.size)
	}
	copy(into, params)
	w.linears(func(l linear) {
		from := At(Start(into), l.weight)
		Pack(At(Start(into), l.panels), from, l.stride, l.in, l.out)
		PackTransposed(At(Start(into), l.transposed), from, l.stride, l.out, l.in)
	})
	archsimd.ClearAVXUpperBits()
	return nil
}

// forward writes x·W + b for n rows, or adds it to what y holds.
func (w *weights) forward(l linear, x, y matrix, n int, add, relu bool) {
	p := Product{
		M: n, N: l.out, K: l.in, A: x.start, RowA: x.stride, StepA: 1, B: At(w.start, l.panels), StrideB: Packed,
		C: y.start, StrideC: y.stride, Bias: At(w.start, l.bias), Add: add, ReLU: relu,
	}
	p.Run()
}

// backward adds to gradient what slopes dy of the outputs for n rows of inputs x are for the
// parameters, and writes to dx, or adds to it, what they are for the inputs.
func (w *weights) backward(l linear, gradient Pointer, x, dy, dx matrix, n int, add bool) {
	p := Product{
		M: l.in, N: l.out, K: n, A: x.start, RowA: 1, StepA: x.stride, B: dy.start, StrideB: dy.stride,
		C: At(gradient, l.weight), StrideC: l.stride, Add: true,
	}
	p.Run()
	addRows(At(gradient, l.bias), dy, n, l.out)
	if dx.start == nil {
		return
	}
	p = Product{
		M: n, N: l.in, K: l.out, A: dy.start, RowA: dy.stride, StepA: 1, B: At(w.start, l.transposed), StrideB: Packed,
		C: dx.start, StrideC: dx.stride, Add: add,
	}
	p.Run()
}

// normalize is LayerNorm of rows x [n, width], see the function.
func (w *weights) normalize(at norm, x, normal, y matrix, inverse Pointer, n, width int) {
	normalize(x, normal, y, inverse, At(w.start, at.gain), At(w.start, at.bias), n, width)
}

// affine is what LayerNorm made of normal.
func (w *weights) affine(at norm, normal, y matrix, n, width int) {
	affine(normal, y, At(w.start, at.gain), At(w.start, at.bias), n, width)
}

// normalizeBack adds to dx and gradient what slopes dy of a LayerNorm are for them.
func (w *weights) normalizeBack(at norm, gradient Pointer, dy, normal, dx matrix, inverse Pointer, n, width int) {
	normalizeBack(dy, normal, dx, inverse, At(w.start, at.gain), At(gradient, at.gain), At(gradient, at.bias), n, width)
}

//go:build amd64 && goexperiment.simd

package native

import (
	"fmt"

	. "icrl/internal/avx512"
)

// linear is a linear map: its weights [in, out] in panels, or, for the way back, their
// transpose. weight and bias are their places in the flat vector, stride is that of a row.
type linear struct {
	in, out, stride int
	weight, bias    int
	panels          Pointer
}

// norm is the places of gain and bias of a LayerNorm.
type norm struct{ gain, bias int }

// weights are the parameters of a network.
type weights struct {
	params      Pointer
	embed, head linear
	body        []block
	norm        norm
}

// block is the parameters of a block.
type block struct {
	norm1, norm2           norm
	q, k, v, out, up, down linear
}

// pack arranges the flat vector params, or counts how much room that takes.
func (p Pass) pack(params []float32, r *room, back bool) *weights {
	c := p.Network
	w, place := &weights{params: Start(params)}, map[string]int{}
	for _, t := range c.Layout() {
		place[t.Name] = t.Offset
	}
	part := func(name string, in, out, column, stride int) linear {
		l := linear{in: in, out: out, stride: stride, weight: place[name+".weight"] + column, bias: place[name+".bias"] + column}
		if back {
			l.panels = r.entries(PackedSize(out, in))
		} else {
			l.panels = r.entries(PackedSize(in, out))
		}
		switch from := At(w.params, l.weight); {
		case r.start == nil: // only counts
		case back:
			PackTransposed(l.panels, from, stride, out, in)
		default:
			Pack(l.panels, from, stride, in, out)
		}
		return l
	}
	whole := func(name string, in, out int) linear { return part(name, in, out, 0, out) }
	w.embed = whole("embed", c.Features, c.Width)
	for l := range c.Layers {
		name := fmt.Sprintf("blocks.%d.", l)
		third := func(i int) linear { return part(name+"qkv", c.Width, c.Width, i*c.Width, 3*c.Width) }
		w.body = append(w.body, block{
			norm1: norm{place[name+"norm1.gain"], place[name+"norm1.bias"]},
			norm2: norm{place[name+"norm2.gain"], place[name+"norm2.bias"]},
			q:     third(0), k: third(1), v: third(2),
			out: whole(name+"out", c.Width, c.Width),
			up:  whole(name+"up", c.Width, c.Hidden), down: whole(name+"down", c.Hidden, c.Width),
		})
	}
	w.norm = norm{place["norm.gain"], place["norm.bias"]}
	w.head = whole("head", c.Width, c.Outputs)
	return w
}

// forward writes x·W + b for n rows, or adds it to what y holds.
func (w *weights) forward(l linear, x, y matrix, n int, add, relu bool) {
	p := Product{
		M: n, N: l.out, K: l.in, A: x.start, RowA: x.stride, StepA: 1, B: l.panels, StrideB: Packed,
		C: y.start, StrideC: y.stride, Bias: At(w.params, l.bias), Add: add, ReLU: relu,
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
		M: n, N: l.in, K: l.out, A: dy.start, RowA: dy.stride, StepA: 1, B: l.panels, StrideB: Packed,
		C: dx.start, StrideC: dx.stride, Add: add,
	}
	p.Run()
}

// normalize is LayerNorm of rows x [n, width], see the function.
func (w *weights) normalize(at norm, x, normal, y matrix, inverse Pointer, n, width int) {
	normalize(x, normal, y, inverse, At(w.params, at.gain), At(w.params, at.bias), n, width)
}

// affine is what LayerNorm made of normal.
func (w *weights) affine(at norm, normal, y matrix, n, width int) {
	affine(normal, y, At(w.params, at.gain), At(w.params, at.bias), n, width)
}

// normalizeBack adds to dx and gradient what slopes dy of a LayerNorm are for them.
func (w *weights) normalizeBack(at norm, gradient Pointer, dy, normal, dx matrix, inverse Pointer, n, width int) {
	normalizeBack(dy, normal, dx, inverse, At(w.params, at.gain), At(gradient, at.gain), At(gradient, at.bias), n, width)
}

// Package engine computes the network of package transformer in plain Go, forward and backward,
// and the steps of its optimizer: for training on CPUs, for loops of many small passes, and for
// the page, which is without GoMLX. [transformer.Network] defines what it computes.
//
// It takes a few sequences through the whole network at a time, so that what kernels leave in a core's caches is there
// on the way back. Activations are matrices with a row for each token: each product takes its factors as they lie in
// memory, those for the slopes of weights too, and only weights are rearranged, once for all passes of a step.
//
// Networks of float64 are computed in the order of the indices, with the same bits on every platform. For float32 there
// are kernels for AVX-512 and for AVX2 with FMA, chosen by what the processor has (GODEBUG=cpu.avx512f=off or
// cpu.avx2=off leaves them out), and the same portable ones elsewhere. Results are of the same bits on the same
// kernels, however many cores there are and whatever else is in a batch.
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
	n := &Network[F]{Config: c, at: placesOf(c), kernels: kernelsOf[F]()}
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
	for _, l := range n.at.linears {
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

// times writes x·w for x [m, k], as it lies or transposed, and w [k, width], or adds it to what y holds.
func (n *Network[F]) times(y, x matrix[F], rowX, stepX int, w matrix[F], m, k, width int, add bool) {
	for column := 0; column < width; column += panel {
		n.kernels.tile(tile[F]{m: m, n: min(panel, width-column), k: k, a: x.data, rowA: rowX, stepA: stepX,
			b: w.data[column:], rowB: w.stride, c: y.data[column:], rowC: y.stride, add: add})
	}
}

// forward writes x·W + b for rows of x, or adds it to what y holds.
func (n *Network[F]) forward(l linear, x, y matrix[F], rows int, add, relu bool) {
	n.product(tile[F]{m: rows, k: l.in, a: x.data, rowA: x.stride, stepA: 1, b: n.params[l.packed:], c: y.data,
		rowC: y.stride, bias: n.params[l.weight+l.in*l.stride:], add: add, relu: relu}, l.out)
}

// backward adds to gradient what slopes dy of the outputs for rows of inputs x, which a 1 follows,
// are for weights and bias; and writes to dx, or adds to it, what they are for the inputs.
func (n *Network[F]) backward(l linear, gradient []F, x, dy, dx matrix[F], rows int, add bool) {
	n.times(matrix[F]{gradient[l.weight:], l.stride}, x, 1, x.stride, dy, l.in+1, rows, l.out, true)
	if dx.data != nil {
		n.product(tile[F]{m: rows, k: l.out, a: dy.data, rowA: dy.stride, stepA: 1, b: n.params[l.transposed:],
			c: dx.data, rowC: dx.stride, add: add}, l.in)
	}
}

// matrix has rows that are stride entries apart.
type matrix[F Float] struct {
	data   []F
	stride int
}

func (m matrix[F]) row(i int) []F { return m.data[i*m.stride:] }

// from is the matrix without the rows before i.
func (m matrix[F]) from(i int) matrix[F] { return matrix[F]{m.data[i*m.stride:], m.stride} }

// columns is the matrix without the columns before j.
func (m matrix[F]) columns(j int) matrix[F] { return matrix[F]{m.data[j:], m.stride} }

// copyRows copies n rows of width entries.
func copyRows[F Float](to, from matrix[F], n, width int) {
	for i := range n {
		copy(to.row(i)[:width], from.row(i))
	}
}

// clearRows sets n rows of width entries to 0.
func clearRows[F Float](x matrix[F], n, width int) {
	for i := range n {
		clear(x.row(i)[:width])
	}
}

// room lays out matrices one after the other in memory, or only counts where there is none.
type room[F Float] struct {
	memory       []F
	size, widest int
}

// rows makes room for a matrix [n, width] and a column after it. Its rows start on vectors, and
// are not a multiple of 512 bytes apart: those would meet in few places of the first cache.
func (r *room[F]) rows(n, width int) matrix[F] {
	m := matrix[F]{stride: width/lanes*lanes + lanes}
	if m.stride%(8*lanes) == 0 {
		m.stride += lanes
	}
	if r.memory != nil {
		m.data = r.memory[r.size:]
	}
	r.size += n * m.stride
	r.widest = max(r.widest, m.stride)
	return m
}

func (r *room[F]) entries(n int) []F { return r.rows(1, n).data }

// place makes room for n entries and returns which one is the first.
func (r *room[F]) place(n int) int {
	at := (r.size + lanes - 1) / lanes * lanes
	r.size = at + n
	return at
}

// linear is a linear map [in, out]: where its weights, whose rows are stride apart, and below them
// its bias are in the flat vector, and where the weights lie packed, as they are and transposed.
type linear struct {
	in, out, stride, weight int
	packed, transposed      int
}

// norm is the places of gain and bias of a LayerNorm.
type norm struct{ gain, bias int }

type block struct {
	norm1, norm2           norm
	q, k, v, out, up, down linear
}

// places are where a network's parameters are in a vector of so many entries: the flat one, and then packed weights.
type places struct {
	embed, head linear
	body        []block
	norm        norm
	linears     []linear // all of them
	size        int
}

func placesOf(c transformer.Config) *places {
	w, r, at := &places{}, &room[float32]{size: c.Size()}, map[string]int{}
	for _, t := range c.Layout() {
		at[t.Name] = t.Offset
	}
	part := func(name string, in, out, column, stride int) linear {
		w.linears = append(w.linears, linear{in, out, stride, at[name+".weight"] + column,
			r.place(packedSize(in, out)), r.place(packedSize(out, in))})
		return w.linears[len(w.linears)-1]
	}
	whole := func(name string, in, out int) linear { return part(name, in, out, 0, out) }
	normOf := func(name string) norm { return norm{at[name+".gain"], at[name+".bias"]} }
	w.embed = whole("embed", c.Features, c.Width)
	for l := range c.Layers {
		name := fmt.Sprintf("blocks.%d.", l)
		third := func(i int) linear { return part(name+"qkv", c.Width, c.Width, i*c.Width, 3*c.Width) }
		w.body = append(w.body, block{norm1: normOf(name + "norm1"), norm2: normOf(name + "norm2"), q: third(0),
			k: third(1), v: third(2), out: whole(name+"out", c.Width, c.Width), up: whole(name+"up", c.Width, c.Hidden),
			down: whole(name+"down", c.Hidden, c.Width)})
	}
	w.norm, w.head = normOf("norm"), whole("head", c.Width, c.Outputs)
	w.size = r.size + panel // read after the last
	return w
}

// packedSize is the number of entries of a matrix [k, n] that is packed: in panels of 64 columns
// one after the other, each row by row, the last one with room for a multiple of lanes.
func packedSize(k, n int) int { return k * ((n + lanes - 1) / lanes * lanes) }

// panels calls f for each panel of a packed matrix [k, n]: its first column, its width and rows.
func panels[F Float](packed []F, k, n int, f func(column, width int, rows matrix[F])) {
	for column := 0; column < n; column += panel {
		width := min(panel, n-column)
		f(column, width, matrix[F]{packed[column*k:], (width + lanes - 1) / lanes * lanes})
	}
}

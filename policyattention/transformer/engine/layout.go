package engine

import (
	"fmt"

	"icrl/policyattention/transformer"
)

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

// addRows adds n rows of width entries to others.
func addRows[F Float](to, x matrix[F], n, width int) {
	for i := range n {
		row := to.row(i)[:width]
		for j, v := range x.row(i)[:width] {
			row[j] += v
		}
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

// places are where the parameters of a network are, in a vector of so many entries: the flat
// vector as it is, and then packed weights.
type places struct {
	embed, head linear
	body        []block
	norm        norm
	size        int
}

func placesOf(c transformer.Config) *places {
	r, at := &room[float32]{size: c.Size()}, map[string]int{}
	for _, t := range c.Layout() {
		at[t.Name] = t.Offset
	}
	part := func(name string, in, out, column, stride int) linear {
		return linear{in, out, stride, at[name+".weight"] + column, r.place(packedSize(in, out)),
			r.place(packedSize(out, in))}
	}
	whole := func(name string, in, out int) linear { return part(name, in, out, 0, out) }
	normOf := func(name string) norm { return norm{at[name+".gain"], at[name+".bias"]} }
	w := &places{embed: whole("embed", c.Features, c.Width)}
	for l := range c.Layers {
		name := fmt.Sprintf("blocks.%d.", l)
		third := func(i int) linear { return part(name+"qkv", c.Width, c.Width, i*c.Width, 3*c.Width) }
		w.body = append(w.body, block{
			norm1: normOf(name + "norm1"), norm2: normOf(name + "norm2"),
			q: third(0), k: third(1), v: third(2), out: whole(name+"out", c.Width, c.Width),
			up: whole(name+"up", c.Width, c.Hidden), down: whole(name+"down", c.Hidden, c.Width),
		})
	}
	w.norm, w.head = normOf("norm"), whole("head", c.Width, c.Outputs)
	w.size = r.size + panel // read after the last
	return w
}

// linears are all linear maps.
func (w *places) linears() []linear {
	all := []linear{w.embed, w.head}
	for _, b := range w.body {
		all = append(all, b.q, b.k, b.v, b.out, b.up, b.down)
	}
	return all
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

package engine

import (
	"fmt"
	"slices"

	"icrl/internal/numeric"
)

// BlockTokens is about how many tokens are best taken through the network at once, so that what
// the forward pass keeps stays in caches for the way back.
const BlockTokens = 200

// Pass is sequences of one length and which outputs of them are read.
type Pass struct {
	B, T int // sequences, and tokens of each
	K    int // outputs of the last K tokens of each
}

// layer is what a block keeps for the way back: the last one all but keys and values of the last K tokens only.
type layer[F Float] struct {
	normal1, y1, normal2, y2 matrix[F]
	inverse1, inverse2       []F
	attention                attention[F]
	up                       matrix[F]
}

// pass is a pass with what it works with.
type pass[F Float] struct {
	*Network[F]
	Pass
	before cached[F] // what comes before the tokens

	// What is kept for the way back.
	tokens    matrix[F]
	layers    []layer[F]
	normal, y matrix[F]
	inverse   []F
	out       matrix[F] // [B·K, Outputs], and their slopes

	// What only the next layer needs.
	h, x, z, dh, dy, dq, dk, dv matrix[F] // [B·T, Width]
	dUp, slopes, turned         matrix[F] // [B·T, Hidden], and of a head [T, T] and [dim, T]
}

// layOut lays out a pass, for the way back too or with one layer's matrices for all.
func (s *pass[F]) layOut(r *room[F], back bool) {
	c, all, some := s.Config, s.B*s.T, s.B*s.K
	s.tokens, s.layers = r.rows(all, c.Features), make([]layer[F], c.Layers)
	for l := range s.layers {
		if l > 0 && !back {
			s.layers[l] = s.layers[0]
			continue
		}
		n, queries := all, s.T
		if back && l == c.Layers-1 {
			n, queries = some, s.K
		}
		s.layers[l] = layer[F]{
			normal1: r.rows(all, c.Width), y1: r.rows(all, c.Width), inverse1: r.entries(all),
			attention: attention[F]{Network: s.Network, b: s.B, t: s.T, queries: queries, q: r.rows(n, c.Width),
				k: r.rows(all, c.Width), v: r.rows(all, c.Width),
				weights: r.rows((all+s.before.length)*c.Heads, queries), y: r.rows(n, c.Width)},
			normal2: r.rows(n, c.Width), y2: r.rows(n, c.Width), inverse2: r.entries(n), up: r.rows(n, c.Hidden),
		}
	}
	s.layers[c.Layers-1].attention.queries = s.K
	s.normal, s.y, s.inverse = r.rows(some, c.Width), r.rows(some, c.Width), r.entries(some)
	s.out = r.rows(some, c.Outputs)
	s.h, s.x, s.turned = r.rows(all, c.Width), r.rows(all, c.Width), r.rows(c.Width/c.Heads+8, s.T)
	if !back {
		return
	}
	s.z, s.dh, s.dy = r.rows(all, c.Width), r.rows(all, c.Width), r.rows(all, c.Width)
	s.dq, s.dk, s.dv = r.rows(all, c.Width), r.rows(all, c.Width), r.rows(all, c.Width)
	s.dUp, s.slopes = r.rows(all, c.Hidden), r.rows(s.T, s.T)
	if r.memory == nil {
		return
	}
	// Slopes of biases are those of weights for an input of 1.
	ones := func(m matrix[F], column, n int) {
		for i := range n {
			m.data[i*m.stride+column] = 1
		}
	}
	ones(s.tokens, c.Features, all)
	for _, l := range s.layers {
		n := s.B * l.attention.queries
		ones(l.y1, c.Width, all)
		ones(l.attention.y, c.Width, n)
		ones(l.y2, c.Width, n)
		ones(l.up, c.Hidden, n)
	}
	ones(s.y, c.Width, some)
	ones(s.x, c.Width, all)
}

// forward takes all sequences from tokens to out. The function watch, unless nil, is shown the
// tokens before the first block, after each attention, and after each block.
func (s *pass[F]) forward(watch func(h matrix[F])) {
	if watch == nil {
		watch = func(matrix[F]) {}
	}
	c, p, n, h, other := s.Config, s.params, s.B*s.T, s.h, s.x
	s.Network.forward(s.at.embed, s.tokens, h, n, false, false)
	watch(h)
	for i := range s.layers {
		l, w := &s.layers[i], &s.at.body[i]
		a, queried := &l.attention, l.y1
		s.kernels.normalize(h, l.normal1, l.y1, l.inverse1, p[w.norm1.gain:], p[w.norm1.bias:], n, c.Width)
		s.Network.forward(w.k, l.y1, a.k, n, false, false)
		s.Network.forward(w.v, l.y1, a.v, n, false, false)
		if a.queries < s.T {
			queried, n = other, s.B*a.queries
			s.last(queried, l.y1)
		}
		s.Network.forward(w.q, queried, a.q, n, false, false)
		s.attend(i, a)
		if a.queries < s.T {
			s.last(other, h)
			h, other = other, h
		}
		s.Network.forward(w.out, a.y, h, n, true, false)
		watch(h)
		s.kernels.normalize(h, l.normal2, l.y2, l.inverse2, p[w.norm2.gain:], p[w.norm2.bias:], n, c.Width)
		s.Network.forward(w.up, l.y2, l.up, n, false, true)
		s.Network.forward(w.down, l.up, h, n, true, false)
		watch(h)
	}
	s.kernels.normalize(h, s.normal, s.y, s.inverse, p[s.at.norm.gain:], p[s.at.norm.bias:], n, c.Width)
	s.Network.forward(s.at.head, s.y, s.out, n, false, false)
}

// last copies the rows of the last K tokens.
func (s *pass[F]) last(to, from matrix[F]) {
	for i := range s.B {
		copyRows(to.from(i*s.K), from.from((i+1)*s.T-s.K), s.K, s.Config.Width)
	}
}

// addLast adds rows to those of the last K tokens.
func (s *pass[F]) addLast(to, from matrix[F]) {
	for b := range s.B {
		for k := range s.K {
			row := to.row((b+1)*s.T - s.K + k)[:s.Config.Width]
			for j, v := range from.row(b*s.K + k)[:len(row)] {
				row[j] += v
			}
		}
	}
}

// backward adds to gradient what all sequences give, from slopes in out.
func (s *pass[F]) backward(gradient []F) {
	c, n, dy, dh, other := s.Config, s.B*s.K, s.dy, s.dh, s.z
	normBack := func(at norm, normal, dx matrix[F], inverse []F) {
		gain, dGain, dBias := s.params[at.gain:], gradient[at.gain:], gradient[at.bias:]
		s.kernels.normalizeBack(dy, normal, dx, inverse, gain, dGain, dBias, n, c.Width)
	}
	s.Network.backward(s.at.head, gradient, s.y, s.out, dy, n, false)
	clearRows(dh, n, c.Width)
	normBack(s.at.norm, s.normal, dh, s.inverse)
	for i := len(s.layers) - 1; i >= 0; i-- {
		l, w := &s.layers[i], &s.at.body[i]
		a := &l.attention
		s.Network.backward(w.down, gradient, l.up, dh, s.dUp, n, false)
		s.kernels.reluBack(s.dUp, l.up, n, c.Hidden)
		s.Network.backward(w.up, gradient, l.y2, s.dUp, dy, n, false)
		normBack(w.norm2, l.normal2, dh, l.inverse2)
		s.Network.backward(w.out, gradient, a.y, dh, other, n, false)
		a.backward(other, s.dq, s.dk, s.dv, s.slopes, s.turned)
		n = s.B * s.T
		s.Network.backward(w.k, gradient, l.y1, s.dk, dy, n, false)
		s.Network.backward(w.v, gradient, l.y1, s.dv, dy, n, true)
		if a.queries == s.T {
			s.Network.backward(w.q, gradient, l.y1, s.dq, dy, n, true)
		} else {
			s.last(s.x, l.y1)
			s.Network.backward(w.q, gradient, s.x, s.dq, other, s.B*s.K, false)
			s.addLast(dy, other)
			clearRows(other, n, c.Width)
			s.addLast(other, dh)
			dh, other = other, dh
		}
		normBack(w.norm1, l.normal1, dh, l.inverse1)
	}
	s.Network.backward(s.at.embed, gradient, s.tokens, dh, matrix[F]{}, n, false)
}

// parted returns a pass over so many entries of tokens [B, T, Features] for outputs [B, K, Outputs], in which groups of
// tokens are sequences of their own: see [transformer.Config.Group]. It returns an error unless it can be made.
func (n *Network[F]) parted(p Pass, tokens int) (Pass, error) {
	g, want := n.Config.Group, p.B*p.T*n.Config.Features
	switch {
	case p.B < 1 || p.T < 1 || p.K < 1 || p.K > p.T:
		return p, fmt.Errorf("engine: outputs of the last %d tokens of %d sequences of %d", p.K, p.B, p.T)
	case tokens != want:
		return p, fmt.Errorf("engine: %d entries of tokens, want %d", tokens, want)
	case g == 0 || g == p.T && g == p.K:
		return p, nil
	case p.K != p.T || p.T%g != 0:
		return p, fmt.Errorf("engine: outputs of the last %d of %d tokens in groups of %d", p.K, p.T, g)
	}
	return Pass{p.B * p.T / g, g, g}, nil
}

// do makes the pass in memory that the network keeps, and calls f while it is laid out.
func (s *pass[F]) do(tokens []F, back bool, watch func(h matrix[F]), f func()) {
	count := &room[F]{}
	s.layOut(count, back)
	size := count.size + (rows+1)*count.widest // kernels read rows after the last, see [tile]
	memory, _ := s.memory.Get().(*[]F)
	if memory == nil || len(*memory) < size {
		all := make([]F, size)
		memory = &all
	}
	s.layOut(&room[F]{memory: *memory}, back)
	copyRows(s.tokens, matrix[F]{tokens, s.Config.Features}, s.B*s.T, s.Config.Features)
	s.forward(watch)
	f()
	s.memory.Put(memory)
}

// Forward takes tokens [B, T, Features] to outputs [B, K, Outputs]. It returns an error for another number of tokens.
func (n *Network[F]) Forward(p Pass, tokens []F) ([]F, error) {
	p, err := n.parted(p, len(tokens))
	if err != nil {
		return nil, err
	}
	return n.blocks(p, max(1, BlockTokens/p.T), tokens, cached[F]{})
}

// blocks makes a pass over tokens [B, T, Features], so many sequences at a time, to outputs [B, K, Outputs].
func (n *Network[F]) blocks(p Pass, size int, tokens []F, before cached[F]) ([]F, error) {
	c, outputs := n.Config, make([]F, p.B*p.K*n.Config.Outputs)
	return outputs, numeric.Parallel((p.B+size-1)/size, func(i int) error {
		first := i * size
		s := &pass[F]{Network: n, Pass: Pass{min(size, p.B-first), p.T, p.K}, before: before}
		s.before.first = first
		s.do(tokens[first*p.T*c.Features:], false, nil, func() {
			copyRows(matrix[F]{outputs[first*p.K*c.Outputs:], c.Outputs}, s.out, s.B*p.K, c.Outputs)
		})
		return nil
	})
}

// Gradient takes tokens [B, T, Features] through the network and back: slopes is given the outputs
// [B, K, Outputs] and replaces them by the slopes of a scalar for them, whose gradient [Size] is
// added to gradient. It returns an error for slices of another length.
func (n *Network[F]) Gradient(p Pass, tokens []F, slopes func(outputs []F), gradient []F) error {
	p, err := n.parted(p, len(tokens))
	if err != nil {
		return err
	}
	c := n.Config
	if len(gradient) != c.Size() {
		return fmt.Errorf("engine: a gradient of %d entries, want %d", len(gradient), c.Size())
	}
	outputs := matrix[F]{make([]F, p.B*p.K*c.Outputs), c.Outputs}
	s := &pass[F]{Network: n, Pass: p}
	s.do(tokens, true, nil, func() {
		copyRows(outputs, s.out, p.B*p.K, c.Outputs)
		slopes(outputs.data)
		copyRows(s.out, outputs, p.B*p.K, c.Outputs)
		s.backward(gradient)
	})
	return nil
}

// Sequences maps tokens [n][T][Features] of sequences of any lengths to all outputs of each [n][T·Outputs]. It returns
// an error for no tokens and for one of another size.
func (n *Network[F]) Sequences(sequences [][][]float64) ([][]float64, error) {
	var firsts []int // of each block: consecutive sequences of one length, as many as a pass takes
	for i, tokens := range sequences {
		last := len(firsts) - 1
		if i == 0 || len(tokens) != len(sequences[i-1]) || (i-firsts[last]+1)*len(tokens) > BlockTokens {
			firsts = append(firsts, i)
		}
	}
	outputs := make([][]float64, len(sequences))
	return outputs, numeric.Parallel(len(firsts), func(block int) error {
		first, end := firsts[block], len(sequences)
		if block+1 < len(firsts) {
			end = firsts[block+1]
		}
		t := len(sequences[first])
		x := make([]F, 0, (end-first)*t*n.Config.Features)
		for i, token := range slices.Concat(sequences[first:end]...) {
			if len(token) != n.Config.Features {
				return fmt.Errorf("engine: token %d has %d features, want %d", i, len(token), n.Config.Features)
			}
			for _, v := range token {
				x = append(x, F(v))
			}
		}
		y, err := n.Forward(Pass{end - first, t, t}, x)
		width := t * n.Config.Outputs
		for i, row := range (matrix[F]{y, width}).copied(len(y)/max(1, width), width) {
			outputs[first+i] = row
		}
		return err
	})
}

// Trace is every intermediate result of one pass over T tokens.
type Trace struct {
	Tokens   [][]float64 // [T][Features]
	Embedded [][]float64 // [T][Width]
	Blocks   []BlockTrace
	Outputs  [][]float64 // [T][Outputs]
}

// BlockTrace is what happened in a block. A token sees all T tokens, or those of its group, or with the causal mask
// itself and those of them before it.
type BlockTrace struct {
	Query, Key, Value [][]float64   // [T][Width], the heads' side by side
	Weights           [][][]float64 // [Heads][T][seen], each row sums to one
	Mixed             [][]float64   // [T][Width], attention-weighted means of values, the heads' side by side
	Attended          [][]float64   // [T][Width], tokens with what the heads wrote added
	Units             [][]float64   // [T][Hidden], the ReLU's, not below 0
	Output            [][]float64   // [T][Width], tokens leaving the block
}

// copied returns the first n rows of width entries.
func (m matrix[F]) copied(n, width int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, width)
		for j, v := range m.row(i)[:width] {
			rows[i][j] = float64(v)
		}
	}
	return rows
}

// Trace passes tokens [T, Features] through the network and keeps everything, with the bits of Sequences.
func (n *Network[F]) Trace(tokens []F) (*Trace, error) {
	c, size := n.Config, len(tokens)/n.Config.Features
	p, err := n.parted(Pass{1, size, size}, len(tokens))
	if err != nil {
		return nil, err
	}
	t := &Trace{Tokens: matrix[F]{tokens, c.Features}.copied(size, c.Features)}
	var residual [][][]float64 // embedded; then after attention and after each block
	watch := func(h matrix[F]) { residual = append(residual, h.copied(size, c.Width)) }
	s := &pass[F]{Network: n, Pass: p}
	s.do(tokens, true, watch, func() {
		t.Embedded, t.Outputs = residual[0], s.out.copied(size, c.Outputs)
		for i, l := range s.layers {
			a := &l.attention
			b := BlockTrace{
				Query: a.q.copied(size, c.Width), Key: a.k.copied(size, c.Width), Value: a.v.copied(size, c.Width),
				Weights: make([][][]float64, c.Heads), Mixed: a.y.copied(size, c.Width),
				Attended: residual[1+2*i], Units: l.up.copied(size, c.Hidden), Output: residual[2+2*i],
			}
			for head := range b.Weights {
				for query := range size {
					weights := a.weights.from((query/p.T*c.Heads + head) * p.T)
					var seen []float64
					for key := range a.seen(query % p.T) {
						seen = append(seen, float64(weights.row(key)[query%p.T]))
					}
					b.Weights[head] = append(b.Weights[head], seen)
				}
			}
			t.Blocks = append(t.Blocks, b)
		}
	})
	return t, nil
}

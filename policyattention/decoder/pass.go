package decoder

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// program is a Network compiled for one Readout: its weights without their zeros, and without what cannot reach the
// readout. A coordinate of a token is live at some depth if a path of non-zero weights leads from it to the readout;
// heads and maps that write no live coordinate are left out, which changes no bit of what is read. Behind the last
// block that is left, only tokens whose output is read matter: there the others need keys and values only.
//
// A program is read-only and may be shared.
type program struct {
	width   int
	stages  []stage
	gain    []float64 // of the norm
	readout sparse
	bias    []float64
	passes  sync.Pool // of *pass
}

// stage is what a program keeps of a Block.
type stage struct {
	heads  []headStage
	w1, w2 sparse // nil without ReLU map
	hidden int
}

// headStage is what a program keeps of a Head: o reads the slots that v writes by their places in v.
type headStage struct {
	dim, shift int // see Head
	q, k, v, o sparse
}

// compile prepares passes over n that end in the readout r. It returns the error of validate.
func (n *Network) compile(r *Readout) (*program, error) {
	if err := n.validate(r); err != nil {
		return nil, err
	}
	p := &program{width: n.Width, gain: n.Gain, readout: compress(r.W), bias: r.Bias}
	live := make([]bool, n.Width)
	need := func(m sparse) {
		for _, r := range m {
			for _, e := range r.entries {
				live[e.at] = true
			}
		}
		for j := range live { // behind a norm each depends on all
			live[j] = live[j] || n.Gain != nil && len(m) > 0
		}
	}
	need(p.readout)
	for _, block := range slices.Backward(n.Blocks) {
		var s stage
		if block.W1 != nil {
			if w2 := compress(block.W2); w2.writes(live) {
				s.hidden, _ = block.W1.Dims()
				s.w1, s.w2 = compress(block.W1), w2
				need(s.w1)
			}
		}
		// All heads of a block write to the coordinates live behind it.
		behind := slices.Clone(live)
		for _, head := range block.Heads {
			if h := head.compile(n.HeadDim); h.o.writes(behind) {
				s.heads = append(s.heads, h)
				need(slices.Concat(h.q, h.k, h.v))
			}
		}
		if s.heads != nil || s.w2 != nil {
			p.stages = append(p.stages, s)
		}
	}
	slices.Reverse(p.stages)
	return p, nil
}

func (h Head) compile(dim int) headStage {
	s := headStage{dim: dim, shift: h.Shift, q: compress(h.Q), k: compress(h.K), v: compress(h.V), o: compress(h.O)}
	place := make([]int, dim) // from 1, of what v writes
	for i, r := range s.v {
		place[r.at], s.v[i].at = i+1, i
	}
	for i, r := range s.o {
		s.o[i].entries = slices.DeleteFunc(r.entries, func(e entry) bool { return place[e.at] == 0 })
		for j, e := range s.o[i].entries {
			s.o[i].entries[j].at = place[e.at] - 1
		}
	}
	return s
}

// pass feeds tokens through a program one after the other, as causal decoding with a key–value cache does. Memory
// grows with the number of distinct keys, not with pairs of tokens: 10⁵ tokens pass easily. It must not be shared.
type pass struct {
	*program
	caches [][]cache // [block][head]
	x, u   []float64 // a token, its norm
	hidden []float64
}

// start returns a pass that has seen no token, to be put back into passes.
func (p *program) start() *pass {
	if w, ok := p.passes.Get().(*pass); ok {
		for _, caches := range w.caches {
			for h := range caches {
				caches[h].reset()
			}
		}
		return w
	}
	w := &pass{program: p, x: make([]float64, p.width), u: make([]float64, p.width)}
	for _, s := range p.stages {
		caches := make([]cache, len(s.heads))
		for h, head := range s.heads {
			caches[h] = newCache(head.dim, len(head.v), head.shift)
		}
		w.caches = append(w.caches, caches)
		w.hidden = make([]float64, max(len(w.hidden), s.hidden))
	}
	return w
}

// push feeds a token [width] whose output is not read.
func (p *pass) push(token []float64) { p.feed(token, false) }

// read feeds a token [width] and stores the readout of its output in dst.
func (p *pass) read(dst, token []float64) {
	x := p.normed(p.feed(token, true))
	copy(dst, p.bias)
	p.readout.addTo(dst, x)
}

// normed returns the norm of x, or x itself without norm.
func (p *pass) normed(x []float64) []float64 {
	if p.gain == nil {
		return x
	}
	normalize(p.u, x, p.gain)
	return p.u
}

// feed passes one token through the blocks and returns it.
func (p *pass) feed(token []float64, read bool) []float64 {
	x := p.x
	copy(x, token)
	for b, s := range p.stages {
		caches, full := p.caches[b], read || b+1 < len(p.stages)
		u := p.normed(x)
		for h, head := range s.heads {
			c := &caches[h]
			head.k.mul(c.key, u)
			head.v.mul(c.value, u)
			if c.add(); full {
				head.q.mul(c.query, u)
				c.attend()
			}
		}
		if !full {
			break
		}
		for h, head := range s.heads {
			head.o.addTo(x, caches[h].mixed)
		}
		if s.w2 != nil {
			u, hidden := p.normed(x), p.hidden[:s.hidden]
			clear(hidden)
			s.w1.addTo(hidden, u)
			for i, v := range hidden {
				hidden[i] = math.Max(0, v)
			}
			s.w2.addTo(x, hidden)
		}
	}
	return x
}

// sparse is a matrix without its zero entries, by rows; rows without entries are dropped. A product with it has the
// bits of the full product wherever the vector is finite, because the terms left out are zero.
//
// Sums run in index order, and float64 conversions keep products from being fused into them: the same bits everywhere.
type sparse []sparseRow

// sparseRow is row at of the full matrix.
type sparseRow struct {
	at      int
	entries []entry
}

// entry is a number of a vector other than zero, and where it is.
type entry struct {
	at    int
	value float64
}

// compress returns m without zeros.
func compress(m *mat.Dense) (s sparse) {
	for i := range m.RawMatrix().Rows {
		r := sparseRow{at: i}
		for j, v := range m.RawRowView(i) {
			if v != 0 {
				r.entries = append(r.entries, entry{j, v})
			}
		}
		if r.entries != nil {
			s = append(s, r)
		}
	}
	return s
}

// writes returns whether a row is live.
func (s sparse) writes(live []bool) bool {
	return slices.ContainsFunc(s, func(r sparseRow) bool { return live[r.at] })
}

func (r sparseRow) dot(x []float64) (sum float64) {
	for _, e := range r.entries {
		sum += float64(e.value * x[e.at])
	}
	return sum
}

// mul stores the products of the rows with x in dst, which is zero elsewhere.
func (s sparse) mul(dst, x []float64) {
	for _, r := range s {
		dst[r.at] = r.dot(x)
	}
}

// addTo adds the full product with x to dst.
func (s sparse) addTo(dst, x []float64) {
	for _, r := range s {
		dst[r.at] += r.dot(x)
	}
}

package decoder

import "math"

// pass feeds tokens through a program one after the other, as causal decoding
// with a key–value cache does. Memory grows with the number of distinct keys
// and never with pairs of tokens, so 10⁵ tokens pass easily. A pass must not be
// used concurrently.
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
	if p.norm == nil {
		return x
	}
	p.norm.apply(p.u, x)
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

package decoder

import (
	"slices"
	"sync"
)

// program is a Network compiled for one Readout: its weights without their
// zeros, and without what cannot reach the readout. A coordinate of a token is
// live at some depth if a path of non-zero weights leads from it to the
// readout; heads and maps that write no live coordinate are left out, which
// changes no bit of what is read. Behind the last block that is left, only tokens whose output
// is read matter: there the others need keys and values only.
//
// A program is read-only and may be shared.
type program struct {
	width   int
	stages  []stage
	norm    *LayerNorm
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

// liveness says which coordinates of tokens are live.
type liveness []bool

// reached returns whether a matrix writes a live coordinate.
func (l liveness) reached(m sparse) bool {
	return slices.ContainsFunc(m, func(r sparseRow) bool { return l[r.at] })
}

// need makes the coordinates that a matrix reads live. Behind a norm each depends on all.
func (l liveness) need(m sparse, norm *LayerNorm) {
	for _, r := range m {
		for _, e := range r.entries {
			l[e.at] = true
		}
	}
	for j := range l {
		l[j] = l[j] || norm != nil && len(m) > 0
	}
}

// compile prepares passes over n that end in the readout r. It returns an error if a
// weight has the wrong shape or an entry that is not finite.
func (n *Network) compile(r *Readout) (*program, error) {
	if err := n.validate(r); err != nil {
		return nil, err
	}
	p, live := &program{width: n.Width, norm: n.Norm, readout: compress(r.W), bias: r.Bias}, make(liveness, n.Width)
	live.need(p.readout, n.Norm)
	for _, block := range slices.Backward(n.Blocks) {
		var s stage
		if block.W1 != nil {
			if w2 := compress(block.W2); live.reached(w2) {
				s.hidden, _ = block.W1.Dims()
				s.w1, s.w2 = compress(block.W1), w2
				live.need(s.w1, n.Norm)
			}
		}
		// All heads of a block write to the coordinates live behind it.
		behind := slices.Clone(live)
		for _, head := range block.Heads {
			h := head.compile(n.HeadDim)
			if !behind.reached(h.o) {
				continue
			}
			s.heads = append(s.heads, h)
			for _, m := range []sparse{h.q, h.k, h.v} {
				live.need(m, n.Norm)
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

package decoder

import (
	"slices"
	"sync"
)

// program is a Network compiled for one Readout: its weights without their
// zeros, and without what cannot reach the readout. A coordinate of a token is
// live at some depth if a path of non-zero weights leads from it to the
// readout; heads and maps that write no live coordinate are left out, which
// changes no bit of what is read. Tokens whose output is read and other tokens
// are told apart: the latter matter through keys and values only, so most of
// their work is skipped too.
//
// A program is read-only and may be shared.
type program struct {
	width   int
	stages  []stage
	norm    *LayerNorm
	readout *sparse
	bias    []float64
	passes  sync.Pool // of *pass
}

// stage is what a program keeps of a Block.
type stage struct {
	heads         []headStage
	attentionNorm *LayerNorm
	mapNorm       *LayerNorm
	w1, w2        *sparse
	hidden        int
	mapLive       reach
}

// headStage is what a program keeps of a Head: the slots of queries and keys in
// which both can be non-zero, those of values that can be non-zero and are
// written somewhere, and o with its columns renumbered accordingly.
type headStage struct {
	q, k, v, o *sparse
	live       reach
	shift      int // the place of Head.Shift among the slots, or −1
}

// reach says for which tokens an output is live.
type reach struct{ read, other bool }

func (r reach) includes(read bool) bool { return read && r.read || !read && r.other }

// liveness holds the live coordinates of tokens that are read and of others.
type liveness struct{ read, other []bool }

// reaches says for which tokens one of the coordinates in rows is live.
func (l liveness) reaches(rows []bool) (r reach) {
	for i, v := range rows {
		r.read = r.read || v && l.read[i]
		r.other = r.other || v && l.other[i]
	}
	return r
}

// need makes the coordinates in cols live for the tokens in r. Behind a norm
// each coordinate depends on all.
func (l liveness) need(cols []bool, norm *LayerNorm, r reach) {
	any := false
	for _, v := range cols {
		any = any || v
	}
	for i, v := range cols {
		v = v || any && norm != nil
		l.read[i] = l.read[i] || v && r.read
		l.other[i] = l.other[i] || v && r.other
	}
}

// compile prepares passes over n that end in the readout r. It returns an error if a
// weight has the wrong shape or an entry that is not finite.
func (n *Network) compile(r *Readout) (*program, error) {
	if err := n.validate(r); err != nil {
		return nil, err
	}
	p := &program{width: n.Width, stages: make([]stage, len(n.Blocks)), norm: n.Norm}
	l := liveness{make([]bool, n.Width), make([]bool, n.Width)}
	p.readout, p.bias = compress(r.W, nil, nil), r.Bias
	_, used := nonzero(r.W)
	l.need(used, n.Norm, reach{read: true})
	for b := len(n.Blocks) - 1; b >= 0; b-- {
		block, s := &n.Blocks[b], &p.stages[b]
		s.attentionNorm, s.mapNorm = block.AttentionNorm, block.MapNorm
		if block.W1 != nil {
			s.hidden, _ = block.W1.Dims()
			s.w1, s.w2 = compress(block.W1, nil, nil), compress(block.W2, nil, nil)
			rows, _ := nonzero(block.W2)
			_, cols := nonzero(block.W1)
			s.mapLive = l.reaches(rows)
			l.need(cols, block.MapNorm, s.mapLive)
		}
		// All heads of a block write to the coordinates live behind it.
		behind := liveness{append([]bool(nil), l.read...), append([]bool(nil), l.other...)}
		for _, head := range block.Heads {
			h := compileHead(head, n.Width, behind)
			if h.live == (reach{}) {
				continue
			}
			s.heads = append(s.heads, h)
			_, q := nonzero(head.Q)
			_, k := nonzero(head.K)
			_, v := nonzero(head.V)
			l.need(q, block.AttentionNorm, h.live)
			l.need(k, block.AttentionNorm, reach{true, true})
			l.need(v, block.AttentionNorm, reach{true, true})
		}
	}
	return p, nil
}

func compileHead(h Head, width int, behind liveness) headStage {
	q, _ := nonzero(h.Q)
	k, _ := nonzero(h.K)
	v, _ := nonzero(h.V)
	_, o := nonzero(h.O)
	score, value := both(q, k), both(v, o)
	s := headStage{
		shift: -1,
		q:     compress(h.Q, score, nil),
		k:     compress(h.K, score, nil),
		v:     compress(h.V, value, nil),
		o:     compress(h.O, nil, value),
	}
	if h.Shift > 0 {
		s.shift = slices.IndexFunc(s.k.rows, func(r sparseRow) bool { return r.at == h.Shift })
	}
	slot := make(map[int]int)
	for i, r := range s.v.rows {
		slot[r.at] = i
	}
	written := make([]bool, width)
	for _, r := range s.o.rows {
		written[r.at] = true
		for i, e := range r.entries {
			r.entries[i].at = slot[e.at]
		}
	}
	s.live = behind.reaches(written)
	return s
}

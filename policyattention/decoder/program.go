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

// reach says whether a coordinate or an output is live for tokens that are read, and for others.
type reach struct{ read, other bool }

func (r reach) includes(read bool) bool { return read && r.read || !read && r.other }

func (r reach) or(x reach) reach { return reach{r.read || x.read, r.other || x.other} }

// liveness is the reach of each coordinate of tokens.
type liveness []reach

// reaches says for which tokens what a matrix writes is live.
func (l liveness) reaches(m *sparse) (r reach) {
	for _, row := range m.rows {
		r = r.or(l[row.at])
	}
	return r
}

// need makes the coordinates that a matrix reads live for the tokens in r. Behind a norm
// each coordinate depends on all.
func (l liveness) need(m *sparse, norm *LayerNorm, r reach) {
	for j, column := range m.columns {
		if len(column) > 0 || norm != nil && len(m.rows) > 0 {
			l[j] = l[j].or(r)
		}
	}
}

// compile prepares passes over n that end in the readout r. It returns an error if a
// weight has the wrong shape or an entry that is not finite.
func (n *Network) compile(r *Readout) (*program, error) {
	if err := n.validate(r); err != nil {
		return nil, err
	}
	p := &program{width: n.Width, stages: make([]stage, len(n.Blocks)), norm: n.Norm}
	l := make(liveness, n.Width)
	p.readout, p.bias = compress(r.W, nil, nil), r.Bias
	l.need(p.readout, n.Norm, reach{read: true})
	for b := len(n.Blocks) - 1; b >= 0; b-- {
		block, s := &n.Blocks[b], &p.stages[b]
		s.attentionNorm, s.mapNorm = block.AttentionNorm, block.MapNorm
		if block.W1 != nil {
			s.hidden, _ = block.W1.Dims()
			s.w1, s.w2 = compress(block.W1, nil, nil), compress(block.W2, nil, nil)
			s.mapLive = l.reaches(s.w2)
			l.need(s.w1, block.MapNorm, s.mapLive)
		}
		// All heads of a block write to the coordinates live behind it.
		behind := slices.Clone(l)
		for _, head := range block.Heads {
			h := compileHead(head, behind)
			if h.live == (reach{}) {
				continue
			}
			s.heads = append(s.heads, h)
			l.need(h.q, block.AttentionNorm, h.live)
			l.need(h.k, block.AttentionNorm, reach{true, true})
			l.need(h.v, block.AttentionNorm, reach{true, true})
		}
	}
	return p, nil
}

func compileHead(h Head, behind liveness) headStage {
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
	for _, r := range s.o.rows {
		for i, e := range r.entries {
			r.entries[i].at = slot[e.at]
		}
	}
	s.live = behind.reaches(s.o)
	return s
}

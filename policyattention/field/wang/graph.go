package wang

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// graph builds the values [B] of the queries of prompts [B, 2d+1, n+1], by the network and
// by TD(0) with the fitted step size.
func (n Network) graph(params, prompts *Node) (values, td *Node) {
	r := n.rows()
	matrix := func(at int) *Node { return Reshape(SliceAxis(params, 0, AxisRange(at, at+r*r)), r, r) }
	weights := func(l int) (p, q *Node) {
		at := 2 * r * r * (l % n.blocks())
		return matrix(at), matrix(at + r*r)
	}
	step := Reshape(SliceAxis(params, 0, AxisRange(n.Size()-1, n.Size())), 1, 1)
	p, q := n.td0()
	g := params.Graph()
	td = n.linear(prompts, func(int) (*Node, *Node) { return Mul(Const(g, p), step), Const(g, q) })
	if n.Attention == Linear {
		return n.linear(prompts, weights), td
	}
	z := prompts
	for l := range n.Layers {
		p, q := weights(l)
		z = n.layer(z, p, q)
	}
	last := Slice(z, AxisRange(), AxisRange(r-1, r), AxisRange(n.N, n.N+1))
	return Neg(Reshape(last, -1)), td
}

// td0 returns P and Q [2d+1][2d+1] of TD(0) with the step size 1.
func (n Network) td0() (p, q [][]float64) {
	r := n.rows()
	p, q = make([][]float64, r), make([][]float64, r)
	for i := range r {
		p[i], q[i] = make([]float64, r), make([]float64, r)
	}
	p[r-1][r-1] = 1
	for i := range n.D {
		q[i][i], q[i][n.D+i] = -1, 1
	}
	return p, q
}

// linear builds the values of linear attention. A layer multiplies all columns, the query's
// too, by T = I + (1/n) P K Q from the left, where K [2d+1, 2d+1] is the second moment of the
// keys, the sum of z zᵀ over the context, and so K by T K Tᵀ: the transitions themselves are
// not needed after the first K.
func (n Network) linear(prompts *Node, weights func(l int) (p, q *Node)) *Node {
	r := n.rows()
	keys := SliceAxis(prompts, 2, AxisRange(0, n.N))
	k := Einsum("bki,bli->bkl", keys, keys)
	query := SliceAxis(prompts, 2, AxisRange(n.N, n.N+1)) // [B, 2d+1, 1]
	for l := range n.Layers {
		p, q := weights(l)
		pkq := Einsum("bkl,lm->bkm", Einsum("kl,blm->bkm", p, k), q)
		t := Add(MulScalar(pkq, 1/float64(n.N)), ExpandDims(DiagonalWithValue(ScalarOne(p.Graph(), p.DType()), r), 0))
		query = Einsum("bkl,blm->bkm", t, query)
		if l < n.Layers-1 {
			k = Einsum("bkl,bml->bkm", Einsum("bkl,blm->bkm", t, k), t)
		}
	}
	return Neg(Reshape(SliceAxis(query, 1, AxisRange(r-1, r)), -1))
}

// layer builds Z + P Z M act(ZᵀQZ) of softmax attention for prompts z [B, 2d+1, n+1].
func (n Network) layer(z, p, q *Node) *Node {
	keys := SliceAxis(z, 2, AxisRange(0, n.N)) // the query is not a key: M
	qz := Einsum("kl,blj->bkj", q, z)
	scores := Einsum("bki,bkj->bij", z, qz) // [B, keys, queries]
	axis := 1
	if n.Attention == OverQueries {
		axis = 2
	}
	weights := SliceAxis(Softmax(scores, axis), 1, AxisRange(0, n.N))
	return Add(z, MulScalar(Einsum("bki,bij->bkj", Einsum("kl,bli->bki", p, keys), weights), n.share()))
}

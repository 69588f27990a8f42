package transformer

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// vectorLength is the longest context for which attention is computed by sums of
// vectors over sequences. Its matrix products are then too small for XLA's CPU
// backend, which spends longer on starting one than on its work.
const vectorLength = 32

// attention maps keys, values and unbiased queries [3·Width, T·B] to the outputs
// of the heads [Width, k·B] for the last k tokens.
func (p *pass) attention(block string, k int) layer {
	return func(x *Node) (*Node, back) {
		width, dim, b := p.config.Width, p.config.Width/p.config.Heads, p.b
		t := x.Shape().Dimensions[1] / b
		skipped := (t - k) * b
		part := func(i int) *Node { return SliceAxis(x, 0, AxisRange(i*width, (i+1)*width)) }
		split := func(x *Node) *Node { return Reshape(x, p.config.Heads, dim, -1, b) } // [H, d, T or k, B]
		merge := func(x *Node) *Node { return Reshape(x, width, -1) }

		queries, backQueries := p.shift(block + "qkv")(SliceAxis(part(0), 1, AxisRange(skipped)))
		attend := attendByProducts
		if t <= vectorLength && canMaterialize(x) {
			attend = attendByVectors
		}
		y, backAttend := attend(split(queries), split(part(1)), split(part(2)))
		return merge(y), func(dy *Node) *Node {
			dq, dk, dv := backAttend(split(dy))
			dq = p.prepend(skipped, backQueries(merge(dq)))
			return Concatenate([]*Node{dq, merge(dk), merge(dv)}, 0)
		}
	}
}

type backAttend func(dy *Node) (dq, dk, dv *Node)

// blockLength is the fewest queries that products of their own pay for.
const blockLength = 48

// attendByProducts is softmax attention of queries [H, d, k, B] to keys and values
// [H, d, T, B], by matrix products per head and sequence.
func attendByProducts(q, k, v *Node) (*Node, backAttend) {
	major := func(x *Node) *Node { return materialize(TransposeAllAxes(x, 3, 0, 1, 2)) } // [B, H, d, ·]
	minor := func(x *Node) *Node { return TransposeAllAxes(x, 1, 2, 3, 0) }
	q, k, v = major(q), major(k), major(v)
	queries, keys := q.Shape().Dimensions[3], k.Shape().Dimensions[3]
	// Long contexts are taken in blocks of queries, each with the keys up to its
	// last query: most of what the causal mask hides is then not computed.
	n := max(1, queries/blockLength)
	ys, backs := make([]*Node, n), make([]backAttend, n)
	from := func(i int) int { return i * queries / n }
	for i := range n {
		seen := AxisRange(0, keys-queries+from(i+1))
		ys[i], backs[i] = attendBlock(SliceAxis(q, 3, AxisRange(from(i), from(i+1))), SliceAxis(k, 3, seen), SliceAxis(v, 3, seen))
	}
	return minor(Concatenate(ys, 3)), func(dy *Node) (dq, dk, dv *Node) {
		dy = major(dy)
		dqs := make([]*Node, n)
		for i := n - 1; i >= 0; i-- {
			var dki, dvi *Node
			dqs[i], dki, dvi = backs[i](SliceAxis(dy, 3, AxisRange(from(i), from(i+1))))
			if dk == nil {
				dk, dv = dki, dvi
			} else {
				dk, dv = addFirst(dk, dki), addFirst(dv, dvi)
			}
		}
		return minor(Concatenate(dqs, 3)), minor(dk), minor(dv)
	}
}

// addFirst adds y to the first entries of x along axis 3.
func addFirst(x, y *Node) *Node {
	n := y.Shape().Dimensions[3]
	return Concatenate([]*Node{Add(SliceAxis(x, 3, AxisRange(0, n)), y), SliceAxis(x, 3, AxisRange(n))}, 3)
}

// attendBlock is attention of queries [B, H, d, k] to keys and values [B, H, d, T],
// of which the last k have the queries' places.
func attendBlock(q, k, v *Node) (*Node, backAttend) {
	queries, keys := q.Shape().Dimensions[3], k.Shape().Dimensions[3]
	// Scores [B, H, T, k] have the keys before the queries, so that the sums of
	// softmax are sums of vectors.
	scores := Add(Einsum("bhdk,bhdq->bhkq", k, q), causalMask(q, 3, 2, 1, 1, keys, queries))
	e := materialize(Exp(Sub(scores, ReduceAndKeep(scores, ReduceMax, 2))))
	weights := materialize(Div(e, ReduceAndKeep(e, ReduceSum, 2)))
	return Einsum("bhdk,bhkq->bhdq", v, weights), func(dy *Node) (dq, dk, dv *Node) {
		dWeights := Einsum("bhdk,bhdq->bhkq", v, dy)
		dScores := materialize(Mul(weights, Sub(dWeights, ReduceAndKeep(Mul(dWeights, weights), ReduceSum, 2))))
		return Einsum("bhdk,bhkq->bhdq", k, dScores),
			Einsum("bhdq,bhkq->bhdk", q, dScores),
			Einsum("bhdq,bhkq->bhdk", dy, weights)
	}
}

// attendByVectors is attendByProducts by sums of vectors over sequences, with
// weights [H, k, T, B].
func attendByVectors(q, k, v *Node) (*Node, backAttend) {
	heads, dim, queries, b := q.Shape().Dimensions[0], q.Shape().Dimensions[1], q.Shape().Dimensions[2], q.Shape().Dimensions[3]
	keys := k.Shape().Dimensions[2]
	// All products have the axes [H, d, k, T, B].
	product := func(x, y *Node) *Node {
		full := []int{heads, dim, 1, 1, b}
		for i := range full {
			full[i] = max(x.Shape().Dimensions[i], y.Shape().Dimensions[i])
		}
		return Mul(BroadcastToDims(x, full...), BroadcastToDims(y, full...))
	}
	ofQuery := func(x *Node) *Node { return Reshape(x, heads, dim, queries, 1, b) }
	ofKey := func(x *Node) *Node { return Reshape(x, heads, dim, 1, keys, b) }
	ofPair := func(x *Node) *Node { return Reshape(x, heads, 1, queries, keys, b) }
	contract := func(axis int) func(x, y *Node) *Node {
		return func(x, y *Node) *Node {
			return inParts(axis, max(x.Shape().Dimensions[axis], y.Shape().Dimensions[axis]), Add,
				func(part func(*Node) *Node) *Node { return ReduceSum(product(part(x), part(y)), axis) })
		}
	}
	overFeatures, overQueries, overKeys := contract(1), contract(2), contract(3)
	// Sums and maxima over keys of [H, k, T, B], kept.
	perQuery := func(reduce func(*Node, ...int) *Node, combine func(x, y *Node) *Node, x *Node) *Node {
		return ExpandAxes(inParts(2, keys, combine, func(part func(*Node) *Node) *Node { return reduce(part(x), 2) }), 2)
	}

	q = materialize(q)
	scores := materialize(Add(overFeatures(ofQuery(q), ofKey(k)), causalMask(q, 1, 2, 1, queries, keys, 1)))
	e := materialize(Exp(Sub(scores, perQuery(ReduceMax, Max, scores))))
	weights := materialize(Div(e, perQuery(ReduceSum, Add, e)))
	y := materialize(overKeys(ofPair(weights), ofKey(v)))
	return y, func(dy *Node) (dq, dk, dv *Node) {
		dy = materialize(dy)
		dWeights := materialize(overFeatures(ofQuery(dy), ofKey(v)))
		dScores := materialize(Mul(weights, Sub(dWeights, perQuery(ReduceSum, Add, Mul(dWeights, weights)))))
		return materialize(overKeys(ofPair(dScores), ofKey(k))),
			materialize(overQueries(ofPair(dScores), ofQuery(q))),
			materialize(overQueries(ofPair(weights), ofQuery(dy)))
	}
}

// inParts combines f of the parts of n entries along an axis, 8 at a time: XLA's
// CPU backend writes out so short a reduction, and then works on vectors along the
// minor axis.
func inParts(axis, n int, combine func(x, y *Node) *Node, f func(part func(*Node) *Node) *Node) *Node {
	var total *Node
	for lo := 0; lo < n; lo += 8 {
		x := f(func(x *Node) *Node {
			if x.Shape().Dimensions[axis] == 1 {
				return x
			}
			return SliceAxis(x, axis, AxisRange(lo, min(lo+8, n)))
		})
		if total == nil {
			total = x
		} else {
			total = combine(total, x)
		}
	}
	return total
}

// causalMask is 0 where the key is not later than the query and a number below
// every score elsewhere. The queries are the last ones of the keys; dimensions has
// their numbers at the axes query and key, and 1 elsewhere.
func causalMask(like *Node, query, key int, dimensions ...int) *Node {
	g, shape := like.Graph(), shapes.Make(dtypes.Int32, dimensions...)
	skipped := float64(dimensions[key] - dimensions[query])
	visible := GreaterOrEqual(AddScalar(Iota(g, shape, query), skipped), Iota(g, shape, key))
	return Where(visible, ScalarZero(g, like.DType()), Scalar(g, like.DType(), -1e9))
}

// materialize keeps XLA from computing x again in each of its users. On other
// backends it is x.
func materialize(x *Node) *Node {
	if !canMaterialize(x) {
		return x
	}
	// go-xla leaves out a barrier with a single operand on the CPU.
	return OptimizationBarriers(x, x)[0]
}

func canMaterialize(x *Node) bool {
	return x.Graph().Backend().Capabilities().Operations[compute.OpTypeOptimizationBarrier]
}

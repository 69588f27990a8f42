package fused

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/backend"
)

// vectorLength is the longest context for which attention is computed by sums of
// vectors over sequences. Its matrix products are then too small for XLA's CPU
// backend, which spends longer on starting one than on its work.
const vectorLength = 48

// blockLength is the least number of queries whose scores are one matrix product: with
// smaller ones less is computed that the mask hides, and larger ones are faster.
const blockLength = 56

// attention maps keys, values and unbiased queries [3·Width, T·B] to the outputs
// of the heads [Width, k·B] for the last k tokens.
func (n *Network) attention(block string, k int) layer {
	return func(x *Node) (*Node, back) {
		width, dim, b := n.config.Width, n.config.Width/n.config.Heads, n.b
		t := x.Shape().Dimensions[1] / b
		skipped := (t - k) * b
		part := func(i int) *Node { return SliceAxis(x, 0, AxisRange(i*width, (i+1)*width)) }
		split := func(x *Node) *Node { return Reshape(x, n.config.Heads, dim, -1, b) } // [H, d, T or k, B]
		merge := func(x *Node) *Node { return Reshape(x, width, -1) }

		queries, backQueries := n.shift(block + "qkv")(SliceAxis(part(0), 1, AxisRange(skipped)))
		attend := n.inBlocks(attendByProducts, blockLength)
		if t <= vectorLength {
			attend = n.inBlocks(attendByVectors, 12)
		}
		y, backAttend := attend(split(queries), split(part(1)), split(part(2)))
		return merge(y), func(dy *Node) *Node {
			dq, dk, dv := backAttend(split(dy))
			dq = prepend(skipped, backQueries(merge(dq)))
			return Concatenate([]*Node{dq, merge(dk), merge(dv)}, 0)
		}
	}
}

// attend is softmax attention of queries [H, d, k, B] to keys and values [H, d, T, B],
// with the causal mask or without.
type attend func(q, k, v *Node, causal bool) (y *Node, back backAttend)

type backAttend func(dy *Node) (dq, dk, dv *Node)

// inBlocks is the network's attention with the queries in blocks of at least length,
// each with the keys up to its last query: most of what the causal mask hides is then
// not computed. A block of queries [H, d, k, B] has the last k of its keys' places.
// Without a mask all queries are one block.
func (n *Network) inBlocks(attend attend, length int) func(q, k, v *Node) (*Node, backAttend) {
	return func(q, k, v *Node) (*Node, backAttend) {
		if n.config.Unordered {
			return attend(q, k, v, false)
		}
		part := func(x *Node, from, to int) *Node { return SliceAxis(x, 2, AxisRange(from, to)) }
		queries, keys := q.Shape().Dimensions[2], k.Shape().Dimensions[2]
		blocks := max(1, queries/length)
		from := func(i int) int { return i * queries / blocks }
		ys, backs := make([]*Node, blocks), make([]backAttend, blocks)
		for i := range blocks {
			seen := keys - queries + from(i+1)
			ys[i], backs[i] = attend(part(q, from(i), from(i+1)), part(k, 0, seen), part(v, 0, seen), true)
		}
		// add adds y to the first entries of x.
		add := func(x, y *Node) *Node {
			end, all := y.Shape().Dimensions[2], x.Shape().Dimensions[2]
			return Concatenate([]*Node{Add(part(x, 0, end), y), part(x, end, all)}, 2)
		}
		return Concatenate(ys, 2), func(dy *Node) (dq, dk, dv *Node) {
			dqs := make([]*Node, blocks)
			dqs[blocks-1], dk, dv = backs[blocks-1](part(dy, from(blocks-1), queries))
			for i := blocks - 2; i >= 0; i-- {
				var dki, dvi *Node
				dqs[i], dki, dvi = backs[i](part(dy, from(i), from(i+1)))
				dk, dv = add(dk, dki), add(dv, dvi)
			}
			return Concatenate(dqs, 2), dk, dv
		}
	}
}

// attendByProducts is softmax attention of queries [H, d, k, B] to keys and values
// [H, d, T, B], by matrix products per head and sequence.
func attendByProducts(q, k, v *Node, causal bool) (*Node, backAttend) {
	major := func(x *Node) *Node { return materialize(TransposeAllAxes(x, 3, 0, 1, 2)) } // [B, H, d, ·]
	minor := func(x *Node) *Node { return TransposeAllAxes(x, 1, 2, 3, 0) }
	q, k, v = major(q), major(k), major(v)
	queries, keys := q.Shape().Dimensions[3], k.Shape().Dimensions[3]
	// Scores [B, H, T, k] have the keys before the queries, so that the sums of
	// softmax are sums of vectors.
	scores := masked(Einsum("bhdk,bhdq->bhkq", k, q), causal, 3, 2, 1, 1, keys, queries)
	e := materialize(Exp(Sub(scores, ReduceAndKeep(scores, ReduceMax, 2))))
	// The weights e·inverse are never formed: their pass over all pairs is left out, and
	// so is that of the sum of weights × their slopes, which is ⟨dy, y⟩ (Dao et al.,
	// arXiv 2205.14135).
	inverse := Reciprocal(ReduceAndKeep(e, ReduceSum, 2)) // [B, H, 1, k]
	y := materialize(Mul(Einsum("bhdk,bhkq->bhdq", v, e), inverse))
	return minor(y), func(dy *Node) (dq, dk, dv *Node) {
		dy = materialize(Mul(major(dy), inverse))
		slopes := Einsum("bhdk,bhdq->bhkq", v, dy) // of the weights, × inverse
		dScores := materialize(Mul(e, Sub(slopes, ReduceAndKeep(Mul(dy, y), ReduceSum, 2))))
		return minor(Einsum("bhdk,bhkq->bhdq", k, dScores)),
			minor(Einsum("bhdq,bhkq->bhdk", q, dScores)),
			minor(Einsum("bhdq,bhkq->bhdk", dy, e))
	}
}

// attendByVectors is attendByProducts by sums of vectors over sequences, with
// weights [H, k, T, B].
func attendByVectors(q, k, v *Node, causal bool) (*Node, backAttend) {
	of, keys := q.Shape().Dimensions, k.Shape().Dimensions[2]
	heads, dim, queries, b := of[0], of[1], of[2], of[3]
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
		reduced := inParts(2, keys, combine, func(part func(*Node) *Node) *Node { return reduce(part(x), 2) })
		return ExpandAxes(reduced, 2)
	}

	q = materialize(q)
	scores := materialize(masked(overFeatures(ofQuery(q), ofKey(k)), causal, 1, 2, 1, queries, keys, 1))
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

// masked adds to scores, if causal, 0 where the key is not later than the query and a number below
// every score elsewhere. The queries are the last ones of the keys; dimensions has
// their numbers at the axes query and key, and 1 elsewhere.
func masked(scores *Node, causal bool, query, key int, dimensions ...int) *Node {
	if !causal {
		return scores
	}
	g, shape := scores.Graph(), shapes.Make(dtypes.Int32, dimensions...)
	skipped := float64(dimensions[key] - dimensions[query])
	visible := GreaterOrEqual(AddScalar(Iota(g, shape, query), skipped), Iota(g, shape, key))
	return Add(scores, Where(visible, ScalarZero(g, scores.DType()), Scalar(g, scores.DType(), -1e9)))
}

// materialize keeps XLA from computing x again in each of its users. GoMLX's own backend runs
// operations one by one, and has no barriers.
func materialize(x *Node) *Node {
	if backend.IsGo(x.Graph().Backend()) {
		return x
	}
	// go-xla leaves out a barrier with a single operand on the CPU.
	return OptimizationBarriers(x, x)[0]
}

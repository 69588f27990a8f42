package fused

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"icrl/policyattention/transformer"
)

// Extend reads K new tokens [B, K, Features] after length [B] cached ones, and
// returns their outputs [B, K, Outputs] and the cache with the new tokens
// appended. The cache [Layers, 2, B, C, Width] holds keys and values; what lies
// at or beyond length is never read, and length+K must not exceed C.
//
// Each row of the batch has a length of its own. A caller leaves a row as it
// was by not counting the new tokens in its next length.
//
// A nil cache is an empty one, of which length says nothing; the cache that is
// returned then holds the new tokens and has room for no more.
//
// It panics for an unordered network, whose outputs for earlier tokens depend on later
// ones. The new tokens follow one another, and then the outputs are those of Vectors
// on the whole sequence; or they are alternatives, each of them as if it were
// the only new one.
func (n *Network) Extend(tokens, cache, length *Node, alternatives bool) (outputs, extended *Node) {
	c := n.config
	if c.Unordered {
		exceptions.Panicf("fused: an unordered network has no use for a cache")
	}
	b, k := tokenDims(c, tokens)
	g := tokens.Graph()
	iota := func(axis int, dims ...int) *Node { return Iota(g, shapes.Make(dtypes.Int32, dims...), axis) }

	// Which keys a query sees [B, 1, K, C+K]: cached ones below length, and new
	// ones up to itself, or itself alone.
	mine, other := iota(2, b, 1, k, k), iota(3, b, 1, k, k)
	seen := GreaterOrEqual(mine, other)
	if alternatives {
		seen = Equal(mine, other)
	}
	var place, free *Node
	capacity := 0
	if cache != nil {
		if cache.Rank() != 5 || cache.Shape().Dimensions[0] != c.Layers || cache.Shape().Dimensions[2] != b || cache.Shape().Dimensions[4] != c.Width {
			exceptions.Panicf("fused: cache has shape %s, want [%d, 2, %d, C, %d]", cache.Shape(), c.Layers, b, c.Width)
		}
		capacity = cache.Shape().Dimensions[3]
		old := LessThan(iota(3, b, 1, k, capacity), ExpandAndBroadcast(length, []int{b, 1, k, capacity}, []int{1, 2, 3}))
		seen = Concatenate([]*Node{old, seen}, -1)
		// Where the cache takes new token j: [B, C, K], one-hot in C.
		place = Add(iota(2, b, capacity, k), ExpandAndBroadcast(length, []int{b, capacity, k}, []int{1, 2}))
		place = ConvertDType(Equal(iota(1, b, capacity, k), place), cache.DType())
		free = OneMinus(ReduceAndKeep(place, ReduceSum, -1)) // [B, C, 1]
	}
	mask := Where(seen, ScalarZero(g, tokens.DType()), Scalar(g, tokens.DType(), -1e9))

	dim := c.Width / c.Heads
	heads := func(x *Node, t int) *Node { return Reshape(x, b, t, c.Heads, dim) }
	h := n.linear("embed", Reshape(tokens, b*k, c.Features))
	var layers []*Node
	for l := range c.Layers {
		block := fmt.Sprintf("blocks.%d.", l)
		qkv := Reshape(n.linear(block+"qkv", n.norm(block+"norm1", h)), b, k, 3, c.Width)
		part := func(i int) *Node { return Squeeze(Slice(qkv, AxisRange(), AxisRange(), AxisElem(i)), 2) }
		cached := func(i int) *Node {
			return Reshape(Slice(cache, AxisElem(l), AxisElem(i)), b, capacity, c.Width)
		}
		keys, values := part(1), part(2)
		if cache != nil {
			keys, values = Concatenate([]*Node{cached(0), keys}, 1), Concatenate([]*Node{cached(1), values}, 1)
		}
		keys, values = heads(keys, capacity+k), heads(values, capacity+k)
		scores := MulScalar(Einsum("bqhd,bkhd->bhqk", heads(part(0), k), keys), 1/math.Sqrt(float64(dim)))
		weights := Softmax(Add(scores, mask), -1)
		h = Add(h, n.linear(block+"out", Reshape(Einsum("bhqk,bkhd->bqhd", weights, values), b*k, c.Width)))
		up := MaxScalar(n.linear(block+"up", n.norm(block+"norm2", h)), 0)
		h = Add(h, n.linear(block+"down", up))
		for i := range 2 {
			written := part(1 + i)
			if cache != nil {
				written = Add(Mul(cached(i), free), Einsum("bck,bkw->bcw", place, written))
			}
			layers = append(layers, InsertAxes(written, 0))
		}
	}
	outputs = Reshape(n.linear("head", n.norm("norm", h)), b, k, c.Outputs)
	extended = Concatenate(layers, 0)
	return outputs, Reshape(extended, c.Layers, 2, b, extended.Shape().Dimensions[2], c.Width)
}

func (n *Network) linear(name string, x *Node) *Node {
	return Add(DotProduct(x, n.names[name+".weight"]), ExpandLeftToRank(n.names[name+".bias"], 2))
}

func (n *Network) norm(name string, x *Node) *Node {
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)
	x = Div(centred, Sqrt(AddScalar(variance, transformer.Epsilon)))
	return Add(Mul(x, ExpandLeftToRank(n.names[name+".gain"], 2)), ExpandLeftToRank(n.names[name+".bias"], 2))
}

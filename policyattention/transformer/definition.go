//go:build !js

package transformer

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"

	"icrl/internal/numeric"
)

// Network is a parameter vector bound to a graph of GoMLX: the definition of what package engine computes faster.
type Network struct {
	config Config
	p      map[string]*Node // parameters by name
}

// Bind returns the network with the flat parameter vector [Size].
func Bind(c Config, params *Node) *Network { return &Network{c, Parameters(c, params)} }

// Parameters returns the tensors of the flat parameter vector [Size] by name. It panics, as GoMLX does while a graph is
// built, if the configuration is invalid or the vector has another shape.
func Parameters(c Config, params *Node) map[string]*Node {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if params.Rank() != 1 || params.Shape().Dimensions[0] != c.Size() {
		exceptions.Panicf("transformer: parameters have shape %s, want [%d]", params.Shape(), c.Size())
	}
	p := map[string]*Node{}
	for _, t := range c.Layout() {
		p[t.Name] = Reshape(Slice(params, AxisRange(t.Offset, t.Offset+t.Size())), t.Shape...)
	}
	return p
}

// Vectors maps tokens [B, T, Features] to the outputs [B, T, Outputs]. Those of a token
// depend on that token and earlier ones only, or, if Unordered, on all.
func (n *Network) Vectors(tokens *Node) *Node {
	shape := tokens.Shape().Dimensions
	if g := n.config.Group; g > 0 {
		if shape[1]%g != 0 {
			exceptions.Panicf("transformer: %d tokens in groups of %d", shape[1], g)
		}
		tokens = Reshape(tokens, -1, g, shape[2]) // [B·T/Group, Group, Features]
	}
	h := n.linear("embed", tokens) // [B, T, Width]
	for l := range n.config.Layers {
		block := fmt.Sprintf("blocks.%d.", l)
		h = Add(h, n.attention(block, n.norm(block+"norm1", h))) // [B, T, Width]
		up := n.linear(block+"up", n.norm(block+"norm2", h))     // [B, T, Hidden]
		h = Add(h, n.linear(block+"down", MaxScalar(up, 0)))     // [B, T, Width]
	}
	return Reshape(n.linear("head", n.norm("norm", h)), shape[0], shape[1], -1) // [B, T, Outputs]
}

// Tail is Vectors of the last k tokens, [B, k, Outputs].
func (n *Network) Tail(tokens *Node, k int) *Node {
	t := tokens.Shape().Dimensions[1]
	if k < 1 || k > t {
		exceptions.Panicf("transformer: outputs of %d of %d tokens are wanted", k, t)
	}
	return SliceAxis(n.Vectors(tokens), 1, AxisRange(t-k, t))
}

// attention is causal softmax attention, x [B, T, Width] → [B, T, Width]:
//
//	softmax(QKᵀ/√d + mask)·V for each head of d = Width/Heads features, then a linear map.
func (n *Network) attention(block string, x *Node) *Node {
	c := n.config
	b, t, d := x.Shape().Dimensions[0], x.Shape().Dimensions[1], c.Width/c.Heads
	qkv := n.linear(block+"qkv", x) // [B, T, 3·Width]
	part := func(i int) *Node {     // queries, keys or values [B, T, Heads, d]
		return Reshape(SliceAxis(qkv, -1, AxisRange(i*c.Width, (i+1)*c.Width)), b, t, c.Heads, d)
	}
	scores := Einsum("bqhd,bkhd->bhqk", part(0), part(1)) // [B, Heads, T, T]
	scores = MulScalar(scores, 1/math.Sqrt(float64(d)))   // [B, Heads, T, T]
	if !c.Unordered {
		// Scores of keys that are later than the query are below all others.
		g, shape := x.Graph(), shapes.Make(dtypes.Int32, 1, 1, t, t)
		seen := GreaterOrEqual(Iota(g, shape, 2), Iota(g, shape, 3))                            // [1, 1, T, T]
		scores = Add(scores, Where(seen, ScalarZero(g, x.DType()), Scalar(g, x.DType(), -1e9))) // [B, Heads, T, T]
	}
	weights := Softmax(scores, -1)                         // [B, Heads, T, T], rows sum to 1
	mixed := Einsum("bhqk,bkhd->bqhd", weights, part(2))   // [B, T, Heads, d]
	return n.linear(block+"out", Reshape(mixed, b, t, -1)) // [B, T, Width]
}

// norm is LayerNorm over the features, x [B, T, Width] → [B, T, Width]:
//
//	gain·(x − mean x)/√(var x + ε) + bias.
func (n *Network) norm(name string, x *Node) *Node {
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))                   // [B, T, Width]
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)            // [B, T, 1]
	x = Div(centred, Sqrt(AddScalar(variance, numeric.LayerNormEpsilon))) // [B, T, Width]
	return Add(Mul(x, n.row(name+".gain")), n.row(name+".bias"))          // [B, T, Width]
}

// linear is x·W + b, x [B, T, in] → [B, T, out].
func (n *Network) linear(name string, x *Node) *Node {
	return Add(Einsum("bti,io->bto", x, n.p[name+".weight"]), n.row(name+".bias"))
}

// row is a vector of parameters [out] for every token, [1, 1, out].
func (n *Network) row(name string) *Node { return ExpandLeftToRank(n.p[name], 3) }

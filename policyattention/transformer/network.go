package transformer

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/exceptions"
)

// epsilon keeps LayerNorm finite on constant rows.
const epsilon = 1e-5

// Network is a parameter vector bound to a graph.
type Network struct {
	config Config
	names  map[string]*Node // the parameters by name, shaped
	order  []*Node          // the same in the order of Layout
}

// Bind splits the flat parameter vector [Size] of a graph into its tensors.
// It panics, as GoMLX does while a graph is built, if the shape is another.
func (c Config) Bind(params *Node) *Network {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if params.Rank() != 1 || params.Shape().Dimensions[0] != c.Size() {
		exceptions.Panicf("transformer: parameters have shape %s, want [%d]", params.Shape(), c.Size())
	}
	n := &Network{config: c, names: map[string]*Node{}}
	for _, t := range c.Layout() {
		p := Reshape(Slice(params, AxisRange(t.Offset, t.Offset+t.Size())), t.Shape...)
		n.names[t.Name] = p
		n.order = append(n.order, p)
	}
	return n
}

// Forward maps parameters [Size] and tokens [B, T, Features] to one output
// per token, [B, T]; Outputs must be 1. To train, use [Config.Bind], [Network.Forward] and
// [Network.Gradient].
func (c Config) Forward(params, tokens *Node) *Node {
	return c.Bind(params).Forward(tokens)
}

// Gradient returns the gradient of a scalar with respect to the flat parameter
// vector, [Size].
func (n *Network) Gradient(loss *Node) *Node {
	grads := Gradient(loss, n.order...)
	for i, g := range grads {
		grads[i] = Reshape(g, g.Shape().Size())
	}
	return Concatenate(grads, 0)
}

// Forward maps tokens [B, T, Features] to one output per token, [B, T]; Outputs
// must be 1. The output at a token depends on that token and earlier ones only.
func (n *Network) Forward(tokens *Node) *Node {
	if n.config.Outputs != 1 {
		exceptions.Panicf("transformer: the network has %d outputs per token, want 1: use Vectors", n.config.Outputs)
	}
	return Squeeze(n.Vectors(tokens), -1)
}

// Vectors maps tokens [B, T, Features] to the outputs [B, T, Outputs]. Those of
// a token depend on that token and earlier ones only.
func (n *Network) Vectors(tokens *Node) *Node {
	c := n.config
	if tokens.Rank() != 3 || tokens.Shape().Dimensions[2] != c.Features {
		exceptions.Panicf("transformer: tokens have shape %s, want [B, T, %d]", tokens.Shape(), c.Features)
	}
	b, t := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	// Dense layers see one long list of tokens.
	h := n.linear("embed", Reshape(tokens, b*t, c.Features))
	for l := range c.Layers {
		block := fmt.Sprintf("blocks.%d.", l)
		h = Add(h, n.linear(block+"out", n.attention(n.linear(block+"qkv", n.norm(block+"norm1", h)), b, t)))
		up := MaxScalar(n.linear(block+"up", n.norm(block+"norm2", h)), 0)
		h = Add(h, n.linear(block+"down", up))
	}
	return Reshape(n.linear("head", n.norm("norm", h)), b, t, c.Outputs)
}

func (n *Network) linear(name string, x *Node) *Node {
	return Add(DotProduct(x, n.names[name+".weight"]), ExpandLeftToRank(n.names[name+".bias"], 2))
}

func (n *Network) norm(name string, x *Node) *Node {
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)
	x = Div(centred, Sqrt(AddScalar(variance, epsilon)))
	return Add(Mul(x, ExpandLeftToRank(n.names[name+".gain"], 2)), ExpandLeftToRank(n.names[name+".bias"], 2))
}

// attention maps queries, keys and values [B·T, 3·Width] to head outputs
// [B·T, Width].
func (n *Network) attention(qkv *Node, b, t int) *Node {
	c := n.config
	dim := c.Width / c.Heads
	qkv = Reshape(qkv, b, t, 3, c.Heads, dim)
	part := func(i int) *Node { return Squeeze(Slice(qkv, AxisRange(), AxisRange(), AxisElem(i)), 2) }
	scores := MulScalar(Einsum("bqhd,bkhd->bhqk", part(0), part(1)), 1/math.Sqrt(float64(dim)))
	scores = Add(scores, causalMask(scores, t))
	return Reshape(Einsum("bhqk,bkhd->bqhd", Softmax(scores, -1), part(2)), b*t, c.Width)
}

// causalMask is [1, 1, T, T]: 0 where the key is not later than the query and
// a number below every score elsewhere.
func causalMask(like *Node, t int) *Node {
	g := like.Graph()
	shape := shapes.Make(dtypes.Int32, 1, 1, t, t)
	visible := GreaterOrEqual(Iota(g, shape, 2), Iota(g, shape, 3))
	return Where(visible, ScalarZero(g, like.DType()), Scalar(g, like.DType(), -1e9))
}

package fused

import (
	"fmt"
	"sync/atomic"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/backend"
	"icrl/policyattention/backend/simd"
	"icrl/policyattention/transformer/native"
)

// isNative says that package native takes networks with such parameters or tokens.
func isNative(x *Node) bool {
	return simd.Active() && native.Available && backend.IsGo(x.Graph().Backend()) && x.DType() == dtypes.Float32
}

// nativeCall is a pass by package native.
type nativeCall struct {
	pass                   native.Pass
	params, outputs, saved *Node
}

// nativeFold is Fold for package native.
func (n *Network) nativeFold() []*Node {
	c := n.config
	return function(fmt.Sprintf("transformer fold %+v", c), func(in, out [][]float32, _ int) error {
		return native.Fold(c, in[0], out[0])
	}, []shapes.Shape{shapes.Make(dtypes.Float32, native.FoldedSize(c))}, n.params)
}

// nativeTail is Tail by package native. A network that BindFolded returned has no way back.
func (n *Network) nativeTail(tokens *Node, pass native.Pass) *Node {
	shape := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
	outputs := shape(pass.B, pass.K, pass.Network.Outputs)
	if n.order == nil {
		return function(fmt.Sprintf("transformer outputs %+v", pass), func(in, out [][]float32, workers int) error {
			return pass.Infer(in[0], in[1], out[0], workers)
		}, []shapes.Shape{outputs}, n.params, tokens)[0]
	}
	// The library fails where a graph ends with the first of several results (compute v0.1.2,
	// executeNode), so what may have no use comes first.
	results := function(fmt.Sprintf("transformer forward %+v", pass), func(in, out [][]float32, workers int) error {
		return pass.Forward(in[0], in[1], out[1], out[0], workers)
	}, []shapes.Shape{shape(pass.Saved()), outputs}, n.params, tokens)
	n.call = &nativeCall{pass, n.params, results[1], results[0]}
	return n.call.outputs
}

// gradient is Network.Gradient.
func (c *nativeCall) gradient(loss *Node) *Node {
	slope := Gradient(loss, c.outputs)[0]
	return function(fmt.Sprintf("transformer backward %+v", c.pass), func(in, out [][]float32, workers int) error {
		return c.pass.Backward(in[0], in[1], in[2], out[0], workers)
	}, []shapes.Shape{c.params.Shape()}, c.params, c.saved, slope)[0]
}

var functions atomic.Int64

// function calls a function of Go on inputs of float32, for results of such shapes. The name
// says which one.
func function(name string, f simd.Function, results []shapes.Shape, inputs ...*Node) []*Node {
	simd.StandIn(name, f)
	// To the graph it is a function of its own, of which nothing but the shapes counts. The
	// functions of a graph have different names.
	graph := NewFunction(inputs[0].Graph(), fmt.Sprintf("%s#%d", name, functions.Add(1)), func(g *Graph) []*Node {
		for i, x := range inputs {
			Parameter(g, fmt.Sprintf("input%d", i), x.Shape())
		}
		outputs := make([]*Node, len(results))
		for i, shape := range results {
			outputs[i] = Iota(g, shape, 0)
		}
		return outputs
	})
	return graph.Call(inputs...)
}

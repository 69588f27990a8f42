package fused

import (
	"fmt"
	"sync/atomic"

	"github.com/gomlx/compute"
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

// BlockTokens is about how many tokens a part of MeanGradient best has on a backend; 0 stands
// for any number.
func BlockTokens(on compute.Backend) int {
	if simd.Active() && native.Available && backend.IsGo(on) {
		return native.BlockTokens
	}
	return 0
}

// nativeCall is a pass by package native.
type nativeCall struct {
	pass           native.Pass
	outputs, saved *Node
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
	if n.prepared == nil {
		n.prepared = function(fmt.Sprintf("transformer prepare %+v", pass.Network), func(in, out [][]float32, _ int) error {
			return native.Prepare(pass.Network, in[0], out[0])
		}, []shapes.Shape{shape(native.PreparedSize(pass.Network))}, n.params)[0]
	}
	// The library fails where a graph ends with the first of several results (compute v0.1.2,
	// executeNode), so what may have no use comes first.
	results := function(fmt.Sprintf("transformer forward %+v", pass), func(in, out [][]float32, _ int) error {
		return pass.Forward(in[0], in[1], out[1], out[0])
	}, []shapes.Shape{shape(pass.Saved()), outputs}, n.prepared, tokens)
	n.call = &nativeCall{pass, results[1], results[0]}
	return n.call.outputs
}

// addGradient adds to sum [Size], which is nil at first, the gradient of a scalar.
func (n *Network) addGradient(sum, loss *Node) *Node {
	if sum == nil {
		sum = ZerosLike(n.params)
	}
	pass := n.call.pass
	name := fmt.Sprintf("transformer backward %+v", pass)
	simd.StandInPlace(name, func(in, out [][]float32, _ int) error {
		return pass.Backward(in[0], in[1], in[2], out[0])
	})
	return call(name, []shapes.Shape{sum.Shape()}, n.prepared, n.call.saved, Gradient(loss, n.call.outputs)[0], sum)[0]
}

var functions atomic.Int64

// function calls a function of Go on inputs of float32, for results of such shapes. The name
// says which one.
func function(name string, f simd.Function, results []shapes.Shape, inputs ...*Node) []*Node {
	simd.StandIn(name, f)
	return call(name, results, inputs...)
}

// call calls what stands in for functions of a name.
func call(name string, results []shapes.Shape, inputs ...*Node) []*Node {
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

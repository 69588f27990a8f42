package fused

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/transformer"
)

// Part is a kind of work in a pass, forward and backward. Everything but the
// additions to the residual stream belongs to one.
type Part string

const (
	// Linear is the matrix products with weights, with biases and ReLU, and what
	// prepares the weights: LayerNorm's gains and biases go into them.
	Linear Part = "linear"
	// Attention is everything from queries, keys and values to the heads' outputs.
	Attention Part = "attention"
	// LayerNorm is the division by the root mean square.
	LayerNorm Part = "layer norm"
)

// piece is layers of one part that follow each other. They map activations
// [in, tokens·B].
type piece struct {
	part       Part
	in, tokens int
	layer      layer
}

// part chains layers into a piece of the pass.
func (p *pass) part(part Part, in, tokens int, layers ...layer) layer {
	l := chain(layers...)
	p.pieces = append(p.pieces, piece{part, in, tokens, l})
	return l
}

// Isolate returns one part of a pass of b sequences of t tokens by itself, for
// the outputs of the last k tokens and at exactly the shapes it has there. Its
// layers lie side by side, each with inputs of its own.
//
// The graph maps the parameters [Size] and the layers' inputs, whose shapes are
// inputs, to the gradient of half the sum of all squared outputs: with respect to
// the inputs, and, where the part has parameters, the flat vector [Size].
func Isolate(c transformer.Config, part Part, b, t, k int) (inputs [][]int, graph func([]*Node) []*Node) {
	pieces := func(p *pass) []piece {
		p.trunk(t, k)
		return slices.DeleteFunc(p.pieces, func(q piece) bool { return q.part != part })
	}
	for _, q := range pieces(&pass{config: c}) {
		inputs = append(inputs, []int{q.in, q.tokens * b})
	}
	return inputs, func(in []*Node) []*Node {
		n := Bind(c, in[0])
		p := n.newPass(b)
		var ys, slopes []*Node
		var backs []back
		for i, q := range pieces(p) {
			y, back := q.layer(in[1+i])
			ys, backs = append(ys, y), append(backs, back)
		}
		// As in a step, no layer goes back before all have gone forward.
		if compiles(in[0]) {
			ys = OptimizationBarriers(ys...)
		}
		for i, back := range backs {
			slopes = append(slopes, back(ys[i]))
		}
		if len(p.slopes) > 0 {
			slopes = append(slopes, n.unfold(p))
		}
		return slopes
	}
}

package train

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer/engine"
)

// Outputs is what an objective asks of a network: see [fused.Network].
type Outputs interface {
	Vectors(tokens *Node) *Node
	Tail(tokens *Node, k int) *Node
}

// derive returns the objective of a job for package engine: GoMLX's pure-Go backend b makes the tokens of examples, and
// the slopes of the loss in what the network has made of them.
func derive(b compute.Backend, of Transformer, batches Fixed, data []*tensors.Tensor) (d *derived, err error) {
	outputs := of.Network.Outputs
	d = &derived{outputs: outputs, index: batches.Index(0).Shape().Dimensions[1:]}
	if d.data, err = onDevice(b, data); err != nil {
		return nil, err
	}
	d.tokens, err = NewExec(b, func(in []*Node) *Node {
		network := &given{outputs: outputs}
		of.Objective(network, in[1:], in[:1])
		if d.k == 0 { // the first graph is built before there are several threads
			d.k = network.k
		}
		return network.tokens
	})
	if err != nil {
		return nil, err
	}
	d.slopes, err = NewExec(b, func(in []*Node) (value, slopes *Node) {
		value = of.Objective(&given{answer: in[0]}, in[2:], in[1:2])
		return value, Gradient(value, in[0])[0]
	})
	return d, err
}

// given is a network that answers what it is given, or zeros, and remembers what it was asked.
type given struct {
	tokens, answer *Node
	k, outputs     int
}

// Vectors implements Outputs.
func (g *given) Vectors(tokens *Node) *Node { return g.Tail(tokens, tokens.Shape().Dimensions[1]) }

// Tail implements Outputs.
func (g *given) Tail(tokens *Node, k int) *Node {
	g.tokens, g.k = tokens, k
	if g.answer != nil {
		return g.answer
	}
	return Zeros(tokens.Graph(), shapes.Make(tokens.DType(), tokens.Shape().Dimensions[0], k, g.outputs))
}

// derived implements engine.Objective. It panics where the graph of the objective does.
type derived struct {
	tokens, slopes *Exec
	data           []*tensors.Tensor
	outputs, k     int // of a token, and how many tokens of a sequence have them
	index          []int
}

// ask calls a program on the inputs before the examples and the data.
func (d *derived) ask(program *Exec, examples []int32, inputs ...any) []*tensors.Tensor {
	dims := append([]int{len(examples)}, d.index...)
	inputs = append(inputs, tensors.FromFlatDataAndDimensions(examples, dims...))
	for _, x := range d.data {
		inputs = append(inputs, x)
	}
	return program.MustCall(inputs...)
}

// close frees its programs and its data.
func (d *derived) close() {
	d.tokens.Finalize()
	d.slopes.Finalize()
	for _, x := range d.data {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
}

// Tokens implements engine.Objective.
func (d *derived) Tokens(examples []int32) (engine.Pass, []float32) {
	x := d.ask(d.tokens, examples)[0]
	shape := x.Shape().Dimensions
	return engine.Pass{B: shape[0], T: shape[1], K: d.k}, tensors.MustCopyFlatData[float32](x)
}

// Slopes implements engine.Objective.
func (d *derived) Slopes(examples []int32, batch int, outputs []float32) float64 {
	y := tensors.FromFlatDataAndDimensions(outputs, len(outputs)/(d.k*d.outputs), d.k, d.outputs)
	out, share := d.ask(d.slopes, examples, y), float64(len(examples))/float64(batch)
	tensors.MustConstFlatData(out[1], func(flat []float32) {
		for i, v := range flat {
			outputs[i] = float32(share * float64(v))
		}
	})
	return share * float64(tensors.ToScalar[float32](out[0]))
}

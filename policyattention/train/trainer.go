package train

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/numeric"
	"icrl/policyattention/transformer/engine"
)

// trainer makes the steps of a Transformer by package engine. GoMLX makes the tokens of examples, and the slopes of the
// loss in what the network has made of them. It panics where the graph of the objective does.
type trainer struct {
	network        *engine.Network[float32]
	optimizer      *engine.Optimizer
	tokens, slopes *Exec
	data           []*tensors.Tensor
	index          func(step int) []int32
	k, one         int         // tokens of a sequence that have outputs, and tokens of an example
	gradients      [][]float32 // of parts of a batch
}

// newTrainer returns the trainer of a network on a backend, where the data is, for the parameters of an optimizer.
func newTrainer(b compute.Backend, of Transformer, index func(step int) []int32, data []*tensors.Tensor,
	o *engine.Optimizer) (t *trainer, err error) {
	t = &trainer{optimizer: o, index: index, data: data}
	if t.network, err = o.Network(of.Network); err != nil {
		return nil, err
	}
	t.tokens, err = NewExec(b, func(in []*Node) (asked *Node) {
		of.Objective(func(tokens *Node, k int) *Node {
			asked = tokens
			if t.k == 0 { // the first graph is built before there are several threads
				t.k = k
			}
			batch := tokens.Shape().Dimensions[0]
			return Zeros(tokens.Graph(), shapes.Make(tokens.DType(), batch, k, of.Network.Outputs))
		}, in[1:], in[:1])
		return asked
	})
	if err != nil {
		return nil, err
	}
	one := t.ask(t.tokens, []int32{0})[0].Shape().Dimensions
	t.one = one[0] * one[1]
	t.slopes, err = NewExec(b, func(in []*Node) (value, slopes *Node) {
		value = of.Objective(func(*Node, int) *Node { return in[0] }, in[2:], in[1:2])
		return value, Gradient(value, in[0])[0]
	})
	return t, err
}

// ask calls a program on the inputs before the examples and the data.
func (t *trainer) ask(program *Exec, examples []int32, inputs ...any) []*tensors.Tensor {
	inputs = append(inputs, tensors.FromFlatDataAndDimensions(examples, len(examples), 1))
	for _, x := range t.data {
		inputs = append(inputs, x)
	}
	return program.MustCall(inputs...)
}

// close frees its programs.
func (t *trainer) close() {
	t.tokens.Finalize()
	t.slopes.Finalize()
}

// partTokens are about how many tokens a part of a batch has at least. Each part is work for one
// core, and has a gradient of its own.
const partTokens, maxGradients = 768, 16

// step makes the step of a number, which counts from 1, and returns its loss. Cores, of which there are
// as many as GOMAXPROCS says, share the batch out in parts that do not depend on how many there are.
func (t *trainer) step(step int) (loss float64, err error) {
	examples := t.index(step - 1)
	block := max(1, engine.BlockTokens/t.one)
	blocks := (len(examples) + block - 1) / block
	parts := min(blocks, max(2, min(maxGradients, len(examples)*t.one/partTokens)))
	for len(t.gradients) < parts {
		t.gradients = append(t.gradients, make([]float32, len(t.optimizer.Params)))
	}
	losses := make([]float64, parts)
	err = numeric.Parallel(parts, func(part int) error {
		clear(t.gradients[part])
		for i := part * blocks / parts; i < (part+1)*blocks/parts; i++ {
			some := examples[i*block : min((i+1)*block, len(examples))]
			loss, err := t.block(some, len(examples), t.gradients[part])
			if err != nil {
				return err
			}
			losses[part] += loss
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	t.optimizer.Step(step, 1, t.gradients[:parts])
	for _, x := range losses {
		loss += x
	}
	return loss, nil
}

// block takes some examples of a batch of so many through the network and back, and returns their part of the mean
// loss.
func (t *trainer) block(examples []int32, batch int, gradient []float32) (loss float64, err error) {
	tokens, share := t.ask(t.tokens, examples)[0], float64(len(examples))/float64(batch)
	p := engine.Pass{B: tokens.Shape().Dimensions[0], T: tokens.Shape().Dimensions[1], K: t.k}
	err = t.network.Gradient(p, tensors.MustCopyFlatData[float32](tokens), func(outputs []float32) {
		y := tensors.FromFlatDataAndDimensions(outputs, p.B, p.K, t.network.Config.Outputs)
		out := t.ask(t.slopes, examples, y)
		tensors.MustConstFlatData(out[1], func(flat []float32) {
			for i, v := range flat {
				outputs[i] = float32(share * float64(v))
			}
		})
		loss = share * float64(tensors.ToScalar[float32](out[0]))
	}, gradient)
	return loss, err
}

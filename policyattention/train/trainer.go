package train

import (
	"errors"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/numeric"
	"icrl/policyattention/transformer/engine"
)

// trainer makes the steps of a Transformer by package engine. GoMLX makes the tokens of examples, and the slopes of the
// loss in what the network has made of them.
type trainer struct {
	network        *engine.Network[float32]
	optimizer      *engine.Optimizer
	tokens, slopes *Exec
	data           []*tensors.Tensor
	index          func(step int) []int32
	k, one         int         // tokens of a sequence that have outputs, and tokens of an example
	gradients      [][]float32 // of parts of a batch
}

// newTrainer returns the trainer of a network on a backend, from data, for the parameters of an optimizer. Its first
// call of a program moves the data there, before there are several threads.
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
	_, shape, err := ask(t.tokens, t.data, indices([]int32{0}))
	if err != nil {
		return nil, err
	}
	t.one = shape[0] * shape[1]
	t.slopes, err = NewExec(b, func(in []*Node) (value, slopes *Node) {
		value = of.Objective(func(*Node, int) *Node { return in[0] }, in[2:], in[1:2])
		return value, Gradient(value, in[0])[0]
	})
	return t, err
}

// ask calls a program on inputs, which it frees, and data. It returns what the program puts out, row-major, and the
// shape of the first output.
func ask(program *Exec, data []*tensors.Tensor, inputs ...*tensors.Tensor) (out [][]float32, shape []int, err error) {
	var all []any
	for _, x := range slices.Concat(inputs, data) {
		all = append(all, x)
	}
	made, err := program.Call(all...)
	for i, x := range made {
		if i == 0 {
			shape = x.Shape().Dimensions
		}
		flat, failed := tensors.CopyFlatData[float32](x)
		out, err = append(out, flat), errors.Join(err, failed)
	}
	for _, x := range append(made, inputs...) {
		err = errors.Join(err, x.FinalizeAll())
	}
	return out, shape, err
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
	t.optimizer.Step(step, t.gradients[:parts])
	for _, x := range losses {
		loss += x
	}
	return loss, nil
}

// block takes some examples of a batch of so many through the network and back, and returns their part of the mean
// loss.
func (t *trainer) block(examples []int32, batch int, gradient []float32) (loss float64, err error) {
	tokens, shape, err := ask(t.tokens, t.data, indices(examples))
	if err != nil {
		return 0, err
	}
	p, share := engine.Pass{B: shape[0], T: shape[1], K: t.k}, float64(len(examples))/float64(batch)
	var failed error
	err = t.network.Gradient(p, tokens[0], func(outputs []float32) {
		y := tensors.FromFlatDataAndDimensions(outputs, p.B, p.K, t.network.Config.Outputs)
		var out [][]float32
		if out, _, failed = ask(t.slopes, t.data, y, indices(examples)); failed != nil {
			return
		}
		for i, v := range out[1] {
			outputs[i] = float32(share * float64(v))
		}
		loss = share * float64(out[0][0])
	}, gradient)
	return loss, errors.Join(err, failed)
}

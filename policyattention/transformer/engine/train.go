package engine

import "icrl/policyattention/transformer"

// Objective is what a network is trained to minimize, a mean over the examples of a batch.
type Objective interface {
	// Tokens returns those of some examples [B, T, Features], and what they are to the network.
	Tokens(examples []int32) (Pass, []float32)
	// Slopes replaces outputs [B, K, Outputs] of some examples of a batch of so many by the slopes of
	// their part of the mean, which it returns.
	Slopes(examples []int32, batch int, outputs []float32) (loss float64)
}

// Trainer trains a network.
type Trainer struct {
	*Optimizer
	objective Objective
	network   *Network[float32]
	one       int         // tokens of an example
	gradients [][]float32 // of parts of a batch
}

// NewTrainer returns a trainer of the network of c, whose parameters are those of the optimizer.
func NewTrainer(c transformer.Config, objective Objective, o *Optimizer) (*Trainer, error) {
	n, err := New[float32](c, o.Params)
	if err != nil {
		return nil, err
	}
	o.Params = n.params[:len(o.Params)]
	one, _ := objective.Tokens([]int32{0})
	return &Trainer{o, objective, n, one.B * one.T, nil}, nil
}

// partTokens are about how many tokens a part of a batch has at least. Each part is work for one
// core, and has a gradient of its own.
const partTokens, maxParts = 768, 16

// Step makes the step of a number, which counts from 1, on a batch of examples, and returns its
// loss. Cores, of which there are as many as GOMAXPROCS says, share the batch out in parts that do
// not depend on how many there are.
func (t *Trainer) Step(step int, examples []int32) (loss float64, err error) {
	block := max(1, blockTokens/t.one)
	blocks := (len(examples) + block - 1) / block
	parts := min(blocks, max(2, min(maxParts, len(examples)*t.one/partTokens)))
	for len(t.gradients) < parts {
		t.gradients = append(t.gradients, make([]float32, len(t.Params)))
	}
	losses := make([]float64, parts)
	err = share(parts, func(part int) error {
		gradient := t.gradients[part]
		clear(gradient)
		for i := part * blocks / parts; i < (part+1)*blocks/parts; i++ {
			some := examples[i*block : min((i+1)*block, len(examples))]
			loss, err := t.block(some, len(examples), gradient)
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
	t.Optimizer.Step(step, 1, t.gradients[:parts])
	t.network.pack()
	for _, x := range losses {
		loss += x
	}
	return loss, nil
}

// block takes some examples of a batch through the network and back.
func (t *Trainer) block(examples []int32, batch int, gradient []float32) (loss float64, err error) {
	p, tokens := t.objective.Tokens(examples)
	slopes := func(outputs []float32) { loss = t.objective.Slopes(examples, batch, outputs) }
	err = t.network.Gradient(p, tokens, slopes, gradient)
	return loss, err
}

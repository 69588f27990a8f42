package engine

import (
	"math"

	"icrl/policyattention/transformer"
)

// Objective is what a network is trained to minimize, a mean over the examples of a batch.
type Objective interface {
	// Pass is what so many examples are to the network.
	Pass(examples int) Pass
	// Tokens writes those of some examples [B, T, Features].
	Tokens(examples []int32, into []float32)
	// Slopes replaces outputs [B, K, Outputs] of some examples of a batch of so many by the slopes of
	// their part of the mean, which it returns.
	Slopes(examples []int32, batch int, outputs []float32) (loss float64)
}

// Stored are the tokens of all examples, [N, Runs, T, Features], of each of which the outputs of the
// last K tokens are read: half an Objective.
type Stored struct {
	Values     []float32
	Runs, T, K int
}

// Pass implements Objective.
func (s Stored) Pass(examples int) Pass { return Pass{s.Runs * examples, s.T, s.K} }

// Tokens implements Objective.
func (s Stored) Tokens(examples []int32, into []float32) {
	size := len(into) / len(examples)
	for i, example := range examples {
		copy(into[i*size:][:size], s.Values[int(example)*size:])
	}
}

// Trainer makes steps of an optimizer.
type Trainer struct {
	Objective Objective
	Optimizer transformer.AdamW
	// Params are the parameters [Size], M and V the moments of their gradient. Average is that of the
	// parameters over the steps so far, with a weight of order t⁸ on step t.
	Params, M, V, Average []float32

	network   *Network[float32]
	gradients [][]float32 // of parts of a batch
}

// NewTrainer returns a trainer of the network of c, which goes on from parameters and moments.
func NewTrainer(c transformer.Config, o Objective, optimizer transformer.AdamW, params, m, v, average []float32) (*Trainer, error) {
	n, err := New[float32](c, params)
	if err != nil {
		return nil, err
	}
	t := &Trainer{Objective: o, Optimizer: optimizer, Params: n.params[:len(params)], network: n}
	for _, x := range []struct {
		into *[]float32
		from []float32
	}{{&t.M, m}, {&t.V, v}, {&t.Average, average}} {
		*x.into = make([]float32, len(params))
		copy(*x.into, x.from)
	}
	return t, nil
}

// partTokens are about how many tokens a part of a batch has at least. Each part is work for one
// core, and has a gradient of its own.
const partTokens, maxParts = 768, 16

// averageOrder is η of Shamir and Zhang 2013, arXiv 1212.1824; a larger one forgets faster.
const averageOrder = 8

// Step makes the step of a number, which counts from 1, on a batch of examples, and returns its
// loss. Cores, of which there are as many as GOMAXPROCS says, share the batch out in parts that do
// not depend on how many there are.
func (t *Trainer) Step(step int, examples []int32) (loss float64, err error) {
	one := t.Objective.Pass(1)
	block := max(1, blockTokens/(one.B*one.T))
	blocks := (len(examples) + block - 1) / block
	parts := min(blocks, max(2, min(maxParts, len(examples)*one.B*one.T/partTokens)))
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
	const entries = 1 << 14
	weight := (averageOrder + 1) / float64(step+averageOrder) // the first step has 1
	err = share((len(t.Params)+entries-1)/entries, func(i int) error {
		from, to := i*entries, min((i+1)*entries, len(t.Params))
		sum := t.gradients[0][from:to]
		for _, gradient := range t.gradients[1:parts] {
			for j, v := range gradient[from:to] {
				sum[j] += v
			}
		}
		t.network.adamW(t.Optimizer, step, weight, t.Params[from:to], sum, t.M[from:to], t.V[from:to], t.Average[from:to])
		return nil
	})
	t.network.pack()
	for _, x := range losses {
		loss += x
	}
	return loss, err
}

// block takes some examples of a batch through the network and back.
func (t *Trainer) block(examples []int32, batch int, gradient []float32) (loss float64, err error) {
	p := t.Objective.Pass(len(examples))
	tokens := make([]float32, p.B*p.T*t.network.Config.Features)
	t.Objective.Tokens(examples, tokens)
	err = t.network.Gradient(p, tokens, func(outputs []float32) { loss = t.Objective.Slopes(examples, batch, outputs) }, gradient)
	return loss, err
}

// adamW makes an optimizer step, of a number that counts from 1, and takes a share of the new
// parameters into their average.
func (n *Network[F]) adamW(o transformer.AdamW, step int, share float64, params, gradient, m, v, average []F) {
	// 1 − βᵗ by expm1, which keeps all digits where βᵗ is close to 1.
	correction := func(beta float64) float64 { return -1 / math.Expm1(float64(step)*math.Log(beta)) }
	var rates [10]F
	for i, x := range []float64{
		o.Beta1, 1 - o.Beta1, o.Beta2, 1 - o.Beta2, correction(o.Beta1), correction(o.Beta2),
		o.Epsilon, o.WeightDecay, o.Rate(step), share,
	} {
		rates[i] = F(x)
	}
	n.kernels.adamw(params, gradient, m, v, average, &rates)
}

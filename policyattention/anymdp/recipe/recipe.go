// Package recipe trains the network of package anymdp, by the proximal loss, on states
// that are drawn directly; and runs it on GoMLX.
//
// # Why nothing locks up
//
// A run locks up where the network's error in a logit is as large as the update ηQ there.
// The read-out of the network alone has errors that grow with the scale s of an action, log
// mass included: at 16 nats, one part in a hundred is .16 nats a round, more than most
// updates. Shares of s missed by runs of 3,000 steps (half a core-minute; identity 31800,
// three actions; root mean square, worst of 27,000):
//
//	                                       network        log π added
//	κ = 30                                 .089   .49     .015   .032
//	κ = 30, β₂ = .99                       .015   .11     .0045  .016
//	κ = 100, β₂ = .99                      .19    .91     .029   .065
//	κ = 30, β₂ = .99, empty token          .0002  .0012   .0003  .0010
//	κ = 100, β₂ = .99, empty token         .0001  .0005   .0003  .0008
//	κ = 300, β₂ = .99, empty token         .0002  .0009   .0001  .0004
//
// (log π added: shares of the separation d.) The outputs' common part is of order 1 and
// what is to be told of order 1/κ: without the empty token the sum of a bias and all that
// is alike in the tokens has to cancel to a small part of 1/κ, by far the steepest direction
// of the loss, in which every step misses. The identities of the first recipe, κ = 30 without
// an empty token and 8,000 steps, left 99 of 2,650 problems locked by the network's read-out.
package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/fused"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic.
type Config struct {
	Recipe    string            `json:"recipe"` // "any"
	Seed      uint64            `json:"seed"`   // identity: weights, contexts, order of examples
	Actions   int               `json:"actions"`
	Examples  int               `json:"examples"` // contexts, drawn once
	Batch     int               `json:"batch"`
	Steps     int               `json:"steps"`
	Optimizer transformer.AdamW `json:"optimizer"`
}

// Name is the recipe's name.
const Name = "any"

// Standard is the configuration of the released identities.
func Standard(identity uint64) Config {
	const steps = 6000
	o := transformer.StandardAdamW()
	o.LearningRate, o.Beta2, o.Cosine = 2e-3, .99, steps
	return Config{Recipe: Name, Seed: identity, Actions: 8, Examples: 1 << 15, Batch: 64, Steps: steps, Optimizer: o}
}

// Identities are the seeds of the five training runs.
var Identities = []uint64{31000, 31001, 31002, 31003, 31004}

// All lists the configurations of the five.
func All() (configs []Config) {
	for _, identity := range Identities {
		configs = append(configs, Standard(identity))
	}
	return configs
}

// Validate reports the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Recipe != Name:
		return fmt.Errorf("recipe: %q, want %q", c.Recipe, Name)
	case c.Actions < 3 || c.Actions > 64:
		return fmt.Errorf("recipe: %d actions, want 3 to 64", c.Actions)
	case min(c.Examples, c.Batch, c.Steps) < 1 || max(c.Examples, c.Steps) > 1<<24:
		return fmt.Errorf("recipe: %d examples, batch %d, %d steps: want each from 1 to 2^24", c.Examples, c.Batch, c.Steps)
	case c.Batch > c.Examples:
		return fmt.Errorf("recipe: batches of %d from %d examples", c.Batch, c.Examples)
	case max(c.Optimizer.LearningRate, c.Optimizer.WeightDecay) >= 1:
		return errors.New("recipe: the optimizer's rates are not in [0, 1)")
	}
	if err := c.Optimizer.Validate(); err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	return nil
}

// Network is the shape of the network.
func (c Config) Network() transformer.Config { return anymdp.Shape() }

// Hash returns the SHA-256 of the configuration's JSON in hexadecimal.
func (c Config) Hash() string { return train.Job{Config: c.json()}.Hash() }

func (c Config) json() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // Validate has refused the numbers that JSON cannot hold
	}
	return b
}

// Job is the training run, for [train.Job.Run].
func (c Config) Job() (train.Job, error) {
	if err := c.Validate(); err != nil {
		return train.Job{}, err
	}
	return train.Job{
		Config: c.json(),
		Model: train.Transformer{
			Network:   c.Network(),
			Start:     func() []float32 { return c.Network().Init(seed.New(c.Seed, "any", "init")) },
			Objective: loss, InGo: c.inGo,
		},
		Batches:  train.Fixed{Arrays: c.data, Index: c.batch},
		Examples: c.Batch, Tokens: c.Actions, Optimizer: c.Optimizer, Steps: c.Steps,
	}, nil
}

// batch returns the examples [Batch, 1] of a step: some in a row, from a place drawn for
// the step.
func (c Config) batch(step int) *tensors.Tensor {
	first := seed.New(c.Seed, "any", "batch", step).IntN(c.Examples)
	index := make([]int32, c.Batch)
	for i := range index {
		index[i] = int32((first + i) % c.Examples)
	}
	return tensors.FromFlatDataAndDimensions(index, c.Batch, 1)
}

// data is the tokens [N, A, Features], updates [N, A], priors [N, A] and scales [N, A]
// of all examples.
func (c Config) data() ([]*tensors.Tensor, error) {
	var tokens, updates, priors, scales []float32
	for _, x := range c.Contexts() {
		row := anymdp.Encode(x.Update, x.Prior)
		for a, token := range row.Tokens {
			for _, v := range token {
				tokens = append(tokens, float32(v))
			}
			updates, priors = append(updates, float32(x.Update[a])), append(priors, float32(x.Prior[a]))
			scales = append(scales, float32(row.Scale[a]))
		}
	}
	n, a := c.Examples, c.Actions
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(tokens, n, a, anymdp.Features),
		tensors.FromFlatDataAndDimensions(updates, n, a),
		tensors.FromFlatDataAndDimensions(priors, n, a),
		tensors.FromFlatDataAndDimensions(scales, n, a),
	}, nil
}

// In units of the separation d = 1, a pair that is nearly tied is taken at up to five times the
// temperature of one that is d apart; for the network's read-out, whose error grows with its scale,
// relative to that.
const sharp, tied, tiedNetwork = 2, .2, .5

// loss is the mean over both read-outs, all pairs of actions and all examples of the
// proximal loss of Section 5, less its minimum.
//
// A pair of actions by itself is a state with two actions, and PMD's row restricted to it
// is PMD's row of the pair. Of the two, KL(p‖π) − η⟨p, Q⟩ is minimized at any temperature
// by logits log π + ηQ, and adding w to the logits of p and of π changes no minimizer.
// So each pair is taken with even odds before the update, w = −log π, and at a temperature
// of its own: an action of mass 10⁻¹² teaches as much as one of mass ½. In the loss of
// the whole row it would teach nothing, for p is its weight, and a network trained so
// locks up.
func loss(network *fused.Network, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens, update, prior, scale := part(0), part(1), part(2), part(3)
	outputs := MulScalar(relative(network, tokens), anymdp.Carrier)
	output := func(i int) *Node { return Squeeze(Slice(outputs, AxisRange(), AxisRange(), AxisElem(i)), -1) }
	gap := Abs(differences(update))
	larger := Max(ExpandAxes(scale, 1), Add(ExpandAxes(scale, 2), ZerosLike(gap)))
	added := proximal(output(1), update, Div(Scalar(gap.Graph(), gap.DType(), sharp), AddScalar(gap, tied)))
	alone := proximal(Sub(Mul(scale, output(0)), prior), update,
		Div(Scalar(gap.Graph(), gap.DType(), sharp), Add(gap, MulScalar(larger, tiedNetwork))))
	return Add(added, alone)
}

// relative returns the outputs [B, A, Outputs] of tokens [B, A, Features] less those of
// the empty token.
func relative(network *fused.Network, tokens *Node) *Node {
	b, a := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	// A state of empty tokens alone: all write what one would by itself.
	empty := Const(tokens.Graph(), [][][]float32{slices.Repeat([][]float32{{0, 0, 0, 1}}, a)})
	outputs := network.Tail(Concatenate([]*Node{tokens, empty}, 0), a)
	return Sub(Slice(outputs, AxisRange(0, b)), Slice(outputs, AxisElem(b), AxisElem(0)))
}

// differences returns x_a − x_b [B, A, A] of x [B, A].
func differences(x *Node) *Node { return Sub(ExpandAxes(x, 2), ExpandAxes(x, 1)) }

// proximal is the mean over pairs (a, b) of KL(p‖½) − t⟨p, x⟩, less its minimum, where p
// is the softmax of the pair's changes of logits f, at temperature t; f and x are [B, A],
// t is [B, A, A].
func proximal(f, x, t *Node) *Node {
	f, x = Mul(t, differences(f)), Mul(t, differences(x))
	p := Sigmoid(f)
	// Σ p log p = −p·softplus(−f) − (1−p)·softplus(f), and softplus(−f) = softplus(f) − f.
	entropy := Sub(Mul(p, f), Softplus(f))
	return ReduceAllMean(Add(Sub(entropy, Mul(p, x)), Softplus(x)))
}

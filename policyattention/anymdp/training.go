//go:build !js

package anymdp

import (
	_ "embed" // the released weights
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/numeric"
	"icrl/internal/safetensors"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic. The network is trained by the
// proximal loss on states that are drawn directly: see [Config.Context].
type Config struct {
	Recipe    string            `json:"recipe"` // "any"
	Seed      uint64            `json:"seed"`   // identity: weights, contexts, order of examples
	Actions   int               `json:"actions"`
	Examples  int               `json:"examples"` // contexts, drawn once
	Deepest   float64           `json:"deepest"`  // cliff in a context; the other actions span 1
	Batch     int               `json:"batch"`
	Steps     int               `json:"steps"`
	Optimizer transformer.AdamW `json:"optimizer"`
	Attention train.Attention   `json:"attention,omitempty"` // train.None, an ablation: tokens do not see each other
}

const name = "any"

// Standard is the configuration of the released identities.
func Standard(identity uint64) Config {
	const steps = 6000
	o := transformer.StandardAdamW()
	o.LearningRate, o.Beta2, o.Cosine = 2e-3, .99, steps
	return Config{Recipe: name, Seed: identity, Actions: 8, Examples: 1 << 15, Deepest: 1e12, Batch: 64, Steps: steps,
		Optimizer: o}
}

// Identities are the seeds of the five training runs.
var Identities = []uint64{31000, 31001, 31002, 31003, 31004}

// Validate reports the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Recipe != name:
		return fmt.Errorf("anymdp: %q, want %q", c.Recipe, name)
	case c.Actions < 3 || c.Actions > 64:
		return fmt.Errorf("anymdp: %d actions, want 3 to 64", c.Actions)
	case min(c.Examples, c.Batch, c.Steps) < 1 || max(c.Examples, c.Steps) > 1<<24:
		return fmt.Errorf("anymdp: %d examples, batch %d, %d steps: want 1 to 2^24", c.Examples, c.Batch, c.Steps)
	case !(c.Deepest >= 1 && c.Deepest <= 1e30):
		return fmt.Errorf("anymdp: cliffs of %v, want 1 to 1e30: float32 holds them", c.Deepest)
	case c.Attention != train.Everything && c.Attention != train.None:
		return fmt.Errorf("anymdp: attention %q, want %q or %q", c.Attention, train.None, train.Everything)
	case c.Batch > c.Examples:
		return fmt.Errorf("anymdp: batches of %d from %d examples", c.Batch, c.Examples)
	case max(c.Optimizer.LearningRate, c.Optimizer.WeightDecay) >= 1:
		return errors.New("anymdp: the optimizer's rates are not in [0, 1)")
	}
	return c.Optimizer.Validate()
}

// Network is the shape of the network.
func (c Config) Network() transformer.Config {
	shape := Shape()
	if c.Attention == train.None {
		shape.Group = 1
	}
	return shape
}

// Job is the training run, for [train.Job.Run].
func (c Config) Job() (train.Job, error) {
	start := func() []float32 { return c.Network().Init(seed.New(c.Seed, "any", "init")) }
	return train.Job{Config: c, Model: train.Transformer{Network: c.Network(), Start: start, Objective: loss},
		Batches: train.Batches{Data: c.data, Index: c.batch}, Optimizer: c.Optimizer, Steps: c.Steps,
		Release: c.release}, c.Validate()
}

// batch returns the examples [Batch] of a step: some in a row, from a place drawn for the step.
func (c Config) batch(step int) []int32 {
	first := seed.New(c.Seed, "any", "batch", step).IntN(c.Examples)
	index := make([]int32, c.Batch)
	for i := range index {
		index[i] = int32((first + i) % c.Examples)
	}
	return index
}

// data is the tokens [N, A, Features], updates [N, A], priors [N, A], units [N, A] and scales [N, A] of all examples.
func (c Config) data() ([]*tensors.Tensor, error) {
	a := []int{c.Actions}
	return train.Arrays(c.Examples, func(i int) ([][]float64, error) {
		x := c.Context(i)
		row := Encode(x.Update, x.Prior)
		return [][]float64{slices.Concat(row.Tokens...), x.Update, x.Prior, row.Unit, row.Scale}, nil
	}, []int{c.Actions, Features}, a, a, a, a)
}

// Logits' errors grow with the larger unit or scale of a pair of actions. Its temperature is relative to that: a pair
// that is nearly tied is taken at up to five times, or three times, that of one that is a unit apart.
const sharp, tied, tiedNetwork = 2, .2, .5

// loss is the mean over both read-outs, pairs of actions and examples of Section 5's proximal loss, less its minimum.
//
// A pair of actions by itself is a state with two actions, and PMD's row restricted to it is PMD's row of the pair. Of
// the two, KL(p‖π) − η⟨p, Q⟩ is minimized at any temperature by logits log π + ηQ, and adding w to the
// logits of p and of π changes no minimizer. So each pair is taken with even odds before the update, w = −log π,
// and at a temperature of its own: an action of mass 10⁻¹² teaches as much as one of mass ½. In the loss of the
// whole row it would teach nothing, for p is its weight, and a network trained so locks up.
func loss(network train.Outputs, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens, update, prior, unit, scale := part(0), part(1), part(2), part(3), part(4)
	outputs := MulScalar(relative(network, tokens), Carrier)
	output := func(i int) *Node { return Squeeze(Slice(outputs, AxisRange(), AxisRange(), AxisElem(i)), -1) }
	gap := Abs(differences(update))
	at := func(scale *Node, tied float64) *Node {
		larger := Max(ExpandAxes(scale, 1), Add(ExpandAxes(scale, 2), ZerosLike(gap)))
		return Div(Scalar(gap.Graph(), gap.DType(), sharp), Add(gap, MulScalar(larger, tied)))
	}
	added := proximal(Mul(unit, output(1)), update, at(unit, tied))
	alone := proximal(Sub(Mul(scale, output(0)), prior), update, at(scale, tiedNetwork))
	return Add(added, alone)
}

// relative returns the outputs [B, A, Outputs] of tokens [B, A, Features] less those of the empty token.
//
// The outputs' common part is of order 1 and what is to be told of order 1/κ. Without the empty token the sum of a
// bias and of all that is alike in the tokens has to cancel to a small part of 1/κ, by far the steepest direction of
// the loss, in which every step misses. A run locks up where the network's error in a logit is as large as the update
// ηQ there, and the errors of the network's read-out grow with the scale of an action, log mass included. After
// 3,000 steps they were, as shares of that scale (root mean square, worst of 27,000), .015 and .11 with κ = 30 and
// β₂ = .99, with the empty token .0002 and .0012; with κ = 100 and 300, .0001 and .0005, .0002 and .0009.
func relative(network train.Outputs, tokens *Node) *Node {
	b, a := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	// A state of empty tokens alone: all write what one would by itself.
	empty := Const(tokens.Graph(), [][][]float32{slices.Repeat([][]float32{{0, 0, 0, 1}}, a)})
	outputs := network(Concatenate([]*Node{tokens, empty}, 0), a)
	return Sub(Slice(outputs, AxisRange(0, b)), Slice(outputs, AxisElem(b), AxisElem(0)))
}

// differences returns x_a − x_b [B, A, A] of x [B, A].
func differences(x *Node) *Node { return Sub(ExpandAxes(x, 2), ExpandAxes(x, 1)) }

// proximal is the mean over pairs (a, b) of KL(p‖½) − t⟨p, x⟩, less its minimum, where p is the softmax of the
// pair's changes of logits f, at temperature t; f and x are [B, A], t is [B, A, A].
func proximal(f, x, t *Node) *Node {
	f, x = Mul(t, differences(f)), Mul(t, differences(x))
	p := Sigmoid(f)
	// Σ p log p = −p·softplus(−f) − (1−p)·softplus(f), and softplus(−f) = softplus(f) − f.
	entropy := Sub(Mul(p, f), Softplus(f))
	return ReduceAllMean(Add(Sub(entropy, Mul(p, x)), Softplus(x)))
}

// release changes the head's bias so that the outputs of the empty token are 0. The loss sees outputs less those of the
// empty token only; of released weights outputs can be taken as they are.
func (c Config) release(params []float32) ([]float32, error) {
	network, err := engine.New[float64](c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	empty, err := network.Sequences([][][]float64{{{0, 0, 0, 1}}})
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	params = slices.Clone(params)
	bias := params[len(params)-Outputs:] // last in the layout
	for k, v := range empty[0] {
		bias[k] = float32(float64(bias[k]) - v)
	}
	return params, nil
}

// Changes is what is changed of the standard recipe, as it stands behind a recipe's name; empty for the standard one.
func (c Config) Changes() string {
	if c.Attention == train.Everything {
		return ""
	}
	return "attention=" + string(c.Attention)
}

// Key, Name and Seconds are what the experiments ask of a training run, see method.Training.
func (c Config) Key() string { return name }
func (c Config) Name() string {
	of := name
	if changes := c.Changes(); changes != "" {
		of += "," + changes
	}
	return fmt.Sprintf("%s-%d", of, c.Seed)
}
func (c Config) Seconds() float64 { return 4e-5 * float64(c.Steps*c.Batch*c.Actions) }

// Context is one state to learn from, in units of its own: an update x = ηQ/d [A] and a prior log π/d [A], both
// relative to the largest, so that each is at most 0. PMD's logits are homogeneous, so the unit d is arbitrary, and one
// stands for all rewards, discount factors and step sizes.
type Context struct {
	Update, Prior []float64
}

// Context draws a context on which c trains. It is drawn directly, not from runs on problems: what a loop can meet is a
// prior and an update, and the distribution covers both beyond what loops reach.
//
//   - The update is Gaussian, or nearly tied but for some actions, or heavy-tailed, so
//     that one action is far from all others, or uniform. In four of ten states some actions
//     lie below a cliff, lower by up to Deepest, log-uniform, where the others span 1.
//   - The prior has a scale from 1/20 to 3,000 separations, log-uniform: from early rounds with large steps to masses
//     that take hundreds of rounds to move. It is Gaussian, uniform, or has one action dominate.
//   - A state has from 2 actions to all; the remaining tokens are copies of some of them,
//     which are actions in their own right, exactly tied. So every sequence has the same
//     length, and what an action is given does not depend on how many there are.
//
// The two are drawn independently: any action can be the best one, whatever its mass.
func (c Config) Context(example int) Context {
	rng, n := seed.New(c.Seed, "any", "context", example), c.Actions
	update, prior := drawUpdate(rng, n), drawPrior(rng, n)
	distinct := 2 + rng.IntN(n-1)
	cliffs, deep := rng.IntN(2)*rng.IntN(distinct), numeric.Exp(rng.Float64()*numeric.Log(c.Deepest))
	span := slices.Max(update[:distinct]) - slices.Min(update[:distinct])
	for a := range n {
		if a >= distinct {
			of := rng.IntN(distinct)
			update[a], prior[a] = update[of], prior[of]
		} else if update[a] /= span; a < cliffs {
			update[a] -= deep
		}
	}
	best, top := slices.Max(update), slices.Max(prior)
	for a := range update {
		update[a] -= best
		prior[a] -= top
	}
	return Context{update, prior}
}

func drawUpdate(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	kind := rng.IntN(4)
	for a := range x {
		g := rng.NormFloat64()
		switch kind {
		case 0:
			x[a] = g
		case 1: // nearly tied but for some
			x[a] = float64(1e-3 * rng.NormFloat64())
			if rng.Float64() < .3 {
				x[a] += g
			}
		case 2:
			x[a] = float64(g * numeric.Exp(1.5*rng.NormFloat64()))
		case 3:
			x[a] = 2*rng.Float64() - 1
		}
	}
	return x
}

func drawPrior(rng *rand.Rand, n int) []float64 {
	const least, most = .05, 3000
	scale := least * numeric.Exp(rng.Float64()*numeric.Log(most/least))
	x := make([]float64, n)
	kind := rng.IntN(3)
	for a := range x {
		switch kind {
		case 0:
			x[a] = float64(scale * rng.NormFloat64())
		case 1:
			x[a] = float64(scale * rng.Float64())
		case 2: // one dominates
			x[a] = float64(-.3 * scale * numeric.Exp(2*rng.NormFloat64()))
		}
	}
	return x
}

// A program in a browser is sent over the network before it starts, and is given the weights when it needs them.
//
//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go: see the model card, MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Forward, error) { return Plain(Shape(), released) })

// Plain returns the network of a shape with the weights of a file in plain Go, on all processors. It returns an
// error if a tensor is missing, of another size or not finite.
func Plain(shape transformer.Config, file []byte) (Forward, error) {
	f, err := safetensors.Unmarshal(file)
	if err != nil {
		return nil, fmt.Errorf("anymdp: the weights: %w", err)
	}
	n, err := NewNetwork(shape, safetensors.Floats(f))
	if err != nil {
		return nil, err
	}
	return n.Sequences, nil
}

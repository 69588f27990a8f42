package train

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/seed"
)

// Job returns the training run of c.
func (c Config) Job() (Job, error) {
	names := []string{"tokens", "prior", "gain"}
	if c.Objective == Critic {
		names = []string{"tokens", "exact"}
	}
	return Job{
		Config: c, Model: Transformer{c.Network(), c.start, c.loss},
		Batches:   Batches{Names: names, Data: c.data, Index: c.order()},
		Optimizer: c.Optimizer, Steps: c.Steps, Snapshots: c.Snapshots, Average: c.Recipe.Average,
	}, c.Validate()
}

// start draws the initial parameters.
func (c Config) start() []float32 { return c.Network().Init(seed.New(c.Seed, "train", "init")) }

// order gives the examples [Batch] of a step, counted from 0: a new permutation an epoch, read on without a seam. It is
// a pure function of the seed and the step, which keeps the last permutation.
func (c Config) order() func(step int) []int32 {
	last, permutation := -1, []int(nil)
	return func(step int) []int32 {
		index := make([]int32, c.Batch)
		for i := range index {
			at := step*c.Batch + i
			if epoch := at / c.Examples; epoch != last {
				last, permutation = epoch, seed.New(c.Seed, "train", "order", epoch).Perm(c.Examples)
			}
			index[i] = int32(permutation[at%c.Examples])
		}
		return index
	}
}

// loss returns the scalar objective of a batch.
func (c Config) loss(network Outputs, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens := part(0)
	if c.Objective == Critic { // the mean squared error of the last tokens' outputs to the exact backup
		exact := part(1)
		values := Squeeze(network(tokens, exact.Shape().Dimensions[1]), -1)
		return ReduceAllMean(Square(Sub(values, exact)))
	}
	prior, gain := part(1), part(2)
	logits := Reshape(network(tokens, tokens.Shape().Dimensions[1]), prior.Shape().Dimensions...)
	if c.Recipe.Readout == PriorReadout {
		logits = Add(logits, prior)
	}
	return ReduceAllMean(c.Objective.rows(LogSoftmax(logits, -1), prior, gain))
}

// rows returns an actor objective per state [B, S], from log p, log π and ηQ, each [B, S, A].
func (o Objective) rows(logp, prior, gain *Node) *Node {
	p := Exp(logp)
	switch o {
	case PMDTarget:
		logq := LogSoftmax(Add(prior, gain), -1)
		return ReduceSum(Mul(Exp(logq), Sub(logq, logp)), -1)
	case RewardOnly:
		return Neg(ReduceSum(Mul(p, gain), -1))
	default:
		return ReduceSum(Mul(p, Sub(Sub(logp, prior), gain)), -1)
	}
}

// What the experiments ask of a training run: see method.Training.

// Key is the member of a manifest that a Config is.
func (c Config) Key() string { return "training" }

// usual are budgets of the presets smoke and paper, which names leave out.
var usual = []int{10, 51_200, 6_400}

// Name returns objective-recipe-S8-18100, with the steps before the size where they are not usual.
func (c Config) Name() string {
	parts := []string{string(c.Objective), c.Recipe.Name}
	if !slices.Contains(usual, c.Steps) {
		parts = append(parts, fmt.Sprint(c.Steps))
	}
	return strings.Join(append(parts, fmt.Sprintf("S%d", c.States()), fmt.Sprint(c.Seed)), "-")
}

// Rates of one core of a current x86 server (AVX-512): a training step of a Transformer costs about so many seconds a
// token of its batch, and a little more the longer the context, for attention. Within a factor of two elsewhere.
const (
	SecondsPerToken   = 8e-6
	SecondsPerContext = 1e-8 // a token and token of context
)

// Seconds returns about how long the run takes on one core.
func (c Config) Seconds() float64 {
	tokens := float64(c.ContextTokens())
	return float64(c.Steps*c.Batch) * tokens * (SecondsPerToken + SecondsPerContext*tokens)
}

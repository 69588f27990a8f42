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
	batches := &order{c: c}
	objective := func(network Outputs, data, batch []*Node) *Node {
		parts := make([]*Node, len(data))
		for i, array := range data {
			parts[i] = Gather(array, batch[0])
		}
		return c.loss(network, parts)
	}
	names := []string{"tokens", "prior", "gain"}
	if c.Objective == Critic {
		names = []string{"tokens", "exact"}
	}
	return Job{
		Config: c, Model: Transformer{c.Network(), c.start, objective},
		Batches:   Batches{Names: names, Data: c.data, Index: batches.batch},
		Optimizer: c.Optimizer, Steps: c.Steps, Snapshots: c.Snapshots, Average: c.Recipe.Average,
	}, c.Validate()
}

// start draws the initial parameters.
func (c Config) start() []float32 { return c.Network().Init(seed.New(c.Seed, "train", "init")) }

// order gives the examples of each batch: a new permutation an epoch, read on
// without a seam. It is a pure function of the seed and the step.
type order struct {
	c     Config
	epoch int
	perm  []int
}

// batch returns the examples [Batch] of a step, counted from 0.
func (o *order) batch(step int) []int32 {
	index := make([]int32, o.c.Batch)
	for i := range index {
		at := step*o.c.Batch + i
		if epoch := at / o.c.Examples; o.perm == nil || epoch != o.epoch {
			o.epoch, o.perm = epoch, seed.New(o.c.Seed, "train", "order", epoch).Perm(o.c.Examples)
		}
		index[i] = int32(o.perm[at%o.c.Examples])
	}
	return index
}

// What the experiments ask of a training run: see method.Training.

// Key is the member of a manifest that a Config is.
func (c Config) Key() string { return "training" }

// usual are budgets of the presets smoke and paper, which
// names leave out.
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

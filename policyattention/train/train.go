package train

import (
	"context"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/seed"
	"icrl/policyattention/transformer/fused"
)

// Train trains c in the folder dir: see [Job.Run].
func Train(ctx context.Context, c Config, backend compute.Backend, dir string, progress func(Progress)) (*Result, error) {
	run, err := c.In(dir, progress)
	if err != nil {
		return nil, err
	}
	return run.Job.Run(ctx, backend, dir, progress)
}

// In returns the run of c in the folder dir, for [RunTogether].
func (c Config) In(dir string, progress func(Progress)) (Run, error) {
	if err := c.Validate(); err != nil {
		return Run{}, err
	}
	return Run{Job: c.job(), Dir: dir, Progress: progress}, nil
}

// job is the run that c, which is valid, describes.
func (c Config) job() Job {
	batches := &order{c: c}
	return Job{
		Config: []byte(c.json()),
		Model: Transformer{Network: c.Network(), Start: c.start, InGo: c.inGo, Objective: func(network *fused.Network, data, batch []*Node) *Node {
			parts := make([]*Node, len(data))
			for i, array := range data {
				parts[i] = Gather(array, batch[0])
			}
			return c.loss(network, parts)
		}},
		Batches:  Fixed{c.data, batches.batch},
		Examples: c.Batch, Tokens: c.runs() * c.ContextTokens(slices.Max(c.Sizes)*c.Actions),
		Optimizer: c.Optimizer, Steps: c.Steps, Snapshots: c.Snapshots, Average: c.Recipe.Average,
	}
}

// start draws the initial parameters.
func (c Config) start() []float32 { return c.Network().Init(seed.New(c.Seed, "train", "init")) }

// data is the examples as tensors [Examples, …].
func (c Config) data() ([]*tensors.Tensor, error) {
	e, err := c.examples()
	if err != nil {
		return nil, err
	}
	arrays := make([]*tensors.Tensor, len(e.arrays))
	for k, array := range e.arrays {
		arrays[k] = tensors.FromFlatDataAndDimensions(array, append([]int{c.Examples}, e.shapes[k]...)...)
	}
	return arrays, nil
}

// order gives the examples of each batch: a new permutation an epoch, read on
// without a seam. It is a pure function of the seed and the step.
type order struct {
	c     Config
	epoch int
	perm  []int
}

// batch returns the examples [Batch, 1] of a step, counted from 0.
func (o *order) batch(step int) *tensors.Tensor {
	index := make([]int32, o.c.Batch)
	for i := range index {
		at := step*o.c.Batch + i
		if epoch := at / o.c.Examples; o.perm == nil || epoch != o.epoch {
			o.epoch, o.perm = epoch, seed.New(o.c.Seed, "train", "order", epoch).Perm(o.c.Examples)
		}
		index[i] = int32(o.perm[at%o.c.Examples])
	}
	return tensors.FromFlatDataAndDimensions(index, o.c.Batch, 1)
}

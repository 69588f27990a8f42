package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/backend"
	"icrl/policyattention/transformer/engine"
)

// cores makes the steps of a job on the processor cores of a backend xla:cpu. A batch is taken
// through the network in parts, each by one core; package engine makes the optimizer's step with the
// mean of their gradients. How many cores there are changes no bit: a part is the same program on
// any core, and the order of the sum is that of the parts.
type cores struct {
	*engine.Optimizer
	job       Job
	step      int // steps made
	lanes     []*lane
	gradients [][]float32 // of each part of a batch
}

// lane is a core with its own copy of the data.
type lane struct {
	*backend.Core
	differentiate *Exec
	arrays        []*tensors.Tensor
}

// newCores moves a job to as many cores as there are.
func newCores(b compute.Backend, j Job, s *state) (*cores, error) {
	data, err := j.Batches.Data() // once: it is work
	if err != nil {
		return nil, &fault{0, err}
	}
	parts := j.parts()
	own, err := backend.Cores(b, parts)
	if err != nil {
		return nil, err
	}
	for parts%len(own) != 0 { // a core with fewer parts than another would wait for it
		own[len(own)-1].Close()
		own = own[:len(own)-1]
	}
	c := &cores{Optimizer: j.optimizer(s), job: j, step: s.step}
	for range parts {
		c.gradients = append(c.gradients, make([]float32, len(s.params)))
	}
	for _, core := range own {
		c.lanes = append(c.lanes, &lane{Core: core})
	}
	if err := c.each(func(_ int, l *lane) error { return l.start(j, data) }); err != nil {
		c.finalize()
		return nil, err
	}
	return c, nil
}

// each has every core do f at the same time, with its number.
func (c *cores) each(f func(i int, l *lane) error) error {
	var all errgroup.Group
	for i, l := range c.lanes {
		all.Go(func() error { return l.Do(func() error { return f(i, l) }) })
	}
	return all.Wait()
}

// start moves the run to a core.
func (l *lane) start(j Job, data []*tensors.Tensor) (err error) {
	for _, x := range data {
		own, err := x.LocalClone()
		if err != nil {
			return fmt.Errorf("train: copying data: %w", err)
		}
		l.arrays = append(l.arrays, own)
		if err := move(own, l.Backend, 0); err != nil {
			return err
		}
	}
	l.differentiate, err = NewExec(l.Backend, func(inputs []*Node) (loss, gradient *Node) {
		data := len(inputs) - len(l.arrays)
		return j.gradient(inputs[0], inputs[data:], inputs[1:data])
	})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

func (c *cores) call() int { return 1 }

func (c *cores) steps(n int) ([][]float32, error) {
	losses, parts := make([]float32, n), len(c.gradients)
	for k := range losses {
		batch, err := c.job.batches(c.step, 1, 1, parts)
		if err != nil {
			return nil, &fault{0, err}
		}
		own := make([]float32, parts)
		err = c.each(func(i int, l *lane) (err error) {
			params := tensors.FromFlatDataAndDimensions(c.Params, len(c.Params))
			defer params.FinalizeAll() //nolint:errcheck // nothing is left to do about it
			share := parts / len(c.lanes)
			for part := i * share; part < (i+1)*share && err == nil; part++ {
				own[part], err = l.take(params, batch[part], c.gradients[part])
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("train: step %d: %w", c.step+1, err)
		}
		c.step++
		c.Step(c.step, 1/float64(parts), c.gradients)
		for _, loss := range own {
			losses[k] += loss / float32(parts)
		}
	}
	return [][]float32{losses}, nil
}

// take takes a part of a batch through the network, copies its gradient, and returns its loss.
func (l *lane) take(params *tensors.Tensor, batch []*tensors.Tensor, gradient []float32) (float32, error) {
	inputs := []any{params}
	for _, x := range slices.Concat(batch, l.arrays) {
		inputs = append(inputs, x)
	}
	outputs, err := l.differentiate.Call(inputs...)
	if err != nil {
		return 0, err
	}
	loss, err := flat(outputs[0])
	if err != nil {
		return 0, err
	}
	err = tensors.ConstFlatData(outputs[1], func(from []float32) { copy(gradient, from) })
	return loss[0], errors.Join(err, outputs[0].FinalizeAll(), outputs[1].FinalizeAll())
}

func (c *cores) read(_ int, s *state) error { return s.copyOf(c.Optimizer) }

func (c *cores) finalize() {
	c.each(func(_ int, l *lane) error { //nolint:errcheck // nothing is left to do about it
		for _, x := range l.arrays {
			x.FinalizeAll() //nolint:errcheck // nor about this
		}
		if l.differentiate != nil {
			l.differentiate.Finalize()
		}
		return nil
	})
	for _, l := range c.lanes {
		l.Close()
	}
}

// maxTokens is the number of tokens that XLA takes through a network at once. The
// activations of more do not stay in a core's caches, which costs a sixth of a step's
// time at S = 16; and the temporary buffer of very many does not fit into the memory
// that glibc's allocator keeps for a thread, so that it would be mapped anew for each
// step.
const maxTokens = 1024

// maxParts is how many parts a batch is taken in at most. Algorithm Distillation's
// 128 sequences of 200 tokens want all of them on XLA: a step in 16 parts takes 1.25 times as
// long.
const maxParts = 32

// parts is how many parts a batch is taken in on a CPU: two at least, for two cores.
func (j Job) parts() int {
	n := 1
	for n < maxParts && j.Examples%(2*n) == 0 && (n == 1 || j.Examples/n*j.Tokens > maxTokens) {
		n *= 2
	}
	return n
}

package train

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/backend"
)

// cores makes the steps of a job on the processor cores of a backend xla:cpu. A
// batch is taken through the network in parts, each by one core, and then every
// core makes the optimizer's step with the mean of their gradients. How many cores there are
// changes no bit: a part is the same program on any core, and the order of the sum is that of
// the parts.
type cores struct {
	job   Job
	step  int // steps made
	parts int // of a batch
	lanes []*lane
	quick bool // a step takes less than a tenth of a second
}

// lane is a core and its own copy of the run.
type lane struct {
	*backend.Core
	differentiate, update *Exec
	state, arrays         []*tensors.Tensor // params, m, v, average; those of Batches.Data
	// Gradients of all parts, [parts, Size], of even and of odd steps: another core
	// can be a step ahead with its own.
	gradients [2]*tensors.Tensor
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
	c := &cores{job: j, step: s.step, parts: parts}
	for _, core := range own {
		c.lanes = append(c.lanes, &lane{Core: core})
	}
	if err := c.each(func(_ int, l *lane) error { return l.start(j, data, s, parts) }); err != nil {
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
func (l *lane) start(j Job, data []*tensors.Tensor, s *state, parts int) (err error) {
	for _, x := range data {
		own, err := x.LocalClone()
		if err != nil {
			return fmt.Errorf("train: copying data: %w", err)
		}
		l.arrays = append(l.arrays, own)
	}
	l.state = s.tensors()
	for _, x := range slices.Concat(l.arrays, l.state) {
		if err := move(x, l.Backend, 0); err != nil {
			return err
		}
	}
	for turn := range l.gradients {
		l.gradients[turn], err = tensors.FromShapeForBackend(l.Backend, 0, shapes.Make(dtypes.Float32, parts, len(s.params)))
		if err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	l.differentiate, err = NewExec(l.Backend, func(inputs []*Node) (loss, gradient *Node) {
		data := len(inputs) - len(l.arrays)
		return j.gradient(inputs[0], inputs[data:], inputs[1:data])
	})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	l.update, err = NewExec(l.Backend, func(inputs []*Node) []*Node {
		gradient := func(i int) *Node { return Reshape(Slice(inputs[batchInput], AxisElem(i)), -1) }
		sum := gradient(0)
		for i := 1; i < parts; i++ {
			sum = Add(sum, gradient(i))
		}
		return j.apply(inputs[:batchInput], DivScalar(sum, float64(parts)))
	})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// call is how many steps the cores make without the rest of the program, which has
// to see to interruptions.
func (c *cores) call() int {
	if c.quick {
		return 4
	}
	return 1
}

func (c *cores) steps(n int) ([][]float32, error) {
	batches := make([][][]*tensors.Tensor, n) // by step and part
	for k := range batches {
		var err error
		if batches[k], err = c.job.batches(c.step+k, 1, 1, c.parts); err != nil {
			return nil, &fault{0, err}
		}
	}
	losses := make([][]float32, n) // by step and part
	for k := range losses {
		losses[k] = make([]float32, c.parts)
	}
	began := time.Now()
	meeting := newMeeting(len(c.lanes))
	share := c.parts / len(c.lanes)
	err := c.each(func(i int, l *lane) error {
		for k := range n {
			turn := (c.step + k) % 2
			for part := i * share; part < (i+1)*share; part++ {
				var err error
				if losses[k][part], err = c.take(l, turn, part, batches[k][part]); err != nil {
					return meeting.cancel(fmt.Errorf("train: step %d: %w", c.step+k+1, err))
				}
			}
			if err := meeting.wait(); err != nil {
				return err
			}
			if err := l.apply(turn, c.step+k+1); err != nil {
				return meeting.cancel(fmt.Errorf("train: step %d: %w", c.step+k+1, err))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.step += n
	c.quick = time.Since(began) < time.Duration(n)*time.Second/10
	means := make([]float32, n)
	for k := range losses {
		for _, loss := range losses[k] {
			means[k] += loss / float32(c.parts)
		}
	}
	return [][]float32{means}, nil
}

// take takes a part of a batch through the network on a core, gives its gradient to
// all of them, and returns its loss.
func (c *cores) take(l *lane, turn, part int, batch []*tensors.Tensor) (float32, error) {
	inputs := []any{l.state[0]}
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
	var failed error
	err = tensors.ConstFlatData(outputs[1], func(gradient []float32) {
		for _, to := range c.lanes {
			err := tensors.MutableFlatData(to.gradients[turn], func(all []float32) { copy(all[part*len(gradient):], gradient) })
			failed = errors.Join(failed, err)
		}
	})
	return loss[0], errors.Join(err, failed, outputs[0].FinalizeAll(), outputs[1].FinalizeAll())
}

// apply makes an optimizer step, of a number that counts from 1.
func (l *lane) apply(turn, step int) (err error) {
	var inputs []any
	for _, x := range l.state {
		buffer, err := DonateTensorBuffer(x, l.Backend, 0)
		if err != nil {
			return err
		}
		inputs = append(inputs, buffer)
	}
	l.state, err = l.update.Call(append(inputs, int32(step), l.gradients[turn])...)
	return err
}

func (c *cores) read(_ int, s *state) error { return s.read(c.lanes[0].state) }

func (c *cores) finalize() {
	c.each(func(_ int, l *lane) error { //nolint:errcheck // nothing is left to do about it
		for _, x := range slices.Concat(l.state, l.arrays, l.gradients[:]) {
			if x == nil {
				continue // the start failed
			}
			x.FinalizeAll() //nolint:errcheck // nor about this
		}
		for _, e := range []*Exec{l.differentiate, l.update} {
			if e != nil {
				e.Finalize()
			}
		}
		return nil
	})
	for _, l := range c.lanes {
		l.Close()
	}
}

// meeting is where cores wait for each other, again and again.
type meeting struct {
	mu      sync.Mutex
	all     *sync.Cond
	n       int // cores
	waiting int
	number  int // of this meeting
	err     error
}

func newMeeting(n int) *meeting {
	m := &meeting{n: n}
	m.all = sync.NewCond(&m.mu)
	return m
}

// wait returns when all are here, or with an error when one of them will not come.
func (m *meeting) wait() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := m.number
	if m.waiting++; m.waiting == m.n {
		m.waiting = 0
		m.number++
		m.all.Broadcast()
	}
	for number == m.number && m.err == nil {
		m.all.Wait()
	}
	return m.err
}

// cancel ends the meetings with an error, which it returns.
func (m *meeting) cancel(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	m.all.Broadcast()
	return err
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

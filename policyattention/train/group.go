package train

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/backend"
)

// stepper makes steps of runs that are on a device.
type stepper interface {
	call() int // steps of a call, at most
	// steps makes the next n steps of every run in a call and returns their losses,
	// by run.
	steps(n int) ([][]float32, error)
	// read copies run i from the device.
	read(i int, s *state) error
	finalize()
}

// newStepper moves runs to the device, each where its state says.
func newStepper(b compute.Backend, execution Execution, jobs []Job, states []*state) (stepper, error) {
	if backend.IsGo(b) && len(jobs) == 1 {
		if model, ok := jobs[0].inGo(); ok {
			return newLocal(jobs[0], model, states[0])
		}
	}
	if backend.IsXLACPU(b) && execution.StepsPerCall <= 1 && len(jobs) == 1 {
		return newCores(b, jobs[0], states[0])
	}
	return newGroup(b, execution, jobs, states)
}

// group holds jobs of one kind on the device and makes steps of all of them
// with one computation.
type group struct {
	backend compute.Backend
	jobs    []Job
	size    int // steps of a call, at most
	exec    *Exec
	batch   int                 // arrays of a batch
	step    []int               // steps made, by job
	state   [][]*tensors.Tensor // by job: params, m, v, average
	arrays  [][]*tensors.Tensor // by job: those of Job.Data
}

func newGroup(backend compute.Backend, execution Execution, jobs []Job, states []*state) (*group, error) {
	g := &group{backend: backend, jobs: jobs, size: max(1, execution.StepsPerCall)}
	for i, j := range jobs {
		data, err := j.Batches.Data()
		if err != nil {
			g.finalize()
			return nil, &fault{i, err}
		}
		values := states[i].tensors()
		for _, x := range slices.Concat(data, values) {
			if err := move(x, backend, 0); err != nil {
				return nil, err
			}
		}
		g.state, g.arrays = append(g.state, values), append(g.arrays, data)
	}
	for i, s := range states {
		if n := len(g.arrays[i]); n != len(g.arrays[0]) {
			return nil, fmt.Errorf("train: runs of different kinds together, with %d and with %d arrays of data", len(g.arrays[0]), n)
		}
		g.step = append(g.step, s.step)
	}
	return g, nil
}

// compile makes the computation of a call for batches of some arrays.
func (g *group) compile(batch int) (err error) {
	g.batch = batch
	if g.exec, err = NewExec(g.backend, g.build); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// The inputs of the computation are, for each job, params, m, v, average, the
// number of the step, the arrays of its batch, and those of Batches.Data; its outputs
// are params, m, v, average and the loss. Where a call makes several steps, the
// number is that of the first, batches and losses have a leading axis [size],
// the losses are inputs too, behind the arrays, to be filled in; and before all
// else come the numbers 0 and of the steps to make.
const (
	kept       = 4 // params, m, v, average
	stepInput  = 4
	batchInput = 5 // the first
)

// build is the computation of a call.
func (g *group) build(inputs []*Node) []*Node {
	if g.size > 1 {
		return g.loop(inputs)
	}
	var outputs []*Node
	for i, j := range g.jobs {
		outputs = append(outputs, g.update(j, g.part(inputs, i))...)
	}
	return outputs
}

// part returns what belongs to job i of equal parts.
func (g *group) part(nodes []*Node, i int) []*Node {
	n := len(nodes) / len(g.jobs)
	return nodes[i*n:][:n:n]
}

// loop makes several steps on the device. GoMLX keeps one node a graph for
// equal constants, and a closure cannot use another's: so only the body has
// any, and everything else is made of parameters.
func (g *group) loop(inputs []*Node) []*Node {
	closure := func(build func(state []*Node) []*Node) *Function {
		return NewClosure(inputs[0].Graph(), func(graph *Graph) []*Node {
			state := make([]*Node, len(inputs))
			for i, x := range inputs {
				state[i] = Parameter(graph, fmt.Sprintf("state%d", i), x.Shape())
			}
			return build(state)
		})
	}
	body := closure(func(state []*Node) []*Node {
		done := state[0]
		next := []*Node{OnePlus(done), state[1]}
		for i, j := range g.jobs {
			part := g.part(state[2:], i)
			last := len(part) - 1
			step := slices.Clone(part[:last])
			step[stepInput] = Add(part[stepInput], done)
			for k := range g.batch {
				step[batchInput+k] = at(part[batchInput+k], done)
			}
			updated := g.update(j, step)
			losses := put(part[last], done, updated[kept])
			next = append(append(append(next, updated[:kept]...), part[kept:last]...), losses)
		}
		return next
	})
	condition := closure(func(state []*Node) []*Node { return []*Node{LessThan(state[0], state[1])} })
	state := While(condition, body, inputs...)
	var outputs []*Node
	for i := range g.jobs {
		part := g.part(state[2:], i)
		outputs = append(append(outputs, part[:kept]...), part[len(part)-1])
	}
	return outputs
}

// update is a step of a job as a graph: (params, m, v, average, step, batch…,
// data…) → (params, m, v, average, loss).
func (g *group) update(j Job, inputs []*Node) []*Node {
	data := batchInput + g.batch
	loss, gradient := j.gradient(inputs[0], inputs[data:], inputs[batchInput:data])
	return append(j.apply(inputs[:batchInput], gradient), loss)
}

// at returns x[i], for a scalar i.
func at(x, i *Node) *Node { return Gather(x, Reshape(i, 1)) }

// put returns the vector x with x[i] = value, for a scalar i.
func put(x, i, value *Node) *Node {
	here := Equal(Iota(x.Graph(), shapes.Make(i.DType(), x.Shape().Dimensions...), 0), i)
	return Where(here, value, x)
}

func (g *group) call() int { return g.size }

func (g *group) steps(n int) ([][]float32, error) {
	var inputs []any
	if g.size > 1 {
		inputs = append(inputs, int32(0), int32(n))
	}
	for i, j := range g.jobs {
		batches, err := j.batches(g.step[i], n, g.size, 1)
		if err != nil {
			return nil, &fault{i, err}
		}
		if g.exec == nil {
			if err := g.compile(len(batches[0])); err != nil {
				return nil, err
			}
		}
		for _, x := range g.state[i] {
			buffer, err := DonateTensorBuffer(x, g.backend, 0)
			if err != nil {
				return nil, fmt.Errorf("train: %w", err)
			}
			inputs = append(inputs, buffer)
		}
		inputs = append(inputs, int32(g.step[i]+1))
		for _, x := range slices.Concat(batches[0], g.arrays[i]) {
			inputs = append(inputs, x)
		}
		if g.size > 1 {
			inputs = append(inputs, make([]float32, g.size))
		}
	}
	outputs, err := g.exec.Call(inputs...)
	if err != nil {
		return nil, fmt.Errorf("train: step %d: %w", g.step[0]+1, err)
	}
	losses := make([][]float32, len(g.jobs))
	for i := range g.jobs {
		part := outputs[i*(kept+1):][:kept+1]
		g.state[i] = part[:kept]
		values, err := flat(part[kept])
		if err != nil {
			return nil, fmt.Errorf("train: reading from the device: %w", err)
		}
		if err := part[kept].FinalizeAll(); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		losses[i] = values[:n]
		g.step[i] += n
	}
	return losses, nil
}

func (g *group) read(i int, s *state) error { return s.read(g.state[i]) }

// tensors are what is kept of a run between its steps, [kept] of them.
func (s *state) tensors() (all []*tensors.Tensor) {
	for _, x := range [kept][]float32{s.params, s.m, s.v, s.average} {
		all = append(all, tensors.FromFlatDataAndDimensions(x, len(x)))
	}
	return all
}

// read copies them back.
func (s *state) read(all []*tensors.Tensor) error {
	for k, into := range [kept]*[]float32{&s.params, &s.m, &s.v, &s.average} {
		values, err := flat(all[k])
		if err != nil {
			return fmt.Errorf("train: reading from the device: %w", err)
		}
		*into = values
	}
	return nil
}

// move leaves a tensor on a device alone.
func move(x *tensors.Tensor, b compute.Backend, d compute.DeviceNum) error {
	if err := x.MaterializeOnDevice(b, false, d); err != nil {
		return fmt.Errorf("train: moving data to the device: %w", err)
	}
	x.FinalizeLocal()
	return nil
}

// flat copies a tensor's values.
func flat(x *tensors.Tensor) (values []float32, err error) {
	err = x.ConstFlatData(func(data any) { values = append(values, data.([]float32)...) })
	return values, err
}

func (g *group) finalize() {
	for _, x := range slices.Concat(slices.Concat(g.state...), slices.Concat(g.arrays...)) {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
	if g.exec != nil {
		g.exec.Finalize()
	}
}

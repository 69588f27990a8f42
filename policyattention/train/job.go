package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer"
)

// Job is a training run of any network of package transformer. [Train] makes
// one from a Config; other learned methods make their own.
type Job struct {
	// Config is the JSON of everything that the weights depend on, but for the
	// backend's arithmetic. It names the run and is stored with it.
	Config    []byte
	Network   transformer.Config
	Optimizer transformer.AdamW
	Steps     int
	Snapshots []int // steps after which weights are kept, ascending
	// Average releases, in place of the last step's parameters, their average
	// over the steps so far, with a weight of order t⁸ on step t: it reaches
	// back over about the last fifth of the run (polynomial-decay averaging,
	// Shamir and Zhang 2013, arXiv 1212.1824) and is without most of the noise
	// that a constant learning rate leaves. Training itself is the same.
	Average bool
	Init    func() []float32                  // the initial parameters [Network.Size]
	Data    func() ([]*tensors.Tensor, error) // arrays that stay on the device
	Batch   func(step int) *tensors.Tensor    // which examples a step is made on; steps count from 0
	// Loss builds the scalar to minimize from the arrays and the batch.
	Loss func(network *transformer.Network, data []*Node, batch *Node) *Node
}

// averageOrder is η of Shamir and Zhang; a larger one forgets faster.
const averageOrder = 8

var ( // shortened in tests
	saveEvery   = 30 * time.Second // at most so much work is lost to a kill
	reportEvery = 500 * time.Millisecond
)

// Progress is what a run tells about itself.
type Progress struct {
	Step, Steps    int
	Loss           float64 // of the last step
	StepsPerSecond float64 // since this call of Train began
}

// Result is a finished run.
type Result struct {
	Weights        string         // path of the final weights
	Snapshots      map[int]string // paths of the weights kept on the way, by step
	Losses         []float32      // the objective on each step's batch [Steps]
	WallSeconds    float64        // over all interruptions, compilation included
	CPUSeconds     float64        // of the whole process meanwhile
	StepsPerSecond float64        // Steps / WallSeconds
}

// Run trains in the folder dir and returns where the weights are. Progress,
// which may be nil, is called about twice a second.
//
// The run is a function of the job and the backend: interrupted at any moment,
// even by SIGKILL, and called again with the same folder, it continues and ends
// with the same bytes. When ctx is done, Run saves the run and returns ctx's
// cause. A finished run is returned at once. It errs when dir belongs to another
// configuration or another process is using it.
func (j Job) Run(ctx context.Context, backend compute.Backend, dir string, progress func(Progress)) (*Result, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("train: locking %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("train: another process is training in %s", dir)
	}
	defer lock.Unlock()

	path := filepath.Join(dir, "state.safetensors")
	s, err := j.loadState(path)
	if errors.Is(err, os.ErrNotExist) {
		s, err = j.start(), nil
	}
	if err != nil {
		return nil, err
	}
	if s.step < j.Steps {
		if err := j.run(ctx, backend, dir, path, &s, progress); err != nil {
			return nil, err
		}
	}
	r := &Result{
		Weights: filepath.Join(dir, "weights.safetensors"), Snapshots: map[int]string{}, Losses: s.losses,
		WallSeconds: s.wall, CPUSeconds: s.cpu, StepsPerSecond: float64(j.Steps) / s.wall,
	}
	if _, _, err := j.readWeights(r.Weights); err != nil {
		// The state is the record; the weights are taken from it.
		if err := j.saveWeights(r.Weights, s); err != nil {
			return nil, err
		}
	}
	for _, step := range j.Snapshots {
		r.Snapshots[step] = snapshotPath(dir, step)
		if _, _, err := j.readWeights(r.Snapshots[step]); err != nil {
			return nil, fmt.Errorf("%w: remove %s to train again", err, dir)
		}
	}
	return r, nil
}

func snapshotPath(dir string, step int) string {
	return filepath.Join(dir, fmt.Sprintf("weights-%d.safetensors", step))
}

// start is a run before its first step.
func (j Job) start() state {
	params := j.Init()
	zeros := make([]float32, len(params))
	return state{params: params, m: zeros, v: zeros, average: zeros}
}

// run takes s to the last step.
func (j Job) run(ctx context.Context, backend compute.Backend, dir, path string, s *state, progress func(Progress)) error {
	began, wall, cpu, first := time.Now(), s.wall, s.cpu-cpuSeconds(), s.step
	t, err := j.newTrainer(backend, *s)
	if err != nil {
		return err
	}
	defer t.finalize()
	save := func() error {
		if err := t.read(s); err != nil {
			return err
		}
		s.wall, s.cpu = wall+time.Since(began).Seconds(), cpu+cpuSeconds()
		return j.saveState(path, *s)
	}
	saved, reported := time.Now(), time.Now()
	snapshots := map[int]bool{}
	for _, step := range j.Snapshots {
		snapshots[step] = true
	}
	for s.step < j.Steps {
		if ctx.Err() != nil {
			if err := save(); err != nil {
				return err
			}
			return fmt.Errorf("train: stopped after step %d: %w", s.step, context.Cause(ctx))
		}
		loss, err := t.step(s.step+1, j.Batch(s.step))
		if err != nil {
			return err
		}
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			return fmt.Errorf("train: the loss of step %d is %v", s.step+1, loss)
		}
		s.step++
		s.losses = append(s.losses, loss)
		if snapshots[s.step] {
			if err := t.read(s); err != nil {
				return err
			}
			if err := j.saveWeights(snapshotPath(dir, s.step), *s); err != nil {
				return err
			}
		}
		if s.step == j.Steps || time.Since(saved) > saveEvery {
			if err := save(); err != nil {
				return err
			}
			saved = time.Now()
		}
		if progress != nil && (s.step == j.Steps || time.Since(reported) > reportEvery) {
			reported = time.Now()
			progress(Progress{
				Step: s.step, Steps: j.Steps, Loss: float64(loss),
				StepsPerSecond: float64(s.step-first) / time.Since(began).Seconds(),
			})
		}
	}
	return nil
}

// trainer holds a run on the device.
type trainer struct {
	backend compute.Backend
	exec    *Exec
	state   []*tensors.Tensor // params, m, v, average
	arrays  []*tensors.Tensor // of Job.Data
}

func (j Job) newTrainer(backend compute.Backend, s state) (*trainer, error) {
	arrays, err := j.Data()
	if err != nil {
		return nil, err
	}
	t := &trainer{backend: backend, arrays: arrays}
	for _, values := range [][]float32{s.params, s.m, s.v, s.average} {
		t.state = append(t.state, tensors.FromFlatDataAndDimensions(values, len(values)))
	}
	for _, x := range append(t.arrays[:len(t.arrays):len(t.arrays)], t.state...) {
		if err := x.MaterializeOnDevice(backend, false, 0); err != nil {
			return nil, fmt.Errorf("train: moving data to the device: %w", err)
		}
		x.FinalizeLocal()
	}
	t.exec, err = NewExec(backend, j.update)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return t, nil
}

// update is one optimizer step as a graph: (params, m, v, average, step, batch,
// arrays…) → (params, m, v, average, loss).
func (j Job) update(inputs []*Node) []*Node {
	params, m, v, average, step, batch := inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5]
	network := j.Network.Bind(params)
	loss := j.Loss(network, inputs[6:], batch)
	params, m, v = j.Optimizer.Step(params, network.Gradient(loss), m, v, step)
	// The first step has the share 1.
	share := Inverse(DivScalar(AddScalar(ConvertDType(step, average.DType()), averageOrder), averageOrder+1))
	average = Add(average, Mul(share, Sub(params, average)))
	return []*Node{params, m, v, average, loss}
}

// step performs optimizer step number step, counted from 1.
func (t *trainer) step(step int, batch *tensors.Tensor) (float32, error) {
	inputs := make([]any, 0, 6+len(t.arrays))
	for _, x := range t.state {
		buffer, err := DonateTensorBuffer(x, t.backend, 0)
		if err != nil {
			return 0, fmt.Errorf("train: %w", err)
		}
		inputs = append(inputs, buffer)
	}
	inputs = append(inputs, tensors.FromScalar(int32(step)), batch)
	for _, x := range t.arrays {
		inputs = append(inputs, x)
	}
	outputs, err := t.exec.Call(inputs...)
	if err != nil {
		return 0, fmt.Errorf("train: step %d: %w", step, err)
	}
	t.state = outputs[:4]
	loss := tensors.ToScalar[float32](outputs[4])
	return loss, outputs[4].FinalizeAll()
}

// read copies the run from the device.
func (t *trainer) read(s *state) error {
	for i, into := range []*[]float32{&s.params, &s.m, &s.v, &s.average} {
		values, err := flat(t.state[i])
		if err != nil {
			return fmt.Errorf("train: reading from the device: %w", err)
		}
		*into = values
	}
	return nil
}

// flat copies a tensor's values.
func flat(x *tensors.Tensor) (values []float32, err error) {
	err = x.ConstFlatData(func(data any) { values = append(values, data.([]float32)...) })
	return values, err
}

func (t *trainer) finalize() {
	for _, x := range append(t.state, t.arrays...) {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
	if t.exec != nil {
		t.exec.Finalize()
	}
}

// cpuSeconds is the processor time of this process so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

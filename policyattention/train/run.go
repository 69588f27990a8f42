package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
)

var ( // shortened in tests
	saveEvery   = 30 * time.Second // at most so much work is lost to a kill
	reportEvery = 500 * time.Millisecond
)

// Progress is what a run tells about itself.
type Progress struct {
	Step, Steps    int
	Loss           float64 // of the last step
	StepsPerSecond float64 // since this call of Run began
}

// Result is a finished run.
type Result struct {
	Weights        string            // path of the final weights
	Snapshots      map[int]string    // paths of the weights kept on the way, by step
	Losses         []float32         // the objective on each step's batch [Steps]
	WallSeconds    float64           // over all interruptions, compilation included
	CPUSeconds     float64           // of the whole process meanwhile
	StepsPerSecond float64           // Steps / WallSeconds
	Stretches      []backend.Stretch // of its steps, in order
}

// Run trains in the folder dir and returns where the weights are; a job that is made alone is its own run. Progress,
// which may be nil, is called about twice a second.
//
// The run is a function of the job and the backend: interrupted at any moment, even by SIGKILL, and called again with
// the same folder, it continues and ends with the same bytes. When ctx is done, Run saves the run and returns ctx's
// cause. A finished run is returned at once. It returns an error when dir belongs to another configuration or another
// process is using it, and on a loss that is not finite.
func (j Job) Run(ctx context.Context, b compute.Backend, dir string, progress func(Progress)) (*Result, error) {
	if j.Alone != nil {
		return j.Alone(ctx, dir, progress)
	}
	if err := j.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("train: locking %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("train: another process is training in %s", dir)
	}
	defer lock.Unlock() //nolint:errcheck // the process's end would unlock it too
	s, err := j.loadState(statePath(dir))
	if errors.Is(err, os.ErrNotExist) {
		s, err = j.start(), nil
	}
	if err == nil && s.step < j.Steps {
		err = j.advance(ctx, b, dir, s, progress)
	}
	if err != nil {
		return nil, err
	}
	return j.result(dir, s)
}

// advance makes the steps that are left, and saves them every saveEvery, at the end, and when ctx is
// done. A run with rollouts is saved before a rollout only: it goes on from its state alone.
func (j Job) advance(ctx context.Context, b compute.Backend, dir string, s *state, progress func(Progress)) error {
	session, err := newSession(b, j, s)
	if err != nil {
		return err
	}
	defer session.Close()
	on := backend.Stretch{Backend: backend.Describe(b).Name, CPU: backend.Processor()}
	began, first, reported := time.Now(), s.step, time.Now()
	saved, cpu := began, backend.ProcessorTime()
	save := func() error {
		s.wall, s.cpu = s.wall+time.Since(saved).Seconds(), s.cpu+(backend.ProcessorTime()-cpu).Seconds()
		saved, cpu = time.Now(), backend.ProcessorTime()
		return j.saveState(statePath(dir), s)
	}
	for {
		done, stopped := s.step == j.Steps, ctx.Err() != nil
		if s.step%j.Batches.every() == 0 && (done || stopped || time.Since(saved) > saveEvery) {
			if err := save(); err != nil || done {
				return err
			}
			if stopped {
				const format = "train: stopped after step %d, which is saved; called again it goes on from there: %w"
				return fmt.Errorf(format, s.step, context.Cause(ctx))
			}
		}
		losses, err := session.Steps(1)
		if err != nil {
			return err
		}
		s.made(on)
		if slices.Contains(j.Snapshots, s.step) {
			if err := j.saveWeights(snapshotPath(dir, s.step), s); err != nil {
				return err
			}
		}
		if progress != nil && (s.step == j.Steps || time.Since(reported) > reportEvery) {
			reported = time.Now()
			rate := float64(s.step-first) / time.Since(began).Seconds()
			progress(Progress{Step: s.step, Steps: j.Steps, Loss: float64(losses[0]), StepsPerSecond: rate})
		}
	}
}

// result checks and returns what a finished run has left.
func (j Job) result(dir string, s *state) (*Result, error) {
	r := &Result{
		Weights: filepath.Join(dir, "weights.safetensors"), Snapshots: map[int]string{}, Losses: s.losses,
		WallSeconds: s.wall, CPUSeconds: s.cpu, StepsPerSecond: float64(j.Steps) / s.wall, Stretches: s.stretches,
	}
	if err := j.Check(r.Weights, j.Steps); err != nil {
		// The state is the record; the weights are taken from it.
		if err := j.saveWeights(r.Weights, s); err != nil {
			return nil, err
		}
	}
	for _, step := range j.Snapshots {
		r.Snapshots[step] = snapshotPath(dir, step)
		if err := j.Check(r.Snapshots[step], step); err != nil {
			return nil, fmt.Errorf("%w: remove %s to train again", err, dir)
		}
	}
	return r, nil
}

func statePath(dir string) string { return filepath.Join(dir, "state.safetensors") }

func snapshotPath(dir string, step int) string {
	return filepath.Join(dir, fmt.Sprintf("weights-%d.safetensors", step))
}

// Export writes what an independent implementation needs to repeat the first steps of a
// job whose batches are indices: the initial parameters by name; the arrays of the data by theirs; and
// "index" [steps, Examples], an index for each example of a batch.
func (j Job) Export(path string, steps int) error {
	if j.Batches.Index == nil {
		return errors.New("train: batches cannot be exported, unless they are indices")
	}
	arrays, err := j.Batches.Data()
	if err != nil {
		return err
	}
	if len(arrays) != len(j.Batches.Names) {
		return fmt.Errorf("train: %d names for %d arrays", len(j.Batches.Names), len(arrays))
	}
	f := &safetensors.File{Tensors: j.named(j.Model.Init())}
	add := func(name string, shape []int, data any) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	for i, x := range arrays {
		name := j.Batches.Names[i]
		if err := x.ConstFlatData(func(data any) { add(name, x.Shape().Dimensions, data) }); err != nil {
			return fmt.Errorf("train: exporting %s: %w", name, err)
		}
	}
	var index []int32
	for step := range steps {
		index = append(index, j.Batches.Index(step)...)
	}
	add("index", []int{steps, len(index) / max(1, steps)}, index)
	return safetensors.WriteFile(path, f)
}

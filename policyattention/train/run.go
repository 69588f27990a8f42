package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
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
	for s.step < j.Steps {
		if stopped := ctx.Err() != nil; s.step%j.Batches.every() == 0 && (stopped || time.Since(saved) > saveEvery) {
			if err := save(); err != nil {
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
	return save()
}

// result checks and returns what a finished run has left.
func (j Job) result(dir string, s *state) (*Result, error) {
	r := &Result{Weights: filepath.Join(dir, "weights.safetensors"), Snapshots: map[int]string{}, Losses: s.losses,
		WallSeconds: s.wall, CPUSeconds: s.cpu, StepsPerSecond: float64(j.Steps) / s.wall, Stretches: s.stretches}
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

// state is a run between two steps.
type state struct {
	step      int
	optimizer *engine.Optimizer // the parameters, and what AdamW keeps of them
	losses    []float32         // one per step so far
	wall, cpu float64           // seconds spent, over all interruptions
	stretches []backend.Stretch // of the steps so far
}

// start is a run before its first step.
func (j Job) start() *state {
	return &state{optimizer: engine.NewOptimizer(j.Optimizer, j.Clip, j.Model.Init())}
}

// made says that the last step was made on a backend and a processor.
func (s *state) made(on backend.Stretch) {
	on.Step = s.step
	if n := len(s.stretches); n > 0 && s.stretches[n-1].Backend == on.Backend && s.stretches[n-1].CPU == on.CPU {
		s.stretches[n-1] = on
	} else {
		s.stretches = append(s.stretches, on)
	}
}

// saveState stores a run so that it can be resumed.
func (j Job) saveState(path string, s *state) error {
	f := &safetensors.File{Metadata: j.metadata(s.step)}
	f.Metadata["wall_seconds"] = strconv.FormatFloat(s.wall, 'g', -1, 64)
	f.Metadata["cpu_seconds"] = strconv.FormatFloat(s.cpu, 'g', -1, 64)
	f.Metadata["stretches"] = string(JSON(s.stretches))
	for _, part := range j.stored(s) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: part.name, Shape: []int{part.size}, Data: *part.of})
	}
	return write(path, f)
}

// part is a vector of a state.
type part struct {
	name string
	of   *[]float32
	size int
}

// stored lists the vectors of a state that are stored. An average that is not released is left out.
func (j Job) stored(s *state) []part {
	o, n := s.optimizer, len(s.optimizer.Params)
	all := []part{{"params", &o.Params, n}, {"m", &o.M, n}, {"v", &o.V, n}, {"losses", &s.losses, s.step}}
	if j.Average {
		all = append(all, part{"average", &o.Average, n})
	}
	return all
}

func (j Job) metadata(step int) map[string]string {
	config := JSON(j.Config)
	return map[string]string{"config": string(config), "config_sha256": Hash(config), "step": strconv.Itoa(step)}
}

// loadState reads a run of this very configuration.
func (j Job) loadState(path string) (*state, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if config := JSON(j.Config); f.Metadata["config"] != string(config) {
		return nil, fmt.Errorf("train: %s belongs to another configuration (%.12s, this is %.12s): use another folder",
			path, f.Metadata["config_sha256"], Hash(config))
	}
	s := j.start()
	if s.step, err = strconv.Atoi(f.Metadata["step"]); err != nil || s.step < 0 || s.step > j.Steps {
		return nil, fmt.Errorf("train: %s is at step %q of %d", path, f.Metadata["step"], j.Steps)
	}
	// Durations are for the record: unreadable ones count as zero.
	s.wall, _ = strconv.ParseFloat(f.Metadata["wall_seconds"], 64)
	s.cpu, _ = strconv.ParseFloat(f.Metadata["cpu_seconds"], 64)
	if err := json.Unmarshal([]byte(f.Metadata["stretches"]), &s.stretches); err != nil {
		return nil, fmt.Errorf("train: %s: stretches: %w", path, err)
	}
	for _, part := range j.stored(s) {
		if *part.of, err = safetensors.Get[float32](f, part.name); err == nil && len(*part.of) != part.size {
			err = fmt.Errorf("%d values of %s, want %d", len(*part.of), part.name, part.size)
		}
		if err != nil {
			return nil, fmt.Errorf("train: %s: %w", path, err)
		}
	}
	return s, nil
}

// saveWeights releases the weights of a run as it is now, named and shaped as in the network's Layout.
func (j Job) saveWeights(path string, s *state) error {
	params := s.optimizer.Params
	if j.Average {
		params = s.optimizer.Average
	}
	if j.Release != nil {
		var err error
		if params, err = j.Release(params); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	return write(path, &safetensors.File{Metadata: j.metadata(s.step), Tensors: j.named(params)})
}

// named returns parameters as named and shaped in the model's Layout.
func (j Job) named(params []float32) (all []safetensors.Tensor) {
	for _, t := range j.Model.Layout() {
		all = append(all, safetensors.Tensor{Name: t.Name, Shape: t.Shape, Data: params[t.Offset:][:t.Size()]})
	}
	return all
}

// Params reads the flat parameters after a step of this very job. It refuses any other file, and one that was changed.
func (j Job) Params(path string, step int) ([]float32, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	config := JSON(j.Config)
	if at := f.Metadata["step"]; f.Metadata["config"] != string(config) || at != strconv.Itoa(step) {
		return nil, fmt.Errorf("train: %s holds step %s of configuration %.12s, want step %d of %.12s", path, at,
			f.Metadata["config_sha256"], step, Hash(config))
	}
	return flat(path, f, j.Model.Layout())
}

// flat returns the parameters of a layout that a file of weights holds.
func flat(path string, f *safetensors.File, layout []transformer.Tensor) ([]float32, error) {
	params, err := transformer.Flat(layout, safetensors.Floats(f))
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", path, err)
	}
	return params, nil
}

// Check returns an error unless a file holds the weights after a step of this very job.
func (j Job) Check(path string, step int) error {
	if j.Holds != nil {
		return j.Holds(path, step)
	}
	_, err := j.Params(path, step)
	return err
}

// write stores a file with the digest of everything else in it, without which open refuses it.
func write(path string, f *safetensors.File) (err error) {
	if f.Metadata["sha256"], err = digest(f); err != nil {
		return err
	}
	return safetensors.WriteFile(path, f)
}

// digest returns the digest of a file but for its own.
func digest(f *safetensors.File) (string, error) {
	bare := safetensors.File{Metadata: maps.Clone(f.Metadata), Tensors: f.Tensors}
	delete(bare.Metadata, "sha256")
	b, err := safetensors.Marshal(&bare)
	return Hash(b), err
}

// open reads a file that write stored.
func open(path string) (*safetensors.File, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	want, err := digest(f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("train: %s: %w", path, err)
	case f.Metadata["sha256"] == "":
		return nil, fmt.Errorf("train: %s states no digest: it holds other weights than those that are read here", path)
	case f.Metadata["sha256"] != want:
		return nil, fmt.Errorf("train: %s has been changed: its digest is not the one it states", path)
	case !json.Valid([]byte(f.Metadata["config"])):
		return nil, fmt.Errorf("train: %s states no configuration", path)
	}
	return f, nil
}

// Package fit trains models of some hundred parameters in float64, on batches that are a
// pure function of the step. A run that is interrupted continues and ends in the same bytes.
//
// It is not a train.Trainable: package train keeps its parameters in float32, with AdamW's decoupled
// decay, and the sources here take Adam with an L2 penalty; what is measured of the trained layers
// is compared with constructions to more digits than float32 has.
package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/safetensors"
	"icrl/policyattention/transformer"
)

// Job is a training run.
type Job struct {
	// Config is the JSON of everything that the parameters depend on, but for the
	// backend's arithmetic. It is stored with the run and names it.
	Config []byte
	Init   []float64
	Steps  int
	Keep   []int // steps after which the parameters are kept, ascending; the last is Steps
	// Optimizer is Adam with the penalty Decay·‖params‖²/2 on the loss (torch's Adam
	// with weight_decay), not with AdamW's decoupled decay.
	Rate, Decay float64
	// Batch returns the inputs of Loss for a step from 0; each is of the same shape in
	// every step.
	Batch func(step int) ([]*tensors.Tensor, error)
	// Loss builds the scalar to minimize from the parameters [len(Init)].
	Loss func(params *Node, batch []*Node) *Node
}

// Fit is a run up to some step.
type Fit struct {
	Config []byte // of its Job
	Step   int
	Kept   []int       // the steps of Job.Keep up to Step
	Params [][]float64 // after each of Kept [len(Kept)][len(Init)]
	// Losses are the means of the batches' losses since the step kept before
	// [len(Kept)].
	Losses []float64

	params, m, v []float64
	sum          float64 // of the losses since the last step kept
}

// saveEvery is the work that a kill can lose.
var saveEvery = 20 * time.Second // shortened in tests

func (j Job) validate() error {
	switch {
	case !json.Valid(j.Config):
		return errors.New("fit: the configuration is not JSON")
	case len(j.Init) == 0 || j.Steps < 1:
		return fmt.Errorf("fit: %d parameters and %d steps, want at least one of each", len(j.Init), j.Steps)
	case len(j.Keep) == 0 || j.Keep[0] < 1 || !slices.IsSorted(j.Keep) || j.Keep[len(j.Keep)-1] != j.Steps:
		return fmt.Errorf("fit: steps to keep are %v, want ascending ones from 1 to %d", j.Keep, j.Steps)
	case !(j.Rate > 0 && !math.IsInf(j.Rate, 1) && j.Decay >= 0 && !math.IsInf(j.Decay, 1)):
		return fmt.Errorf("fit: learning rate %v and decay %v, want a positive and a non-negative number", j.Rate, j.Decay)
	}
	return nil
}

// Run trains and returns the finished run, which it leaves in the file path. Called again
// with the same job and file it continues, or returns at once if nothing is left. When ctx is
// done it saves and returns ctx's cause. It returns an error if the file holds another job's
// run or a loss is not finite.
func (j Job) Run(ctx context.Context, on compute.Backend, path string) (*Fit, error) {
	if err := j.validate(); err != nil {
		return nil, err
	}
	f, err := Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		zeros := make([]float64, len(j.Init))
		f = &Fit{Config: j.Config, params: j.Init, m: zeros, v: zeros}
	case err != nil:
		return nil, err
	case string(f.Config) != string(j.Config) || len(f.params) != len(j.Init):
		return nil, fmt.Errorf("fit: %s holds a run of another configuration", path)
	}
	if f.Step >= j.Steps {
		return f, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	if err := j.steps(ctx, on, f, path); err != nil {
		return nil, err
	}
	return f, nil
}

// steps makes what is left of a run.
func (j Job) steps(ctx context.Context, on compute.Backend, f *Fit, path string) error {
	exec, err := NewExec(on, func(in []*Node) []*Node {
		params, m, v, step := in[0], in[1], in[2], in[3]
		loss := j.Loss(params, in[4:])
		gradient := Add(Gradient(loss, params)[0], MulScalar(params, j.Decay))
		adam := transformer.AdamW{LearningRate: j.Rate, Beta1: .9, Beta2: .999, Epsilon: 1e-8}
		params, m, v = adam.Step(params, gradient, m, v, step)
		return []*Node{params, m, v, loss}
	})
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	defer exec.Finalize()
	state := []any{f.params, f.m, f.v}
	saved := time.Now()
	for f.Step < j.Steps {
		batch, err := j.Batch(f.Step)
		if err != nil {
			return fmt.Errorf("fit: the batch of step %d: %w", f.Step, err)
		}
		in := append(slices.Clone(state), float64(f.Step+1))
		for _, b := range batch {
			in = append(in, b)
		}
		out, err := exec.Call(in...)
		if err != nil {
			return fmt.Errorf("fit: step %d: %w", f.Step, err)
		}
		f.params, f.m, f.v = tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1]), tensors.MustCopyFlatData[float64](out[2])
		loss := tensors.ToScalar[float64](out[3])
		for _, x := range append(out, batch...) {
			if err := x.FinalizeAll(); err != nil {
				return fmt.Errorf("fit: step %d: %w", f.Step, err)
			}
		}
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return fmt.Errorf("fit: the loss is %v in step %d", loss, f.Step)
		}
		state = []any{f.params, f.m, f.v}
		f.Step++
		f.sum += loss
		if slices.Contains(j.Keep, f.Step) {
			f.keep()
		}
		stop := ctx.Err() != nil
		if stop || f.Step == j.Steps || time.Since(saved) > saveEvery {
			if err := f.write(path); err != nil {
				return err
			}
			saved = time.Now()
		}
		if stop && f.Step < j.Steps {
			return context.Cause(ctx)
		}
	}
	return nil
}

// keep takes a snapshot.
func (f *Fit) keep() {
	last := 0
	if len(f.Kept) > 0 {
		last = f.Kept[len(f.Kept)-1]
	}
	f.Kept, f.Params = append(f.Kept, f.Step), append(f.Params, f.params)
	f.Losses, f.sum = append(f.Losses, f.sum/float64(f.Step-last)), 0
}

// write stores a run: "params", "m" and "v" [n] and "sum" [1], from where it continues;
// "kept" [k], "losses" [k] and "snapshots" [k, n].
func (f *Fit) write(path string) error {
	n := len(f.params)
	kept, snapshots := make([]int64, len(f.Kept)), make([]float64, 0, len(f.Kept)*n)
	for i, step := range f.Kept {
		kept[i] = int64(step)
		snapshots = append(snapshots, f.Params[i]...)
	}
	file := &safetensors.File{
		Metadata: map[string]string{"config": string(f.Config), "step": strconv.Itoa(f.Step)},
		Tensors: []safetensors.Tensor{
			{Name: "params", Shape: []int{n}, Data: f.params},
			{Name: "m", Shape: []int{n}, Data: f.m},
			{Name: "v", Shape: []int{n}, Data: f.v},
			{Name: "sum", Shape: []int{1}, Data: []float64{f.sum}},
			{Name: "kept", Shape: []int{len(kept)}, Data: kept},
			{Name: "losses", Shape: []int{len(kept)}, Data: f.Losses},
			{Name: "snapshots", Shape: []int{len(kept), n}, Data: snapshots},
		},
	}
	return safetensors.WriteFile(path, file)
}

// Read reads a run. It returns an error if the file is not whole.
func Read(path string) (*Fit, error) {
	file, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("fit: %s: %s", path, fmt.Sprintf(format, args...))
	}
	f := &Fit{Config: []byte(file.Metadata["config"])}
	if !json.Valid(f.Config) {
		return nil, bad("states no configuration")
	}
	if f.Step, err = strconv.Atoi(file.Metadata["step"]); err != nil || f.Step < 1 {
		return nil, bad("is at step %q", file.Metadata["step"])
	}
	var snapshots, sum []float64
	for _, part := range []struct {
		name string
		into *[]float64
	}{{"params", &f.params}, {"m", &f.m}, {"v", &f.v}, {"sum", &sum}, {"losses", &f.Losses}, {"snapshots", &snapshots}} {
		if *part.into, _, err = safetensors.Get[float64](file, part.name); err != nil {
			return nil, fmt.Errorf("fit: %s: %w", path, err)
		}
		for i, x := range *part.into {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, bad("%s holds %v at %d", part.name, x, i)
			}
		}
	}
	kept, _, err := safetensors.Get[int64](file, "kept")
	if err != nil {
		return nil, fmt.Errorf("fit: %s: %w", path, err)
	}
	n := len(f.params)
	if n == 0 || len(f.m) != n || len(f.v) != n || len(sum) != 1 || len(f.Losses) != len(kept) || len(snapshots) != n*len(kept) {
		return nil, bad("%d parameters, %d and %d moments, %d losses and %d numbers in %d snapshots", n, len(f.m), len(f.v), len(f.Losses), len(snapshots), len(kept))
	}
	f.sum = sum[0]
	for i, step := range kept {
		f.Kept, f.Params = append(f.Kept, int(step)), append(f.Params, snapshots[i*n:][:n])
	}
	return f, nil
}

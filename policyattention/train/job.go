package train

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/definition"
)

// Job is a training run of any model. [Train] makes one from a Config; other learned
// methods make their own.
type Job struct {
	// Config is the JSON of everything that the weights depend on, but for the
	// backend's arithmetic. It names the run and is stored with it.
	Config    []byte
	Model     Trainable
	Batches   Batches
	Examples  int // of a batch
	Tokens    int // of an example, or however many rows its matrix products have
	Optimizer transformer.AdamW
	// Clip is the largest Euclidean norm of a gradient that the optimizer is given: longer
	// ones are shortened to it. 0 stands for no bound.
	Clip      float64
	Steps     int
	Snapshots []int // steps after which weights are kept, ascending
	// Average releases, in place of the last step's parameters, their average
	// over the steps so far, with a weight of order t⁸ on step t: it reaches
	// back over about the last fifth of the run (polynomial-decay averaging,
	// Shamir and Zhang 2013, arXiv 1212.1824) and is without most of the noise
	// that a constant learning rate leaves. Training itself is the same.
	Average bool
	// Line names a run that is made in stages: runs that differ in Steps alone, of which
	// nothing but the end depends on Steps. It is the base of a file name and names all
	// else that they depend on; "" stands for a run that is made at once. See Run.Stages.
	Line string
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
	Weights        string            // path of the final weights
	Snapshots      map[int]string    // paths of the weights kept on the way, by step
	Losses         []float32         // the objective on each step's batch [Steps]
	WallSeconds    float64           // over all interruptions, compilation included
	CPUSeconds     float64           // of the whole process meanwhile
	StepsPerSecond float64           // Steps / WallSeconds
	Stretches      []backend.Stretch // of its steps, in order
}

// Run trains in the folder dir and returns where the weights are. Progress,
// which may be nil, is called about twice a second.
//
// The run is a function of the job and the backend: interrupted at any moment,
// even by SIGKILL, and called again with the same folder, it continues and ends
// with the same bytes. When ctx is done, Run saves the run and returns ctx's
// cause. A finished run is returned at once. It returns an error when dir belongs to another
// configuration or another process is using it.
func (j Job) Run(ctx context.Context, backend compute.Backend, dir string, progress func(Progress)) (*Result, error) {
	results, err := RunTogether(ctx, backend, Execution{}, []Run{{Job: j, Dir: dir, Progress: progress}})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

func snapshotPath(dir string, step int) string {
	return filepath.Join(dir, fmt.Sprintf("weights-%d.safetensors", step))
}

// start is a run before its first step.
func (j Job) start() state {
	params := j.Model.Init()
	zeros := make([]float32, len(params))
	return state{params: params, m: zeros, v: zeros, average: zeros}
}

// apply makes the optimizer's step (params, m, v, average, step) → (params, m, v,
// average).
func (j Job) apply(state []*Node, gradient *Node) []*Node {
	params, m, v, average, step := state[0], state[1], state[2], state[3], state[stepInput]
	if j.Clip > 0 {
		norm := Sqrt(ReduceAllSum(Square(gradient)))
		gradient = Mul(gradient, Div(Const(gradient.Graph(), float32(j.Clip)), MaxScalar(norm, j.Clip)))
	}
	params, m, v = definition.Step(j.Optimizer, params, gradient, m, v, step)
	// The first step has the share 1.
	share := Inverse(DivScalar(AddScalar(ConvertDType(step, average.DType()), averageOrder), averageOrder+1))
	average = Add(average, Mul(share, Sub(params, average)))
	return []*Node{params, m, v, average}
}

package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// backends calls a test with the pure-Go backend and with XLA where there is
// its plugin.
func backends(t *testing.T, test func(t *testing.T, b compute.Backend)) {
	t.Run("go", func(t *testing.T) { test(t, testkit.Backend(t)) })
	t.Run("xla:cpu", func(t *testing.T) { test(t, onXLA(t)) })
}

func onXLA(t *testing.T) compute.Backend {
	t.Helper()
	if testing.Short() {
		t.Skip("XLA compiles for long")
	}
	b, err := backend.New("xla:cpu")
	if errors.Is(err, backend.ErrNoPlugin) {
		t.Skip(err)
	}
	testkit.Check(t, err)
	t.Cleanup(b.Finalize)
	return b
}

func job(t *testing.T, c Config) Job {
	t.Helper()
	return testkit.Must(c.Job())(t)
}

// made makes steps of a job and returns the state after them.
func made(t *testing.T, b compute.Backend, j Job, steps int) *state {
	t.Helper()
	s := testkit.Must(NewSession(b, j))(t)
	defer s.Close()
	testkit.Must(s.Steps(steps))(t)
	return s.state
}

// byGraph is a job whose gradients GoMLX takes on any backend.
func byGraph(j Job) Job {
	j.Model = struct{ Trainable }{j.Model}
	return j
}

// Package engine makes the steps of the graphs: ten losses of every objective, and the first
// gradient, of which the first moment after a step is a tenth.
func TestEngineSteps(t *testing.T) {
	b := testkit.Backend(t)
	for _, o := range Objectives {
		for _, recipe := range recipesOf(o) {
			c := tiny(o)
			c.Recipe = recipe
			inGo, defined := job(t, c), byGraph(job(t, c))
			// Rounding of float32 sums over a batch, which AdamW amplifies where a slope near zero
			// changes its sign.
			got, want := made(t, b, inGo, 1), made(t, b, defined, 1)
			testkit.Near(t, string(o)+" first moments", got.optimizer.M, want.optimizer.M, 2e-5, 0)
			got, want = made(t, b, inGo, 10), made(t, b, defined, 10)
			testkit.Near(t, string(o)+" losses", got.losses, want.losses, 1e-4, 0)
		}
	}
}

// XLA computes what pure Go does: the graph's gradients, and the trainer's slopes. Actors differ in what is made of the
// outputs only, so one stands for them.
func TestXLAAgrees(t *testing.T) {
	xla := onXLA(t)
	for _, objective := range []Objective{Proximal, Critic} {
		j := job(t, tiny(objective))
		want := made(t, testkit.Backend(t), j, 1)
		for _, same := range []Job{j, byGraph(j)} {
			got := made(t, xla, same, 1)
			testkit.Near(t, string(objective)+" loss", got.losses, want.losses, 1e-5, 0) // float32 sums over the batch
			testkit.Near(t, string(objective)+" first moments", got.optimizer.M, want.optimizer.M, 2e-5, 0)
		}
	}
}

// Several cores compute what one does, to the bit: an actor in two parts, which stands for
// all, and a critic in four or more.
func TestCoresAgree(t *testing.T) {
	backends(t, func(t *testing.T, b compute.Backend) {
		for objective, batch := range map[Objective]int{Proximal: 128, Critic: 512} {
			c := tiny(objective)
			c.Batch, c.Examples = batch, 512
			shared := made(t, b, job(t, c), 10)
			processors := runtime.GOMAXPROCS(1)
			alone := made(t, b, job(t, c), 10)
			runtime.GOMAXPROCS(processors)
			for what, pair := range map[string][2][]float32{
				"losses":         {alone.losses, shared.losses},
				"parameters":     {alone.optimizer.Params, shared.optimizer.Params},
				"first moments":  {alone.optimizer.M, shared.optimizer.M},
				"second moments": {alone.optimizer.V, shared.optimizer.V},
				"averages":       {alone.optimizer.Average, shared.optimizer.Average},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%s, batches of %d: %s differ between one core and several", objective, batch, what)
				}
			}
		}
	})
}

// line is the model y = w·x + b of points x [N, 3] with targets y [N], under the mean
// squared error.
type line struct{}

func (line) Layout() []transformer.Tensor {
	return []transformer.Tensor{{Name: "w", Shape: []int{3}}, {Name: "b", Shape: []int{1}, Offset: 3}}
}

func (line) Init() []float32 { return []float32{.5, -.25, .125, 0} }

func (line) Loss(params *Node, _, batch []*Node) *Node {
	x, y := batch[0], batch[1]
	w, b := Slice(params, AxisRange(0, 3)), Slice(params, AxisRange(3, 4))
	return ReduceAllMean(Square(Sub(Add(DotProduct(x, w), b), y)))
}

type lineConfig struct{ Line bool }

func (lineConfig) Validate() error { return nil }

const points = 8

// drawn are the points [8, 3] and targets [8] of a step: those of a line, moved by what
// lies at shift.
func drawn(step int, shift float64) (x, y []float32) {
	rng := seed.New(5, "line", step)
	for range points {
		p := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		x = append(x, float32(p[0]), float32(p[1]), float32(p[2]))
		y = append(y, float32(p[0]-2*p[1]+.5*p[2]+1+shift))
	}
	return x, y
}

func asTensors(x, y []float32) ([]*tensors.Tensor, error) {
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, points, 3),
		tensors.FromFlatDataAndDimensions(y, points)}, nil
}

// chasing are rollouts whose targets are moved by the first weight of the last look; it adds to looks the steps
// before which there was one.
func chasing(every int, looks *[]int) Batches {
	weight := 0.
	return Batches{Every: every, Collect: func(_ compute.Backend, step int, params []float32) error {
		*looks, weight = append(*looks, step), float64(params[0])
		return nil
	}, Arrays: func(step int) ([]*tensors.Tensor, error) { return asTensors(drawn(step, weight)) }}
}

func lineJob(batches Batches, steps int) Job {
	o := transformer.StandardAdamW()
	o.LearningRate = .05
	return Job{Config: lineConfig{true}, Model: line{}, Batches: batches, Optimizer: o, Steps: steps}
}

// byHand is the run of lineJob in float64, with the gradient and AdamW written out.
func byHand(steps, every int, clip float64) (losses []float64, params [4]float64) {
	params = [4]float64{.5, -.25, .125, 0}
	var m, v [4]float64
	shift := 0.
	for step := range steps {
		if every > 0 && step%every == 0 {
			shift = params[0]
		}
		x, y := drawn(step, shift)
		var g [4]float64
		loss := 0.
		for i := range points {
			e := params[3] - float64(y[i])
			for k := range 3 {
				e += params[k] * float64(x[3*i+k])
			}
			loss += e * e / points
			for k := range 3 {
				g[k] += 2 * e * float64(x[3*i+k]) / points
			}
			g[3] += 2 * e / points
		}
		losses = append(losses, loss)
		norm := math.Sqrt(g[0]*g[0] + g[1]*g[1] + g[2]*g[2] + g[3]*g[3])
		for k := range g {
			if clip > 0 && norm > clip {
				g[k] *= clip / norm
			}
			m[k], v[k] = .9*m[k]+.1*g[k], .999*v[k]+.001*g[k]*g[k]
			t := float64(step + 1)
			update := m[k] / (1 - math.Pow(.9, t)) / (math.Sqrt(v[k]/(1-math.Pow(.999, t))) + 1e-8)
			params[k] -= .05 * (update + 1e-4*params[k])
		}
	}
	return losses, params
}

// A model that is no Transformer learns from a stream and from rollouts as by hand.
func TestTrainable(t *testing.T) {
	const steps = 30
	backends(t, func(t *testing.T, b compute.Backend) {
		for _, tc := range []struct {
			name  string
			every int     // of rollouts; 0 for a stream
			clip  float64 // about half of the gradients are longer
		}{{"stream", 0, 0}, {"rollouts", 1, 0}, {"rollouts for 6 steps", 6, 0}, {"clipped", 0, 4}} {
			var looks []int
			batches := chasing(tc.every, &looks)
			if tc.every == 0 {
				batches.Collect = nil
			}
			job := lineJob(batches, steps)
			job.Clip = tc.clip
			result, err := job.Run(t.Context(), b, t.TempDir(), nil)
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			losses, params := byHand(steps, tc.every, tc.clip)
			// float32 rounding in 30 steps of a loss of order 1 to 10.
			for i, want := range losses {
				if got := float64(result.Losses[i]); !(math.Abs(got-want) < 2e-5*(1+want)) {
					t.Fatalf("%s: the loss of step %d is %v, want %v", tc.name, i+1, got, want)
				}
			}
			got := testkit.Must(job.Params(result.Weights, steps))(t)
			for i, want := range params {
				if !(math.Abs(float64(got[i])-want) < 1e-5) {
					t.Errorf("%s: parameter %d is %v, want %v", tc.name, i, got[i], want)
				}
			}
			var want []int
			for step := 0; tc.every > 0 && step < steps; step += tc.every {
				want = append(want, step)
			}
			if !slices.Equal(looks, want) {
				t.Errorf("%s: looks at the weights before steps %v, want %v", tc.name, looks, want)
			}
		}
	})
}

// Rollouts that are interrupted go on from a look at the weights, and end in the same
// bytes.
func TestRolloutsInterrupted(t *testing.T) {
	hurry(t)
	const steps, every = 30, 6
	b := testkit.Backend(t)
	run := func(ctx context.Context, dir string, progress func(Progress)) (*Result, error) {
		return lineJob(chasing(every, new([]int)), steps).Run(ctx, b, dir, progress)
	}
	whole := testkit.Must(run(t.Context(), t.TempDir(), nil))(t)
	dir := t.TempDir()
	for _, after := range []int{0, 4, 13} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		if after == 0 {
			cancel(cause) // before the first step
		}
		_, err := run(ctx, dir, func(p Progress) {
			if p.Step >= after {
				cancel(cause)
			}
		})
		if !errors.Is(err, cause) {
			t.Fatalf("cancelled after step %d: %v", after, err)
		}
		s, err := lineJob(chasing(every, new([]int)), steps).loadState(dir + "/state.safetensors")
		if want := (after + every - 1) / every * every; err != nil || s.step != want {
			t.Fatalf("cancelled after step %d: saved at step %d, %v, want %d", after, s.step, err, want)
		}
	}
	parts := testkit.Must(run(t.Context(), dir, nil))(t)
	if !slices.Equal(parts.Losses, whole.Losses) || !bytes.Equal(read(t, parts.Weights), read(t, whole.Weights)) {
		t.Error("an interrupted run ends elsewhere")
	}
}

func TestJobsThatCannotBe(t *testing.T) {
	failing := errors.New("no examples")
	for _, tc := range []struct {
		want string
		job  Job
	}{
		{"want a divisor of 31 steps", lineJob(chasing(6, new([]int)), 31)},
		{"want a divisor", lineJob(chasing(0, new([]int)), 30)},
		{failing.Error(), lineJob(Batches{Arrays: func(int) ([]*tensors.Tensor, error) { return nil, failing }}, 3)},
		{"want either Data and Index, or Arrays", lineJob(Batches{Index: func(int) []int32 { return nil }}, 3)},
	} {
		if _, err := tc.job.Run(t.Context(), testkit.Backend(t), t.TempDir(), nil); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

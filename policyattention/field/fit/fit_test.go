package fit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit/graphs"
)

// quadratic is the loss Σ scale_i (x_i − goal_step)², where goal is the batch.
func quadratic() Job {
	return Job{
		Config: []byte(`{"name":"quadratic"}`), Init: []float64{1, -2, 3}, Steps: 40, Keep: []int{1, 7, 40}, Rate: .05, Decay: .3,
		Batch: func(step int) ([]*tensors.Tensor, error) {
			return []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float64{goal(step)}, 1)}, nil
		},
		Loss: func(params *Node, batch []*Node) *Node {
			return ReduceAllSum(Mul(Const(params.Graph(), scale), Square(Sub(params, batch[0]))))
		},
	}
}

var scale = []float64{1, .5, 2}

func goal(step int) float64 { return math.Sin(float64(step)) }

// The steps are those of Adam as torch writes it, with weight_decay added to the gradient
// (Kingma and Ba, algorithm 1), made here with the gradient by hand.
func TestAdam(t *testing.T) {
	job := quadratic()
	f, err := job.Run(context.Background(), graphs.Backend(t), filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	x := append([]float64(nil), job.Init...)
	m, v := make([]float64, 3), make([]float64, 3)
	kept, sum, last := 0, 0., 0
	for step := range job.Steps {
		for i := range x {
			e := x[i] - goal(step)
			sum += scale[i] * e * e
			g := 2*scale[i]*e + job.Decay*x[i]
			m[i] = .9*m[i] + .1*g
			v[i] = .999*v[i] + .001*g*g
			n := float64(step + 1)
			x[i] -= job.Rate * (m[i] / (1 - math.Pow(.9, n))) / (math.Sqrt(v[i]/(1-math.Pow(.999, n))) + 1e-8)
		}
		if job.Keep[kept] != step+1 {
			continue
		}
		for i := range x {
			if math.Abs(f.Params[kept][i]-x[i]) > 1e-12 {
				t.Errorf("after step %d: x[%d] = %v, want %v", step+1, i, f.Params[kept][i], x[i])
			}
		}
		if want := sum / float64(step+1-last); math.Abs(f.Losses[kept]-want) > 1e-12 {
			t.Errorf("after step %d: mean loss %v, want %v", step+1, f.Losses[kept], want)
		}
		kept, sum, last = kept+1, 0, step+1
	}
	if kept != 3 || f.Step != 40 {
		t.Errorf("%d snapshots at step %d, want 3 at 40", kept, f.Step)
	}
}

// A run that is stopped after every step, and one that saves after every step, end in the same
// bytes as one in one go.
func TestResumes(t *testing.T) {
	job, on := quadratic(), graphs.Backend(t)
	straight, broken, often := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")
	if _, err := job.Run(context.Background(), on, straight); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for n := range 200 {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(stop)
		_, err := job.Run(ctx, on, broken)
		if err == nil {
			break
		}
		if !errors.Is(err, stop) || n > 100 {
			t.Fatalf("attempt %d: %v", n, err)
		}
	}
	defer func(d time.Duration) { saveEvery = d }(saveEvery)
	saveEvery = 0
	if _, err := job.Run(context.Background(), on, often); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(straight)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{broken, often} {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs (%v)", filepath.Base(path), err)
		}
	}
}

func TestRefuses(t *testing.T) {
	on := graphs.Backend(t)
	for want, change := range map[string]func(*Job){
		"is not JSON":   func(j *Job) { j.Config = []byte("{") },
		"0 parameters":  func(j *Job) { j.Init = nil },
		"steps to keep": func(j *Job) { j.Keep = []int{1, 39} },
		"learning rate": func(j *Job) { j.Rate = math.Inf(1) },
		"the loss is NaN": func(j *Job) {
			j.Loss = func(p *Node, _ []*Node) *Node { return ReduceAllSum(Log(p)) } // of −2
		},
		"no more data": func(j *Job) {
			j.Batch = func(int) ([]*tensors.Tensor, error) { return nil, errors.New("no more data") }
		},
	} {
		job := quadratic()
		change(&job)
		if _, err := job.Run(context.Background(), on, filepath.Join(t.TempDir(), "run")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	job, path := quadratic(), filepath.Join(t.TempDir(), "run")
	if _, err := job.Run(context.Background(), on, path); err != nil {
		t.Fatal(err)
	}
	other := job
	other.Config = []byte(`{}`)
	if _, err := other.Run(context.Background(), on, path); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("another job's file: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("a truncated file was read")
	}
	if _, err := Read(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

package xie

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

func tiny(oneHot bool) Training {
	t := Recipe(3)
	t.D, t.N, t.States, t.Batch, t.Batches, t.Processes, t.OneHot = 2, 6, 5, 3, 2, 6, oneHot
	if oneHot {
		t.D = t.States
	}
	return t
}

// plainValues returns the values of a step's windows by the whole layer, all its zeros
// included, and by the algorithm's own steps.
func plainValues(t *testing.T, tr Training, params []float64, step int) (out [2][]float64, rewards []float64) {
	t.Helper()
	process, features, err := tr.process(step / tr.Batches)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tr.Layer(tr.Weights(params))
	if err != nil {
		t.Fatal(err)
	}
	fitted := tr.Fitted(params)
	walk := process.Walk(seed.New(tr.Seed, "xie", "train", step), tr.N+tr.Batch)
	for b := range tr.Batch + 1 {
		c := testkit.Must(Window(process, features, walk[b:b+tr.N+1]))(t)
		v := make([]float64, tr.N+1)
		z := testkit.Must(fitted.Prompt(c, v))(t)
		for range tr.Layers {
			z, v = testkit.Must(layer.Apply(z))(t), testkit.Must(fitted.Step(c, v))(t)
		}
		out[0], out[1] = append(out[0], z.At(fitted.current(), tr.N)), append(out[1], v[tr.N])
		rewards = append(rewards, process.R[walk[b+tr.N]])
	}
	return out, rewards
}

// The loss, made again from the walk and the plain layers, and its gradient by central
// differences of h = 1e-5 with the targets held fixed: they are right to about h² and 1e-16/h.
func TestLossAndGradient(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, oneHot := range []bool{false, true} {
		tr := tiny(oneHot)
		params := mrp.Normal(1, tr.Size(), .7, seed.New(5)).RawRowView(0)
		const step = 3
		batch, err := tr.batch(step)
		if err != nil {
			t.Fatal(err)
		}
		out, err := CallOnceN(on, func(in []*Node) []*Node {
			loss := tr.loss(in[0], in[1:])
			return []*Node{loss, Gradient(loss, in[0])[0]}
		}, params, batch[0], batch[1], batch[2])
		if err != nil {
			t.Fatal(err)
		}
		targets, _ := plainValues(t, tr, params, step)
		plain := func(p []float64) float64 {
			values, rewards := plainValues(t, tr, p, step)
			sum := 0.
			for i, v := range values {
				for b := range tr.Batch {
					e := rewards[b] + tr.Gamma*targets[i][b+1] - v[b]
					sum += e * e / float64(tr.Batch)
				}
			}
			return sum
		}
		if got, want := tensors.ToScalar[float64](out[0]), plain(params); math.Abs(got-want) > 1e-11*want {
			t.Errorf("loss %v, want %v", got, want)
		}
		gradient := tensors.MustCopyFlatData[float64](out[1])
		const h = 1e-5
		for i := range params {
			moved := append([]float64(nil), params...)
			moved[i] += h
			up := plain(moved)
			moved[i] -= 2 * h
			want := (up - plain(moved)) / (2 * h)
			if math.Abs(gradient[i]-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("∂loss/∂params[%d] = %v, differences give %v", i, gradient[i], want)
			}
		}
	}
}

// A training that is interrupted ends in the same bytes; a layer with the algorithm's numbers
// is like the algorithm in every measure.
func TestTrainingResumes(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	tr := tiny(false)
	straight, broken := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if _, err := tr.Run(context.Background(), on, straight); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if _, err := tr.Run(ctx, on, broken); !errors.Is(err, stop) {
		t.Fatalf("interrupted: %v", err)
	}
	if _, err := Read(broken); err == nil || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("half a training was read: %v", err)
	}
	if _, err := tr.Run(context.Background(), on, broken); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(straight)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("a training that was interrupted ends in other bytes")
	}
}

func TestLikenessOfTheAlgorithm(t *testing.T) {
	tr := Recipe(1)
	params := make([]float64, tr.Size())
	for i := range tr.D {
		params[i*tr.D+i] = 1.5
	}
	copy(params[tr.D*tr.D:], []float64{.8, .8 * .9, -.8, .8, 1.5})
	trained := &Trained{Training: tr, After: []int{1}, Params: [][]float64{params}}
	l, err := trained.Likeness("", 0, 7, 3)
	if err != nil {
		t.Fatal(err)
	}
	if l.ValueDifference > 1e-25 || l.Error == 0 || math.Abs(l.Error-l.ErrorFitted) > 1e-12 || l.Step != .8 || math.Abs(l.Discount-.9) > 1e-15 || l.Current != 1 || l.Temperature != 1.5 || math.Abs(l.Identity-1) > 1e-15 {
		t.Errorf("%+v", l)
	}
	hot := Recipe(1)
	hot.OneHot, hot.D = true, hot.States
	shifted := mrp.Normal(1, 10, 1, seed.New(1)).RawRowView(0) // a number for each column
	a := mat.NewDense(10, 10, nil)
	for i := range 10 {
		for j := range 10 {
			a.Set(i, j, shifted[j])
		}
		a.Set(i, i, a.At(i, i)+1.5)
	}
	if temperature, cosine := hot.scores(a); math.Abs(temperature-1.5) > 1e-14 || math.Abs(cosine-1) > 1e-14 {
		t.Errorf("one-hot: 1.5·I and a number for each column have temperature %v, cosine %v", temperature, cosine)
	}
	params[0], params[1] = -1, 3
	if l, err = trained.Likeness("", 0, 7, 3); err != nil || l.ValueDifference < 1e-6 || l.Identity > .9 {
		t.Errorf("other weights: %+v, %v", l, err)
	}
}

func TestTrainingRefusesBadRecipes(t *testing.T) {
	for want, change := range map[string]func(*Training){
		"method is":     func(t *Training) { t.Method = "td" },
		"of 2 states":   func(t *Training) { t.States = 2 },
		"one-hot":       func(t *Training) { t.OneHot = true },
		"discount is 1": func(t *Training) { t.Gamma = 1 },
		"0 batches":     func(t *Training) { t.Batches = 0 },
		"learning rate": func(t *Training) { t.Rate = 0 },
		"0 layers":      func(t *Training) { t.Layers = 0 },
	} {
		tr := Recipe(1)
		change(&tr)
		if err := tr.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

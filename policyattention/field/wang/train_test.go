package wang

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
	"icrl/policyattention/seed"
)

// networks are small ones of every kind.
func networks() []Network {
	var all []Network
	for _, a := range []Attention{Linear, OverKeys, OverQueries, OverKeysByN} {
		for _, sequential := range []bool{false, true} {
			all = append(all, Network{D: 2, N: 5, Layers: 3, Sequential: sequential, Attention: a})
		}
	}
	return all
}

// weights draws parameters of order one, so that each layer matters.
func weights(n Network, root uint64) []float64 {
	params := n.initial(seed.New(root))
	for i := range params {
		params[i] *= 6
	}
	return params
}

// The graph's values are those of the prompt written out layer by layer in plain Go, and of
// TD(0) made by the algorithm's own steps.
func TestGraphAgreesWithPlainGo(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks() {
		params := weights(n, 3)
		const prompts = 4
		var data []float64
		var contexts []*Context
		for i := range prompts {
			contexts = append(contexts, normalContext(n.D, n.N, .9, seed.New(4, i)))
			data = append(data, testkit.Must(contexts[i].Prompt(0))(t).RawMatrix().Data...)
		}
		out, err := CallOnceN(on, func(in []*Node) []*Node {
			v, td := n.graph(in[0], in[1])
			return []*Node{v, td}
		}, params, tensors.FromFlatDataAndDimensions(data, prompts, n.rows(), n.N+1))
		if err != nil {
			t.Fatal(err)
		}
		values, td := tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
		spec := Spec{Algorithm: TD0, D: n.D, N: n.N, Queries: 1, Alpha: n.Step(params)}
		for i, c := range contexts {
			want, err := n.value(params, testkit.Must(c.Prompt(0))(t))
			if err != nil {
				t.Fatal(err)
			}
			w := make([]float64, n.D)
			for range n.Layers {
				w = testkit.Must(spec.Step(c, w))(t)
			}
			wantTD := w[0]*c.Queries.At(0, 0) + w[1]*c.Queries.At(1, 0)
			// Sums of some ten products of numbers up to some hundred, three times over.
			if math.Abs(values[i]-want) > 1e-11*(1+math.Abs(want)) || math.Abs(td[i]-wantTD) > 1e-11*(1+math.Abs(wantTD)) {
				t.Errorf("%+v, prompt %d: values %v and %v, want %v and %v", n, i, values[i], td[i], want, wantTD)
			}
		}
	}
}

// The loss, made again from the walk and the plain network, and its gradient by central
// differences of h = 1e-5 with the targets held fixed: they are right to about h² and 1e-16/h.
func TestLossAndGradient(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks() {
		tr := Recipe(7)
		tr.Network, tr.States, tr.Batch, tr.Batches = n, 5, 3, 2
		params := weights(n, 8)
		const step = 5
		batch, err := tr.batch(step)
		if err != nil {
			t.Fatal(err)
		}
		out, err := CallOnceN(on, func(in []*Node) []*Node {
			loss := tr.loss(in[0], in[1:])
			return []*Node{loss, Gradient(loss, in[0])[0]}
		}, params, batch[0], batch[1])
		if err != nil {
			t.Fatal(err)
		}
		targets := plainValues(t, tr, params, step)
		plain := func(p []float64) float64 { return plainLoss(t, tr, p, step, targets) }
		if got, want := tensors.ToScalar[float64](out[0]), plain(params); math.Abs(got-want) > 1e-11*want {
			t.Errorf("%+v: loss %v, want %v", n, got, want)
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
				t.Errorf("%+v: ∂loss/∂params[%d] = %v, differences give %v", n, i, gradient[i], want)
			}
		}
	}
}

// plainValues returns the values of a step's windows by the network and by TD(0), from the
// states and rewards of its walk.
func plainValues(t *testing.T, tr Training, params []float64, step int) [2][]float64 {
	t.Helper()
	process, features, err := tr.process(step / tr.Batches)
	if err != nil {
		t.Fatal(err)
	}
	walk := process.Walk(seed.New(tr.Seed, "wang", "walk", step), tr.N+1+tr.Batch)
	spec := Spec{Algorithm: TD0, D: tr.D, N: tr.N, Queries: 1, Alpha: tr.Step(params)}
	var out [2][]float64
	for b := range tr.Batch + 1 {
		c := &Context{Phi: mat.NewDense(tr.D, tr.N, nil), Next: mat.NewDense(tr.D, tr.N, nil), R: make([]float64, tr.N), Queries: mat.NewDense(tr.D, 1, nil)}
		for k := range tr.N {
			for i := range tr.D {
				c.Phi.Set(i, k, features.At(walk[b+k], i))
				c.Next.Set(i, k, .9*features.At(walk[b+k+1], i))
				c.Queries.Set(i, 0, features.At(walk[b+tr.N+1], i))
			}
			c.R[k] = process.R[walk[b+k]]
		}
		v, err := tr.value(params, testkit.Must(c.Prompt(0))(t))
		if err != nil {
			t.Fatal(err)
		}
		w := make([]float64, tr.D)
		for range tr.Layers {
			w = testkit.Must(spec.Step(c, w))(t)
		}
		td := 0.0
		for i := range w {
			td += w[i] * c.Queries.At(i, 0)
		}
		out[0], out[1] = append(out[0], v), append(out[1], td)
	}
	return out
}

func plainLoss(t *testing.T, tr Training, params []float64, step int, targets [2][]float64) float64 {
	t.Helper()
	process, _, err := tr.process(step / tr.Batches)
	if err != nil {
		t.Fatal(err)
	}
	walk := process.Walk(seed.New(tr.Seed, "wang", "walk", step), tr.N+1+tr.Batch)
	loss := 0.0
	for i, v := range plainValues(t, tr, params, step) {
		for b := range tr.Batch {
			e := process.R[walk[b+tr.N+1]] + tr.Gamma*targets[i][b+1] - v[b]
			loss += e * e / float64(tr.Batch)
		}
	}
	return loss
}

// A training that is interrupted and continued ends in the same bytes, on the same backend.
func TestTrainingResumes(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	tr := Recipe(3)
	tr.Network, tr.States, tr.Processes, tr.Batch = Network{D: 2, N: 6, Layers: 2, Attention: Linear}, 5, 12, 8
	straight, broken := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if _, err := tr.Run(context.Background(), on, straight); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for n := 0; ; n++ {
		ctx, cancel := context.WithCancelCause(context.Background())
		if n < 3 {
			cancel(stop) // after one step
		}
		_, err = tr.Run(ctx, on, broken)
		cancel(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
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
		t.Error("a training that was interrupted three times ends in other bytes")
	}
	other := tr
	other.Rate *= 2
	if _, err := other.Run(context.Background(), on, straight); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("another recipe in the same file: %v", err)
	}
}

func TestTrainingRefusesBadRecipes(t *testing.T) {
	for want, change := range map[string]func(*Training){
		"method is":         func(t *Training) { t.Method = "td" },
		"of 2 states":       func(t *Training) { t.States = 2 },
		"discount is 1":     func(t *Training) { t.Gamma = 1 },
		"0 processes":       func(t *Training) { t.Processes = 0 },
		"learning rate":     func(t *Training) { t.Rate = math.NaN() },
		"unknown attention": func(t *Training) { t.Attention = "relu" },
		"0 layers":          func(t *Training) { t.Layers = 0 },
	} {
		tr := Recipe(1)
		change(&tr)
		if err := tr.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// value returns the value of the query of a prompt, in plain Go.
func (n Network) value(params []float64, prompt *mat.Dense) (float64, error) {
	all, err := n.Forward(params, prompt)
	if err != nil {
		return 0, err
	}
	return -all[n.Layers].At(n.rows()-1, n.N), nil
}

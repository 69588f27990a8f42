package transformer

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/internal/testkit/graphs"
	"icrl/policyattention/transformer/plain"
)

var tiny = Config{Features: 5, Layers: 2, Heads: 2, Width: 6, Hidden: 7, Outputs: 1}

// The definition is the network of package plain, which is loops over numbers.
func TestDefinitionAgreesWithPlainLoops(t *testing.T) {
	b := graphs.Backend(t)
	for _, c := range []Config{tiny, Standard(10), {Features: 4, Layers: 1, Heads: 3, Width: 9, Hidden: 5, Outputs: 2, Unordered: true}} {
		for _, shape := range [][2]int{{1, 1}, {3, 9}, {2, 60}} {
			batch, length := shape[0], shape[1]
			rng := rand.New(rand.NewPCG(1, 2))
			single := c.Init(rng)
			params := make([]float64, len(single))
			for i := range single { // no bias is zero and no gain one
				single[i] += float32(.1 * rng.NormFloat64())
				params[i] = float64(single[i])
			}
			at := map[string][]float32{}
			for _, p := range c.Layout() {
				at[p.Name] = single[p.Offset:][:p.Size()]
			}
			tensor := func(name string) ([]float32, error) { return at[name], nil }
			loops, err := plain.New(c.Features, c.Layers, c.Heads, c.Width, c.Hidden, tensor)
			if c.Unordered {
				loops, err = plain.NewUnordered(c.Features, c.Layers, c.Heads, c.Width, c.Hidden, c.Outputs, tensor)
			}
			if err != nil {
				t.Fatal(err)
			}
			tokens := graphs.Normal(rng, batch*length*c.Features)
			got := graphs.Values[float64](t, graphs.Run(t, b, func(in []*Node) []*Node { return []*Node{c.Bind(in[0]).Vectors(in[1])} },
				tensors.FromFlatDataAndDimensions(params, len(params)),
				tensors.FromFlatDataAndDimensions(tokens, batch, length, c.Features))[0])
			for i := range batch {
				want := testkit.Must(loops.Vectors(slices.Collect(slices.Chunk(tokens[i*length*c.Features:][:length*c.Features], c.Features))))(t)
				for j, outputs := range want {
					for k, z := range outputs {
						// Rounding of float64 sums of up to some hundred terms over four blocks.
						if y := got[(i*length+j)*c.Outputs+k]; !(math.Abs(y-z) <= 1e-11*(1+math.Abs(z))) {
							t.Fatalf("%+v, %d tokens: output %d of token %d is %v, want %v", c, length, k, j, y, z)
						}
					}
				}
			}
		}
	}
}

// What cannot be built says so while the graph is built.
func TestGraphsThatCannotBe(t *testing.T) {
	invalid := tiny
	invalid.Heads = 4
	for want, c := range map[string]Config{"parameters have shape": tiny, "4 heads do not divide width 6": invalid} {
		exec, err := NewExec(graphs.Backend(t), func(params *Node) *Node { return c.Split(params)["head.bias"] })
		if err == nil {
			_, err = exec.Call(make([]float64, 3))
			exec.Finalize()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	// Counted by hand (weights and biases of one block: 33,472).
	c := Standard(14)
	if got, want := c.Size(), 4*33472+2*64+(14*64+64)+(64+1); got != want {
		t.Errorf("size is %d, want %d", got, want)
	}
	end := 0
	for _, p := range c.Layout() {
		if p.Offset != end {
			t.Errorf("%s starts at %d, want %d", p.Name, p.Offset, end)
		}
		end += p.Size()
	}
}

func TestValidate(t *testing.T) {
	if err := tiny.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Config{{}, {5, 2, 4, 6, 7, 1, false}, {5, -1, 2, 6, 7, 1, false}, {5, 2, 2, 6, 7, 0, false}} {
		if bad.Validate() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func TestAdamWAgreesWithItsDefinition(t *testing.T) {
	b := graphs.Backend(t)
	opt := AdamW{LearningRate: 0.01, WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 5
	params, m, v := graphs.Normal(rng, n), make([]float64, n), make([]float64, n)
	got := [][]float64{slices.Clone(params), slices.Clone(m), slices.Clone(v)}
	for step := 1; step <= 4; step++ {
		grad := graphs.Normal(rng, n)
		out := graphs.Run(t, b, func(in []*Node) []*Node {
			p, m, v := opt.Step(in[0], in[1], in[2], in[3], in[4])
			return []*Node{p, m, v}
		}, got[0], grad, got[1], got[2], int64(step))
		for i := range got {
			got[i] = graphs.Values[float64](t, out[i])
		}
		for i, g := range grad {
			m[i] = 0.9*m[i] + 0.1*g
			v[i] = 0.999*v[i] + 0.001*g*g
			mHat := m[i] / (1 - math.Pow(0.9, float64(step)))
			vHat := v[i] / (1 - math.Pow(0.999, float64(step)))
			params[i] -= 0.01 * (mHat/(math.Sqrt(vHat)+1e-8) + 0.1*params[i])
			if math.Abs(got[0][i]-params[i]) > 1e-13 { // rounding, 1 − 0.999ᵗ cancels three digits
				t.Errorf("step %d: parameter %d is %v, want %v", step, i, got[0][i], params[i])
			}
		}
	}
}

// With Cosine, a step is the same step at the rate of the schedule.
func TestCosine(t *testing.T) {
	b := graphs.Backend(t)
	const steps = 400
	for step, share := range map[int64]float64{1: .01, 50: .5 * (1 + math.Cos(math.Pi/8)) / 2, 200: .5, 300: (1 - math.Sqrt(.5)) / 2, 400: 0, 500: 0} {
		move := func(o AdamW) float64 {
			out := graphs.Run(t, b, func(in []*Node) []*Node {
				p, _, _ := o.Step(in[0], in[1], in[2], in[3], in[4])
				return []*Node{p}
			}, []float64{0}, []float64{1}, []float64{.5}, []float64{.3}, step)
			return graphs.Values[float64](t, out[0])[0]
		}
		o := StandardAdamW()
		constant := move(o)
		o.Cosine = steps
		// Step 1 of the schedule has fallen by 1.5e-5.
		if got := move(o) / constant; math.Abs(got-share) > 2e-7 {
			t.Errorf("step %d is at %v of the learning rate, want %v", step, got, share)
		}
	}
}

package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/policyattention/transformer"
)

// onEach runs a test on each set of kernels that this processor has.
func onEach(t *testing.T, f func(t *testing.T)) {
	before := path
	defer func() { path = before }()
	for _, path = range paths() {
		t.Run(path, f)
	}
}

func to[G, F Float](x []F) []G {
	y := make([]G, len(x))
	for i, v := range x {
		y[i] = G(v)
	}
	return y
}

// example is a network on sequences, with parameters in which no bias is zero and no gain one, and
// slopes of its outputs.
type example struct {
	Pass
	c                      transformer.Config
	params, tokens, slopes []float32
}

func draw(rng *rand.Rand, c transformer.Config, p Pass) example {
	x := example{Pass: p, c: c, params: c.Init(rng)}
	for i, v := range testkit.Normal[float32](rng, len(x.params)) {
		x.params[i] += .1 * v
	}
	x.tokens = testkit.Normal[float32](rng, p.B*p.T*c.Features)
	x.slopes = testkit.Normal[float32](rng, p.B*p.K*c.Outputs)
	return x
}

// examples are the paper's shapes, and random ones.
func examples(rng *rand.Rand) []example {
	all := []example{
		draw(rng, transformer.Standard(14), Pass{8, 24, 24}),
		draw(rng, transformer.Standard(22), Pass{3, 48, 48}),
		draw(rng, transformer.Standard(24), Pass{2, 84, 12}),
		draw(rng, transformer.Config{Features: 4, Layers: 4, Heads: 4, Width: 64, Hidden: 128, Outputs: 2,
			Unordered: true}, Pass{25, 8, 8}),
		draw(rng, transformer.Config{Features: 212, Layers: 2, Heads: 4, Width: 160, Hidden: 536, Outputs: 3},
			Pass{1, 200, 200}),
		draw(rng, grouped(transformer.Standard(14), 1), Pass{5, 12, 12}),
		draw(rng, grouped(transformer.Standard(22), 3), Pass{4, 24, 24}),
	}
	for range 12 {
		heads, t := 2+rng.IntN(3), 1+rng.IntN(40)
		c := transformer.Config{
			Features: 1 + rng.IntN(80), Layers: 1 + rng.IntN(3), Heads: heads, Width: heads * (3 + rng.IntN(22)),
			Hidden: 1 + rng.IntN(140), Outputs: 1 + rng.IntN(4), Unordered: rng.IntN(2) == 0,
		}
		all = append(all, draw(rng, c, Pass{1 + rng.IntN(6), t, 1 + rng.IntN(t)}))
	}
	return all
}

func grouped(c transformer.Config, group int) transformer.Config {
	c.Group = group
	return c
}

// gradient returns outputs and gradient in the type of the network.
func gradient[F Float](t *testing.T, x example) (outputs, gradient []F) {
	n := testkit.Must(New[F](x.c, x.params))(t)
	gradient = make([]F, x.c.Size())
	testkit.Check(t, n.Gradient(x.Pass, to[F](x.tokens), func(y []F) {
		outputs = slices.Clone(y)
		copy(y, to[F](x.slopes))
	}, gradient))
	again := testkit.Must(n.Forward(x.Pass, to[F](x.tokens)))(t)
	if !slices.Equal(again, outputs) {
		t.Errorf("%+v, %+v: other outputs without a way back", x.c, x.Pass)
	}
	return outputs, gradient
}

// defined returns outputs and gradient by the definition, in float64.
func defined(t *testing.T, x example) (outputs, gradient []float64) {
	out := testkit.Run(t, testkit.Backend(t), func(in []*Node) []*Node {
		y := transformer.Bind(x.c, in[0]).Tail(in[1], x.K)
		return []*Node{y, Gradient(ReduceAllSum(Mul(y, in[2])), in[0])[0]}
	}, to[float64](x.params), tensors.FromFlatDataAndDimensions(to[float64](x.tokens), x.B, x.T, x.c.Features),
		tensors.FromFlatDataAndDimensions(to[float64](x.slopes), x.B, x.K, x.c.Outputs))
	return tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
}

// Outputs and every tensor of the gradient against the definition in float64. In float64 all
// but the order of sums is the same; in float32 sums of up to some hundred terms over some blocks
// are off by up to some hundred roundings of 2⁻²⁴.
func TestAgainstTheDefinition(t *testing.T) {
	all := examples(rand.New(rand.NewPCG(1, 2)))
	type result struct{ outputs, gradient []float64 }
	var wants []result
	for _, x := range all {
		outputs, gradient := defined(t, x)
		wants = append(wants, result{outputs, gradient})
	}
	for i, x := range all {
		outputs, gradient := gradient[float64](t, x)
		agree(t, x, outputs, wants[i].outputs, gradient, wants[i].gradient, 1e-11, 1e-10)
	}
	onEach(t, func(t *testing.T) {
		for i, x := range all {
			outputs, gradient := gradient[float32](t, x)
			agree(t, x, outputs, wants[i].outputs, gradient, wants[i].gradient, 2e-5, 1e-4)
		}
	})
}

func agree[F Float](t *testing.T, x example, outputs []F, wantOutputs []float64, gradient []F, wantGradient []float64,
	share, shareOfGradient float64) {
	t.Helper()
	name := fmt.Sprintf("%+v, %+v: ", x.c, x.Pass)
	testkit.Near(t, name+"outputs", outputs, wantOutputs, share, 1e-3)
	for _, p := range x.c.Layout() {
		got, want := gradient[p.Offset:][:p.Size()], wantGradient[p.Offset:][:p.Size()]
		testkit.Near(t, name+p.Name, got, want, shareOfGradient, 1e-3)
	}
}

// Steps of the optimizer against AdamW as it is published, in float64, on the sum of two gradients whose norm
// is beyond the bound in one step and below it in the next.
func TestOptimizer(t *testing.T) {
	onEach(t, func(t *testing.T) {
		const size, clip = 1003, 20.
		rng := rand.New(rand.NewPCG(5, 6))
		opt := transformer.AdamW{LearningRate: .01, WeightDecay: .1, Beta1: .9, Beta2: .99, Epsilon: 1e-8, Cosine: 200}
		o := NewOptimizer(opt, clip, testkit.Normal[float32](rng, size))
		state := [][]float64{to[float64](o.Params), make([]float64, size), make([]float64, size)}
		average := make([]float64, size)
		for step := 1; step <= 3; step++ {
			gradients := [][]float32{testkit.Normal[float32](rng, size), testkit.Normal[float32](rng, size)}
			sum, norm := make([]float64, size), 0.
			for i := range sum {
				for _, g := range gradients {
					g[i] *= float32(step%2+1) / 3
					sum[i] += float64(g[i])
				}
				norm += sum[i] * sum[i]
			}
			for i := range sum {
				sum[i] *= clip / max(math.Sqrt(norm), clip)
			}
			o.Step(step, gradients)
			p, m, v := state[0], state[1], state[2]
			for i, g := range sum {
				m[i] = opt.Beta1*m[i] + (1-opt.Beta1)*g
				v[i] = opt.Beta2*v[i] + (1-opt.Beta2)*g*g
				first := m[i] / (1 - math.Pow(opt.Beta1, float64(step)))
				second := v[i] / (1 - math.Pow(opt.Beta2, float64(step)))
				p[i] -= opt.Rate(step) * (first/(math.Sqrt(second)+opt.Epsilon) + opt.WeightDecay*p[i])
				average[i] += 9 / (float64(step) + 8) * (p[i] - average[i])
			}
			// A few roundings of 2⁻²⁴.
			what := fmt.Sprintf("step %d: ", step)
			testkit.Near(t, what+"parameters", o.Params, p, 1e-6, 1e-3)
			testkit.Near(t, what+"m", o.M, m, 1e-6, 1e-3)
			testkit.Near(t, what+"v", o.V, v, 1e-6, 1e-3)
			testkit.Near(t, what+"average", o.Average, average, 1e-6, 1e-3)
		}
	})
}

// Tokens that are taken some at a time after those in caches have the outputs of the whole sequences,
// and alternatives those that each would have alone.
func TestExtend(t *testing.T) {
	const b, length = 5, 23
	rng := rand.New(rand.NewPCG(5, 6))
	c := transformer.Config{Features: 7, Layers: 3, Heads: 2, Width: 20, Hidden: 33, Outputs: 3}
	x := draw(rng, c, Pass{b, length, length})
	onEach(t, func(t *testing.T) {
		n := testkit.Must(New[float32](c, x.params))(t)
		want := testkit.Must(n.Forward(x.Pass, x.tokens))(t)
		held := n.NewCache(b, length)
		// part is tokens or outputs from a place on, with so many entries each.
		part := func(all []float32, from, k, width int) (some []float32) {
			for i := range b {
				some = append(some, all[(i*length+from)*width:][:k*width]...)
			}
			return some
		}
		for from, k := 0, 0; from < length; from += k {
			k = []int{1, 13, 2, 1, 6}[min(4, from)%5]
			k = min(k, length-from)
			new := part(x.tokens, from, k, c.Features)
			alone := testkit.Must(n.Extend(held, k, new, true))(t)
			for i := range k {
				one := make([]float32, 0, b*c.Features)
				for s := range b {
					one = append(one, new[(s*k+i)*c.Features:][:c.Features]...)
				}
				got := testkit.Must(n.Extend(held, 1, one, true))(t)
				for s := range b {
					what := fmt.Sprintf("alternative %d of %d after %d tokens", i, k, from)
					want := alone[(s*k+i)*c.Outputs:][:c.Outputs]
					testkit.Near(t, what, got[s*c.Outputs:][:c.Outputs], want, 1e-5, 1e-3)
				}
			}
			got := testkit.Must(n.Extend(held, k, new, false))(t)
			what := fmt.Sprintf("%d tokens after %d", k, from)
			testkit.Near(t, what, got, part(want, from, k, c.Outputs), 1e-5, 1e-3)
			testkit.Near(t, what+", the first as an alternative", alone[:c.Outputs], got[:c.Outputs], 1e-5, 1e-3)
		}
		for what, of := range map[string]*Cache[float32]{"a full cache": held, "one of nothing": n.NewCache(0, 9)} {
			if _, err := n.Extend(of, 1, make([]float32, of.Sequences*c.Features), false); err == nil {
				t.Errorf("%s extends", what)
			}
		}
	})
}

// GODEBUG leaves kernels out: those of AVX-512, and those of AVX2 with them.
func TestGODEBUG(t *testing.T) {
	if os.Getenv("GODEBUG_SAYS") != "" {
		fmt.Println(path)
		return
	}
	if strings.Contains(os.Getenv("GODEBUG"), "cpu.") {
		t.Skip("kernels are left out already")
	}
	for switches, slower := range map[string]int{"": 0, "cpu.avx512f=off": 1, "cpu.avx512f=off,cpu.avx2=off": 2} {
		want := paths()
		if slower == 1 && want[0] == "avx512" || slower == 2 {
			want = want[min(slower, len(want)-1):]
		}
		child := exec.Command(os.Args[0], "-test.run=^TestGODEBUG$")
		child.Env = append(os.Environ(), "GODEBUG_SAYS=path", "GODEBUG="+switches)
		if said, err := child.Output(); err != nil || !strings.HasPrefix(string(said), want[0]+"\n") {
			t.Errorf("GODEBUG=%s: %q, %v, want %s", switches, said, err, want[0])
		}
	}
}

// The trace of tokens in groups is the groups' traces one after the other.
func TestTraceOfGroups(t *testing.T) {
	x := draw(rand.New(rand.NewPCG(3, 4)), grouped(transformer.Standard(5), 3), Pass{1, 9, 9})
	n := testkit.Must(New[float32](x.c, x.params))(t)
	whole := testkit.Must(n.Trace(x.tokens))(t)
	for g := range 3 {
		part := testkit.Must(n.Trace(x.tokens[g*3*5:][:3*5]))(t)
		for l, b := range part.Blocks {
			of := whole.Blocks[l]
			for head, weights := range b.Weights {
				if !reflect.DeepEqual(of.Weights[head][3*g:][:3], weights) {
					t.Errorf("group %d, layer %d, head %d: weights %v, want %v", g, l, head, of.Weights[head][3*g:][:3],
						weights)
				}
			}
			if !reflect.DeepEqual(of.Output[3*g:][:3], b.Output) || !reflect.DeepEqual(of.Mixed[3*g:][:3], b.Mixed) {
				t.Errorf("group %d, layer %d: other values", g, l)
			}
		}
		if !reflect.DeepEqual(whole.Outputs[3*g:][:3], part.Outputs) {
			t.Errorf("group %d: outputs %v, want %v", g, whole.Outputs[3*g:][:3], part.Outputs)
		}
	}
}

package fused

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/transformer"
)

// tiny is small enough for finite differences, with every size different.
var tiny = transformer.Config{Features: 5, Layers: 2, Heads: 2, Width: 6, Hidden: 7, Outputs: 1}

// unordered is c without the causal mask.
func unordered(c transformer.Config) transformer.Config {
	c.Unordered = true
	return c
}

// perturbed returns parameters in which no bias is zero and no gain one.
func perturbed(c transformer.Config, rng *rand.Rand) []float64 {
	params := make([]float64, c.Size())
	for i, p := range c.Init(rng) {
		params[i] = float64(p) + 0.1*rng.NormFloat64()
	}
	return params
}

// reference is the network in plain loops over float64: one sequence of
// tokens to one output per token.
func reference(c transformer.Config, params []float64, tokens [][]float64) []float64 {
	p := map[string][]float64{}
	for _, t := range c.Layout() {
		p[t.Name] = params[t.Offset : t.Offset+t.Size()]
	}
	linear := func(name string, x []float64) []float64 {
		y := slices.Clone(p[name+".bias"])
		for i, xi := range x {
			for j := range y {
				y[j] += xi * p[name+".weight"][i*len(y)+j]
			}
		}
		return y
	}
	norm := func(name string, x []float64) []float64 {
		mean, square := 0., 0.
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / float64(len(x))
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = (v-mean)/math.Sqrt(square+1e-5)*p[name+".gain"][i] + p[name+".bias"][i]
		}
		return y
	}
	add := func(x, y []float64) {
		for i := range x {
			x[i] += y[i]
		}
	}
	d, dim := c.Width, c.Width/c.Heads
	var hs [][]float64
	for _, x := range tokens {
		hs = append(hs, linear("embed", x))
	}
	for l := range c.Layers {
		block := "blocks." + string(rune('0'+l)) + "."
		var qkv [][]float64
		for _, h := range hs {
			qkv = append(qkv, linear(block+"qkv", norm(block+"norm1", h)))
		}
		for i, h := range hs {
			mixed := make([]float64, d)
			for head := range c.Heads {
				seen := i + 1
				if c.Unordered {
					seen = len(hs)
				}
				weights, total := make([]float64, seen), 0.
				for j := range weights {
					score := 0.
					for k := head * dim; k < (head+1)*dim; k++ {
						score += qkv[i][k] * qkv[j][d+k]
					}
					weights[j] = math.Exp(score / math.Sqrt(float64(dim)))
					total += weights[j]
				}
				for j, w := range weights {
					for k := head * dim; k < (head+1)*dim; k++ {
						mixed[k] += w / total * qkv[j][2*d+k]
					}
				}
			}
			add(h, linear(block+"out", mixed))
			up := linear(block+"up", norm(block+"norm2", h))
			for k := range up {
				up[k] = max(up[k], 0)
			}
			add(h, linear(block+"down", up))
		}
	}
	var out []float64
	for _, h := range hs {
		out = append(out, linear("head", norm("norm", h))[0])
	}
	return out
}

func referenceBatch(c transformer.Config, params, tokens []float64, b, t int) []float64 {
	var out []float64
	for i := range b {
		sequence := make([][]float64, t)
		for j := range sequence {
			at := (i*t + j) * c.Features
			sequence[j] = tokens[at : at+c.Features]
		}
		out = append(out, reference(c, params, sequence)...)
	}
	return out
}

func forward(c transformer.Config) func([]*Node) []*Node {
	return func(in []*Node) []*Node { return []*Node{Squeeze(Bind(c, in[0]).Vectors(in[1]), -1)} }
}

// The lengths cover each layout that attention uses.
func TestForwardAgreesWithPlainLoops(t *testing.T) {
	b := testkit.Backend(t)
	for _, tc := range []struct {
		name          string
		config        transformer.Config
		batch, length int
	}{
		{"one token", tiny, 1, 1},
		{"tiny", tiny, 3, 9},
		{"standard S=4", transformer.Standard(10), 6, 12},
		{"standard S=8", transformer.Standard(14), 3, 24},
		{"standard S=16", transformer.Standard(22), 2, 48},
		{"standard critic", transformer.Standard(24), 1, 168},
		{"unordered", unordered(transformer.Standard(4)), 5, 18},
		{"unordered, long", unordered(transformer.Standard(4)), 2, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.length > 24 {
				t.Skip("the plain loops take long")
			}
			rng := rand.New(rand.NewPCG(1, 2))
			params := perturbed(tc.config, rng)
			tokens := testkit.Normal(rng, tc.batch*tc.length*tc.config.Features)
			got := testkit.Values[float64](t, testkit.Run(t, b, forward(tc.config),
				tensors.FromFlatDataAndDimensions(params, len(params)),
				tensors.FromFlatDataAndDimensions(tokens, tc.batch, tc.length, tc.config.Features))[0])
			want := referenceBatch(tc.config, params, tokens, tc.batch, tc.length)
			for i := range want {
				// Rounding of float64 sums of up to some hundred terms over four blocks.
				if math.Abs(got[i]-want[i]) > 1e-11*(1+math.Abs(want[i])) {
					t.Fatalf("output %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// What cannot be built says so while the graph is built.
func TestGraphsThatCannotBe(t *testing.T) {
	b := testkit.Backend(t)
	params, tokens := make([]float64, tiny.Size()), make([]float64, 2*tiny.Features)
	weights := tensors.FromFlatDataAndDimensions(params, len(params))
	x := tensors.FromFlatDataAndDimensions(tokens, 1, 2, tiny.Features)
	for want, graph := range map[string]func(in []*Node) *Node{
		"parameters have shape":    func(in []*Node) *Node { return Bind(tiny, in[1]).Vectors(in[1]) },
		"tokens have shape":        func(in []*Node) *Node { return Bind(tiny, in[0]).Vectors(in[0]) },
		"outputs of 3 of 2 tokens": func(in []*Node) *Node { return Bind(tiny, in[0]).Tail(in[1], 3) },
		"Gradient needs a pass": func(in []*Node) *Node {
			return Bind(tiny, in[0]).Gradient(ReduceAllSum(in[1]))
		},
	} {
		exec, err := NewExec(b, func(in []*Node) *Node { return graph(in) })
		if err == nil {
			_, err = exec.Call(weights, x)
			exec.Finalize()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestGradientAgreesWithFiniteDifferences(t *testing.T) {
	b := testkit.Backend(t)
	const batch, length = 2, 5
	for _, tc := range []struct {
		config transformer.Config
		tail   int
	}{{tiny, length}, {tiny, 2}, {unordered(tiny), length}, {unordered(tiny), 2}} {
		tiny, tail := tc.config, tc.tail
		rng := rand.New(rand.NewPCG(3, 4))
		params := perturbed(tiny, rng)
		tokens := testkit.Normal(rng, batch*length*tiny.Features)
		weights := testkit.Normal(rng, batch*tail)
		// A weighted sum of squares reaches every output with its own slope.
		loss := func(params []float64) float64 {
			sum, all := 0., referenceBatch(tiny, params, tokens, batch, length)
			for i, w := range weights {
				z := all[i/tail*length+length-tail+i%tail]
				sum += w * z * z
			}
			return sum
		}
		out := testkit.Run(t, b, func(in []*Node) []*Node {
			net := Bind(tiny, in[0])
			value := ReduceAllSum(Mul(in[2], Square(Squeeze(net.Tail(in[1], tail), -1))))
			return []*Node{value, net.Gradient(value)}
		}, tensors.FromFlatDataAndDimensions(params, len(params)),
			tensors.FromFlatDataAndDimensions(tokens, batch, length, tiny.Features),
			tensors.FromFlatDataAndDimensions(weights, batch, tail))
		if got, want := testkit.Values[float64](t, out[0])[0], loss(params); math.Abs(got-want) > 1e-11*math.Abs(want) {
			t.Fatalf("last %d tokens: loss is %v, want %v", tail, got, want)
		}
		grad := testkit.Values[float64](t, out[1])
		const h = 1e-5
		for i := range params {
			x := params[i]
			params[i] = x + h
			up := loss(params)
			params[i] = x - h
			down := loss(params)
			params[i] = x
			// Central differences: error of order h² ≈ 1e-10 times third derivatives, and 1e-16/h rounding.
			if want := (up - down) / (2 * h); math.Abs(grad[i]-want) > 2e-7*(1+math.Abs(want)) {
				t.Errorf("last %d tokens: ∂loss/∂θ[%d] = %v, finite difference %v", tail, i, grad[i], want)
			}
		}
	}
}

// The two forms of attention and their gradients are the same function.
func TestAttentionFormsAgree(t *testing.T) {
	b := testkit.Backend(t)
	const heads, dim, batch = 2, 11, 3
	for _, tc := range []struct{ queries, keys int }{{1, 1}, {7, 7}, {8, 8}, {3, 17}, {17, 17}, {100, 100},
		{101, 150}} {
		rng := rand.New(rand.NewPCG(11, 12))
		input := func(t int) *tensors.Tensor {
			return tensors.FromFlatDataAndDimensions(testkit.Normal(rng, heads*dim*t*batch), heads, dim, t, batch)
		}
		in := []any{input(tc.queries), input(tc.keys), input(tc.keys), input(tc.queries)}
		var results [][]*tensors.Tensor
		for _, attend := range []attend{attendByProducts, attendByVectors} {
			results = append(results, testkit.Run(t, b, func(in []*Node) (all []*Node) {
				for _, mask := range []mask{causalMask, nil} {
					y, back := attend(in[0], in[1], in[2], mask)
					dq, dk, dv := back(in[3])
					all = append(all, y, dq, dk, dv)
				}
				return all
			}, in...))
		}
		parts := []string{"output", "slope of queries", "slope of keys", "slope of values"}
		for i, name := range append(parts, parts...) {
			x, y := testkit.Values[float64](t, results[0][i]), testkit.Values[float64](t, results[1][i])
			for j := range x {
				if math.Abs(x[j]-y[j]) > 1e-12*(1+math.Abs(x[j])) { // sums of some tens of terms
					t.Fatalf("%d queries, %d keys: %s [%d] is %v by products, %v by vectors", tc.queries, tc.keys,
						name, j, x[j], y[j])
				}
			}
		}
	}
}

// XLA compiles other programs of the same graph than the Go backend runs, and takes
// attention in its other form for short contexts.
func TestXLAAgreesWithTheGoBackend(t *testing.T) {
	if testing.Short() {
		t.Skip("XLA compiles for long")
	}
	xla, err := backend.New("xla:cpu")
	if errors.Is(err, backend.ErrNoPlugin) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(xla.Finalize)
	for _, tc := range []struct{ features, length, tail int }{{10, 12, 12}, {14, 24, 24}, {22, 48, 48}, {24, 84, 12}} {
		c, rng := transformer.Standard(tc.features), rand.New(rand.NewPCG(13, 14))
		c.Layers = 1 // XLA compiles each of them anew
		const batch = 4
		float32s := func(x []float64) []float32 {
			y := make([]float32, len(x))
			for i, v := range x {
				y[i] = float32(v)
			}
			return y
		}
		params := float32s(perturbed(c, rng))
		tokens := float32s(testkit.Normal(rng, batch*tc.length*tc.features))
		var outputs, grads [][]float32
		for _, b := range []compute.Backend{testkit.Backend(t), xla} {
			out := testkit.Run(t, b, func(in []*Node) []*Node {
				net := Bind(c, in[0])
				z := net.Tail(in[1], tc.tail)
				return []*Node{z, net.Gradient(ReduceAllMean(Square(z)))}
			}, tensors.FromFlatDataAndDimensions(params, len(params)),
				tensors.FromFlatDataAndDimensions(tokens, batch, tc.length, tc.features))
			outputs = append(outputs, testkit.Values[float32](t, out[0]))
			grads = append(grads, testkit.Values[float32](t, out[1]))
		}
		// float32 sums of some hundred terms over a block, relative to the largest.
		for name, pair := range map[string][][]float32{"output": outputs, "gradient": grads} {
			largest := 0.
			for _, v := range pair[0] {
				largest = max(largest, math.Abs(float64(v)))
			}
			for i, v := range pair[0] {
				if d := math.Abs(float64(v - pair[1][i])); !(d <= 2e-5*largest) {
					t.Fatalf("%d of %d tokens: %s [%d] is %v on the Go backend, %v on XLA", tc.tail, tc.length, name,
						i, v, pair[1][i])
				}
			}
		}
	}
}

func TestOutputIgnoresLaterTokens(t *testing.T) {
	b := testkit.Backend(t)
	const batch, length, changed = 3, 12, 7
	c := transformer.Standard(6)
	rng := rand.New(rand.NewPCG(5, 6))
	params := c.Init(rng)
	tokens := make([]float32, batch*length*c.Features)
	for i := range tokens {
		tokens[i] = float32(rng.NormFloat64())
	}
	output := func() []float32 {
		return testkit.Values[float32](t, testkit.Run(t, b, forward(c),
			tensors.FromFlatDataAndDimensions(params, len(params)),
			tensors.FromFlatDataAndDimensions(tokens, batch, length, c.Features))[0])
	}
	before := output()
	for f := range c.Features {
		tokens[(length+changed)*c.Features+f] += 1 // sequence 1
	}
	after := output()
	for i := range before {
		if same, want := before[i] == after[i], i < length+changed || i >= 2*length; same != want {
			t.Errorf("sequence %d token %d: output changed = %v, want %v", i/length, i%length, !same, !want)
		}
	}
}

// Without the mask, tokens in another order have the same outputs in that order.
func TestUnorderedIsEquivariant(t *testing.T) {
	b := testkit.Backend(t)
	c, rng := unordered(tiny), rand.New(rand.NewPCG(27, 28))
	const length = 7
	params, tokens, order := perturbed(c, rng), testkit.Normal(rng, length*c.Features), rng.Perm(length)
	shuffled := make([]float64, len(tokens))
	for to, from := range order {
		copy(shuffled[to*c.Features:][:c.Features], tokens[from*c.Features:])
	}
	output := func(tokens []float64) []float64 {
		return testkit.Values[float64](t, testkit.Run(t, b, forward(c),
			tensors.FromFlatDataAndDimensions(params, len(params)),
			tensors.FromFlatDataAndDimensions(tokens, 1, length, c.Features))[0])
	}
	before, after := output(tokens), output(shuffled)
	for to, from := range order {
		// Sums are in another order.
		if got, want := after[to], before[from]; math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("token %d has output %v, as token %d it had %v", to, got, from, want)
		}
	}
}

package definition

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/internal/testkit"
	"icrl/policyattention/transformer"
)

var tiny = transformer.Config{Features: 5, Layers: 2, Heads: 2, Width: 6, Hidden: 7, Outputs: 1}

// What cannot be built says so while the graph is built.
func TestGraphsThatCannotBe(t *testing.T) {
	invalid := tiny
	invalid.Heads = 4
	for want, c := range map[string]transformer.Config{"parameters have shape": tiny,
		"4 heads do not divide width 6": invalid} {
		exec, err := NewExec(testkit.Backend(t), func(params *Node) *Node { return Parameters(c, params)["head.bias"] })
		if err == nil {
			_, err = exec.Call(make([]float64, 3))
			exec.Finalize()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A token changes its own output and those of later tokens of its group, and no others.
func TestGroups(t *testing.T) {
	b, rng := testkit.Backend(t), rand.New(rand.NewPCG(9, 10))
	const length = 6
	for _, group := range []int{0, 1, 2, 3} {
		c := tiny
		c.Group = group
		params, tokens := c.Init(rng), testkit.Normal(rng, length*c.Features)
		outputs := func() []float64 {
			out := testkit.Run(t, b, func(in []*Node) []*Node {
				x := Reshape(ConvertDType(in[1], dtypes.Float32), 1, length, c.Features)
				return []*Node{ConvertDType(Bind(c, in[0]).Vectors(x), dtypes.Float64)}
			}, params, tokens)
			return testkit.Values[float64](t, out[0])
		}
		before := outputs()
		for j := range length {
			tokens[j*c.Features]++
			for i, after := range outputs() {
				want := j <= i && (group == 0 || i/group == j/group)
				if (after != before[i]) != want {
					t.Errorf("groups of %d: token %d changes the output of token %d: %v", group, j, i, !want)
				}
			}
			tokens[j*c.Features]--
		}
	}
}

func TestAdamWAgreesWithItsDefinition(t *testing.T) {
	b := testkit.Backend(t)
	opt := transformer.AdamW{LearningRate: 0.01, WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 5
	params, m, v := testkit.Normal(rng, n), make([]float64, n), make([]float64, n)
	got := [][]float64{slices.Clone(params), slices.Clone(m), slices.Clone(v)}
	for step := 1; step <= 4; step++ {
		grad := testkit.Normal(rng, n)
		out := testkit.Run(t, b, func(in []*Node) []*Node {
			p, m, v := Step(opt, in[0], in[1], in[2], in[3], in[4])
			return []*Node{p, m, v}
		}, got[0], grad, got[1], got[2], int64(step))
		for i := range got {
			got[i] = testkit.Values[float64](t, out[i])
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

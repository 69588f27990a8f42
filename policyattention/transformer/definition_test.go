package transformer

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
)

// outputs are the network's for one sequence of tokens.
func outputs(t *testing.T, c Config, params []float32, tokens []float64) []float64 {
	t.Helper()
	out := testkit.Run(t, testkit.Backend(t), func(in []*Node) []*Node {
		x := Reshape(ConvertDType(in[1], dtypes.Float32), 1, -1, c.Features)
		return []*Node{ConvertDType(Bind(c, in[0]).Vectors(x), dtypes.Float64)}
	}, params, tokens)
	return tensors.MustCopyFlatData[float64](out[0])
}

// A token changes its own output and those of later tokens of its group, and no others.
func TestGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const length = 6
	for _, group := range []int{0, 1, 2, 3} {
		c := tiny
		c.Group = group
		params, tokens := c.Init(rng), testkit.Normal[float64](rng, length*c.Features)
		before := outputs(t, c, params, tokens)
		for j := range length {
			tokens[j*c.Features]++
			for i, after := range outputs(t, c, params, tokens) {
				want := j <= i && (group == 0 || i/group == j/group)
				if (after != before[i]) != want {
					t.Errorf("groups of %d: token %d changes the output of token %d: %v", group, j, i, !want)
				}
			}
			tokens[j*c.Features]--
		}
	}
}

// Without the mask, tokens in another order have the same outputs in that order.
func TestUnorderedIsEquivariant(t *testing.T) {
	c, rng := tiny, rand.New(rand.NewPCG(27, 28))
	c.Unordered = true
	const length = 7
	params, tokens, order := c.Init(rng), testkit.Normal[float64](rng, length*c.Features), rng.Perm(length)
	shuffled := make([]float64, len(tokens))
	for to, from := range order {
		copy(shuffled[to*c.Features:][:c.Features], tokens[from*c.Features:])
	}
	before, after := outputs(t, c, params, tokens), outputs(t, c, params, shuffled)
	for to, from := range order {
		// Sums of float32 are in another order.
		if got, want := after[to], before[from]; math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("token %d has output %v, as token %d it had %v", to, got, from, want)
		}
	}
}

// What cannot be built says so while the graph is built.
func TestGraphsThatCannotBe(t *testing.T) {
	grouped := tiny
	grouped.Group = 2
	params := tiny.Init(rand.New(rand.NewPCG(29, 30)))
	for want, c := range map[string]Config{"outputs of 4 of 3 tokens": tiny, "3 tokens in groups of 2": grouped} {
		exec := testkit.Must(NewExec(testkit.Backend(t), func(in []*Node) *Node {
			tokens := Zeros(in[0].Graph(), shapes.Make(dtypes.Float32, 1, 3, c.Features))
			return Bind(c, in[0]).Tail(tokens, 4-c.Group)
		}))(t)
		if _, err := exec.Call(params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		exec.Finalize()
	}
}

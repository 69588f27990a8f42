package plain

import (
	"math"
	"slices"
	"testing"

	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// A trace ends in the outputs of the pass, bit by bit, and what it says of attention is
// attention: the softmax of queries on keys, and means of values under it, to float64's
// rounding.
func TestTrace(t *testing.T) {
	const length, tolerance = 7, 1e-13
	for _, unordered := range []bool{false, true} {
		c := transformer.Config{Features: 4, Layers: 3, Heads: 2, Width: 8, Hidden: 12, Outputs: 2, Unordered: unordered}
		n, err := build(c.Features, c.Layers, c.Heads, c.Width, c.Hidden, c.Outputs, tensors(c, c.Init(seed.New(4, "weights"))))
		if err != nil {
			t.Fatal(err)
		}
		n.unordered = unordered
		rng, tokens := seed.New(5, "tokens"), make([][]float64, length)
		for i := range tokens {
			tokens[i] = []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		}
		want, err := n.Vectors(tokens)
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.Trace(tokens)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got.Outputs, want, slices.Equal[[]float64]) {
			t.Error("a trace ends in other outputs than the pass")
		}
		came := got.Embedded
		for l, b := range got.Blocks {
			for head := range c.Heads {
				from, to := head*c.Width/c.Heads, (head+1)*c.Width/c.Heads
				for i, q := range b.Query {
					seen := length
					if !unordered {
						seen = i + 1
					}
					if len(b.Weights[head][i]) != seen {
						t.Fatalf("block %d, head %d: token %d sees %d tokens, want %d", l, head, i, len(b.Weights[head][i]), seen)
					}
					e, total := make([]float64, seen), 0.0
					for j := range e {
						for k := from; k < to; k++ {
							e[j] += q[k] * b.Key[j][k] / math.Sqrt(float64(to-from))
						}
						e[j] = math.Exp(e[j])
						total += e[j]
					}
					mixed := make([]float64, to)
					for j := range e {
						if math.Abs(e[j]/total-b.Weights[head][i][j]) > tolerance {
							t.Fatalf("block %d, head %d: token %d weighs token %d by %v, want %v", l, head, i, j, b.Weights[head][i][j], e[j]/total)
						}
						for k := from; k < to; k++ {
							mixed[k] += e[j] / total * b.Value[j][k]
						}
					}
					for k := from; k < to; k++ {
						if math.Abs(mixed[k]-b.Mixed[i][k]) > tolerance {
							t.Fatalf("block %d, head %d: token %d mixes %v, want %v", l, head, i, b.Mixed[i][k], mixed[k])
						}
					}
				}
			}
			for i := range length {
				step := n.blocks[l].out.of(b.Mixed[i])
				up := n.blocks[l].down.of(b.Units[i])
				for k := range c.Width {
					if b.Attended[i][k] != came[i][k]+step[k] || b.Output[i][k] != b.Attended[i][k]+up[k] {
						t.Fatalf("block %d: token %d does not add up at %d", l, i, k)
					}
				}
			}
			came = b.Output
		}
		if _, err := n.Trace([][]float64{{1}}); err == nil {
			t.Error("a token of one feature was taken")
		}
	}
}

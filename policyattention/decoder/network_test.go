package decoder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// randomMatrix has normal entries, of which the given share is non-zero.
func randomMatrix(rng *rand.Rand, rows, cols int, density float64) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			if x := rng.NormFloat64(); rng.Float64() < density {
				m.Set(i, j, x)
			}
		}
	}
	return m
}

// randomNetwork has two heads a block and, if norm is set, layer norms.
func randomNetwork(rng *rand.Rand, blocks, width, dim, hidden int, density float64, norm bool) *Network {
	n := &Network{Width: width, HeadDim: dim}
	for i := 0; i < width && norm; i++ {
		n.Gain = append(n.Gain, 1+.1*rng.NormFloat64())
	}
	for range blocks {
		b := Block{
			W1: randomMatrix(rng, hidden, width, density), W2: randomMatrix(rng, width, hidden, density),
		}
		for range 2 {
			b.Heads = append(b.Heads, Head{
				Q: randomMatrix(rng, dim, width, density), K: randomMatrix(rng, dim, width, density),
				V: randomMatrix(rng, dim, width, density), O: randomMatrix(rng, width, dim, density),
			})
		}
		n.Blocks = append(n.Blocks, b)
	}
	return n
}

// randomTokens holds repeated tokens, so that keys and queries repeat.
func randomTokens(rng *rand.Rand, n, width int) [][]float64 {
	var kinds, tokens [][]float64
	for range max(1, n/3) {
		kinds = append(kinds, randomMatrix(rng, 1, width, .5).RawRowView(0))
	}
	for range n {
		tokens = append(tokens, kinds[rng.IntN(len(kinds))])
	}
	return tokens
}

// forward passes tokens and reads all of each.
func forward(t *testing.T, n *Network, tokens [][]float64) *mat.Dense {
	t.Helper()
	all := &Readout{Name: "all", W: mat.NewDense(n.Width, n.Width, nil), Bias: make([]float64, n.Width)}
	for i := range n.Width {
		all.W.Set(i, i, 1)
	}
	pass, out := testkit.Must(n.compile(all))(t).start(), mat.NewDense(len(tokens), n.Width, nil)
	for i, x := range tokens {
		pass.read(out.RawRowView(i), x)
	}
	return out
}

// TestForward compares the streaming pass, which groups equal keys (in some heads
// those that differ in one slot, too) and leaves zeros out, with the textbook definition. Both round sums of about
// a hundred terms of order one to ten: 1e-12 is some thousand ulps.
func TestForward(t *testing.T) {
	rng := seed.New(2, "forward")
	for _, density := range []float64{1, .4, .1} {
		for _, norm := range []bool{false, true} {
			n := randomNetwork(rng, 3, 11, 5, 7, density, norm)
			for b := range n.Blocks {
				n.Blocks[b].Heads[b%2].Shift = 1 + b
			}
			tokens := randomTokens(rng, 60, n.Width)
			got := forward(t, n, tokens)
			_, want := n.trace(tokens)
			what := fmt.Sprintf("density %v, norm %v: outputs", density, norm)
			testkit.Near(t, what, got.RawMatrix().Data, slices.Concat(want...), 1e-12, 1)
		}
	}
}

// TestSkippingKeepsBits compares what a compiled readout reads, having skipped what it does
// not need, with the readout of a full pass: bit for bit.
func TestSkippingKeepsBits(t *testing.T) {
	rng := seed.New(2, "skip")
	for trial := range 60 {
		density := []float64{.05, .15, 1}[trial%3]
		n := randomNetwork(rng, 1+trial%4, 12, 4, 3, density, trial%5 == 0)
		r := &Readout{Name: "test", W: randomMatrix(rng, 1, n.Width, .2), Bias: []float64{0}}
		every, tokens := 1+rng.IntN(6), randomTokens(rng, 30, n.Width)
		full, pass, got := forward(t, n, tokens), testkit.Must(n.compile(r))(t).start(), []float64{0}
		for i, x := range tokens {
			if i%every != 0 {
				pass.push(x)
				continue
			}
			pass.read(got, x)
			if want := r.Of(full.RawRowView(i))[0]; math.Float64bits(got[0]) != math.Float64bits(want) {
				t.Fatalf("the readout of token %d is %v, full pass %v", i, got[0], want)
			}
		}
	}
}

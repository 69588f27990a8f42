//go:build !js

package critic

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// rowsOf is how many pairs of a problem are examples.
const rowsOf = 4

// Example is a pair with memory, and a target that is sampled too.
type Example struct {
	Tokens [][]float64 // [Slots][Features]
	Counts []float64   // n [Slots], 0 where there is no state
	Target []float64   // frequencies of fresh transitions of the same pair [Slots]
	States int
	Total  int // N
}

// Examples draws what c trains on. Nothing is drawn from the problems that anything is
// evaluated on: a problem here is rows of P alone, of 2 to 16 states and 4 to 64 pairs.
//
//   - Its rows are from Dirichlet(α, …, α), with one α from .03 to 30 for all, log-uniform.
//   - In a third of the problems the rows have 1 to S successors, drawn anew for each; in
//     another third they are mixed with the uniform row, with one weight from 0 to 1 for
//     all.
//   - Every pair has N transitions in memory, from 1 to 1,000, log-uniform.
//
// The target is as many fresh transitions, at least 64.
func (c Config) Examples() []Example {
	all := make([]Example, 0, c.Problems*rowsOf)
	for i := range c.Problems {
		all = append(all, draw(seed.New(c.Seed, "memory critic", "problem", i))...)
	}
	return all
}

func draw(rng *rand.Rand) []Example {
	between := func(least, most float64) float64 {
		return least * numeric.Exp(rng.Float64()*numeric.Log(most/least))
	}
	states := 2 + rng.IntN(Slots-1)
	alpha, pairs, total := between(.03, 30), int(between(4, 65)), int(between(1, 1001))
	kind, weight := rng.IntN(3), rng.Float64()
	counts := Counts{States: states, Total: total}
	var laws [][]float64
	for range pairs {
		successors := rng.Perm(states)
		if kind == 1 {
			successors = successors[:1+rng.IntN(states)]
		}
		law := dirichlet(rng, alpha, states, successors)
		if kind == 2 {
			for s := range law {
				law[s] = float64(weight*law[s]) + (1-weight)/float64(states)
			}
		}
		laws, counts.Next = append(laws, law), append(counts.Next, sample(rng, law, total))
	}
	examples, alike := make([]Example, rowsOf), counts.concentration()
	for pair := range examples {
		fresh := max(64, total)
		target := sample(rng, laws[pair], fresh)
		for s := range target {
			target[s] /= float64(fresh)
		}
		pad := make([]float64, Slots-states)
		examples[pair] = Example{
			Tokens: counts.tokens(pair, alike), States: states, Total: total,
			Counts: append(counts.Next[pair], pad...), Target: append(target, pad...),
		}
	}
	return examples
}

// dirichlet draws a row [states] from Dirichlet(α, …, α) over its successors.
func dirichlet(rng *rand.Rand, alpha float64, states int, successors []int) []float64 {
	row, sum := make([]float64, states), 0.0
	gamma := distuv.Gamma{Alpha: alpha, Beta: 1, Src: rng}
	for _, s := range successors {
		row[s] = gamma.Rand()
		sum += row[s]
	}
	if sum == 0 { // all have underflowed, as happens with small α: one has all mass
		row[successors[0]], sum = 1, 1
	}
	for s := range row {
		row[s] /= sum
	}
	return row
}

// sample counts where n transitions lead [S].
func sample(rng *rand.Rand, law []float64, n int) []float64 {
	counts := make([]float64, len(law))
	for range n {
		counts[mdp.Sample(rng, law)]++
	}
	return counts
}

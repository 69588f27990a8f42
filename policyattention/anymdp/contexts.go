//go:build !js

package anymdp

import (
	"math/rand/v2"
	"slices"

	"icrl/internal/numeric"
	"icrl/policyattention/seed"
)

// Context is one state to learn from, in units of its own: an update x = ηQ/d [A] and a prior
// log π/d [A], both relative to the largest, so that each is at most 0. PMD's logits are
// homogeneous, so the unit d is arbitrary, and one stands for all rewards, discount factors and
// step sizes.
type Context struct {
	Update, Prior []float64
}

// Contexts draws the contexts on which c trains. They are drawn directly, not from runs
// on problems: what a loop can meet is a prior and an update, and the distribution covers both
// beyond what loops reach.
//
//   - The update is Gaussian, or nearly tied but for some actions, or heavy-tailed, so
//     that one action is far from all others, or uniform. In four of ten states some actions
//     lie below a cliff, lower by up to Deepest, log-uniform, where the others span 1.
//   - The prior has a scale from 1/20 to 3,000 separations, log-uniform: from early rounds
//     with large steps to masses that take hundreds of rounds to move. It is Gaussian,
//     uniform, or has one action dominate.
//   - A state has from 2 actions to all; the remaining tokens are copies of some of them,
//     which are actions in their own right, exactly tied. So every sequence has the same
//     length, and what an action is given does not depend on how many there are.
//
// The two are drawn independently: any action can be the best one, whatever its mass.
func (c Config) Contexts() []Context {
	all := make([]Context, c.Examples)
	for i := range all {
		all[i] = c.draw(seed.New(c.Seed, "any", "context", i))
	}
	return all
}

func (c Config) draw(rng *rand.Rand) Context {
	n := c.Actions
	update, prior := drawUpdate(rng, n), drawPrior(rng, n)
	distinct := 2 + rng.IntN(n-1)
	cliffs, deep := rng.IntN(2)*rng.IntN(distinct), numeric.Exp(rng.Float64()*numeric.Log(c.Deepest))
	span := slices.Max(update[:distinct]) - slices.Min(update[:distinct])
	for a := range n {
		of := a
		if a >= distinct {
			of = rng.IntN(distinct)
			update[a], prior[a] = update[of], prior[of]
		} else if update[a] /= span; a < cliffs {
			update[a] -= deep
		}
	}
	best, top := slices.Max(update), slices.Max(prior)
	for a := range update {
		update[a] -= best
		prior[a] -= top
	}
	return Context{update, prior}
}

func drawUpdate(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	kind := rng.IntN(4)
	for a := range x {
		g := rng.NormFloat64()
		switch kind {
		case 0:
			x[a] = g
		case 1: // nearly tied but for some
			x[a] = float64(1e-3 * rng.NormFloat64())
			if rng.Float64() < .3 {
				x[a] += g
			}
		case 2:
			x[a] = float64(g * numeric.Exp(1.5*rng.NormFloat64()))
		case 3:
			x[a] = 2*rng.Float64() - 1
		}
	}
	return x
}

func drawPrior(rng *rand.Rand, n int) []float64 {
	const least, most = .05, 3000
	scale := least * numeric.Exp(rng.Float64()*numeric.Log(most/least))
	x := make([]float64, n)
	kind := rng.IntN(3)
	for a := range x {
		switch kind {
		case 0:
			x[a] = float64(scale * rng.NormFloat64())
		case 1:
			x[a] = float64(scale * rng.Float64())
		case 2: // one dominates
			x[a] = float64(-.3 * scale * numeric.Exp(2*rng.NormFloat64()))
		}
	}
	return x
}

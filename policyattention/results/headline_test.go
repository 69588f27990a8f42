package results

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// An actor that is exact PMD but for one problem in two hundred, on which it locks up, is told from
// exact PMD by the headline's problems, and most often not by 64.
func TestPlantedTail(t *testing.T) {
	exact := testkit.Must(stored.exact("headline").Where(S.Is(4)).At(40).groups(nil))(t)
	y := exact[0].sample
	x := [][]float64{append([]float64{}, y[0]...)}
	for m := 77; m < len(x[0]); m += 200 {
		x[0][m] += .3
	}
	plant := func(n int) (ratio, locked Cell) {
		g, h := group{sample: [][]float64{x[0][:n]}, runs: []string{"0"}},
			group{sample: [][]float64{y[0][:n]}, runs: []string{"0"}}
		return testkit.Must(estimate("over-problems", g, h))(t), testkit.Must(estimate("locked", g, h))(t)
	}
	if ratio, locked := plant(len(y[0])); ratio.Lo < 1.1 || locked.Lo < .003 || locked.Hi > .008 {
		t.Errorf("ratio %v, locked %v", ratio, locked)
	}
	if ratio, locked := plant(64); ratio.Resolved(1) || locked.Value > 0 {
		t.Errorf("64 problems: ratio %v, locked %v", ratio, locked)
	}
}

// The policies that table greedy-leads makes greedy are those of the headline's loops.
func TestGreedyOfTheHeadline(t *testing.T) {
	for _, states := range []int{8, 16} {
		for _, of := range [][]any{{"policyattention", "plain"}, {"liang-lai", "tuned"},
			{"algorithm-distillation", "full"}, {"actor-critic", "source-tuned"}} {
			one := func(block string, filters ...Filter) [][]float64 {
				rows := stored.Block(block).Where(Method.Is(of[0]), Recipe.Is(of[1]), S.Is(states)).Where(filters...)
				return testkit.Must(rows.At(20).one())(t).sample
			}
			returned := one("headline-greedy", Column("alpha").Is(1))
			for i, losses := range one("headline")[:len(returned)] {
				if d := floats.Distance(losses, returned[i], math.Inf(1)); d > 1e-6 { // float32, other processors
					t.Errorf("%v, S = %d, run %d: losses differ by %v", of, states, i, d)
				}
			}
		}
	}
}

// TestCoverage draws problems from those of the headline block and counts how often an interval holds
// the ratio of all: with as many, as the note of table headline says; with 64, of which the other
// tables are, by their bootstrap, as RESULTS says.
func TestCoverage(t *testing.T) {
	const draws = 600 // so that a count has a standard deviation of .009
	for _, c := range []struct{ s, t, n, least float64 }{
		{4, 20, 4096, .93}, {4, 40, 4096, .93}, {4, 100, 4096, .93},
		{8, 20, 2048, .89}, {8, 40, 2048, .91}, {8, 100, 2048, .91},
		{16, 20, 1024, .83}, {16, 40, 1024, .89}, {16, 100, 1024, .93},
		{4, 20, 64, 0}, {4, 40, 64, 0}, {8, 20, 64, 0}, {8, 40, 64, 0}, {16, 20, 64, 0}, {16, 40, 64, 0},
	} {
		rows := stored.Block("headline").Where(S.Is(c.s)).At(int(c.t))
		of := func(method, recipe string) group {
			return testkit.Must(rows.Where(Method.Is(method), Recipe.Is(recipe)).one())(t)
		}
		x, y := pair(of("policyattention", "plain"), of("exact-pmd", None))
		estimate := stats.RatioOverProblems
		if c.n == 64 {
			estimate = stats.Bootstrap{Replicates: 250, Level: .95, Seed: 1}.RatioOfMeans
		}
		all, err := estimate(x, y)
		if err != nil || all.Lo >= all.Value || all.Hi <= all.Value {
			t.Fatalf("%+v, %v", all, err)
		}
		rng, held := seed.New(1, "coverage", int(c.s), int(c.t), int(c.n)), 0.
		for range draws {
			a, b := make([][]float64, len(x)), make([][]float64, len(x))
			for range int(c.n) {
				m := rng.IntN(len(x[0]))
				for j := range x {
					a[j], b[j] = append(a[j], x[j][m]), append(b[j], y[j][m])
				}
			}
			e := testkit.Must(estimate(a, b))(t)
			if e.Lo <= all.Value && all.Value <= e.Hi {
				held++
			}
		}
		t.Logf("S = %v, T = %v, %v problems: %.3f", c.s, c.t, c.n, held/draws)
		if share := held / draws; share < c.least-.01 || c.least == 0 && c.s > 4 && c.t == 40 && share > .9 ||
			c.s == 4 && c.n > 64 && math.Abs(share-.95) > .02 {
			t.Errorf("S = %v, T = %v: the interval of %v problems covers %.3f", c.s, c.t, c.n, share)
		}
	}
}

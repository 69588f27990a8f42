package results

import (
	"math"
	"slices"
	"testing"

	"icrl/policyattention/experiment"
)

// course returns an identity with losses at T = 1 of two problems, by step.
func course(seed uint64, losses map[int][]float64) Course {
	c := Course{Seed: seed, After: map[int]*experiment.Evaluation{}, SecondsPerStep: .01 * float64(seed)}
	for step, l := range losses {
		c.After[step] = made([]uint64{seed}, l).Found[0]
	}
	return c
}

func TestTimeToQuality(t *testing.T) {
	oracle := made([]uint64{0}, []float64{.1, .1})
	all := []Course{
		course(1, map[int][]float64{100: {.1, .1}, 200: {.2, .2}, 400: {.1, .1}}), // there at once, and away again
		course(2, map[int][]float64{100: {.3, .3}, 400: {.1, .11}}),               // not looked at after 200
		course(3, map[int][]float64{100: {.3, .3}, 200: {.2, .3}, 400: {.2, .2}}), // never there
	}
	row := TimeToQuality{T: 1, Bar: Bar{Limit: 1.05, Ratio: true, Means: true}}
	if err := row.measure(all, oracle); err != nil {
		t.Fatal(err)
	}
	inf := finite(math.Inf(1))
	want := []Reached{
		{Seed: 1, Steps: 100, CoreSeconds: 1, Again: true, Furthest: 400},
		{Seed: 2, Steps: 400, CoreSeconds: 8, Furthest: 400},
		{Seed: 3, Steps: inf, CoreSeconds: inf, Furthest: 400},
	}
	for i, got := range row.ByRun {
		if got.There() != (got.Steps < inf) {
			t.Errorf("%+v: There is %v", got, got.There())
		}
		if got.at = nil; got != want[i] {
			t.Errorf("%+v, want %+v", got, want[i])
		}
	}
	// The median of 100, 400 and never, at the median rate of .02 s; an interval over three
	// runs reaches from the first to the last.
	if s := row.Steps; s.Value != 400 || s.Lo != 100 || s.Hi != float64(inf) || s.Runs != 3 || row.SecondsPerStep != .02 || row.Furthest != 400 {
		t.Errorf("steps %+v, %v s a step, looked at up to %d", s.Estimate, row.SecondsPerStep, row.Furthest)
	}
	// Of the two that reach the bar: excesses 0, 0, 0 and .01.
	if row.Tail.Runs != 2 || row.Tail.Planned != 3 || math.Abs(row.Tail.Worst-.01) > 1e-15 {
		t.Errorf("tail %+v", row.Tail)
	}
	// How far was looked counts where the bar is not reached, not where it is.
	longer := append(all[:2:2], course(3, map[int][]float64{100: {.3, .3}, 800: {.2, .2}}))
	shortest := append(all[:2:2], course(3, map[int][]float64{100: {.3, .3}}))
	for want, courses := range map[int][]Course{800: longer, 100: shortest, 400: all[:2]} {
		far := TimeToQuality{T: 1, Bar: row.Bar}
		if err := far.measure(courses, oracle); err != nil || far.Furthest != want {
			t.Errorf("looked at up to %d, %v, want %d", far.Furthest, err, want)
		}
	}
	loss := TimeToQuality{T: 1, Bar: Bar{Limit: .25}}
	if err := loss.measure(all, oracle); err != nil || loss.Steps.Value != 200 || loss.ByRun[2].Steps != 200 {
		t.Errorf("a loss of .25: %+v, %v", loss.ByRun, err)
	}
}

// The bars of the paper are where it prints numbers.
func TestBars(t *testing.T) {
	for _, c := range []struct {
		s, t  int
		names []string
		limit float64 // of the first
	}{
		{4, 20, []string{"the paper's ratio", "1.05 × exact PMD", "1.05 × exact PMD, means"}, 1.052},
		{4, 40, []string{"1.05 × exact PMD", "1.05 × exact PMD, means"}, 1.05},
		{8, 20, []string{"the paper's loss", "the paper's ratio", "1.05 × exact PMD", "1.05 × exact PMD, means"}, .01929},
		{16, 40, []string{"the paper's loss", "the paper's ratio", "1.05 × exact PMD", "1.05 × exact PMD, means"}, .0224},
	} {
		var names []string
		bars := Bars(c.s, c.t)
		for _, b := range bars {
			names = append(names, b.Name)
		}
		if !slices.Equal(names, c.names) || bars[0].Limit != c.limit {
			t.Errorf("S = %d, T = %d: %q, the first %v, want %q, %v", c.s, c.t, names, bars[0].Limit, c.names, c.limit)
		}
	}
}

package results

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// made returns runs whose problems have the given losses at T = 1.
func made(seeds []uint64, losses ...[]float64) Runs {
	r := Runs{Planned: len(seeds)}
	for j, run := range losses {
		e := &experiment.Evaluation{Cell: experiment.Cell{Seed: seeds[j]}}
		for _, v := range run {
			e.Scored = append(e.Scored, control.Scored{Loss: []float64{1, v}})
		}
		r.Found = append(r.Found, e)
	}
	return r
}

func TestTail(t *testing.T) {
	x := made([]uint64{1, 2}, []float64{.1, .2, .9, .1}, []float64{.1, .2, .3, .4})
	oracle := made([]uint64{0}, []float64{.1, .1, .1, .1})
	got, err := x.Tail(oracle, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Excesses, sorted: 0 0 0 .1 .1 .2 .3 .8, by hand.
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-15 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("mean", got.Mean, 1.5/8)
	near("95th percentile", got.P95, .3+.65*.5) // at 6.65 of 0…7
	near("99th percentile", got.P99, .3+.93*.5)
	near("worst", got.Worst, .8)
	near("share behind", got.Behind, 5./8)
	near("ratio of means", got.RatioOfMeans.Value, (1.3/.4+1/.4)/2)
	if got.WorstRun != 1 || got.Problems != 8 || got.Runs != 2 {
		t.Errorf("%+v", got)
	}
	if got, err := (Runs{Planned: 3}).Tail(oracle, 1); err != nil || got.Runs != 0 || got.Planned != 3 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}

// Runs are compared with runs of the same identity, or with an exact method's one run.
func TestCompare(t *testing.T) {
	x := made([]uint64{1, 2, 3}, []float64{.2, .2}, []float64{.4, .4}, []float64{.8, .8})
	y := made([]uint64{3, 1}, []float64{.1, .1}, []float64{.4, .4})
	for f, want := range map[Estimator][]float64{
		Ratio: {.5, 8}, RatioOfMeans: {.5, 8}, Difference: {-.2, .7}, PairedDifference: {-.2, .7},
	} {
		e, err := x.Compare(f, y, 1)
		if err != nil {
			t.Fatal(err)
		}
		if e.Runs != 2 || e.Planned != 0+3 || e.Used[1][0].Cell.Seed != 1 {
			t.Errorf("%s: %+v", f, e)
		}
		for j := range want {
			if math.Abs(e.ByRun[j]-want[j]) > 1e-15 {
				t.Errorf("%s by run: %v, want %v", f, e.ByRun, want)
			}
		}
		if math.Abs(e.Value-(want[0]+want[1])/2) > 1e-15 || e.Lo > e.Value || e.Hi < e.Value {
			t.Errorf("%s: %+v", f, e.Estimate)
		}
	}
	if e, err := x.Ratio(made([]uint64{0}, []float64{.1, .1}), 1); err != nil || e.Runs != 3 || e.Value != 4 {
		t.Errorf("against one run for all: %+v, %v", e, err)
	}
	if e, err := x.Ratio(Runs{}, 1); err != nil || e.Runs != 0 {
		t.Errorf("against nothing: %+v, %v", e, err)
	}
}

func TestSelection(t *testing.T) {
	c := experiment.Cell{Block: experiment.Shift, Method: experiment.PolicyAttention, Recipe: "plain", S: 4, Seed: 7, Family: mdp.Ring, Step: 3}
	for _, x := range []struct {
		Selection
		want bool
	}{
		{Selection{}, true},
		{Selection{Block: experiment.Shift, Method: experiment.PolicyAttention, Recipe: "plain", S: 4, Seed: 7, Family: mdp.Ring, Step: 3}, true},
		{Selection{Block: experiment.Oracle}, false}, {Selection{Method: experiment.ExactPMD}, false}, {Selection{Recipe: "prior"}, false},
		{Selection{S: 8}, false}, {Selection{Seed: 8}, false}, {Selection{Family: mdp.Random}, false}, {Selection{Step: 4}, false},
	} {
		if got := x.Matches(c); got != x.want {
			t.Errorf("%+v matches: %v", x.Selection, got)
		}
	}
}

// Of the stored artifacts every function of rows has values, and each paper's number
// is used by name.
func TestStored(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads all committed results")
	}
	store, err := experiment.Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	s := New(store)
	rows, err := s.Benchmark()
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for _, r := range rows {
		if r.Loss.Paper != nil {
			quoted++
		}
		if r.Method != experiment.Distillation && r.Loss.Runs == 0 {
			t.Errorf("%s at S = %d has no runs", r.Series, r.S)
		}
		if r.Method == experiment.ExactPMD && r.Ratio.Runs != 0 {
			t.Error("exact PMD is compared with itself")
		}
	}
	// 22 numbers of Table 3, those of the two sampled methods for each of their recipes.
	if quoted < 22 {
		t.Errorf("%d rows have a number of the paper", quoted)
	}
	tails, err := s.Tails()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range tails {
		if g.Tail.Runs > 0 && !(g.Tail.Mean <= g.Tail.Worst && g.Tail.P95 <= g.Tail.P99 && g.Tail.P99 <= g.Tail.Worst) {
			t.Errorf("%s at S = %d, T = %d: %+v", g.Name, g.S, g.T, g.Tail)
		}
	}
}

// How far a training run is that something waits for is what the manifests of its parts say.
func TestProgress(t *testing.T) {
	const full = 40_000 // of the paper
	store, err := experiment.Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	s := New(store)
	at := func(name method.Name, recipe string, states int) (Progress, bool) {
		p, ok, err := s.Progress(Selection{Method: name, Recipe: recipe, S: states})
		if err != nil {
			t.Fatal(err)
		}
		return p, ok
	}
	for states, seed := range map[int]int{8: 18100, 16: 19100} {
		folders, err := filepath.Glob(fmt.Sprintf("../../artifacts/paper/train/algorithm-distillation-source4-context200-steps*-S%d-%d-*", states, seed))
		if err != nil || states == 8 && len(folders) == 0 {
			t.Fatalf("no part of the full budget: %v", err)
		}
		steps, seconds := 0., 0.
		for _, folder := range folders {
			if n, cost := trained(t, folder); n > steps {
				steps, seconds = n, cost
			}
		}
		p, ok := at(experiment.Distillation, "full", states)
		if ok != (steps < full) || p.Of != full || p.Steps != int(steps) {
			t.Errorf("S = %d: %+v, %t, want %v of %v steps", states, p, ok, steps, full)
		}
		if hours := seconds / steps * (full - steps) / 3600; steps > 0 && math.Abs(p.Hours-hours) > 1e-9 {
			t.Errorf("S = %d: %v hours, want %v", states, p.Hours, hours)
		}
	}
	for _, name := range []method.Name{experiment.LiangLai, experiment.ExactPMD, "no method"} {
		if p, ok := at(name, "paper", 8); ok {
			t.Errorf("%s waits for %+v", name, p)
		}
	}
}

// Of a recipe's parts a table has the furthest that has been run at each size, until the
// whole has been.
func TestPartsOfARecipe(t *testing.T) {
	store, err := experiment.Open(t.TempDir(), "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		run  map[string]int // sizes by recipe
		want []string
	}{
		{nil, nil},
		{map[string]int{"full-after-500": 8, "full-after-2500": 8}, []string{"full, 2500 of 40000 steps"}},
		{map[string]int{"full-after-1000": 16, "full-after-5000": 8}, []string{"full, 1000 of 40000 steps", "full, 5000 of 40000 steps"}},
		{map[string]int{"full-after-20000": 8, "full": 8}, nil},
	} {
		s := New(store)
		for _, c := range store.Preset.Plan() {
			if c.Block == experiment.Benchmark && c.Method == experiment.Distillation && tc.run[c.Recipe] == c.S {
				s.read[c] = &experiment.Evaluation{Cell: c}
			}
		}
		var got []string
		whole := false
		for _, x := range s.BenchmarkSeries() {
			if x.Stage != "" {
				got = append(got, x.Stage)
			}
			whole = whole || x.Recipe == "full"
		}
		if !slices.Equal(got, tc.want) || !whole {
			t.Errorf("%v run: parts %q, want %q; the whole recipe is listed: %v", tc.run, got, tc.want, whole)
		}
	}
}

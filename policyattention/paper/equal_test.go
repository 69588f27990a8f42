package paper

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

func store(t *testing.T) *experiment.Store {
	t.Helper()
	return testkit.Must(testkit.Must(FindPreset("paper"))(t).Open("../../artifacts", ""))(t)
}

func problems(t *testing.T, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(17, 8, mdp.Actions, n))(t)
}

// losses runs a method on problems of eight states.
func losses(t *testing.T, s *experiment.Store, c method.Condition, name string, problems []mdp.Problem,
	values ...float64) [][]float64 {
	t.Helper()
	r := equalRun{informedMethod: informedMethod{States: 8, Condition: c, Method: name}, Values: values}
	controller := testkit.Must(r.controller(s, 0, equalRoots[8].Samples))(t)
	return testkit.Must(r.losses(controller, problems, r.horizons()...))(t)
}

// No seed is another's, or one of the paper's protocol.
func TestRootsAreDisjoint(t *testing.T) {
	seen := map[uint64]string{}
	take := func(root uint64, what string) {
		if other, ok := seen[root]; ok && root != 0 {
			t.Errorf("%s and %s have the root %d", what, other, root)
		}
		seen[root] = what
	}
	for _, size := range experiment.PaperProtocol.Sizes {
		for _, r := range []uint64{size.Evaluation, size.Oracle, size.HeldOut, size.Calibration, size.Qualification} {
			seen[r] = "the protocol"
		}
		for _, r := range size.Runs {
			seen[r.Model], seen[r.Task] = "the protocol", "the protocol"
		}
	}
	for _, r := range equalRoots {
		take(r.Evaluation, "evaluation")
		take(r.Calibration, "calibration")
		take(r.Choosing, "choosing")
		for j := range uint64(3) {
			take(r.Samples+j, "samples")
		}
	}
}

// FORMAT.md says from which root the problems of a block are drawn.
func TestRootsAreTold(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../artifacts/FORMAT.md"))(t)
	root := regexp.MustCompile(`(?i)"(root|evaluation)":(\d+)`)
	told := map[string]bool{}
	for _, u := range testkit.Must(store(t).Units())(t) {
		found := root.FindSubmatch(testkit.Must(json.Marshal(u.Config))(t))
		if found == nil || u.Block == "calibration" { // a root of each run's own
			continue
		}
		row := fmt.Sprintf("(?m)^.*`%s`.*[ ,]%s[ ,;].*$", u.Block, found[2])
		told[string(found[2])] = true
		if !regexp.MustCompile(row).Match(text) {
			t.Errorf("block %s: no root %s", u.Block, found[2])
		}
	}
	if len(told) != 21 {
		t.Errorf("%d roots: %v", len(told), told)
	}
}

// Every run draws as many transitions as its condition gives, which losses checks.
func TestConditions(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every method")
	}
	s := store(t)
	for _, r := range equalRuns {
		if r.States != 8 || r.N > 48 || r.Untuned {
			continue
		}
		controller := testkit.Must(r.controller(s, 0, equalRoots[8].Samples))(t)
		if _, err := r.losses(controller, problems(t, 1), r.horizons()...); err != nil {
			t.Errorf("%s: %v", r.Method, err)
		}
		if r.N++; r.Method == "posterior-sampling" {
			if _, err := r.losses(controller, problems(t, 1), r.horizons()...); err == nil {
				t.Error("a run that draws fewer transitions than its condition gives is taken")
			}
		}
	}
}

// What a method has not seen cannot change what it does: with samples of a walk it ends at the same
// policies, whatever holds in a state that no other leads to. A walk begins there in one problem of
// eight, and with the model exact PMD's policies differ in all.
func TestUnseenChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every method")
	}
	s, island := store(t), 7
	changed := func(r float64, to int) (all []mdp.Problem) {
		for _, p := range problems(t, 6) {
			transitions, rewards := p.MDP.DenseP(), mat.DenseCopyOf(p.MDP.R)
			for row := range 8 * mdp.Actions {
				x := transitions.RawRowView(row)
				x[island] = 0
				floats.Scale(1/floats.Sum(x), x)
			}
			for a := range mdp.Actions {
				rewards.Set(island, a, r*float64(a))
				transitions.SetRow(island*mdp.Actions+a, make([]float64, 8))
				transitions.Set(island*mdp.Actions+a, to, 1)
			}
			all = append(all, mdp.Problem{MDP: testkit.Must(mdp.New(p.MDP.Gamma, transitions, rewards))(t), Pi0: p.Pi0})
		}
		return all
	}
	for _, r := range equalRuns {
		walks := r.Information == method.ByWindow && r.N == 20
		if r.States != 8 || r.Untuned || !walks && (r.Method != "exact-pmd" || r.Information != method.ByModel) {
			continue
		}
		same, rounds := 0, 0
		var policies [2][]control.Trajectory
		for i, p := range [][]mdp.Problem{changed(.1, 0), changed(-.2, 5)} {
			controller := testkit.Must(r.controller(s, 0, equalRoots[8].Samples))(t)
			rounds = ownRounds(controller, equalRounds)
			policies[i] = testkit.Must(controller.Run(p, rounds))(t)
		}
		for i, x := range policies[0] {
			if mat.Equal(x.Policies[rounds], policies[1][i].Policies[rounds]) {
				same++
			}
		}
		if (same > 0) != walks {
			t.Errorf("%s, %s: %d of 6 problems end in the same policy", r.Method, r.Condition, same)
		}
	}
}

// A method whose own rounds are longer than the condition's first horizon returns π₀ by then.
func TestBeforeItsFirstRound(t *testing.T) {
	c := method.Condition{Information: method.ByWindow, N: 10}
	if !Methods.Has("algorithm-distillation") {
		t.Skip("the one method with such rounds is not there")
	}
	if got := losses(t, store(t), c, "algorithm-distillation", problems(t, 1)); got[0][0] != 1 {
		t.Errorf("losses %v", got)
	}
}

// The decoder is exact PMD to its routing error of 1e-6, which 40 rounds at η = .8 carry
// into losses far below 1e-4.
func TestDecoderIsPMD(t *testing.T) {
	s, c, p := store(t), method.Condition{Information: method.ByModel}, problems(t, 2)
	exact, decoder := losses(t, s, c, "exact-pmd", p, .8, 0), losses(t, s, c, "decoder", p, .8, 0)
	for i := range exact {
		for h, loss := range exact[i] {
			if math.Abs(loss-decoder[i][h]) > 1e-4 {
				t.Errorf("problem %d, horizon %d: loss %v of exact PMD, %v of the decoder", i, h, loss, decoder[i][h])
			}
		}
	}
}

// A loop begun from the uniform policy is that of the same problem with π₀ uniform, and is
// scored by the problem's own gap.
func TestBegun(t *testing.T) {
	s, c, p := store(t), method.Condition{Information: method.ByModel}, problems(t, 1)
	begun := losses(t, s, c, "exact-pmd", p, .8, 1)
	uniform := slices.Clone(p)
	uniform[0].Pi0 = p[0].MDP.Uniform()
	own := losses(t, s, c, "exact-pmd", uniform, .8, 0)
	ratio := begun[0][0] / own[0][0]
	for h := range own[0] {
		if want := ratio * own[0][h]; math.Abs(begun[0][h]-want) > 1e-12*want {
			t.Errorf("horizon %d: loss %v, %v times %v from π₀ uniform", h, begun[0][h], ratio, own[0][h])
		}
	}
}

// Package lives checks methods that learn in context in tests.
package lives

import (
	"math"
	"os"
	"slices"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

// Again lives problems action by action, shows the recorded lives to the network a round at a
// time, and wants the policies that were returned before. Records of actions that cannot have
// been taken must be refused.
func Again(t *testing.T, c baseline.InContext, problems []mdp.Problem, rounds int, tolerance float64) {
	t.Helper()
	lived, actions, err := c.Record(problems, rounds)
	testkit.Check(t, err)
	again := testkit.Must(c.Replay(problems, rounds, actions, tolerance))(t)
	for i := range problems {
		for k, pi := range lived[i].Policies {
			if d := mdp.MaxAbsDiff(again[i].Policies[k], pi); d > tolerance {
				t.Errorf("problem %d, round %d: policies differ by %v", i, k, d)
			}
		}
	}
	for name, change := range map[string]func([]int32) []int32{
		"another action": func(a []int32) []int32 { a[37] = (a[37] + 1) % int32(problems[1].MDP.Actions()); return a },
		"no action":      func(a []int32) []int32 { a[37] = int32(problems[1].MDP.Actions()); return a },
		"half a round":   func(a []int32) []int32 { return a[:len(a)-10] },
	} {
		changed := slices.Clone(actions)
		changed[1] = change(slices.Clone(actions[1]))
		if _, err := c.Replay(problems, rounds, changed, tolerance); err == nil {
			t.Errorf("%s passed", name)
		}
	}
}

// Ends asks that two training runs ended in the same weights.
func Ends(t *testing.T, whole, parts *train.Result) {
	t.Helper()
	x, y := testkit.Must(os.ReadFile(whole.Weights))(t), testkit.Must(os.ReadFile(parts.Weights))(t)
	if string(x) != string(y) {
		t.Error("a run that was interrupted ends in other weights")
	}
}

// InGo asks that package engine makes the steps of a job that its graph would make: ten losses, of
// which all but the first depend on the gradients, up to float32 rounding.
func InGo(t *testing.T, j train.Job, tolerance float64) {
	t.Helper()
	b := testkit.Must(backend.New("go"))(t)
	model := j.Model.(train.Transformer)
	var losses [2][]float32
	for i := range losses {
		s := testkit.Must(train.NewSession(b, j))(t)
		losses[i] = testkit.Must(s.Steps(10))(t)
		s.Close()
		model.InGo = nil
		j.Model = model
	}
	for i, want := range losses[1] {
		if d := math.Abs(float64(losses[0][i] - want)); !(d <= tolerance*math.Abs(float64(want))) {
			t.Errorf("loss %d is %v, by the graph %v", i, losses[0][i], want)
		}
	}
}

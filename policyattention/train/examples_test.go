package train

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// TestContexts checks the distribution: rounds in their ranges, η in its range, each
// context the round of an exact run, and at most MDPs problems up to names.
func TestContexts(t *testing.T) {
	c := tiny(Proximal)
	c.Examples, c.Recipe.Rounds, c.Recipe.Early = 600, 9, 2
	drawn := testkit.Must(c.Contexts())(t)
	tops := [2]int{}
	problems := map[float64]bool{} // by the sum of rewards, which has no names
	for i, x := range drawn {
		tops[i%2] = max(tops[i%2], x.Round)
		if x.Eta < c.Recipe.EtaMin || x.Eta > c.Recipe.EtaMax {
			t.Errorf("context %d has η = %v", i, x.Eta)
		}
		if err := x.MDP.CheckPolicy(x.Pi); err != nil {
			t.Errorf("context %d: %v", i, err)
		}
		if x.Round == 0 {
			q := testkit.Must(x.MDP.PolicyValue(x.Pi))(t)
			if d := mdp.MaxAbsDiff(q, x.Q); d > 1e-9 {
				t.Errorf("context %d is at round 0 and its Q differs from Q^π by %v", i, d)
			}
		}
		problems[math.Round(1e9*mat.Sum(x.MDP.R))] = true
	}
	if tops != [2]int{9, 2} {
		t.Errorf("latest rounds are %v, want 9 and 2", tops)
	}
	if len(problems) != c.MDPs {
		t.Errorf("%d different problems, want %d", len(problems), c.MDPs)
	}
	again := testkit.Must(c.Contexts())(t)
	if !mat.Equal(again[17].Q, drawn[17].Q) {
		t.Error("a second draw differs")
	}
}

// TestRelabel: solving and renaming commute.
func TestRelabel(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(1, 4, 3, 1))(t)
	m := problems[0].MDP
	rng := seed.New(1, "test", "relabel")
	states, actions := rng.Perm(4), rng.Perm(3)
	renamed := testkit.Must(relabel(m, states, actions))(t)
	before := testkit.Must(m.Optimal())(t)
	after := testkit.Must(renamed.Optimal())(t)
	for s := range states {
		for a := range actions {
			if d := math.Abs(before.Q.At(s, a) - after.Q.At(states[s], actions[a])); d > 1e-10 {
				t.Errorf("Q*(%d,%d) changed by %v", s, a, d)
			}
		}
	}
}

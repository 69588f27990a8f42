package train

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
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

	c.Recipe.Contexts = RandomPolicies
	drawn = testkit.Must(c.Contexts())(t)
	if slices.ContainsFunc(drawn, func(x control.Context) bool { return x.Round != 0 }) {
		t.Error("random policies come from later rounds")
	}
}

// Starved starts leave an action of one state, or of each, a mass of 10⁻¹² to 10⁻¹, whatever
// action it is, and are policies all the same.
func TestStarvedStarts(t *testing.T) {
	c := tiny(Proximal)
	c.Examples, c.Recipe.Contexts, c.Recipe.Rounds, c.Recipe.Early = 400, StarvedStarts, 0, 0
	least, actions := 1.0, map[int]bool{}
	for i, x := range testkit.Must(c.Contexts())(t) {
		if err := x.MDP.CheckPolicy(x.Pi); err != nil {
			t.Fatalf("context %d: %v", i, err)
		}
		starved := 0
		for s := range c.Sizes[0] {
			row := x.Pi.RawRowView(s)
			mass := slices.Min(row)
			if mass <= .1 {
				starved++
			}
			if mass < 1e-6 {
				actions[slices.Index(row, mass)] = true
			}
			least = min(least, mass)
		}
		if everywhere := i/2%2 == 1; starved == 0 || everywhere && starved < c.Sizes[0] {
			t.Errorf("context %d: %d of %d states are starved", i, starved, c.Sizes[0])
		}
	}
	// Of some 1,000 draws the least has all but surely less than 10⁻¹¹.
	if least < 1e-12 || least > 1e-11 || len(actions) != c.Actions {
		t.Errorf("least mass %v, of %d actions", least, len(actions))
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

// TestNext: the step between contexts is the exact oracle's.
func TestNext(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(2, 3, 2, 1))(t)
	m, pi := problems[0].MDP, problems[0].Pi0
	q := testkit.Must(m.PolicyValue(pi))(t)
	x := testkit.Must(next(control.Context{MDP: m, Pi: pi, Q: q, Eta: 0.7}))(t)
	want := testkit.Must(pmd.Step(pi, q, 0.7))(t)
	if !mat.Equal(x.Pi, want) || !mat.Equal(x.Q, m.EvaluationBackup(want, q)) || x.Round != 1 {
		t.Error("the next context is not the next round of exact PMD")
	}
}

// The two runs of an example are on the same problem for as many rounds, from the same
// start, and differ in what they sample.
func TestRuns(t *testing.T) {
	c := tiny(Critic)
	c.Recipe = Residual()
	first := testkit.Must(c.contexts(0))(t)
	second := testkit.Must(c.contexts(1))(t)
	for i, x := range first {
		y := second[i]
		if x.Round != y.Round || x.Eta != y.Eta || !mat.Equal(x.MDP.DenseP(), y.MDP.DenseP()) {
			t.Errorf("example %d: runs of rounds %d and %d, η %v and %v", i, x.Round, y.Round, x.Eta, y.Eta)
		}
		if same := mat.Equal(x.Q, y.Q); same != (x.Round == 0) {
			t.Errorf("example %d, round %d: the same Q is %v", i, x.Round, same)
		}
	}
}

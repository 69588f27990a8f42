package paper

import (
	"math"
	"slices"
	"testing"

	"icrl/policyattention/mdp"
)

// TestLockUpDraw checks the one thing that a mass changes.
func TestLockUpDraw(t *testing.T) {
	s := LockUp{Root: 1, States: 4, Actions: 3, Problems: 5, Rounds: 40, Eta: .8}
	plain, err := mdp.Random.Draw(s.Root, s.States, s.Actions, s.Problems)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := s.draw(1e-3, s.Problems)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range drawn {
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		optimum, err := p.MDP.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		if mdp.MaxAbsDiff(p.MDP.R, plain[i].MDP.R) != 0 {
			t.Errorf("problem %d has other rewards", i)
		}
		for state := range s.States {
			q, row, before := optimum.Q.RawRowView(state), p.Pi0.RawRowView(state), plain[i].Pi0.RawRowView(state)
			best := slices.Index(q, slices.Max(q))
			if row[best] != 1e-3 {
				t.Errorf("problem %d, state %d: the best action has mass %v", i, state, row[best])
			}
			x, y := (best+1)%3, (best+2)%3
			if math.Abs(row[x]/row[y]-before[x]/before[y]) > 1e-12*row[x]/row[y] {
				t.Errorf("problem %d, state %d: the others share %v, were drawn as %v", i, state, row, before)
			}
		}
	}
}

package mdp

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// Counts by hand for S = 3 and A = 2, so that P has 18 entries and r has 6.
func TestMeterByHand(t *testing.T) {
	problems := testkit.Must(Random.Draw(1, 3, 2, 1))(t)
	q := mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6})
	for _, x := range []struct {
		name string
		use  func(m *MDP) error
		want Count
	}{
		{"a reward and a row", func(m *MDP) error { m.Reward(1, 0); m.Next(2, 1); return nil }, Count{Entries: 1 + 3}},
		{"five transitions", func(m *MDP) error {
			for i := range 5 {
				m.Transition(seed.New(1, "transition"), i%3, i%2)
			}
			return nil
		}, Count{Transitions: 5}},
		{"an evaluation backup", func(m *MDP) error { m.EvaluationBackup(problems[0].Pi0, q); return nil },
			Count{Entries: 24}},
		{"an optimality backup", func(m *MDP) error { m.OptimalityBackup(q); return nil },
			Count{Entries: 24}},
		{"a policy's value", func(m *MDP) error { _, err := m.PolicyValue(problems[0].Pi0); return err },
			Count{Entries: 24 + 24}},
	} {
		m := problems[0].MDP.Metered()
		testkit.Check(t, x.use(m))
		m.Meter().EndRound()
		rounds := m.Meter().Rounds()
		if len(rounds) != 1 || rounds[0] != x.want {
			t.Errorf("%s: %+v, by hand %+v", x.name, rounds, x.want)
		}
	}
}

// A metered MDP computes the same bits, and hides its tables.
func TestMeteredIsTheSame(t *testing.T) {
	for _, family := range []Family{Random, SparseTransitions} {
		problems := testkit.Must(family.Draw(2, 24, 3, 1))(t)
		m := problems[0].MDP
		metered := m.Metered()
		if !math.IsNaN(metered.R.At(0, 0)) || math.IsNaN(m.R.At(0, 0)) {
			t.Error("the tables of a metered MDP can be read, or those of the MDP cannot")
		}
		plain := testkit.Must(m.Optimal())(t)
		counted, err := metered.Optimal()
		if err != nil || !mat.Equal(plain.Q, counted.Q) {
			t.Errorf("%s: another Q*: %v", family, err)
		}
		reward, next := m.Transition(seed.New(3, "x"), 1, 2)
		r, s := metered.Transition(seed.New(3, "x"), 1, 2)
		if r != reward || s != next || r != m.R.At(1, 2) || metered.RMax() != m.RMax() {
			t.Errorf("%s: another transition or reward cap", family)
		}
		if m.Meter() != nil || m.Meter().Rounds() != nil {
			t.Error("an MDP without a meter has counts")
		}
	}
}

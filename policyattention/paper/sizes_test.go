package paper

import (
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

// An actor that sees each state alone does in twice as many states what it does in the first half, where the second
// half is the first again.
func TestResized(t *testing.T) {
	c := train.Standard(train.Proximal, train.Plain(), 3, 4)
	c.Attention = train.WithinState
	model := testkit.Must(train.NewModel(c, testkit.Must(c.Job())(t).Model.Init()))(t)
	rng := seed.New(1, "resized")
	pi, q := mdp.RandomPolicy(rng, 4, 3), mdp.RandomPolicy(rng, 4, 3)
	act := func(states int) *mat.Dense {
		x := control.Context{Pi: mat.NewDense(states, 3, nil), Q: mat.NewDense(states, 3, nil), Eta: .8}
		for s := range states {
			x.Pi.SetRow(s, pi.RawRowView(s%4))
			x.Q.SetRow(s, q.RawRowView(s%4))
		}
		actor := testkit.Must(testkit.Must(resized(model, states))(t).Actor())(t)
		return testkit.Must(actor.Act([]control.Context{x}))(t)[0].Pi
	}
	own, other := act(4), act(8)
	for s := range 8 {
		if got, want := other.RawRowView(s), own.RawRowView(s%4); !floats.EqualApprox(got, want, 1e-6) {
			t.Errorf("state %d: %v, want %v", s, got, want)
		}
	}
	if floats.Distance(own.RawRowView(0), own.RawRowView(1), 1) < 1e-3 {
		t.Errorf("states 0 and 1 have one row: %v", own)
	}
}

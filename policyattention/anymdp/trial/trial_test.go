package trial

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

func TestRowsAreWhatTheySay(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Rows {
		if names[r.Name] {
			t.Errorf("two rows are called %q", r.Name)
		}
		names[r.Name] = true
		r.Problems = 2
		problems := testkit.Must(r.Draw(5, 1))(t)
		for i, p := range problems {
			m := p.MDP
			if m.States() != r.States || m.Actions() != r.Actions || m.Gamma != r.Gamma || mat.Min(m.R) < r.Least || mat.Max(m.R) > r.Most || p.Eta <= 0 {
				t.Errorf("%s: S = %d, A = %d, γ = %v, rewards from %v to %v, η = %v", r.Name, m.States(), m.Actions(), m.Gamma, mat.Min(m.R), mat.Max(m.R), p.Eta)
			}
			if r.Mass == 0 && !r.Lock {
				continue
			}
			optimum := testkit.Must(m.Optimal())(t)
			starved := 0
			for s := range r.States {
				mass := p.Pi0.At(s, best(optimum.Q.RawRowView(s)))
				if mass == r.Mass || r.Lock && mass >= 1e-12 && mass <= .1 {
					starved++
				}
			}
			if r.Lock && i == 0 { // other states may begin with as little
				starved = min(starved, 1)
			}
			if want := map[bool]int{false: 1, true: r.States}[r.Everywhere || r.Lock && i == 1]; starved != want {
				t.Errorf("%s: %d states begin with that mass, want %d", r.Name, starved, want)
			}
		}
	}
}

// The benchmark's problems are those of its fixtures, and calibration never sees them.
func TestFixtures(t *testing.T) {
	found := 0
	for _, r := range Rows {
		if r.Fixture == 0 {
			continue
		}
		found++
		r.Problems = 1
		want := testkit.Must(r.Family.Draw(r.Fixture, r.States, r.Actions, 1))(t)[0]
		if got := testkit.Must(r.Draw(Root, 1))(t)[0]; !mat.Equal(got.MDP.R, want.MDP.R) {
			t.Errorf("%s: other problems than root %d has", r.Name, r.Fixture)
		}
		if got := testkit.Must(r.Draw(CalibrationRoot, 1))(t)[0]; mat.Equal(got.MDP.R, want.MDP.R) {
			t.Errorf("%s: calibration sees the benchmark's problems", r.Name)
		}
	}
	if found != len(Fixtures) {
		t.Errorf("%d rows of the benchmark, want %d", found, len(Fixtures))
	}
}

// The trial's loop is control.Loop, scored by control.Score.
func TestLoopIsControls(t *testing.T) {
	r := base
	r.Name, r.Problems, r.Network, r.Mixed = "test", 2, 1, 1
	forward := testkit.Must(anymdp.Released())(t)
	problems := testkit.Must(r.Draw(5, 1))(t)
	losses := testkit.Must(r.run(problems, 0, forward, []int{3, 7}))(t)
	actor := testkit.Must(anymdp.NewActor(forward, anymdp.Prior))(t)
	network := testkit.Must(anymdp.NewActor(forward, anymdp.Network))(t)
	for i, p := range problems {
		loops := map[string]control.Loop{"exact": control.ExactPMD(p.Eta), "prior": {Actor: actor, Critic: control.ExactCritic{}, Eta: p.Eta}}
		if i == 0 {
			loops["mixed"] = control.Loop{Actor: control.MixedActor{Actor: network, Phi: Phi}, Critic: control.ExactCritic{}, Eta: p.Eta}
		}
		for name, loop := range loops {
			one := []mdp.Problem{p.Problem}
			loss := testkit.Must(control.Score(one, testkit.Must(loop.Run(one, 7))(t)))(t)[0].Loss
			got := map[string][]float64{"exact": losses[i].Exact, "prior": losses[i].Prior, "mixed": losses[i].Mixed}[name]
			if got[0] != loss[3] || got[1] != loss[7] {
				t.Errorf("problem %d, %s: losses %v, want %v and %v", i, name, got, loss[3], loss[7])
			}
		}
	}
	if math.IsNaN(losses[0].Network[0]) || !math.IsNaN(losses[1].Network[0]) {
		t.Errorf("the network's read-out was run on other problems than the first: %v", losses)
	}
}

package paper

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// The optima that can be written down: right all the way in the deep sea, and staying in the last cell
// of the maze, whose other cells are worth less.
func TestFamilies(t *testing.T) {
	optimum := func(f family) (*mdp.MDP, *mdp.Optimum) {
		p, r := f.draw(seed.New(1, "family", f.name))
		m := testkit.Must(mdp.New(farDiscount, p, r))(t)
		return m, testkit.Must(m.Optimal())(t)
	}
	_, sea := optimum(families[0])
	want := math.Pow(farDiscount, 7)
	for i := range 7 {
		want -= .01 / 8 * math.Pow(farDiscount, float64(i))
	}
	if math.Abs(sea.V[0]-want) > 1e-12 {
		t.Errorf("the deep sea is worth %v, want %v", sea.V[0], want)
	}
	m, cells := optimum(families[4])
	if last := m.States() - 1; math.Abs(cells.V[last]-100) > 1e-9 {
		t.Errorf("the maze's last cell is worth %v, want 100", cells.V[last])
	}
	for _, f := range families[1:3] {
		if m, x := optimum(f); m.States() != 32 || x.V[31] == x.V[0] {
			t.Errorf("%s: %d states, values %v", f.name, m.States(), x.V)
		}
	}
	if m, _ := optimum(families[3]); m.States() != 64 {
		t.Errorf("%s: %d states", families[3].name, m.States())
	}
	for _, f := range smallFamilies {
		for i, p := range testkit.Must(f.pick(mdp.Discount, experiment.First(20)))(t) {
			states, actions := p.MDP.R.Dims()
			largest := max(mat.Max(p.MDP.R), -mat.Min(p.MDP.R))
			if states != smallStates || actions != mdp.Actions || largest > 1 {
				t.Errorf("%s %d: %d states, %d actions, a reward of %v", f.name, i, states, actions, largest)
			}
			for s := range states {
				if f.name != "chain" && p.MDP.Next(s, 0)[s]+p.MDP.Next(s, 1)[s]+p.MDP.Next(s, 2)[s] == 3 {
					t.Errorf("%s %d: a walk does not leave state %d", f.name, i, s)
				}
			}
		}
	}
	for i := range uint64(20) { // the last state that is no end is worth more than the first ones, an end nothing
		p, r := families[5].draw(seed.New(i, "anymdp"))
		m := testkit.Must(mdp.New(farDiscount, p, r))(t)
		x, goal := testkit.Must(m.Optimal())(t), 31
		for ; p.At(goal*5, goal) == 1; goal-- {
			if x.V[goal] != 0 {
				t.Errorf("task %d: end %d is worth %v", i, goal, x.V[goal])
			}
		}
		if best := max(x.V[0], x.V[1], x.V[2]); x.V[goal] < best+2 {
			t.Errorf("task %d: state %d is worth %v, the first ones %v", i, goal, x.V[goal], best)
		}
	}
}

package paper

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
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

// One greedy step on Q^π₀ is the first round of policy iteration. It all but solves the benchmark's own problems and
// mazes; much is left on the chain and in the deep sea. The greedy policy for rewards fails in mazes and AnyMDP's
// tasks, too.
func TestGreedyStep(t *testing.T) {
	means := map[string][2]float64{}
	for _, f := range smallFamilies {
		drawn := testkit.Must(f.pick(mdp.Discount, experiment.First(20)))(t)
		of := func(name string, rounds int) [][]float64 {
			return testkit.Must(scored(testkit.Must(withModel[name](method.Case{}))(t), drawn, rounds))(t)
		}
		step, first := of("greedy-step", 40), of("policy-iteration", 1)
		if !reflect.DeepEqual(step, first) {
			t.Errorf("%s: losses %v of a greedy step, %v of policy iteration", f.name, step, first)
		}
		means[f.name] = [2]float64{stats.Mean(slices.Concat(step...)),
			stats.Mean(slices.Concat(of("greedy-reward", 20)...))}
	}
	for name, loss := range means {
		if far := name == "chain" || name == "deep-sea"; (loss[0] > .2) != far {
			t.Errorf("%s: mean loss %v after a greedy step", name, loss[0])
		}
		if far := name != "random" && name != "garnet"; (loss[1] > .15) != far {
			t.Errorf("%s: mean loss %v of the greedy policy for rewards", name, loss[1])
		}
		if near := name == "random" || name == "maze"; (loss[0] < .03) != near {
			t.Errorf("%s: mean loss %v after a greedy step", name, loss[0])
		}
	}
}

// Planners on samples all draw as many transitions for as many backups, and where these cannot differ, means of a
// round's samples and of all so far are the same.
func TestPlannersOnSamples(t *testing.T) {
	s, chain, sea := store(t), families[1], families[0]
	last := map[string]float64{}
	for _, m := range planners {
		if m.samples == 0 {
			continue
		}
		for _, f := range []family{chain, sea} {
			drawn, p := 0, testkit.Must(f.pick(farDiscount, []int32{3}))(t)
			p[0].MDP.Drawn = &drawn
			loss := testkit.Must(scored(testkit.Must(m.controller(s, p[0], 1))(t), p, 20/m.backups))(t)[0][0]
			if want := 4 * 20 * p[0].MDP.States() * p[0].MDP.Actions(); drawn != want {
				t.Errorf("%s, %s: %d transitions, want %d", f.name, m.method, drawn, want)
			}
			last[m.method+" "+f.name] = loss
		}
	}
	for _, name := range []string{"pmd", "value-iteration"} {
		if mean, all := last[name+"-mean deep-sea"], last[name+"-all deep-sea"]; math.Abs(mean-all) > 1e-9 {
			t.Errorf("%s in the deep sea: loss %v from a round's samples, %v from all", name, mean, all)
		}
		if last[name+"-mean chain"] == last[name+"-all chain"] {
			t.Errorf("%s on the chain: the same loss from a round's samples and from all", name)
		}
	}
}

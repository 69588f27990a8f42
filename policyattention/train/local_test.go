package train

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/internal/testkit/graphs"
)

// recipesOf are those that an objective is trained with.
func recipesOf(o Objective) []Recipe {
	if o == Critic {
		return []Recipe{Plain(), Prior(), Residual(), Tables()}
	}
	return []Recipe{Plain(), Prior()}
}

// Package engine makes the steps of the graphs: ten losses of every objective, and the first
// gradient, of which the first moment after a step is a tenth.
func TestLocalSteps(t *testing.T) {
	for _, o := range Objectives {
		for _, recipe := range recipesOf(o) {
			c := tiny(o)
			c.Recipe = recipe
			if o != Critic {
				c.Sizes, c.Slots = []int{2, 3}, 4 // padding and weights take part
			}
			j, defined := c.job(), c.job()
			model := defined.Model.(Transformer)
			model.InGo = nil
			defined.Model = model
			var losses [2][]float32
			var states [2]state
			for i, j := range []Job{j, defined} {
				states[i] = j.start()
				s := testkit.Must(newStepper(graphs.Backend(t), Execution{}, []Job{j}, []*state{&states[i]}))(t)
				if _, ok := s.(*local); ok != (i == 0) {
					t.Fatalf("steps %d are made by a %T", i, s)
				}
				for step := range 10 {
					losses[i] = append(losses[i], testkit.Must(s.steps(1))(t)[0]...)
					if step == 0 {
						testkit.Check(t, s.read(0, &states[i]))
					}
				}
				s.finalize()
			}
			// Rounding of float32 sums over a batch, which AdamW amplifies where a slope near zero
			// changes its sign.
			largest := 0.
			for _, v := range states[1].m {
				largest = max(largest, math.Abs(float64(v)))
			}
			for i, want := range states[1].m {
				if d := math.Abs(float64(states[0].m[i] - want)); !(d <= 2e-5*largest) {
					t.Fatalf("%s, %s: first moment %d is %v, want %v", o, recipe.Name, i, states[0].m[i], want)
				}
			}
			for i, want := range losses[1] {
				if d := math.Abs(float64(losses[0][i] - want)); !(d <= 1e-4*math.Abs(float64(want))) {
					t.Errorf("%s, %s: loss %d is %v, want %v", o, recipe.Name, i, losses[0][i], want)
				}
			}
		}
	}
}

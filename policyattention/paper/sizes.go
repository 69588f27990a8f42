package paper

import (
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// sizes is the study of a trained actor on problems of sizes that it was not trained on, and of its own.
type sizes struct {
	probe
	Sizes    []int   `json:"sizes"`
	Problems int     `json:"problems"` // a size, and contexts
	Rounds   int     `json:"rounds"`
	Eta      float64 `json:"eta"`
}

func sizesOf(s method.Setting) (method.Study, error) {
	w, err := weights(train.Proximal, s)
	return sizes{probe{w, s.Root}, []int{4, 8, 16}, 256, s.Rounds, s.Eta}, err
}

// Compute implements method.Study: by size, row_l1 as in study heads, mean_ratio, the mean loss over exact PMD's,
// and locked, the share of problems more than .05 behind it.
func (x sizes) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	model, err := x.Actor.model(m)
	if err != nil {
		return all, err
	}
	for _, states := range x.Sizes {
		other, err := resized(model, states)
		if err != nil {
			return all, err
		}
		contexts, exact, err := elsewhere(other.Config, x.Root, x.Problems)
		if err != nil {
			return all, err
		}
		oneStep, err := rowL1(other.Config, other.Params, contexts, exact)
		if err != nil {
			return all, err
		}
		ratios, locked, err := x.loops(x.Problems, x.Rounds, x.Eta, other)
		if err != nil {
			return all, err
		}
		size := float64(states)
		all.Measures = append(all.Measures, rows.Measure{Quantity: "row_l1", X: size, Value: oneStep},
			rows.Measure{Quantity: "mean_ratio", X: size, Value: ratios[0]},
			rows.Measure{Quantity: "locked", X: size, Value: locked[0]})
	}
	return all, nil
}

// resized is an actor for another number of states, with the same layers: state s is embedded as state s mod S.
func resized(model *train.Model, states int) (*train.Model, error) {
	c, own := model.Config, model.Config.States()
	c.Sizes, c.Slots = []int{states}, states
	var params []float32
	for s := range states {
		params = append(params, model.Params[s%own*c.Width:][:c.Width]...)
	}
	return train.NewModel(c, append(params, model.Params[own*c.Width:]...))
}

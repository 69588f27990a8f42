package paper

import (
	"math"

	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// heads is the study of what attention does in a trained actor, see [train.Model.Inspect].
type heads struct {
	Actor    *Weights `json:"actor"`
	Root     uint64   `json:"root"` // of the contexts' problems
	Contexts int      `json:"contexts"`
}

func headsOf(s method.Setting) (method.Study, error) {
	w, err := weights(train.Proximal, s)
	return heads{w, s.Root, 256}, err
}

// Weights implements method.Study.
func (h heads) Weights() []method.Weights { return h.Actor.Weights() }

// OwnProblems implements method.Study: contexts are drawn as in training.
func (heads) OwnProblems() bool { return true }

// Compute implements method.Study: by layer, or by layer and head.
func (h heads) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	model, err := h.Actor.model(m)
	if err != nil {
		return all, err
	}
	in, err := model.Inspect(h.Root, h.Contexts)
	if err != nil {
		return all, err
	}
	add := func(quantity string, x, value float64) {
		all.Measures = append(all.Measures, rows.Measure{Quantity: quantity, X: x, Value: value})
	}
	add("row_l1", math.NaN(), in.RowL1)
	for _, head := range in.Heads {
		layer := float64(head.Layer)
		add("own", layer, head.Own)
		add("state", layer, head.State)
		add("others", layer, head.Others)
		add("without", layer, head.Without)
	}
	for layer := range in.PriorR2 {
		add("prior_r2", float64(layer), in.PriorR2[layer])
		add("gain_r2", float64(layer), in.GainR2[layer])
	}
	return all, nil
}

package wang

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/seed"
)

// Departure is a place where the public code and the paper's text or its README differ. Where
// the difference changes a number, Quantity names it and Ours and Theirs are it by the text,
// which is followed here, and by the code.
type Departure struct {
	Name     string  `json:"name"`
	Text     string  `json:"text"`
	Code     string  `json:"code"`
	Quantity string  `json:"quantity,omitempty"`
	Ours     float64 `json:"ours,omitempty"`
	Theirs   float64 `json:"theirs,omitempty"`
}

// departures measures them from the rows of the evidence.
func departures(e *Evidence, root uint64) ([]Departure, error) {
	at := func(kind string, processes int, of func(WeightRow) float64) float64 {
		mean, _, _ := e.weights(kind, processes, of)
		return mean
	}
	corner := func(r WeightRow) float64 { return r.Corner }
	all := []Departure{
		{Name: "number of processes", Text: "README: 4,000", Code: "main.py: 5,000 by default",
			Quantity: "P[−1, −1], looped and linear", Ours: at("linear-looped", 4000, corner), Theirs: at("linear-looped", 5000, corner)},
		{Name: "number of seeds", Text: "README: 30, from 1", Code: "main.py: 10, from 0"},
		{Name: "other entries of Q", Text: "mean of the absolute values of the entries beside the two diagonals", Code: "utils.compare_Q subtracts both traces with their signs from the sum of absolute values",
			Quantity: "the mean, looped and linear, after 4,000 processes", Ours: at("linear-looped", 4000, func(r WeightRow) float64 { return r.OthersQ }), Theirs: at("linear-looped", 4000, func(r WeightRow) float64 { return r.SignedQ })},
	}
	for _, d := range []struct {
		quantity string
		of       func(Likeness) float64
	}{
		{"value difference to TD(0)", func(l Likeness) float64 { return l.ValueDifference }},
		{"squared error of the values", func(l Likeness) float64 { return l.Error }},
	} {
		ours, _, _ := e.likeness(string(OverKeys)+"-looped", 2000, d.of)
		theirs, _, _ := e.likeness(string(OverQueries)+"-looped", 2000, d.of)
		half, _, _ := e.likeness(string(OverKeysByN)+"-looped", 2000, d.of)
		all = append(all,
			Departure{Name: "axis of the softmax and 1/n", Text: "softmax attention: a query's weights for its keys sum to one", Code: "Softmax(dim=1) of ZᵀQZ: a key's weights for all queries sum to one, and are then divided by n",
				Quantity: d.quantity + ", after 2,000 processes", Ours: ours, Theirs: theirs},
			Departure{Name: "1/n alone", Text: "softmax attention: a query's weights for its keys sum to one", Code: "the division by n alone, with the axis of the text",
				Quantity: d.quantity + ", after 2,000 processes", Ours: ours, Theirs: half})
	}
	trace, err := traces(root)
	if err != nil {
		return nil, err
	}
	direct, err := direct(root)
	if err != nil {
		return nil, err
	}
	return append(all, trace, direct,
		Departure{Name: "loops", Text: "processes of training can be loops (--mrp_env)", Code: "prompt.py passes Phi= where loop.py takes phi=: a TypeError"},
		Departure{Name: "preconditioners in the check", Text: "a layer has any C", Code: "verify.py has C = I but for average-reward TD"},
	), nil
}

// traces compares TD(λ) whose traces decay by γλ, the textbooks', with decay by λ, which is the
// public code's and the mask that it builds.
func traces(root uint64) (Departure, error) {
	const gamma, lambda, layers, trials = .9, .5, 40, 30
	d := Departure{Name: "decay of traces", Text: "TD(λ) of the textbooks: e ← γλ e + φ", Code: "e ← λ e + φ; a layer's mask can have either",
		Quantity: fmt.Sprintf("mean |value| after %d layers on random contexts", layers)}
	for trial := range trials {
		c := normalContext(3, 100, gamma, seed.New(root, "wang", "traces", trial))
		for _, way := range []struct {
			decay float64
			mean  *float64
		}{{gamma * lambda, &d.Ours}, {lambda, &d.Theirs}} {
			spec := Spec{Algorithm: TDLambda, D: 3, N: 100, Queries: 1, Alpha: 1, Trace: way.decay}
			layer, err := spec.Layer()
			if err != nil {
				return d, err
			}
			values, err := spec.through(layer, c, layers)
			if err != nil {
				return d, err
			}
			*way.mean += math.Abs(values[0]) / trials
		}
	}
	return d, nil
}

// direct compares the demonstration made by layers with the updates made directly.
func direct(root uint64) (Departure, error) {
	demo := PublishedDemo(root, 50)
	d := Departure{Name: "who makes the demonstration's updates", Text: "15 layers of the constructed Transformer", Code: "demo.py calls td_update; no Transformer is run",
		Quantity: "mean squared error at n = 17, 50 loops"}
	for k := range demo.Processes {
		l, err := demo.draw(k, 17)
		if err != nil {
			return d, err
		}
		layers, err := demo.values(l.context, l.features)
		if err != nil {
			return d, err
		}
		d.Ours += l.error(layers) / float64(demo.Processes)
		spec := Spec{Algorithm: TD0, D: demo.D, N: 17, Queries: 1, Alpha: demo.Alpha}
		w := make([]float64, demo.D)
		for range demo.Layers {
			if w, err = spec.Step(l.context, w); err != nil {
				return d, err
			}
		}
		values := make([]float64, len(layers))
		for s := range values {
			values[s] = floats.Dot(w, l.features.RawRowView(s))
		}
		d.Theirs += l.error(values) / float64(demo.Processes)
	}
	return d, nil
}

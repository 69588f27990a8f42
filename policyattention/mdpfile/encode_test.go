package mdpfile

import (
	"encoding/json"
	"io"

	"icrl/policyattention/mdp"
)

// dense is the number of states up to which encode writes P as an array [S, A, S].
const dense = 64

// document is the JSON form of a problem, in an order in which it can be read.
type document struct {
	Gamma       float64       `json:"gamma"`
	States      []string      `json:"states,omitempty"`
	Actions     []string      `json:"actions,omitempty"`
	P           [][][]float64 `json:"P,omitempty"`
	Transitions [][4]any      `json:"transitions,omitempty"`
	R           [][]*float64  `json:"r,omitempty"`
	Costs       [][]*float64  `json:"costs,omitempty"`
	Pi0         [][]float64   `json:"pi0,omitempty"`
	Terminal    []any         `json:"terminal,omitempty"`
	Start       []float64     `json:"start,omitempty"`
	Shape       []int         `json:"shape,omitempty"`
}

// encode writes the JSON form of a problem: transitions one by one where there are many states.
func encode(w io.Writer, problem mdp.Problem) error {
	m := problem.MDP
	doc := document{Gamma: m.Gamma, States: m.StateNames, Actions: m.ActionNames, Start: m.Start}
	if m.Rows > 0 {
		doc.Shape = []int{m.Rows, m.Columns}
	}
	for _, t := range m.Terminal {
		doc.Terminal = append(doc.Terminal, label(m.StateNames, t))
	}
	for s := range m.States() {
		rewards, rows := make([]*float64, m.Actions()), make([][]float64, m.Actions())
		for a := range m.Actions() {
			if !m.Exists(s, a) {
				continue
			}
			r := price(m, m.R.At(s, a))
			rewards[a] = &r
			if m.States() <= dense {
				rows[a] = m.Next(s, a)
				continue
			}
			next, p := m.Successors(s, a)
			for k, t := range next {
				doc.Transitions = append(doc.Transitions,
					[4]any{label(m.StateNames, s), label(m.ActionNames, a), label(m.StateNames, int(t)), p[k]})
			}
		}
		doc.R = append(doc.R, rewards)
		if m.States() <= dense {
			doc.P = append(doc.P, rows)
		}
	}
	if m.Minimize {
		doc.R, doc.Costs = nil, doc.R
	}
	if problem.Pi0 != nil {
		doc.Pi0 = mdp.ToRows(problem.Pi0)
	}
	return json.NewEncoder(w).Encode(doc)
}

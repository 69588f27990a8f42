package field

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/baseline"
	"icrl/policyattention/capability"
	"icrl/policyattention/mdp"
	"icrl/policyattention/report"
	"icrl/policyattention/seed"
	"icrl/policyattention/tables"
)

// Steps makes one step of each system that has a construction, on one random problem with four
// states and the transitions of one round under its policy π₀. Systems of policy evaluation
// start from values 0, those of control from π₀ (Liang–Lai's critic from 0, PolicyAttention's
// from Q^{π₀}).
func Steps(root uint64) ([]capability.Step, error) {
	problems, err := mdp.Random.Draw(root, 4, 3, 1)
	if err != nil {
		return nil, err
	}
	w := capability.Walk{Problem: problems[0], Window: make([]baseline.Transition, baseline.Window)}
	chain := baseline.NewChain(w.Problem.MDP, seed.New(root, "field", "step"))
	chain.Walk(w.Problem.Pi0, w.Window)
	w.Last = chain.State
	var made []capability.Step
	for _, system := range Systems() {
		if system.Step == nil {
			continue
		}
		s, err := system.Step(w)
		if err != nil {
			return nil, fmt.Errorf("field: %s: %w", system.Name, err)
		}
		s.System = system.Name
		made = append(made, s)
	}
	return made, nil
}

// StepTable is what Steps returns, with the three keys that most of the attention goes to.
func StepTable(steps []capability.Step) report.Table {
	t := report.Table{
		Name: "step", Title: "One step of each construction on one problem", Values: steps,
		Columns: []string{"system", "one step of", "largest difference", "allowed", "attends to", "most of it goes to"},
		Notes:   []string{"One random problem with S = 4, and 20 transitions of its policy π₀. Shares are absolute scores where attention is linear and weights where it is softmax. Algorithm Distillation and S5RL have no construction: what they do in a step is learned."},
	}
	for _, s := range steps {
		order := make([]int, len(s.Share))
		sorted := append([]float64(nil), s.Share...)
		floats.Argsort(sorted, order)
		most := ""
		for k := range min(3, len(order)) {
			at := order[len(order)-1-k]
			if k > 0 {
				most += "; "
			}
			most += fmt.Sprintf("%s: %.0f %%", s.Keys[at], 100*s.Share[at])
		}
		t.Rows = append(t.Rows, tables.Cells(s.System, s.Algorithm, fmt.Sprintf("%.2g", s.Distance), fmt.Sprintf("%.2g", s.Bound), s.Attends, most))
	}
	return t
}

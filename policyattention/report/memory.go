package report

import (
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/tables"
)

// accuracyExcerpt sets the rows of the released critic with memory beside those of the
// frequencies and of the posterior mean, on problems that nothing was trained on.
func accuracyExcerpt(*source) (Table, error) {
	const root = 32_950
	t := Table{Columns: []string{"rows of P", "S", "N", "network / frequencies", "network / posterior mean of Dirichlet(1)"}}
	released, err := critic.Released()
	if err != nil {
		return t, err
	}
	for _, law := range critic.Laws {
		for _, states := range []int{4, 8, 16, 32} {
			for _, n := range []int{1, 6, 60} {
				e, err := critic.Accuracy(law, states, n, root, released, critic.Posterior(0), critic.Posterior(1))
				if err != nil {
					return t, err
				}
				t.Rows = append(t.Rows, tables.Cells(law.Name, states, n, e[0]/e[1], e[0]/e[2]))
			}
		}
	}
	return t, nil
}

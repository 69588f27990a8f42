package critic_test

import (
	"math/rand/v2"
	"slices"

	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"

	"gonum.org/v1/gonum/floats"
)

// laws are kinds of rows of P that estimators are compared on.
var laws = []law{
	{"Dirichlet(1, …, 1)", func(rng *rand.Rand, states int) []float64 { return row(rng, states, states) }},
	{"two successors", func(rng *rand.Rand, states int) []float64 { return row(rng, states, 2) }},
	{".1 Dirichlet(1, …, 1) + .9 uniform", func(rng *rand.Rand, states int) []float64 {
		p := row(rng, states, states)
		for s := range p {
			p[s] = float64(.1*p[s]) + .9/float64(states)
		}
		return p
	}},
}

// law draws rows of P with so many states, at least two.
type law struct {
	Name string
	Draw func(rng *rand.Rand, states int) []float64
}

// row draws from Dirichlet(1, …, 1) over some of the states.
func row(rng *rand.Rand, states, successors int) []float64 {
	p, sum := make([]float64, states), 0.0
	for _, s := range rng.Perm(states)[:successors] {
		p[s] = rng.ExpFloat64()
		sum += p[s]
	}
	for s := range p {
		p[s] /= sum
	}
	return p
}

// accuracy returns the mean squared distance ‖p̂ − P‖² of the rows that estimators make of
// transitions of problems with three actions, one number each. They see the same: problems of
// the law with N transitions of every pair, about 120 pairs at least. For values that are
// independent with variance 1 it is the mean squared error of a backup over γ².
func accuracy(law law, states, transitions int, root uint64, estimators ...critic.Estimator) ([]float64, error) {
	rng := seed.New(root, "accuracy", law.Name, states, transitions)
	var problems []*critic.Counts
	var truth [][][]float64
	pairs := 0.0
	for range 1 + 40/states {
		c, p := &critic.Counts{States: states, Total: transitions}, [][]float64{}
		for range 3 * states {
			p = append(p, law.Draw(rng, states))
			next := make([]float64, states)
			for range transitions {
				next[mdp.Sample(rng, p[len(p)-1])]++
			}
			c.Next = append(c.Next, next)
			pairs++
		}
		problems, truth = append(problems, c), append(truth, p)
	}
	errors := make([]float64, len(estimators))
	for k, estimate := range estimators {
		rows, err := estimate(problems)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			for pair, p := range rows[i] {
				for s, v := range p {
					d := v - truth[i][pair][s]
					errors[k] += float64(d*d) / pairs
				}
			}
		}
	}
	return errors, nil
}

// posterior is the mean of P under Dirichlet(α, …, α) given the counts, p̂(s') = (n(s') + α) / (N + S α). With α = 0 it
// is the frequencies; with α = 1, where rows are drawn from Dirichlet(1), no function of a pair's counts has a smaller
// mean squared error.
func posterior(alpha float64) critic.Estimator {
	return func(problems []*critic.Counts) ([][][]float64, error) {
		all := make([][][]float64, len(problems))
		for i, c := range problems {
			for _, n := range c.Next {
				row := slices.Clone(n)
				floats.AddConst(alpha, row)
				floats.Scale(1/(float64(c.Total)+alpha*float64(c.States)), row)
				all[i] = append(all[i], row)
			}
		}
		return all, nil
	}
}

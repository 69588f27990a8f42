package trial

import (
	"fmt"
	"math"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// Tied is by how much two actions' Q* must differ to count as different.
const Tied = 1e-6

// Greedy says in how many states of a problem a read-out has the same likeliest action as
// exact PMD, after the same rounds at the step size that [pmd.SuggestStep] suggests.
type Greedy struct {
	Readout   anymdp.Readout
	States    int
	Decided   int   // states whose two best actions differ by more than [Tied]
	Different []int // of those, the states with another likeliest action than exact PMD's
}

// Agreement compares both read-outs of a network with exact PMD on a problem.
func Agreement(p mdp.Problem, forward anymdp.Forward, rounds int) ([]Greedy, error) {
	optimum, err := p.MDP.Optimal()
	if err != nil {
		return nil, fmt.Errorf("trial: %w", err)
	}
	problems := []Problem{{p, pmd.SuggestStep(optimum.Q, pmd.SuggestedSpan)}}
	likeliest := func(actor control.Actor) ([]int, error) {
		batch, err := start(problems)
		if err == nil {
			err = advance(actor, batch, rounds)
		}
		if err != nil {
			return nil, fmt.Errorf("trial: %w", err)
		}
		actions := make([]int, p.MDP.States())
		for s := range actions {
			actions[s] = best(batch[0].Pi.RawRowView(s))
		}
		return actions, nil
	}
	exact, err := likeliest(control.RuleActor(pmd.PMD))
	if err != nil {
		return nil, err
	}
	var all []Greedy
	for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
		actor, err := anymdp.NewActor(forward, readout)
		if err != nil {
			return nil, err
		}
		actions, err := likeliest(actor)
		if err != nil {
			return nil, err
		}
		g := Greedy{Readout: readout, States: len(actions)}
		for s, a := range actions {
			q := optimum.Q.RawRowView(s)
			second := math.Inf(-1)
			for b, v := range q {
				if b != best(q) {
					second = math.Max(second, v)
				}
			}
			if q[best(q)]-second <= Tied {
				continue
			}
			g.Decided++
			if a != exact[s] {
				g.Different = append(g.Different, s)
			}
		}
		all = append(all, g)
	}
	return all, nil
}

package equal

import (
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// Floor is the loss below which nothing is told apart: where numbers are chosen, and where a
// logarithm is drawn, a smaller one counts as this.
const Floor = 1e-6

// Use is what a controller used up to a horizon, a mean over problems.
type Use struct {
	Transitions float64 `json:"transitions"`
	Entries     float64 `json:"entries"`    // of P and r
	Operations  float64 `json:"operations"` // in floating point
}

// Result is one run of one controller.
type Result struct {
	Loss    [][]float64 // [problems][horizons], normalized
	Use     []Use       // [horizons]
	Seconds float64     // of wall time a problem, all rounds
}

// begun is a loop that may start from the uniform policy instead of π₀.
type begun struct {
	control.Controller
	start float64 // see method.StartOf
}

// Run implements control.Controller. The trajectory begins with the problem's π₀.
func (b begun) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	begun := make([]mdp.Problem, len(problems))
	for i, p := range problems {
		begun[i] = p
		if method.StartOf(b.start) == baseline.Uniform {
			begun[i].Pi0 = p.MDP.Uniform()
		}
	}
	trajectories, err := b.Controller.Run(begun, rounds)
	for i := range trajectories {
		trajectories[i].Policies[0] = problems[i].Pi0
	}
	return trajectories, err
}

// Run runs a method on problems, which it sees through meters, and scores it by exact
// solves on what the meters hide.
func (m Method) Run(c Case, problems []mdp.Problem, scales []*control.Scale) (*Result, error) {
	if len(c.Values) != len(m.Parameters) {
		return nil, fmt.Errorf("equal: %s has %d free numbers, got %d", m.Name, len(m.Parameters), len(c.Values))
	}
	controller, err := m.New(c)
	if err != nil {
		return nil, fmt.Errorf("equal: %s, %s: %w", m.Name, c.Condition, err)
	}
	metered := make([]mdp.Problem, len(problems))
	for i, p := range problems {
		metered[i] = mdp.Problem{MDP: p.MDP.Metered(), Pi0: mat.DenseCopyOf(p.Pi0)}
	}
	own := func(k int) int { return k } // the controller's rounds in k rounds
	if p, ok := controller.(method.Paced); ok {
		own = p.Own
	}
	began := time.Now()
	trajectories, err := controller.Run(metered, own(Rounds))
	if err != nil {
		return nil, fmt.Errorf("equal: %s, %s: %w", m.Name, c.Condition, err)
	}
	r := &Result{Seconds: time.Since(began).Seconds() / float64(len(problems)), Use: make([]Use, len(Horizons))}
	for i, t := range trajectories {
		rounds := metered[i].MDP.Meter().Rounds()
		if len(rounds) != own(Rounds) || len(t.Policies) != own(Rounds)+1 {
			return nil, fmt.Errorf("equal: %s, %s: %d policies and %d rounds on the meter, want %d", m.Name, c.Condition, len(t.Policies)-1, len(rounds), own(Rounds))
		}
		losses := make([]float64, len(Horizons))
		for h, horizon := range Horizons {
			k := own(horizon)
			if losses[h], err = scales[i].Loss(t.Policies[k]); err != nil {
				return nil, fmt.Errorf("equal: %s, %s, problem %d, round %d: %w", m.Name, c.Condition, i, k, err)
			}
			var used mdp.Count // nothing before the controller's first round
			if k > 0 {
				used = rounds[k-1]
			}
			if c.N > 0 && used.Transitions > horizon*c.N || c.Information != Model && used.Entries > 0 || c.Information == Model && used.Transitions > 0 {
				return nil, fmt.Errorf("equal: %s used %+v in %d rounds of the condition %s", m.Name, used, horizon, c.Condition)
			}
			n := float64(len(problems))
			r.Use[h].Transitions += float64(used.Transitions) / n
			r.Use[h].Entries += float64(used.Entries) / n
			r.Use[h].Operations += float64(used.Operations) / n
		}
		r.Loss = append(r.Loss, losses)
	}
	return r, nil
}

// score is what the choice of free numbers minimizes, and what is reported: the mean over
// problems and the horizons 20 and 40 of the loss. Without Floor a search would go on for
// gains that nothing shows.
func (r *Result) score() float64 {
	sum, n := 0.0, 0.0
	for _, losses := range r.Loss {
		for h, horizon := range Horizons {
			if horizon >= 20 {
				sum += max(losses[h], Floor)
				n++
			}
		}
	}
	return sum / n
}

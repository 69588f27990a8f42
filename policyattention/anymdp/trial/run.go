package trial

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// Losses are the losses of the policies returned on one problem, by horizon. Those of the
// network's read-out are NaN where it was not run.
type Losses struct {
	Exact, Prior, Network []float64
}

// Run takes a row's problems for an identity through exact PMD and the read-outs of a
// network, and scores them at all horizons.
func (r Row) Run(root, identity uint64, forward anymdp.Forward) ([]Losses, error) {
	return r.run(root, identity, forward, Horizons)
}

func (r Row) run(root, identity uint64, forward anymdp.Forward, horizons []int) ([]Losses, error) {
	problems, err := r.Draw(root, identity)
	if err != nil {
		return nil, err
	}
	scales := make([]*control.Scale, len(problems))
	for i, p := range problems {
		if scales[i], err = control.NewScale(p.Problem); err != nil {
			return nil, fmt.Errorf("trial: %s: problem %d: %w", r.Name, i, err)
		}
	}
	prior, err := anymdp.NewActor(forward, anymdp.Prior)
	if err != nil {
		return nil, err
	}
	network, err := anymdp.NewActor(forward, anymdp.Network)
	if err != nil {
		return nil, err
	}
	some := min(r.Network, len(problems))
	by := make([][][]float64, 3)
	for k, run := range []struct {
		actor control.Actor
		n     int
	}{{control.RuleActor(pmd.PMD), len(problems)}, {prior, len(problems)}, {network, some}} {
		if by[k], err = loop(run.actor, problems[:run.n], scales, horizons); err != nil {
			return nil, fmt.Errorf("trial: %s: %w", r.Name, err)
		}
	}
	all := make([]Losses, len(problems))
	for i := range all {
		all[i] = Losses{Exact: by[0][i], Prior: by[1][i]}
		if i < some {
			all[i].Network = by[2][i]
		} else {
			for range horizons {
				all[i].Network = append(all[i].Network, math.NaN())
			}
		}
	}
	return all, nil
}

// loop runs an actor with the exact one-step critic from Q₀ = Q^{π₀} on every problem and
// returns the losses at the horizons. Unlike [control.Loop] it keeps the latest tables
// only, and each problem has its own step size.
func loop(actor control.Actor, problems []Problem, scales []*control.Scale, horizons []int) ([][]float64, error) {
	batch := make([]control.Context, len(problems))
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, fmt.Errorf("problem %d: %w", i, err)
		}
		batch[i] = control.Context{Problem: i, MDP: p.MDP, Pi: mat.DenseCopyOf(p.Pi0), Q: q, Eta: p.Eta}
	}
	losses := make([][]float64, len(problems))
	round := 0
	for _, horizon := range horizons {
		for ; round < horizon; round++ {
			policies, err := actor.Act(batch)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", round, err)
			}
			for i := range batch {
				c := &batch[i]
				c.Pi, c.Round = policies[i], round+1
				c.Q = c.MDP.EvaluationBackup(c.Pi, c.Q)
			}
		}
		for i, c := range batch {
			loss, err := scales[i].Loss(c.Pi)
			if err != nil {
				return nil, fmt.Errorf("problem %d after %d rounds: %w", i, horizon, err)
			}
			losses[i] = append(losses[i], loss)
		}
	}
	return losses, nil
}

package trial

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// Losses are the losses of the policies returned on one problem, by horizon. Where
// something was not run they are NaN.
type Losses struct {
	Exact, Prior, Network, Mixed []float64
}

// Mixed is the network's read-out with the guard of the paper's Appendix G: each policy
// is mixed with the uniform one, with φ = [Phi].
const Mixed anymdp.Readout = "network, mixed"

// Phi is φ of the mixture.
const Phi = .01

// Run takes a row's problems for an identity through exact PMD and the read-outs of a
// network, and scores them at horizons.
func (r Row) Run(ctx context.Context, root, identity uint64, forward anymdp.Forward, horizons []int) (all []Losses, err error) {
	problems, err := r.Draw(root, identity)
	if err != nil {
		return nil, err
	}
	for from := 0; from < len(problems); from += together {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		some, err := r.run(problems[from:min(from+together, len(problems))], from, forward, horizons)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// together is how many problems share the network's calls.
const together = 100

// run is Run for problems of a row of which the first is number from.
func (r Row) run(problems []Problem, from int, forward anymdp.Forward, horizons []int) ([]Losses, error) {
	scales := make([]*control.Scale, len(problems))
	for i, p := range problems {
		var err error
		if scales[i], err = control.NewScale(p.Problem); err != nil {
			return nil, fmt.Errorf("trial: %s: problem %d: %w", r.Name, from+i, err)
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
	guarded, err := anymdp.NewActor(forward, anymdp.Network)
	if err != nil {
		return nil, err
	}
	all := make([]Losses, len(problems))
	for _, run := range []struct {
		actor control.Actor
		n     int // of the row
		to    func(*Losses) *[]float64
	}{
		{control.RuleActor(pmd.PMD), r.Problems, func(l *Losses) *[]float64 { return &l.Exact }},
		{prior, r.Problems, func(l *Losses) *[]float64 { return &l.Prior }},
		{network, r.Network, func(l *Losses) *[]float64 { return &l.Network }},
		{control.MixedActor{Actor: guarded, Phi: Phi}, r.Mixed, func(l *Losses) *[]float64 { return &l.Mixed }},
	} {
		losses, err := loop(run.actor, problems[:max(0, min(run.n-from, len(problems)))], scales, horizons)
		if err != nil {
			return nil, fmt.Errorf("trial: %s: problems from %d: %w", r.Name, from, err)
		}
		for i := range all {
			*run.to(&all[i]) = missing(horizons)
			if i < len(losses) {
				*run.to(&all[i]) = losses[i]
			}
		}
	}
	return all, nil
}

func missing(horizons []int) []float64 {
	none := make([]float64, len(horizons))
	for k := range none {
		none[k] = math.NaN()
	}
	return none
}

// loop runs an actor with the exact one-step critic from Q₀ = Q^{π₀} on every problem and
// returns the losses at the horizons. Unlike [control.Loop] it keeps the latest tables
// only, and each problem has its own step size.
func loop(actor control.Actor, problems []Problem, scales []*control.Scale, horizons []int) ([][]float64, error) {
	batch, err := start(problems)
	if err != nil {
		return nil, err
	}
	losses := make([][]float64, len(problems))
	for i := range losses {
		losses[i] = missing(horizons)
	}
	for k, horizon := range horizons {
		if err := advance(actor, batch, horizon); err != nil {
			return nil, err
		}
		for i, c := range batch {
			loss, err := scales[i].Loss(c.Pi)
			if err != nil {
				return nil, fmt.Errorf("problem %d after %d rounds: %w", i, horizon, err)
			}
			losses[i][k] = loss
		}
	}
	return losses, nil
}

// start returns the first contexts of problems.
func start(problems []Problem) ([]control.Context, error) {
	batch := make([]control.Context, len(problems))
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, fmt.Errorf("problem %d: %w", i, err)
		}
		batch[i] = control.Context{Problem: i, MDP: p.MDP, Pi: mat.DenseCopyOf(p.Pi0), Q: q, Eta: p.Eta}
	}
	return batch, nil
}

// advance takes contexts to a round.
func advance(actor control.Actor, batch []control.Context, to int) error {
	for len(batch) > 0 && batch[0].Round < to {
		policies, err := actor.Act(batch)
		if err != nil {
			return fmt.Errorf("round %d: %w", batch[0].Round, err)
		}
		for i := range batch {
			c := &batch[i]
			c.Pi, c.Round = policies[i], c.Round+1
			c.Q = c.MDP.EvaluationBackup(c.Pi, c.Q)
		}
	}
	return nil
}

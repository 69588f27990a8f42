package trial

import (
	"context"
	"fmt"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
)

// readouts are what a row's problems go through beside exact PMD, and how many of them do. The third is the
// network's read-out with the guard of the paper's Appendix G: each policy is mixed with the uniform one.
func (r Row) readouts(forward anymdp.Forward) (all []readout, err error) {
	actors := make([]*anymdp.Actor, 3)
	for i, x := range []anymdp.Readout{anymdp.Prior, anymdp.Network, anymdp.Network} {
		if actors[i], err = anymdp.NewActor(forward, x); err != nil {
			return nil, err
		}
	}
	const phi = .01
	return []readout{
		{"prior", actors[0], r.Problems}, {"network", actors[1], r.Network},
		{"mixed", control.MixedActor{Actor: actors[2], Phi: phi}, r.Mixed},
	}, nil
}

type readout struct {
	name  string
	actor control.Actor
	n     int // of the row's problems
}

// together is how many problems share the network's calls.
const together = 100

// Run takes a row's problems for an identity through exact PMD and the read-outs of a network, and scores them at
// horizons: exact PMD's losses in six digits, and by how much others are larger in three.
func (r Row) Run(ctx context.Context, identity uint64, forward anymdp.Forward,
	horizons []int) (all []rows.Any, err error) {
	problems, err := r.Draw(identity)
	if err != nil {
		return nil, err
	}
	for from := 0; from < len(problems); from += together {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		some, err := r.run(problems[from:min(from+together, len(problems))], from, forward, horizons)
		if err != nil {
			return nil, fmt.Errorf("trial: %s: problems from %d: %w", r.Name, from, err)
		}
		for i := range some {
			some[i].Seed = int64(identity)
		}
		all = append(all, some...)
	}
	return all, nil
}

// run is Run for problems of a row of which the first is number from.
func (r Row) run(problems []Problem, from int, forward anymdp.Forward, horizons []int) (all []rows.Any, err error) {
	readouts, err := r.readouts(forward)
	if err != nil {
		return nil, err
	}
	scales := make([]*control.Scale, len(problems))
	for i, p := range problems {
		if scales[i], err = control.NewScale(p.Problem); err != nil {
			return nil, fmt.Errorf("problem %d: %w", i, err)
		}
	}
	exact, err := losses(control.RuleActor(pmd.PMD), problems, scales, horizons)
	if err != nil {
		return nil, err
	}
	got := make([][][]float64, len(readouts))
	for k, x := range readouts {
		n := max(0, min(x.n-from, len(problems)))
		if got[k], err = losses(x.actor, problems[:n], scales, horizons); err != nil {
			return nil, err
		}
	}
	for i := range problems {
		for k, x := range readouts {
			for h, horizon := range horizons {
				if i < len(got[k]) {
					loss := digits(exact[i][h], 6)
					all = append(all, rows.Any{
						Set: r.Name, Readout: x.name, Round: int32(horizon), Problem: int32(from + i),
						Exact: loss, Excess: digits(got[k][i][h]-loss, 3),
					})
				}
			}
		}
	}
	return all, nil
}

// losses runs an actor with the exact one-step critic from Q₀ = Q^{π₀} on every problem and returns the losses
// [problems][horizons]. Unlike [control.Loop] it keeps the latest tables only, and each problem has its own step
// size.
func losses(actor control.Actor, problems []Problem, scales []*control.Scale, horizons []int) ([][]float64, error) {
	batch, all := make([]control.Context, len(problems)), make([][]float64, len(problems))
	for i, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, fmt.Errorf("problem %d: %w", i, err)
		}
		batch[i] = control.Context{Problem: i, MDP: p.MDP, Pi: mat.DenseCopyOf(p.Pi0), Q: q, Eta: p.Eta}
	}
	for _, horizon := range horizons {
		for len(batch) > 0 && batch[0].Round < horizon {
			policies, err := actor.Act(batch)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", batch[0].Round, err)
			}
			for i := range batch {
				c := &batch[i]
				c.Pi, c.Round = policies[i], c.Round+1
				c.Q = c.MDP.EvaluationBackup(c.Pi, c.Q)
			}
		}
		for i, c := range batch {
			loss, err := scales[i].Loss(c.Pi)
			if err != nil {
				return nil, fmt.Errorf("problem %d after %d rounds: %w", i, horizon, err)
			}
			all[i] = append(all[i], loss)
		}
	}
	return all, nil
}

// digits rounds to so many significant digits.
func digits(v float64, n int) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return v // what is not finite
	}
	return short
}

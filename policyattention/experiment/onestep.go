package experiment

import (
	"fmt"
	"math"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

// Inputs are contexts of exact PMD runs, one on each problem, stopped after 0 to Rounds
// rounds, with η uniform on [EtaMin, EtaMax].
type Inputs struct {
	Problems Fixtures `json:"problems"`
	Rounds   int      `json:"rounds"`
	EtaMin   float64  `json:"eta_min"`
	EtaMax   float64  `json:"eta_max"`
}

// inputs returns those of the protocol.
func (p Preset) inputs(f Fixtures) Inputs {
	plain := train.Plain()
	return Inputs{f, p.Protocol.HeldOutRounds, plain.EtaMin, plain.EtaMax}
}

// draw returns the contexts on some problems.
func (c Inputs) draw(at []int32) ([]control.Context, error) {
	problems, err := c.Problems.pick(at)
	if err != nil {
		return nil, err
	}
	contexts := make([]control.Context, len(problems))
	for i, p := range problems {
		rng := seed.New(c.Problems.Root, "one-step", int(at[i]))
		rounds, eta := rng.IntN(c.Rounds+1), c.EtaMin+(c.EtaMax-c.EtaMin)*rng.Float64()
		x := control.Context{Problem: int(at[i]), Round: rounds, MDP: p.MDP, Pi: p.Pi0, Eta: eta}
		if x.Q, err = p.MDP.PolicyValue(p.Pi0); err != nil {
			return nil, err
		}
		for range rounds {
			if x.Pi, err = pmd.Step(x.Pi, x.Q, eta); err != nil {
				return nil, err
			}
			x.Q = p.MDP.EvaluationBackup(x.Pi, x.Q)
		}
		contexts[i] = x
	}
	return contexts, nil
}

// Rules is a same-context comparison of an actor with the fixed rules. The refitted step
// uses the same (π, Q) with each supplied η.
type Rules struct {
	Inputs
	Actor    method.Actor `json:"actor"`
	Supplied []float64    `json:"supplied"`
	FitLo    float64      `json:"fit_lo"`
	FitHi    float64      `json:"fit_hi"`
	FitBy    float64      `json:"fit_by"`
}

func (c Rules) compute(s *Store, at []int32, _ *rows.Tables) (*rows.Tables, error) {
	actor, err := c.Actor.Actor(s.Models)
	if err != nil {
		return nil, err
	}
	contexts, err := c.draw(at)
	if err != nil {
		return nil, err
	}
	next, err := control.Act(actor, contexts)
	if err != nil {
		return nil, err
	}
	r := &rows.Tables{}
	for i, x := range contexts {
		for _, rule := range pmd.Rules {
			target, err := rule.Update(x.Pi, x.Q, x.Eta)
			if err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
			r.Rules = append(r.Rules, rows.Rule{Problem: at[i], Round: int32(x.Round), Eta: x.Eta, Rule: string(rule),
				RowL1: rows.Single(pmd.RowL1(next[i].Pi, target))})
		}
	}
	if len(contexts) < c.Problems.Problems { // a fit is over all inputs
		return r, nil
	}
	updates := make([][]pmd.Update, len(c.Supplied))
	for e, eta := range c.Supplied {
		for i := range contexts {
			contexts[i].Eta = eta
		}
		next, err := control.Act(actor, contexts)
		if err != nil {
			return nil, err
		}
		for i, x := range contexts {
			updates[e] = append(updates[e], pmd.Update{Pi: x.Pi, Q: x.Q, Next: next[i].Pi})
		}
	}
	r.Fits = make([]rows.Fit, len(c.Supplied))
	return r, numeric.Parallel(len(c.Supplied), func(e int) error {
		fitted, misfit, err := pmd.FitStep(updates[e], c.FitLo, c.FitHi, c.FitBy)
		r.Fits[e] = rows.Fit{Eta: c.Supplied[e], Fitted: fitted, RowL1: misfit}
		return err
	})
}

// OneBackup asks a critic for one-step backups. Its inputs are what the critic of an exact PMD
// run is shown: (π_{k+1}, Q_k).
type OneBackup struct {
	Inputs
	Critic method.Critic `json:"critic"`
}

func (c OneBackup) compute(s *Store, at []int32, _ *rows.Tables) (*rows.Tables, error) {
	asked, err := c.Critic.Critic(s.Models, c.Problems.Root)
	if err != nil {
		return nil, err
	}
	contexts, err := c.draw(at)
	if err != nil {
		return nil, err
	}
	for i, x := range contexts {
		if contexts[i].Pi, err = pmd.Step(x.Pi, x.Q, x.Eta); err != nil {
			return nil, err
		}
	}
	values, err := control.Evaluate(asked, contexts)
	if err != nil {
		return nil, err
	}
	r := &rows.Tables{}
	for i, x := range contexts {
		exact, sum := x.MDP.EvaluationBackup(x.Pi, x.Q).RawMatrix().Data, 0.0
		for j, v := range values[i].RawMatrix().Data {
			sum += math.Abs(v - exact[j])
		}
		r.Backups = append(r.Backups, rows.Backup{
			Problem: at[i], Round: int32(x.Round), Error: rows.Single(sum / float64(len(exact))),
			Largest: rows.Single(pmd.Delta(x.MDP, values[i], x.Pi, x.Q)),
		})
	}
	return r, nil
}

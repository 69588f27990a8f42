package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// computation is what a cell computes. Its JSON is the unit's configuration.
type computation interface {
	// compute returns the rows on the problems at some places, without their key; see Unit.Compute.
	compute(s *Store, at []int32, problems []mdp.Problem, stored *rows.Tables) (*rows.Tables, error)
}

// Loop is a closed loop as data.
type Loop struct {
	Problems Fixtures `json:"problems"`
	Rounds   int      `json:"rounds"`
	Eta      float64  `json:"eta"`
	// Tabled are the rounds in the rows, but for the first; absent means all. Kept are those whose policies are stored.
	Tabled []int `json:"tabled,omitempty"`
	Kept   []int `json:"kept,omitempty"`
	// Temperatures at which the last policy is scored, see [control.AtTemperature].
	Temperatures []float64 `json:"temperatures,omitempty"`
	// Deployment is the controller; nil stands for exact PMD. Where it has no critic tables, Eta
	// is the step size of the exact PMD that it is compared with.
	Deployment method.Deployment `json:"controller,omitempty"`

	block block
}

func (l *Loop) compute(s *Store, at []int32, problems []mdp.Problem, stored *rows.Tables) (*rows.Tables, error) {
	trajectories, choices, err := l.run(s, problems, stored)
	if err != nil {
		return nil, err
	}
	r := &rows.Tables{}
	for i, actions := range choices {
		r.Choices = append(r.Choices, rows.Choice{Problem: at[i], Actions: actions})
	}
	if l.block.Kind != closedLoop {
		scales, err := control.NewScales(problems)
		if err == nil && l.block.Kind == stepSizes {
			r.Tuned, err = l.tuned(scales, trajectories)
		} else if err == nil {
			r.Tuned, err = l.sharpened(at, scales, trajectories)
		}
		return r, err
	}
	for i, t := range trajectories {
		for _, k := range l.Kept {
			r.Policies = append(r.Policies, rows.Policy{Problem: at[i], Round: int32(k), Policy: flat(t.Policies[k])})
		}
	}
	if err := l.followed(problems, trajectories); err != nil {
		return nil, err
	}
	scored, err := control.Score(problems, trajectories)
	if err != nil {
		return nil, err
	}
	r.Rounds = l.rows(at, scored)
	return r, nil
}

// run runs the loop, with the recorded choices where it has been run before.
func (l *Loop) run(s *Store, problems []mdp.Problem, stored *rows.Tables) (all []control.Trajectory,
	choices [][]int32, err error) {
	var controller control.Controller = control.ExactPMD(l.Eta)
	if l.Deployment != nil {
		if controller, err = l.Deployment.Controller(s.Models, l.Eta, l.Problems.Root); err != nil {
			return nil, nil, err
		}
	}
	recorder, ok := controller.(baseline.InContext)
	if !ok {
		all, err = controller.Run(problems, l.Rounds)
		return all, nil, err
	}
	if stored == nil {
		return recorder.Record(problems, l.Rounds)
	}
	for _, c := range stored.Choices {
		choices = append(choices, c.Actions)
	}
	all, err = recorder.Replay(problems, l.Rounds, choices, network)
	return all, choices, err
}

// followed gives trajectories without critic tables those that the exact one-step critic makes of their policies, so
// that they can be compared with exact PMD of the loop's step size in the same contexts as others.
func (l *Loop) followed(problems []mdp.Problem, trajectories []control.Trajectory) error {
	for i, p := range problems {
		t := &trajectories[i]
		if t.Q != nil {
			continue
		}
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return err
		}
		t.Eta, t.Q = slices.Repeat([]float64{l.Eta}, len(t.Policies)-1), []*mat.Dense{q}
		for _, pi := range t.Policies[1 : len(t.Policies)-1] {
			q = p.MDP.EvaluationBackup(pi, q)
			t.Q = append(t.Q, q)
		}
	}
	return nil
}

// rows returns the scores of the tabled rounds.
func (l *Loop) rows(problems []int32, scored []control.Scored) (all []rows.Round) {
	rounds := l.Tabled
	if rounds == nil {
		for k := range l.Rounds {
			rounds = append(rounds, k+1)
		}
	}
	if !l.block.Brief {
		rounds = append([]int{0}, rounds...)
	}
	at := func(values []float64, k int) float64 {
		if l.block.Alone || k >= len(values) {
			return math.NaN()
		}
		return rows.Single(values[k])
	}
	for i, s := range scored {
		if l.block.Brief {
			s.Gap, s.E0 = math.NaN(), math.NaN()
		}
		for _, k := range rounds {
			all = append(all, rows.Round{
				Problem: problems[i], Round: int32(k), Loss: rows.Single(s.Loss[k]), Gap: s.Gap, E0: s.E0,
				Zeta: at(s.Zeta, k), RowL1: at(s.RowL1, k), Delta: at(s.Delta, k), Defect: at(s.Defect, k),
			})
		}
	}
	return all
}

// tuned returns the losses of a learner at its step sizes, which starts from the uniform policy.
func (l *Loop) tuned(scales []*control.Scale, trajectories []control.Trajectory) ([]rows.Tuned, error) {
	learner, ok := l.Deployment.(method.Learner)
	if !ok {
		return nil, errors.New("it has no step sizes")
	}
	return baseline.Score(trajectories, learner.StepSizes(), baseline.Uniform, scales)
}

// Temperatures are those at which policies are scored, 0 for greedy.
var Temperatures = []float64{2, 1.4, 1, .7, .5, .35, .25, .18, .125, .09, .06, .03, 0}

// sharpened returns the losses of the policies after the last round at each temperature.
func (l *Loop) sharpened(at []int32, scales []*control.Scale, trajectories []control.Trajectory) (
	all []rows.Tuned, err error) {
	for i, t := range trajectories {
		for _, temperature := range l.Temperatures {
			loss, err := scales[i].Loss(control.AtTemperature(t.Policies[l.Rounds], temperature))
			if err != nil {
				return nil, err
			}
			all = append(all, rows.Tuned{Alpha: temperature, Beta: math.NaN(), Problem: at[i], Round: int32(l.Rounds),
				Loss: rows.Single(loss)})
		}
	}
	return all, nil
}

// study is a method's own evaluation.
type study struct {
	Problems *Fixtures    `json:"problems,omitempty"`
	Study    method.Study `json:"study"`
}

func (x study) compute(s *Store, _ []int32, problems []mdp.Problem, _ *rows.Tables) (*rows.Tables, error) {
	all, err := x.Study.Compute(s.Models, problems)
	return &all, err
}

// checkPolicies tells of stored policies that are none, or whose exact loss is not that of their round.
func (l *Loop) checkPolicies(stored *rows.Tables, differs func(row int, what string)) error {
	problems, err := l.Problems.pick(First(l.Problems.Problems))
	if err != nil {
		return err
	}
	scales, err := control.NewScales(problems)
	if err != nil {
		return err
	}
	losses := map[[2]int32]float64{}
	for _, r := range stored.Rounds {
		losses[[2]int32{r.Problem, r.Round}] = r.Loss
	}
	for n, p := range stored.Policies {
		at := fmt.Sprintf("problem %d, round %d", p.Problem, p.Round)
		if p.Problem < 0 || int(p.Problem) >= len(problems) || len(p.Policy) != l.Problems.States*l.Problems.Actions {
			differs(n+1, at+": it is no policy of the problem")
			continue
		}
		loss, err := scales[p.Problem].Loss(mat.NewDense(l.Problems.States, l.Problems.Actions, slices.Clone(p.Policy)))
		want, ok := losses[[2]int32{p.Problem, p.Round}]
		if err != nil || !ok || !(math.Abs(loss-want) <= exactly*max(1, want)+rows.Rounding*want) {
			differs(n+1, fmt.Sprintf("%s: the stored policy has loss %v (%v), its row says %v", at, loss, err, want))
		}
	}
	return nil
}

// flat returns the entries of a matrix, row-major.
func flat(m *mat.Dense) []float64 { return mat.DenseCopyOf(m).RawMatrix().Data }

// Inputs are contexts of exact PMD, one a problem, after 0 to Rounds rounds, with η uniform on [EtaMin, EtaMax].
type Inputs struct {
	Problems Fixtures `json:"problems"`
	Rounds   int      `json:"rounds"`
	EtaMin   float64  `json:"eta_min"`
	EtaMax   float64  `json:"eta_max"`
}

// draw returns the contexts on the problems at some places.
func (c Inputs) draw(at []int32, problems []mdp.Problem) (contexts []control.Context, err error) {
	contexts = make([]control.Context, len(problems))
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

// Rules compares an actor with the fixed rules in the same contexts; refitted steps have their (π, Q) at supplied η.
type Rules struct {
	Inputs
	Actor    method.Actor `json:"actor"`
	Supplied []float64    `json:"supplied"`
	FitLo    float64      `json:"fit_lo"`
	FitHi    float64      `json:"fit_hi"`
	FitBy    float64      `json:"fit_by"`
}

func (c Rules) compute(s *Store, at []int32, problems []mdp.Problem, _ *rows.Tables) (*rows.Tables, error) {
	actor, err := c.Actor.Actor(s.Models)
	contexts, undrawn := c.draw(at, problems)
	if err := cmp.Or(err, undrawn); err != nil {
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

// OneBackup asks a critic for one-step backups of what the critic of an exact PMD run is shown: (π_{k+1}, Q_k).
type OneBackup struct {
	Inputs
	Critic method.Critic `json:"critic"`
}

func (c OneBackup) compute(s *Store, at []int32, problems []mdp.Problem, _ *rows.Tables) (*rows.Tables, error) {
	asked, err := c.Critic.Critic(s.Models, c.Problems.Root)
	contexts, undrawn := c.draw(at, problems)
	if err := cmp.Or(err, undrawn); err != nil {
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

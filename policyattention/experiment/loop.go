package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Loop is a closed loop as data.
type Loop struct {
	Problems Fixtures `json:"problems"`
	Rounds   int      `json:"rounds"`
	Eta      float64  `json:"eta"`
	// Tabled are the rounds in the rows, but for the first; absent means all. Kept are those
	// whose policies are stored.
	Tabled []int `json:"tabled,omitempty"`
	Kept   []int `json:"kept,omitempty"`
	// Temperatures at which the last policy is scored, see [control.AtTemperature].
	Temperatures []float64 `json:"temperatures,omitempty"`
	// Deployment is the controller; nil stands for exact PMD. Where it has no critic tables, Eta
	// is the step size of the exact PMD that it is compared with.
	Deployment method.Deployment `json:"controller,omitempty"`

	block block
}

func (l *Loop) compute(s *Store, key rows.Key, at []int32, stored *rows.Tables) (*rows.Tables, error) {
	problems, err := l.Problems.pick(at)
	if err != nil {
		return nil, err
	}
	trajectories, choices, err := l.run(s, problems, stored)
	if err != nil {
		return nil, err
	}
	r := &rows.Tables{}
	for i, actions := range choices {
		r.Choices = append(r.Choices, rows.Choice{Key: key, Problem: at[i], Actions: actions})
	}
	if l.block.Kind != closedLoop {
		scales, err := control.NewScales(problems)
		if err == nil && l.block.Kind == stepSizes {
			err = l.tuned(r, key, scales, trajectories)
		} else if err == nil {
			err = l.sharpened(r, key, at, scales, trajectories)
		}
		return r, err
	}
	for i, t := range trajectories {
		for _, k := range l.Kept {
			policy := rows.Policy{Key: key, Problem: at[i], Round: int32(k), Policy: flat(t.Policies[k])}
			r.Policies = append(r.Policies, policy)
		}
	}
	if err := l.followed(problems, trajectories); err != nil {
		return nil, err
	}
	scored, err := control.Score(problems, trajectories)
	if err != nil {
		return nil, err
	}
	r.Rounds = l.rows(key, at, scored)
	return r, nil
}

// run runs the loop, with the recorded choices where it has been run before.
func (l *Loop) run(s *Store, problems []mdp.Problem, stored *rows.Tables) ([]control.Trajectory, [][]int32, error) {
	var controller control.Controller = control.ExactPMD(l.Eta)
	if l.Deployment != nil {
		var err error
		if controller, err = l.Deployment.Controller(s.Models, l.Eta, l.Problems.Root); err != nil {
			return nil, nil, err
		}
	}
	recorder, ok := controller.(baseline.InContext)
	if !ok {
		trajectories, err := controller.Run(problems, l.Rounds)
		return trajectories, nil, err
	}
	if stored == nil {
		return recorder.Record(problems, l.Rounds)
	}
	var choices [][]int32
	for _, c := range stored.Choices {
		choices = append(choices, c.Actions)
	}
	trajectories, err := recorder.Replay(problems, l.Rounds, choices, network)
	return trajectories, choices, err
}

// followed gives trajectories without critic tables those that the exact
// one-step critic makes of their policies, so that they can be compared with
// exact PMD of the loop's step size in the same contexts as others.
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
func (l *Loop) rows(key rows.Key, problems []int32, scored []control.Scored) (all []rows.Round) {
	rounds := append([]int{0}, l.Tabled...)
	if l.Tabled == nil {
		for k := range l.Rounds {
			rounds = append(rounds, k+1)
		}
	}
	if l.block.Brief {
		rounds = l.Tabled
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
				Key: key, Problem: problems[i], Round: int32(k), Loss: rows.Single(s.Loss[k]), Gap: s.Gap, E0: s.E0,
				Zeta: at(s.Zeta, k), RowL1: at(s.RowL1, k), Delta: at(s.Delta, k), Defect: at(s.Defect, k),
			})
		}
	}
	return all
}

// tuned adds the losses of a learner at its step sizes, which starts from the uniform policy.
func (l *Loop) tuned(r *rows.Tables, key rows.Key, scales []*control.Scale,
	trajectories []control.Trajectory) (err error) {
	learner, ok := l.Deployment.(method.Learner)
	if !ok {
		return errors.New("it has no step sizes")
	}
	r.Tuned, err = baseline.Score(trajectories, learner.StepSizes(), baseline.Uniform, scales)
	for i := range r.Tuned {
		r.Tuned[i].Key = key
	}
	return err
}

// Temperatures are those at which policies are scored, 0 for greedy.
var Temperatures = []float64{2, 1.4, 1, .7, .5, .35, .25, .18, .125, .09, .06, .03, 0}

// sharpened adds the losses of the policies after the last round at each temperature.
func (l *Loop) sharpened(r *rows.Tables, key rows.Key, at []int32, scales []*control.Scale,
	trajectories []control.Trajectory) error {
	for i, t := range trajectories {
		for _, temperature := range l.Temperatures {
			loss, err := scales[i].Loss(control.AtTemperature(t.Policies[l.Rounds], temperature))
			if err != nil {
				return err
			}
			r.Tuned = append(r.Tuned, rows.Tuned{Key: key, Alpha: temperature, Beta: math.NaN(), Problem: at[i],
				Round: int32(l.Rounds), Loss: rows.Single(loss)})
		}
	}
	return nil
}

// study is a method's own evaluation.
type study struct {
	Problems *Fixtures    `json:"problems,omitempty"`
	Study    method.Study `json:"study"`
}

func (x study) compute(s *Store, key rows.Key, at []int32, _ *rows.Tables) (*rows.Tables, error) {
	var problems []mdp.Problem
	var err error
	if x.Problems != nil {
		if problems, err = x.Problems.pick(at); err != nil {
			return nil, err
		}
	}
	all, err := x.Study.Compute(s.Models, problems)
	for i := range all.Tuned {
		all.Tuned[i].Key = key
	}
	for i := range all.Measures {
		all.Measures[i].Key = key
	}
	return &all, err
}

// checkPolicies tells of stored policies that are none, or whose exact loss is not that of their
// round.
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

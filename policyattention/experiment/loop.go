package experiment

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/artifact"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// LoopConfig is a closed loop.
type LoopConfig struct {
	Rounds int
	Eta    float64
	// Deployment is the controller, whose members stand among the loop's own; nil stands
	// for exact PMD. Where it has no critic tables, Eta is the step size of the exact PMD
	// that it is compared with.
	Deployment method.Deployment
	// Kept are the rounds whose policies are stored; absent means all.
	Kept []int
	// Tabled are the rounds in the table of rounds, but for the first, where it has not
	// all of them; then it has what is of the policy returned alone.
	Tabled []int
}

// MarshalJSON implements json.Marshaler.
func (l *LoopConfig) MarshalJSON() ([]byte, error) {
	deployment := any(l.Deployment)
	if l.Deployment == nil {
		deployment = struct{}{}
	}
	return artifact.JoinObjects(struct {
		Rounds int     `json:"rounds"`
		Eta    float64 `json:"eta"`
	}{l.Rounds, l.Eta}, deployment, struct {
		Kept   []int `json:"kept,omitempty"`
		Tabled []int `json:"tabled,omitempty"`
	}{l.Kept, l.Tabled})
}

func (l *LoopConfig) weights() []method.Weights {
	if l.Deployment == nil {
		return nil
	}
	return l.Deployment.Weights()
}

// controller returns the controller for problems that are drawn from root.
func (l *LoopConfig) controller(s *Store, root uint64) (control.Controller, error) {
	if l.Deployment == nil {
		return control.ExactPMD(l.Eta), nil
	}
	return l.Deployment.Controller(s.models, l.Eta, root)
}

func (l *LoopConfig) compute(s *Store, dir string, cell Cell, f Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error) {
	trajectories, arrays, err := l.run(s, cell, f, problems)
	if err != nil {
		return nil, err
	}
	scored, err := control.Score(problems, trajectories)
	if err != nil {
		return nil, err
	}
	if err := artifact.WriteTable(filepath.Join(dir, roundsFile), roundsHeader, l.roundRows(scored)); err != nil {
		return nil, err
	}
	return l.summarize(scored), artifact.WriteArrays(filepath.Join(dir, policiesFile), arrays)
}

// run runs the closed loop of a cell. It returns with the trajectories the arrays
// to store.
func (l *LoopConfig) run(s *Store, cell Cell, f Fixtures, problems []mdp.Problem) ([]control.Trajectory, map[string]npz.Array, error) {
	controller, err := l.controller(s, f.Root)
	if err != nil {
		return nil, nil, err
	}
	var trajectories []control.Trajectory
	var recorded map[string]npz.Array
	if recorder, ok := controller.(method.Recorder); ok {
		trajectories, recorded, err = recorder.Record(problems, l.Rounds)
	} else {
		trajectories, err = controller.Run(problems, l.Rounds)
	}
	if err != nil {
		return nil, nil, err
	}
	arrays := l.arrays(cell.kept(l), trajectories)
	maps.Copy(arrays, recorded)
	return trajectories, arrays, l.followed(problems, trajectories)
}

// followed gives trajectories without critic tables those that the exact
// one-step critic makes of their policies, so that they can be compared with
// exact PMD of the loop's step size in the same contexts as others.
func (l *LoopConfig) followed(problems []mdp.Problem, trajectories []control.Trajectory) error {
	for i, p := range problems {
		t := &trajectories[i]
		if t.Q != nil {
			continue
		}
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return err
		}
		t.Eta, t.Q = l.Eta, []*mat.Dense{q}
		for _, pi := range t.Policies[1 : len(t.Policies)-1] {
			q = p.MDP.EvaluationBackup(pi, q)
			t.Q = append(t.Q, q)
		}
	}
	return nil
}

// kept returns the rounds whose policies a cell stores, where the loop does not
// say: all of exact PMD and of the networks whose certificates are audited round
// by round; those of the tables' horizons elsewhere, since the weights give the
// others again.
func (c Cell) kept(l *LoopConfig) []int {
	switch {
	case l.Kept != nil:
		return l.Kept
	case l.Deployment == nil, c.Block == Confirmation, c.Block == Shift:
		return l.all()
	}
	return baseline.Horizons
}

// all returns the rounds from 0.
func (l *LoopConfig) all() []int {
	all := make([]int, l.Rounds+1)
	for k := range all {
		all[k] = k
	}
	return all
}

// arrays returns what policies.npz holds: the kept rounds [K], their policies
// [N, K, S, A] and, for a learned critic whose rounds are all kept, its tables q
// [N, T, S, A]. With the exact critic they follow from the policies.
func (l *LoopConfig) arrays(kept []int, trajectories []control.Trajectory) map[string]npz.Array {
	var policies, tables [][]*mat.Dense
	for _, t := range trajectories {
		var some []*mat.Dense
		for _, k := range kept {
			some = append(some, t.Policies[k])
		}
		policies, tables = append(policies, some), append(tables, t.Q)
	}
	arrays := map[string]npz.Array{"rounds": roundArray(kept), "policies": artifact.Stack(policies)}
	if l.learnsCritic() && len(kept) > l.Rounds {
		arrays["q"] = artifact.Stack(tables)
	}
	return arrays
}

// learnsCritic reports whether the critic is another than the exact one, so that its
// tables do not follow from the policies.
func (l *LoopConfig) learnsCritic() bool {
	parts, ok := l.Deployment.(method.Separable)
	if !ok {
		return false
	}
	_, critic := parts.Parts()
	return critic != nil
}

func roundArray(rounds []int) npz.Array {
	a := npz.Array{Shape: []int{len(rounds)}}
	for _, k := range rounds {
		a.Data = append(a.Data, float64(k))
	}
	return a
}

// roundsHeader names the columns of rounds.csv.gz. Row (problem, k) holds the
// loss of π_k and the residuals ζ_k, mean row-L1, δ_k and ḡ_k of the context
// (π_k, Q_k), which are empty where there are none; gap and e0 repeat.
var roundsHeader = []string{"problem", "round", "loss", "gap", "e0", "zeta", "row_l1", "delta", "defect"}

// tabled returns the rounds in rounds.csv.gz.
func (l *LoopConfig) tabled() []int {
	if l.Tabled != nil {
		return append([]int{0}, l.Tabled...)
	}
	return l.all()
}

// roundRows returns the rows of rounds.csv.gz.
func (l *LoopConfig) roundRows(scored []control.Scored) [][]float64 {
	at := func(values []float64, k int) float64 {
		if k < len(values) && l.Tabled == nil {
			return values[k]
		}
		return math.NaN()
	}
	var rows [][]float64
	for i, s := range scored {
		for _, k := range l.tabled() {
			rows = append(rows, []float64{
				float64(i), float64(k), s.Loss[k], s.Gap, s.E0,
				at(s.Zeta, k), at(s.RowL1, k), at(s.Delta, k), at(s.Defect, k),
			})
		}
	}
	return rows
}

func (l *LoopConfig) read(e *Evaluation) error {
	path := e.path(roundsFile)
	rows, err := artifact.ReadTable(path, roundsHeader)
	if err != nil {
		return err
	}
	e.Scored, err = l.scored(path, e.Config.Fixtures, rows)
	return err
}

// scored is the inverse of roundRows, for rows that have been read from path. Losses of
// rounds that are not in the table are NaN.
func (l *LoopConfig) scored(path string, f Fixtures, rows [][]float64) ([]control.Scored, error) {
	rounds := l.tabled()
	if want := f.Problems * len(rounds); len(rows) != want {
		return nil, fmt.Errorf("experiment: %s has %d rows, want %d", path, len(rows), want)
	}
	scored := make([]control.Scored, f.Problems)
	for i := range scored {
		scored[i].Loss = unknown(l.Rounds)
	}
	for n, row := range rows {
		i, k := n/len(rounds), rounds[n%len(rounds)]
		if row[0] != float64(i) || row[1] != float64(k) {
			return nil, fmt.Errorf("experiment: %s: row %d is of problem %v, round %v, want problem %d, round %d", path, n+1, row[0], row[1], i, k)
		}
		s := &scored[i]
		if math.IsNaN(row[2]) {
			return nil, fmt.Errorf("experiment: %s: row %d has no loss", path, n+1)
		}
		s.Gamma, s.Loss[k], s.Gap, s.E0 = mdp.Discount, row[2], row[3], row[4]
		for j, values := range []*[]float64{&s.Zeta, &s.RowL1, &s.Delta, &s.Defect} {
			if v := row[5+j]; !math.IsNaN(v) {
				*values = append(*values, v)
			}
		}
	}
	return scored, nil
}

// unknown returns losses [rounds+1] that are not in a table.
func unknown(rounds int) []float64 { return slices.Repeat([]float64{math.NaN()}, rounds+1) }

// summarize returns the medians of a closed loop at the table's horizons.
func (l *LoopConfig) summarize(scored []control.Scored) map[string]artifact.Values {
	e := Evaluation{Scored: scored}
	summary := map[string]artifact.Values{}
	horizons := baseline.Horizons
	if l.Tabled != nil {
		horizons = l.Tabled
	}
	for _, horizon := range horizons {
		v := artifact.Values{"median_loss": stats.Median(e.Losses(horizon))}
		if scored[0].RowL1 != nil && l.Tabled == nil {
			v["median_row_l1"] = stats.Median(e.Deviations(horizon))
		}
		summary[fmt.Sprintf("T%d", horizon)] = v
	}
	return summary
}

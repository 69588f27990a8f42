package experiment

import (
	"fmt"
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

const alongFile = "losses.csv.gz"

// AlongConfig is a closed loop with the weights after several steps of one training run. It
// keeps the losses of all problems and the policies of a few: those of all would take the room
// of a whole evaluation a step.
type AlongConfig struct {
	Rounds   int
	Eta      float64
	Steps    []int // of the training run, ascending
	Horizons []int // rounds whose losses are kept
	Policies int   // problems whose policies of these rounds are stored, the first ones

	after []method.Deployment // with the weights after each step; the last stands in the JSON
}

// MarshalJSON implements json.Marshaler.
func (a *AlongConfig) MarshalJSON() ([]byte, error) {
	return artifact.JoinObjects(struct {
		Rounds   int     `json:"rounds"`
		Eta      float64 `json:"eta"`
		Steps    []int   `json:"steps"`
		Horizons []int   `json:"horizons"`
		Policies int     `json:"policies"`
	}{a.Rounds, a.Eta, a.Steps, a.Horizons, a.Policies}, a.after[len(a.after)-1])
}

// stored is the number of problems whose policies block quality stores.
const stored = 3

// alongTolerance is for the losses of a loop that is run again with the weights of a brief
// training: ten times what was seen of another backend. On problems that such an actor does not
// solve, differences add up over more rounds.
const alongTolerance = 2e-3

// along returns the closed loops of a method along the training run of a setting.
func (p Preset) along(deploy func(method.Setting) (method.Deployment, error), s method.Setting) (*AlongConfig, error) {
	a := &AlongConfig{
		Rounds: p.Protocol.Rounds, Eta: p.Protocol.Eta, Steps: p.looks(s.Steps), Horizons: baseline.Horizons, Policies: min(stored, p.Problems),
	}
	for _, s.Step = range a.Steps {
		d, err := deploy(s)
		if err != nil {
			return nil, err
		}
		a.after = append(a.after, d)
	}
	return a, nil
}

func (a *AlongConfig) weights() (all []method.Weights) {
	for _, d := range a.after {
		all = append(all, d.Weights()...)
	}
	return all
}

// kept returns the policies of the kept rounds [K] of each trajectory.
func (a *AlongConfig) kept(trajectories []control.Trajectory) [][]*mat.Dense {
	kept := make([][]*mat.Dense, len(trajectories))
	for i, t := range trajectories {
		for _, k := range a.Horizons {
			kept[i] = append(kept[i], t.Policies[k])
		}
	}
	return kept
}

// losses scores policies of the kept rounds [N][K].
func (a *AlongConfig) losses(problems []mdp.Problem, policies [][]*mat.Dense) ([][]float64, error) {
	trajectories := make([]control.Trajectory, len(policies))
	for i, some := range policies {
		trajectories[i].Policies = append([]*mat.Dense{problems[i].Pi0}, some...)
	}
	scored, err := control.Score(problems[:len(policies)], trajectories)
	if err != nil {
		return nil, err
	}
	losses := make([][]float64, len(policies))
	for i := range scored {
		losses[i] = scored[i].Loss[1:]
	}
	return losses, nil
}

// run runs the loop with the weights after each step. It returns the rows of the table of
// losses and the policies to store, [steps·Policies][K].
func (a *AlongConfig) run(s *Store, f Fixtures, problems []mdp.Problem) (rows [][]float64, policies [][]*mat.Dense, err error) {
	for i, step := range a.Steps {
		controller, err := a.after[i].Controller(s.models, a.Eta, f.Root)
		if err != nil {
			return nil, nil, err
		}
		trajectories, err := controller.Run(problems, a.Rounds)
		if err != nil {
			return nil, nil, err
		}
		kept := a.kept(trajectories)
		losses, err := a.losses(problems, kept)
		if err != nil {
			return nil, nil, err
		}
		for n, loss := range losses {
			rows = append(rows, append([]float64{float64(step), float64(n)}, loss...))
		}
		policies = append(policies, kept[:a.Policies]...)
	}
	return rows, policies, nil
}

// header names the columns of the table of losses: a row a step and problem.
func (a *AlongConfig) header() []string {
	header := []string{"step", "problem"}
	for _, k := range a.Horizons {
		header = append(header, fmt.Sprintf("loss_%d", k))
	}
	return header
}

func (a *AlongConfig) compute(s *Store, dir string, _ Cell, f Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error) {
	rows, policies, err := a.run(s, f, problems)
	if err != nil {
		return nil, err
	}
	arrays := map[string]npz.Array{"policies": artifact.Stack(policies)}
	if err := artifact.WriteTable(filepath.Join(dir, alongFile), a.header(), rows); err != nil {
		return nil, err
	}
	if err := artifact.WriteArrays(filepath.Join(dir, policiesFile), arrays); err != nil {
		return nil, err
	}
	return a.summarize(f, rows), nil
}

// summarize returns the median losses after each step.
func (a *AlongConfig) summarize(f Fixtures, rows [][]float64) map[string]artifact.Values {
	summary := map[string]artifact.Values{}
	for i, step := range a.Steps {
		v := artifact.Values{}
		for j, k := range a.Horizons {
			losses := make([]float64, f.Problems)
			for n := range losses {
				losses[n] = rows[i*f.Problems+n][2+j]
			}
			v[fmt.Sprintf("median_loss_T%d", k)] = stats.Median(losses)
		}
		summary[fmt.Sprintf("step%d", step)] = v
	}
	return summary
}

// rows reads the table of losses.
func (a *AlongConfig) rows(path string, f Fixtures) ([][]float64, error) {
	rows, err := artifact.ReadTable(path, a.header())
	if err != nil {
		return nil, err
	}
	if want := len(a.Steps) * f.Problems; len(rows) != want {
		return nil, fmt.Errorf("experiment: %s has %d rows, want %d", path, len(rows), want)
	}
	for n, row := range rows {
		step, problem := a.Steps[n/f.Problems], n%f.Problems
		if row[0] != float64(step) || row[1] != float64(problem) {
			return nil, fmt.Errorf("experiment: %s: row %d is of step %v, problem %v, want step %d, problem %d", path, n+1, row[0], row[1], step, problem)
		}
		if slices.ContainsFunc(row, func(v float64) bool { return !(v >= 0) }) {
			return nil, fmt.Errorf("experiment: %s: row %d: losses %v, want numbers of at least 0", path, n+1, row[2:])
		}
	}
	return rows, nil
}

// read makes of each step an evaluation of its own, whose losses are those of the kept rounds.
func (a *AlongConfig) read(e *Evaluation) error {
	f := e.Config.Fixtures
	rows, err := a.rows(e.path(alongFile), f)
	if err != nil {
		return err
	}
	for i, step := range a.Steps {
		after := *e
		after.Cell.Step = step
		after.Scored = make([]control.Scored, f.Problems)
		for n := range after.Scored {
			after.Scored[n] = control.Scored{Gamma: mdp.Discount, Loss: unknown(a.Rounds)}
			for j, k := range a.Horizons {
				after.Scored[n].Loss[k] = rows[i*f.Problems+n][2+j]
			}
		}
		e.Along = append(e.Along, &after)
	}
	return nil
}

func (a *AlongConfig) verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	f, path, table := e.Config.Fixtures, e.path(policiesFile), e.path(alongFile)
	arrays, ok := v.arrays(path)
	if !ok {
		return nil
	}
	done := v.during(reading)
	rows, err := a.rows(table, f)
	done()
	if err != nil {
		v.add(table, 0, "%v", err)
		return nil
	}
	policies, err := artifact.Unstack(arrays["policies"], len(a.Steps)*a.Policies, len(a.Horizons), f.States, f.Actions)
	if err != nil {
		v.add(path, 0, "array policies: %v", err)
		return nil
	}
	v.compareSummary(e, a.summarize(f, rows), scoreTolerance)
	done = v.during(scoring)
	want := slices.Clone(rows)
	for i := range a.Steps {
		losses, err := a.losses(problems, policies[i*a.Policies:][:a.Policies])
		if err != nil {
			done()
			v.add(path, i*a.Policies+1, "step %d: %v", a.Steps[i], err)
			return nil
		}
		for n, loss := range losses {
			at := i*f.Problems + n
			want[at] = append(slices.Clone(rows[at][:2]), loss...)
		}
	}
	done()
	v.Rescored += len(policies) * len(a.Horizons)
	v.compareRows(table, a.header(), rows, want, asScores)
	if !s.asks(v, e.Config) {
		return nil
	}
	done = v.during(again(s.Preset.label(e.Cell.Method)))
	again, _, err := a.run(s, f, problems)
	done()
	if err != nil {
		v.add(e.path(artifact.ManifestFile), 0, "its controllers: %v", err)
		return s.backendError()
	}
	v.Replayed += len(again) * a.Rounds
	v.compareRows(table, a.header(), rows, again, func(int, int) float64 { return alongTolerance })
	return nil
}

package experiment

import (
	"math"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
)

const backupsFile = "backups.csv.gz"

// BackupConfig asks a learned critic for one-step backups. Its inputs are what
// the critic of an exact PMD run is shown: (π_{k+1}, Q_k) after 0 to Rounds
// rounds on the fixtures, with η uniform on [EtaMin, EtaMax].
type BackupConfig struct {
	Critic method.Critic `json:"critic"`
	Rounds int           `json:"rounds"`
	EtaMin float64       `json:"eta_min"`
	EtaMax float64       `json:"eta_max"`
}

// Backup is the comparison of a learned critic with the exact backup.
type Backup struct {
	// Rounds [N] are the rounds of the inputs.
	Rounds []float64
	// Error [N] is the mean over state-action pairs of |Q̂ − F^π̂ Q_k|, in units of
	// Q; Largest [N] is δ, the largest.
	Error, Largest []float64

	values []*mat.Dense // what the critic returned [N]
}

// MAE returns the mean absolute error over all inputs.
func (b *Backup) MAE() float64 {
	sum := 0.0
	for _, e := range b.Error {
		sum += e
	}
	return sum / float64(len(b.Error))
}

func (b *Backup) summary() map[string]artifact.Values {
	largest := 0.0
	for _, d := range b.Largest {
		largest = max(largest, d)
	}
	return map[string]artifact.Values{"backup": {"mae": b.MAE(), "largest": largest}}
}

// inputs returns the contexts of the critic.
func (c *BackupConfig) inputs(f Fixtures, problems []mdp.Problem) ([]control.Context, error) {
	inputs := OneStepConfig{Rounds: c.Rounds, EtaMin: c.EtaMin, EtaMax: c.EtaMax}
	contexts, err := inputs.inputs(f, problems)
	if err != nil {
		return nil, err
	}
	for i, x := range contexts {
		if contexts[i].Pi, err = pmd.Step(x.Pi, x.Q, x.Eta); err != nil {
			return nil, err
		}
	}
	return contexts, nil
}

// compare measures the values that the critic returned in the contexts.
func (c *BackupConfig) compare(contexts []control.Context, values []*mat.Dense) *Backup {
	b := &Backup{values: values}
	for i, x := range contexts {
		exact := x.MDP.EvaluationBackup(x.Pi, x.Q).RawMatrix().Data
		sum := 0.0
		for j, v := range values[i].RawMatrix().Data {
			sum += math.Abs(v - exact[j])
		}
		b.Rounds = append(b.Rounds, float64(x.Round))
		b.Error = append(b.Error, sum/float64(len(exact)))
		b.Largest = append(b.Largest, pmd.Delta(x.MDP, values[i], x.Pi, x.Q))
	}
	return b
}

func (c *BackupConfig) weights() []method.Weights { return c.Critic.Weights() }

func (c *BackupConfig) compute(s *Store, dir string, _ Cell, f Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error) {
	critic, err := c.Critic.Critic(s.models, f.Root)
	if err != nil {
		return nil, err
	}
	contexts, err := c.inputs(f, problems)
	if err != nil {
		return nil, err
	}
	values, err := control.Evaluate(critic, contexts)
	if err != nil {
		return nil, err
	}
	b := c.compare(contexts, values)
	return b.summary(), b.write(dir)
}

var backupsHeader = []string{"input", "round", "mae", "largest"}

func (b *Backup) rows() [][]float64 {
	rows := make([][]float64, len(b.Error))
	for i := range rows {
		rows[i] = []float64{float64(i), b.Rounds[i], b.Error[i], b.Largest[i]}
	}
	return rows
}

func (b *Backup) write(dir string) error {
	if err := artifact.WriteTable(filepath.Join(dir, backupsFile), backupsHeader, b.rows()); err != nil {
		return err
	}
	return artifact.WriteArrays(filepath.Join(dir, policiesFile), map[string]npz.Array{"values": artifact.Stack([][]*mat.Dense{b.values})})
}

func (c *BackupConfig) read(e *Evaluation) error {
	rows, err := readInputs(e.path(backupsFile), backupsHeader, e.Config.Fixtures.Problems)
	if err != nil {
		return err
	}
	b := &Backup{}
	for _, row := range rows {
		b.Rounds, b.Error, b.Largest = append(b.Rounds, row[1]), append(b.Error, row[2]), append(b.Largest, row[3])
	}
	e.Backup = b
	return nil
}

func (c *BackupConfig) verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	policies, f := e.path(policiesFile), e.Config.Fixtures
	arrays, ok := v.arrays(policies)
	if !ok {
		return nil
	}
	contexts, err := c.inputs(f, problems)
	if err != nil {
		return err
	}
	stored, err := artifact.Unstack(arrays["values"], 1, len(problems), f.States, f.Actions)
	if err != nil {
		v.add(policies, 0, "array values: %v", err)
		return nil
	}
	if s.asks(v, e.Config) {
		done := v.during(evaluating)
		critic, err := c.Critic.Critic(s.models, f.Root)
		if err != nil {
			done()
			v.add(e.path(artifact.ManifestFile), 0, "its critic: %v", err)
			return s.backendError()
		}
		got, err := control.Evaluate(critic, contexts)
		done()
		if err != nil {
			v.add(policies, 0, "the critic on the inputs: %v", err)
			return nil
		}
		v.compareTables(policies, "critic", contexts, got, stored[0], valueTolerance)
	}
	b := c.compare(contexts, stored[0])
	v.compareTable(e.path(backupsFile), backupsHeader, b.rows())
	v.compareSummary(e, b.summary(), scoreTolerance)
	return nil
}

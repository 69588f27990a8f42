package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// Files of evaluations.
const (
	roundsFile   = "rounds.csv.gz"
	policiesFile = "policies.npz"
)

// What stands in the manifest of an evaluation: its cell and its configuration.
const (
	cellKey       = "cell"
	EvaluationKey = "evaluation"
)

// Evaluation is the result of one cell.
type Evaluation struct {
	Cell     Cell
	Config   Config
	Folder   string
	Manifest *artifact.Manifest
	Scored   []control.Scored // of a closed loop, one a problem
	OneStep  *OneStep         // of a one-step cell
	Backup   *Backup          // of a cell of one-step backups
	Along    []*Evaluation    // of a cell of several steps of training, one a step
	Found    any              // of a method's own study, as it reads it
}

// Losses returns the normalized loss of the policy returned at horizon T, one a
// problem.
func (e *Evaluation) Losses(horizon int) []float64 {
	losses := make([]float64, len(e.Scored))
	for i, s := range e.Scored {
		losses[i] = s.Loss[horizon]
	}
	return losses
}

// MedianLosses returns the median loss of each round [T+1].
func (e *Evaluation) MedianLosses() []float64 {
	medians := make([]float64, len(e.Scored[0].Loss))
	for k := range medians {
		medians[k] = stats.Median(e.Losses(k))
	}
	return medians
}

// Measured reports whether the residuals of all rounds are there, besides losses.
func (e *Evaluation) Measured() bool { return len(e.Scored) > 0 && e.Scored[0].RowL1 != nil }

// Deviations returns a problem's mean over rounds 0, …, T−1 of the actor's mean
// row-L1 deviation from exact PMD, one a problem.
func (e *Evaluation) Deviations(horizon int) []float64 {
	return e.means(horizon, func(s control.Scored) []float64 { return s.RowL1 })
}

// Residuals returns the same of ζ_k, the largest row-L1 over states.
func (e *Evaluation) Residuals(horizon int) []float64 {
	return e.means(horizon, func(s control.Scored) []float64 { return s.Zeta })
}

func (e *Evaluation) means(horizon int, of func(control.Scored) []float64) []float64 {
	means := make([]float64, len(e.Scored))
	for i, s := range e.Scored {
		for _, v := range of(s)[:horizon] {
			means[i] += v / float64(horizon)
		}
	}
	return means
}

// path returns a file of the evaluation.
func (e *Evaluation) path(file string) string { return filepath.Join(e.Folder, file) }

// Draw returns the problems, none for the zero Fixtures.
func (f Fixtures) Draw() ([]mdp.Problem, error) {
	if f == (Fixtures{}) {
		return nil, nil
	}
	return f.Family.Draw(f.Root, f.States, f.Actions, f.Problems)
}

// digest returns the SHA-256 of the problems' tables.
func digest(problems []mdp.Problem) string {
	h := sha256.New()
	for _, p := range problems {
		for _, x := range []*mat.Dense{p.MDP.DenseP(), p.MDP.R, p.Pi0} {
			for i := range x.RawMatrix().Rows {
				binary.Write(h, binary.LittleEndian, x.RawRowView(i)) //nolint:errcheck // a hash takes every write
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Find returns the result of a cell; the error wraps artifact.ErrMissing if it has not
// been run.
func (s *Store) Find(cell Cell) (*Evaluation, error) {
	config, err := s.config(cell)
	if err != nil {
		return nil, err
	}
	folder := s.folder(cell, config)
	m, err := artifact.Open(cell.Name(), config.Hash(), folder)
	if err != nil {
		return nil, err
	}
	e := &Evaluation{Cell: cell, Config: config, Folder: folder, Manifest: m}
	return e, config.study().read(e)
}

func (s *Store) config(cell Cell) (Config, error) {
	if cell.Preset != s.Preset.Name {
		return Config{}, fmt.Errorf("experiment: cell %s is of preset %s, the store is of %s", cell.Name(), cell.Preset, s.Preset.Name)
	}
	return s.Preset.Config(cell)
}

// Evaluate returns the result of a cell, computing it where it is missing, and
// the training runs it needs likewise. Another process on the same cell is
// waited for.
func (s *Store) Evaluate(ctx context.Context, cell Cell) (*Evaluation, error) {
	e, err := s.Find(cell)
	if !errors.Is(err, artifact.ErrMissing) {
		return e, err
	}
	config, err := s.config(cell)
	if err != nil {
		return nil, err
	}
	for _, w := range config.weights() {
		t, err := s.Train(ctx, w.Training)
		if err == nil && !t.holds(w.Step) {
			err = s.restore(ctx, t, w.Step)
		}
		if err != nil {
			return nil, err
		}
	}
	folder := s.folder(cell, config)
	unlock, err := s.lock(ctx, cell.Name(), folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if e, err := s.Find(cell); !errors.Is(err, artifact.ErrMissing) {
		return e, err // made while waiting
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("experiment: before %s: %w", cell.Name(), context.Cause(ctx))
	}
	err = s.artifacts.Publish(folder, func(dir string) (*artifact.Manifest, error) { return s.compute(dir, cell, config) })
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", cell.Name(), err)
	}
	return s.Find(cell)
}

// compute writes the result of a cell into dir.
func (s *Store) compute(dir string, cell Cell, config Config) (*artifact.Manifest, error) {
	meter := artifact.StartMeter()
	problems, err := config.Fixtures.Draw()
	if err != nil {
		return nil, err
	}
	m := &artifact.Manifest{Name: cell.Name(), Hash: config.Hash()}
	m.Fixtures = digest(problems)
	if err := errors.Join(m.Add(cellKey, cell), m.Add(EvaluationKey, config)); err != nil {
		return nil, err
	}
	if m.Weights, err = s.weightDigests(config); err != nil {
		return nil, err
	}
	if m.Summary, err = config.study().compute(s, dir, cell, config.Fixtures, problems); err != nil {
		return nil, err
	}
	var d *backend.Description
	if method.Networks(config.weights()) {
		b, err := s.backend()
		if err != nil {
			return nil, err
		}
		description := backend.Describe(b)
		d = &description
	}
	m.Produced, m.Cost = artifact.Machine(d), meter.Cost()
	return m, nil
}

// weightsName is what a manifest calls weights: the training run, with the step where there
// are several of it.
func (c Config) weightsName(w method.Weights) string {
	if c.Along != nil {
		return fmt.Sprintf("%s-%d", w.Training.Name(), w.Step)
	}
	return w.Training.Name()
}

// weightDigests returns the SHA-256 of the weights that a configuration uses.
func (s *Store) weightDigests(config Config) (map[string]string, error) {
	digests := map[string]string{}
	for _, w := range config.weights() {
		t, err := s.FindTraining(w.Training)
		if err != nil {
			return nil, err
		}
		if digests[config.weightsName(w)], err = t.weightsDigest(w.Step); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

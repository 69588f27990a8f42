package experiment

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/gomlx/compute"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// stagesFolder, in a preset's folder, holds the states of training runs that are made
// in stages: see [train.Run]. They are kept with the results, so that days of training
// can be spread over machines.
const stagesFolder = "stages"

// ClaimsFile, in a preset's folder, holds the table of claims with its estimates as
// they are, from package report.
const ClaimsFile = "claims.json"

// Store makes the artifacts of one preset and finds them again.
type Store struct {
	Preset Preset
	// Progress, if not nil, is told of training steps and of waiting.
	Progress func(Progress)
	// Execution says how training runs are carried out.
	Execution train.Execution

	artifacts artifact.Store
	backend   func() (compute.Backend, error)
	models    *method.Models
}

// Progress says how far a training run is.
type Progress struct {
	Name    string `json:"name"` // of the training run or cell
	Waiting bool   `json:"waiting,omitempty"`
	train.Progress
}

// Open returns the store of the paper's preset of that name below the folder
// artifacts. The backend called backendName (see package backend) is made when it is
// first needed.
func Open(artifacts, preset, backendName string) (*Store, error) {
	p, err := FindPreset(preset)
	if err != nil {
		return nil, err
	}
	return p.Open(artifacts, backendName)
}

// Open returns the store of the preset: see the function of this name. It returns an
// error if the preset makes no sense: see Check.
func (p Preset) Open(artifacts, backendName string) (*Store, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &Store{
		Preset: p, artifacts: artifact.Store{Root: filepath.Join(artifacts, p.Name)},
		backend: sync.OnceValues(func() (compute.Backend, error) { return backend.New(backendName) }),
	}
	s.models = &method.Models{Backend: s.backend, Path: func(w method.Weights) (string, error) {
		t, err := s.FindTraining(w.Training)
		if err != nil {
			return "", err
		}
		return t.WeightsPath(w.Step), nil
	}}
	return s, nil
}

// Root returns the folder of the preset's artifacts.
func (s *Store) Root() string { return s.artifacts.Root }

// Empty reports whether the preset has no result at all.
func (s *Store) Empty() bool {
	manifests, _ := filepath.Glob(filepath.Join(s.Root(), "*", "*", artifact.ManifestFile)) // the pattern is well formed
	return len(manifests) == 0
}

// folderName returns where, in a preset's folder, the artifact of that name and hash belongs.
func folderName(name, hash string) string { return filepath.FromSlash(name) + "-" + hash[:12] }

// folder returns the folder of the cell whose configuration is given.
func (s *Store) folder(cell Cell, config Config) string {
	return filepath.Join(s.Root(), folderName(cell.Name(), config.Hash()))
}

func (s *Store) trainingFolder(c method.Training) string {
	return filepath.Join(s.Root(), folderName("train/"+c.Name(), c.Hash()))
}

// lock waits until no other process makes the artifact of that folder and task.
func (s *Store) lock(ctx context.Context, name, folder string) (unlock func(), err error) {
	return s.artifacts.Lock(ctx, folder, func() {
		if s.Progress != nil {
			s.Progress(Progress{Name: name, Waiting: true})
		}
	})
}

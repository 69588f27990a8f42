package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// ErrMissing is wrapped by the errors that say that an artifact is not there.
var ErrMissing = errors.New("not yet run")

// workFolder holds, inside a preset's folder, what is being made: locks,
// half-written folders, interrupted training runs.
const workFolder = ".work"

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

	root    string
	backend func() (compute.Backend, error)
	models  *method.Models
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
		Preset: p, root: filepath.Join(artifacts, p.Name),
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
func (s *Store) Root() string { return s.root }

// Empty reports whether the preset has no result at all.
func (s *Store) Empty() bool {
	manifests, _ := filepath.Glob(filepath.Join(s.root, "*", "*", manifestFile)) // the pattern is well formed
	return len(manifests) == 0
}

// folder returns the folder of the cell whose configuration is given.
func (s *Store) folder(cell Cell, config Config) string {
	return filepath.Join(s.root, filepath.FromSlash(cell.Name())+"-"+config.Hash()[:12])
}

func (s *Store) trainingFolder(c method.Training) string {
	return filepath.Join(s.root, "train", c.Name()+"-"+c.Hash()[:12])
}

// lock waits until no other process makes the artifact of that folder name.
func (s *Store) lock(ctx context.Context, name, folder string) (unlock func(), err error) {
	dir := filepath.Join(s.root, workFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	lock := flock.New(filepath.Join(dir, filepath.Base(folder)+".lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		if s.Progress != nil {
			s.Progress(Progress{Name: name, Waiting: true})
		}
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: locking %s: %w", name, err)
	}
	return func() { lock.Unlock() }, nil //nolint:errcheck // the process's end would unlock it too
}

// publish makes folder appear with what fill writes and the manifest it returns.
// The caller holds the folder's lock, so what lies half-written is of the dead.
func (s *Store) publish(folder string, fill func(dir string) (*Manifest, error)) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	work, prefix := filepath.Join(s.root, workFolder), filepath.Base(folder)+"-"
	entries, err := os.ReadDir(work)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(work, e.Name())); err != nil {
				return fmt.Errorf("experiment: %w", err)
			}
		}
	}
	dir, err := os.MkdirTemp(work, prefix)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	defer os.RemoveAll(dir)
	manifest, err := fill(dir)
	if err != nil {
		return err
	}
	if err := manifest.write(dir); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := os.Rename(dir, folder); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// open reads the manifest of a folder; it wraps ErrMissing if it is missing.
func (s *Store) open(name, hash, folder string) (*Manifest, error) {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("experiment: %s of preset %s: %w", name, s.Preset.Name, ErrMissing)
	}
	m, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	if m.Name != name || m.Hash != hash {
		return nil, fmt.Errorf("experiment: %s describes %s with hash %.12s, want %s with %.12s", filepath.Join(folder, manifestFile), m.Name, m.Hash, name, hash)
	}
	return m, nil
}

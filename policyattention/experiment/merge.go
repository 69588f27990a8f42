package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// ErrConflict is wrapped by the errors of artifacts that contradict each other.
var ErrConflict = errors.New("conflict")

// Merge copies the artifacts of the preset from other folders of artifacts,
// such as those that single machines have filled, and returns how many it
// copied.
//
// What a task computes depends on its configuration and on arithmetic, what
// its artifact says of machine and cost does not. Artifacts of a task that
// agree on all they computed are therefore the same result; of several the
// one with the smallest seal is kept, so the outcome has the same bytes
// whatever the order of the sources and however often it is merged. If any
// two disagree, or an evaluation used other weights than the merged ones,
// nothing is copied and every conflict is named; so is every damaged artifact.
func (s *Store) Merge(ctx context.Context, sources []string) (copied int, err error) {
	tasks, err := s.Preset.Tasks()
	if err != nil {
		return 0, err
	}
	stores := []*Store{s}
	for _, dir := range sources {
		other := *s
		other.root = filepath.Join(dir, s.Preset.Name)
		if _, err := os.Stat(other.root); err != nil {
			return 0, fmt.Errorf("experiment: merging: %w", err)
		}
		stores = append(stores, &other)
	}
	var chosen []choice
	var failures []error
	runs := map[string]*Manifest{} // of the training runs, by name
	for _, t := range tasks {
		c, err := choose(t, stores)
		if err != nil {
			failures = append(failures, err)
		}
		if c.manifest == nil {
			continue
		}
		chosen = append(chosen, c)
		if t.Training != nil {
			runs[t.Name()] = c.manifest
			continue
		}
		config, err := s.config(*t.Cell)
		if err != nil {
			return 0, err
		}
		for _, w := range config.weights() {
			name := w.Training.Name()
			run, ok := runs[name]
			if !ok {
				continue
			}
			if got, want := c.manifest.Weights[name], run.digest(weightsFile(w.Training, w.Step)); got != want {
				failures = append(failures, fmt.Errorf("experiment: %s was evaluated with weights %.12s of %s, the merged ones are %.12s: %w", c.folder, got, name, want, ErrConflict))
			}
		}
	}
	if err := errors.Join(failures...); err != nil {
		return 0, err
	}
	for _, c := range chosen {
		if err := ctx.Err(); err != nil {
			return copied, fmt.Errorf("experiment: merging stopped: %w", context.Cause(ctx))
		}
		did, err := s.adopt(c)
		if err != nil {
			return copied, err
		}
		if did {
			copied++
		}
	}
	return copied, nil
}

// choice is the artifact of a task that a merge keeps.
type choice struct {
	task     Task
	folder   string // where it is
	target   string // where it belongs
	manifest *Manifest
}

// choose reads the artifacts of a task and returns the one to keep, if any.
func choose(t Task, stores []*Store) (choice, error) {
	kept := choice{task: t}
	var result string
	for i, s := range stores {
		folder, _, err := s.locate(t)
		if err != nil {
			return choice{}, err
		}
		if i == 0 {
			kept.target = folder
		}
		m, err := s.sound(t, folder)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return choice{}, err
		}
		digest, err := m.result()
		if err != nil {
			return choice{}, err
		}
		if kept.manifest != nil && digest != result {
			return choice{}, fmt.Errorf("experiment: %s and %s hold different results of %s: %w", kept.folder, folder, t.Name(), ErrConflict)
		}
		if kept.manifest == nil || m.Seal < kept.manifest.Seal {
			kept.folder, kept.manifest, result = folder, m, digest
		}
	}
	return kept, nil
}

// sound reads the manifest of a task's artifact and checks its files.
func (s *Store) sound(t Task, folder string) (*Manifest, error) {
	hash := ""
	if t.Training != nil {
		hash = t.Training.Hash()
	} else {
		config, err := s.config(*t.Cell)
		if err != nil {
			return nil, err
		}
		hash = config.Hash()
	}
	m, err := s.open(t.Name(), hash, folder)
	if err != nil {
		return nil, err
	}
	for name, want := range m.Files {
		got, err := fileDigest(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("experiment: %s has been changed: its digest is not the manifest's", filepath.Join(folder, name))
		}
	}
	return m, nil
}

// result returns the digest of what the artifact's task computed: everything
// but where, when and at what cost.
func (m *Manifest) result() (string, error) {
	r := *m
	r.Produced, r.Cost, r.Seal = Produced{}, Cost{}, ""
	return jsonDigest(r)
}

// adopt copies a chosen artifact to where it belongs, in place of one with the
// same result; it tells whether there was anything to do.
func (s *Store) adopt(c choice) (did bool, err error) {
	if c.folder == c.target {
		return false, nil
	}
	unlock, err := s.lock(context.Background(), c.task.Name(), c.target)
	if err != nil {
		return false, err
	}
	defer unlock()
	work, err := os.MkdirTemp(filepath.Join(s.root, workFolder), filepath.Base(c.target)+"-")
	if err != nil {
		return false, fmt.Errorf("experiment: %w", err)
	}
	defer os.RemoveAll(work)
	files := append(slices.Collect(maps.Keys(c.manifest.Files)), manifestFile)
	fresh := filepath.Join(work, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return false, fmt.Errorf("experiment: %w", err)
	}
	for _, name := range files {
		if err := copyFile(filepath.Join(fresh, name), filepath.Join(c.folder, name)); err != nil {
			return false, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(c.target), 0o755); err != nil {
		return false, fmt.Errorf("experiment: %w", err)
	}
	// A folder cannot take the place of another at once; the old one is as good until it has gone.
	if err := os.Rename(c.target, filepath.Join(work, "old")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("experiment: %w", err)
	}
	if err := os.Rename(fresh, c.target); err != nil {
		return false, fmt.Errorf("experiment: %w", err)
	}
	return true, nil
}

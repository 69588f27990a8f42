package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrConflict is wrapped by the errors of artifacts that contradict each other.
var ErrConflict = errors.New("conflict")

// Choice is the one artifact of several with the same result that a merge keeps.
type Choice struct {
	Folder   string // where it is
	Manifest *Manifest
}

// Choose reads the artifacts of that name and hash in the folders, checks all their files,
// and returns the one with the smallest seal, none (without a manifest) where there is
// none. The error wraps ErrConflict where two hold different results.
func Choose(name, hash string, folders []string) (kept Choice, err error) {
	var result string
	for _, folder := range folders {
		m, err := Open(name, hash, folder)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return Choice{}, err
		}
		for file, want := range m.Files {
			if err := CheckFile(filepath.Join(folder, file), want); err != nil {
				return Choice{}, err
			}
		}
		digest, err := m.result()
		if err != nil {
			return Choice{}, err
		}
		if kept.Manifest != nil && digest != result {
			return Choice{}, fmt.Errorf("artifact: %s and %s hold different results of %s: %w", kept.Folder, folder, name, ErrConflict)
		}
		if kept.Manifest == nil || m.Seal < kept.Manifest.Seal {
			kept, result = Choice{folder, m}, digest
		}
	}
	return kept, nil
}

// result returns the digest of what was computed: everything but where, when and at what
// cost.
func (m *Manifest) result() (string, error) {
	r := *m
	r.Produced, r.Cost, r.Seal = Produced{}, Cost{}, ""
	return Digest(r)
}

// Adopt copies a chosen artifact to where it belongs, in place of one with the same
// result, whose files it keeps where the chosen one lacks them (see Manifest.Omitted); it
// tells whether there was anything to do.
func (s Store) Adopt(c Choice, target string) (did bool, err error) {
	if c.Folder == target {
		return false, nil
	}
	unlock, err := s.Lock(context.Background(), target, nil)
	if err != nil {
		return false, err
	}
	defer unlock()
	work, err := os.MkdirTemp(filepath.Join(s.Root, WorkFolder), filepath.Base(target)+"-")
	if err != nil {
		return false, fmt.Errorf("artifact: %w", err)
	}
	defer os.RemoveAll(work)
	files := map[string]string{ManifestFile: c.Folder}
	for name := range c.Manifest.Files {
		files[name] = c.Folder
	}
	// What copies may lack is taken from whichever has it.
	for name, want := range c.Manifest.Omitted {
		for _, folder := range []string{c.Folder, target} {
			if CheckFile(filepath.Join(folder, name), want) == nil {
				files[name] = folder
			}
		}
	}
	fresh := filepath.Join(work, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return false, fmt.Errorf("artifact: %w", err)
	}
	for name, folder := range files {
		if err := CopyFile(filepath.Join(fresh, name), filepath.Join(folder, name)); err != nil {
			return false, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return false, fmt.Errorf("artifact: %w", err)
	}
	// A folder cannot take the place of another at once; the old one is as good until it has gone.
	old := filepath.Join(work, "old")
	moved := os.Rename(target, old)
	if moved != nil && !errors.Is(moved, os.ErrNotExist) {
		return false, fmt.Errorf("artifact: %w", moved)
	}
	if err := os.Rename(fresh, target); err != nil {
		if moved == nil {
			err = errors.Join(err, os.Rename(old, target))
		}
		return false, fmt.Errorf("artifact: %w", err)
	}
	return true, nil
}

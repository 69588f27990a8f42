package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"icrl/policyattention/artifact"
)

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
	roots := []string{s.Root()}
	for _, dir := range sources {
		root := filepath.Join(dir, s.Preset.Name)
		if _, err := os.Stat(root); err != nil {
			return 0, fmt.Errorf("experiment: merging: %w", err)
		}
		roots = append(roots, root)
	}
	var chosen []artifact.Choice
	var targets []string // where they belong
	var failures []error
	runs := map[string]*artifact.Manifest{} // of the training runs, by name
	for _, t := range tasks {
		where, hash, err := s.Preset.locate(t)
		if err != nil {
			return 0, err
		}
		var folders []string
		for _, root := range roots {
			folders = append(folders, filepath.Join(root, where))
		}
		c, err := artifact.Choose(t.Name(), hash, folders)
		if err != nil {
			failures = append(failures, err)
		}
		if c.Manifest == nil {
			continue
		}
		chosen, targets = append(chosen, c), append(targets, folders[0])
		if t.Training != nil {
			runs[t.Name()] = c.Manifest
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
			if got, want := c.Manifest.Weights[config.weightsName(w)], run.Digest(weightsFile(w.Training, w.Step)); got != want {
				failures = append(failures, fmt.Errorf("experiment: %s was evaluated with weights %.12s of %s, the merged ones are %.12s: %w", c.Folder, got, name, want, artifact.ErrConflict))
			}
		}
	}
	if err := errors.Join(failures...); err != nil {
		return 0, err
	}
	for i, c := range chosen {
		if err := ctx.Err(); err != nil {
			return copied, fmt.Errorf("experiment: merging stopped: %w", context.Cause(ctx))
		}
		did, err := s.artifacts.Adopt(c, targets[i])
		if err != nil {
			return copied, err
		}
		if did {
			copied++
		}
	}
	return copied, nil
}

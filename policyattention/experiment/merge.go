package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"icrl/policyattention/rows"
)

// ErrConflict is wrapped by the errors of results that contradict each other.
var ErrConflict = errors.New("conflict")

// Merge puts the preset's results together, those of other folders of artifacts included, such
// as single machines have filled: one file of rows a block, lists of what made them, and the
// SHA-256 of all files. It returns how many results it put in.
//
// What a task computes depends on its configuration and on arithmetic, what its record says of
// machine and cost does not. Results that agree on all they computed are therefore the same; of
// several the record that sorts first is kept, so the outcome has the same bytes whatever the
// order of the folders and however often it is merged. If any two disagree, or a unit used other
// weights than the merged ones, nothing is written and every conflict is named. Killed at any
// moment, it loses nothing: single results go when all else is written.
func (s *Store) Merge(ctx context.Context, folders ...string) (put int, err error) {
	unlock, err := s.lock(ctx, "merge", "merge")
	if err != nil {
		return 0, err
	}
	defer unlock()
	s.sealed = nil
	m := merge{s: s, stores: []*Store{s}, files: map[string]string{}}
	for _, folder := range folders {
		other := open(s.Preset, folder, "")
		if _, err := os.Stat(other.Root()); err != nil {
			return 0, fmt.Errorf("experiment: merging: %w", err)
		}
		m.stores = append(m.stores, other)
	}
	units, err := s.Units()
	if err == nil {
		err = m.gather(ctx, units)
	}
	if err != nil {
		return 0, err
	}
	if err := m.write(units); err != nil {
		return 0, err
	}
	s.sealed = nil
	for _, folder := range m.merged {
		if err := os.RemoveAll(folder); err != nil {
			return m.put, fmt.Errorf("experiment: %w", err)
		}
	}
	for _, block := range m.blocks {
		//nolint:errcheck // it may hold what is no result of the preset
		os.Remove(filepath.Join(s.Root(), newFolder, string(block)))
	}
	os.Remove(filepath.Join(s.Root(), newFolder)) //nolint:errcheck // the same
	return m.put, nil
}

// merge is what Merge gathers before it writes anything.
type merge struct {
	s         *Store
	stores    []*Store
	trainings []TrainingRun
	losses    []rows.Loss
	records   []Record
	blocks    []Block
	tables    map[Block]*rows.Tables
	files     map[string]string // to copy, by where to
	merged    []string          // folders and files of this store that go
	put       int
}

func (m *merge) gather(ctx context.Context, units []Unit) (err error) {
	m.tables = map[Block]*rows.Tables{}
	weights := map[string]string{} // of the training runs, by name and file
	for _, c := range Trainings(units) {
		err = errors.Join(err, m.training(Task{Training: c}, weights))
	}
	planned := map[string]bool{}
	for _, u := range units {
		if ctx.Err() != nil {
			return fmt.Errorf("experiment: merging stopped: %w", context.Cause(ctx))
		}
		planned[u.Path()] = true
		err = errors.Join(err, m.unit(u, weights))
	}
	if err != nil {
		return err
	}
	return m.unplanned(planned)
}

// training chooses a training run among the stores.
func (m *merge) training(task Task, weights map[string]string) error {
	c, best := task.Training, ""
	var chosen *TrainingRun
	var from *Store
	for _, s := range m.stores {
		t, err := s.FindTraining(c)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if chosen != nil && !maps.Equal(t.Weights, chosen.Weights) {
			return fmt.Errorf("experiment: %s and %s hold different weights of %s: %w", chosen.folder, t.folder, t.Name,
				ErrConflict)
		}
		for _, step := range weightSteps(c) {
			file := filepath.Join(m.s.trainingFolder(c), weightsFile(c, step))
			if t.Holds(step) && s != m.s {
				m.files[file] = t.WeightsPath(step)
			}
		}
		if text := sortable(t); chosen == nil || text < best {
			chosen, best, from = t, text, s
		}
	}
	if chosen == nil {
		return nil
	}
	for _, step := range weightSteps(c) {
		file, path := weightsFile(c, step), chosen.WeightsPath(step)
		if digest, err := FileDigest(path); err == nil && digest != chosen.Weights[file] {
			return fmt.Errorf("experiment: %s has been changed", path)
		}
		weights[chosen.Name+"/"+file] = chosen.Weights[file]
	}
	losses, alone, err := from.losses(chosen)
	if err != nil {
		return err
	}
	if alone {
		m.put++
	}
	if _, err := os.Stat(filepath.Join(m.s.trainingFolder(c), recordFile)); err == nil {
		m.merged = append(m.merged, filepath.Join(m.s.trainingFolder(c), recordFile),
			filepath.Join(m.s.trainingFolder(c), lossesFile))
	}
	m.losses, m.trainings = append(m.losses, losses...), append(m.trainings, *chosen)
	return nil
}

// losses returns those of a training run, and whether they have not been merged.
func (s *Store) losses(t *TrainingRun) (own []rows.Loss, alone bool, err error) {
	own, err = rows.Read[rows.Loss](filepath.Join(t.folder, lossesFile))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return own, true, err
	}
	all, err := rows.Read[rows.Loss](filepath.Join(s.Root(), lossesFile))
	for _, l := range all {
		if l.Training == t.Name {
			own = append(own, l)
		}
	}
	return own, false, err
}

// unit chooses a unit's result among the stores.
func (m *merge) unit(u Unit, weights map[string]string) error {
	var chosen *Record
	var result *Result
	for _, s := range m.stores {
		r, found, err := s.Find(u)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if chosen != nil && (!same(result.Tables, found.Tables) || string(r.Notes) != string(chosen.Notes)) {
			return fmt.Errorf("experiment: %s: two folders hold different results: %w", u.Path(), ErrConflict)
		}
		for _, w := range u.Weights {
			name := w.Training.Name()
			if want, ok := weights[name+"/"+weightsFile(w.Training, w.Step)]; ok && want != r.Weights[name] {
				return fmt.Errorf(
					"experiment: %s was made with weights %.12s of %s, the merged ones are %.12s: %w",
					u.Path(), r.Weights[name], name, want, ErrConflict)
			}
		}
		if chosen == nil || sortable(r) < sortable(*chosen) {
			chosen, result = &r, found
		}
	}
	if chosen == nil {
		return nil
	}
	if _, merged, err := m.s.record(u); err != nil || !merged {
		m.put++
	}
	m.merged = append(m.merged, m.s.folder(u))
	m.add(*chosen, result.Tables)
	return nil
}

func (m *merge) add(r Record, t rows.Tables) {
	if m.tables[r.Block] == nil {
		m.blocks, m.tables[r.Block] = append(m.blocks, r.Block), &rows.Tables{}
	}
	m.tables[r.Block].Append(t)
	m.records = append(m.records, r)
}

// unplanned keeps merged results that are no longer the preset's.
func (m *merge) unplanned(planned map[string]bool) error {
	x, err := m.s.index()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(x.runs)) {
		if r := x.runs[path]; !planned[path] {
			runs, err := m.s.block(r.Block)
			if err != nil {
				return err
			}
			if t := runs[rows.Key{Method: r.Method, Recipe: r.Recipe, S: r.S, Seed: r.Seed, Step: r.Step,
				Family: r.Family}]; t != nil {
				m.add(r, *t)
			}
		}
	}
	have := map[string]bool{}
	for _, t := range m.trainings {
		have[t.Hash] = true
	}
	for _, hash := range slices.Sorted(maps.Keys(x.trainings)) {
		if !have[hash] {
			m.trainings = append(m.trainings, x.trainings[hash])
		}
	}
	return nil
}

// sortable is the JSON of a record.
func sortable(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(b)
}

// same reports whether tables are equal to the bit.
func same(x, y rows.Tables) bool {
	equal := x.Len() == y.Len()
	x.Compare(y, 0, func(int, string) { equal = false })
	return equal
}

func (m *merge) write(units []Unit) error {
	root := m.s.Root()
	for _, to := range slices.Sorted(maps.Keys(m.files)) {
		if err := copyFile(to, m.files[to]); err != nil {
			return err
		}
	}
	for _, block := range m.blocks {
		if err := m.tables[block].Write(root, string(block)); err != nil {
			return err
		}
	}
	if len(m.losses) > 0 {
		if err := rows.Write(filepath.Join(root, lossesFile), m.losses); err != nil {
			return err
		}
	}
	problems, err := m.s.Preset.problems(units)
	if err == nil {
		err = rows.Write(filepath.Join(root, problemsFile), problems)
	}
	if err == nil {
		err = WriteJSON(filepath.Join(root, trainingsFile), m.trainings, " ")
	}
	if err == nil {
		err = WriteJSON(filepath.Join(root, runsFile), m.records, " ")
	}
	if err != nil {
		return err
	}
	return writeSums(root, m.merged)
}

// problems returns the evaluation problems, so that nobody needs our random streams.
func (p Preset) problems(units []Unit) (all []rows.Problem, err error) {
	seen := map[Fixtures]bool{}
	for _, u := range units {
		l, ok := u.Config.(*Loop)
		if !ok || l.Problems.Problems != p.Problems ||
			l.Problems.Root != p.Protocol.Sizes[l.Problems.States].Evaluation || seen[l.Problems] {
			continue
		}
		seen[l.Problems] = true
		some, err := l.Problems.Tables()
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// sealedFiles lists the files below root that SHA256SUMS has: all but work that has not ended,
// single results, itself, and what else is left out.
func sealedFiles(root string, left []string) (names []string, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{WorkFolder, newFolder}, name):
			return fs.SkipDir
		case e.Type().IsRegular() && name != sumsFile && !slices.Contains(left, path):
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// writeSums writes the SHA-256 of a preset's files in the form of the program sha256sum.
func writeSums(root string, left []string) error {
	names, err := sealedFiles(root, left)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
		sum := sha256.Sum256(text)
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	return WriteFile(filepath.Join(root, sumsFile), []byte(b.String()))
}

// readSums reads SHA256SUMS.
func readSums(root string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(root, sumsFile))
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 64 || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("experiment: %s: line %q is no digest and name", filepath.Join(root, sumsFile), line)
		}
		sums[name] = sum
	}
	return sums, nil
}

package experiment

import (
	"bytes"
	"context"
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

// Merge puts the preset's results together: one file of rows a block, lists of what made them, and the
// SHA-256 of all files. It returns how many results it put in. Single results of other machines are merged
// where their folders, which are called by the hashes of configurations, have been copied to this one's. Where
// one was made with other weights than the store's, nothing is written. Killed at any moment, it loses nothing:
// single results go when all else is written.
func (s *Store) Merge(ctx context.Context) (put int, err error) {
	unlock, err := s.lock(ctx, "merge", "merge")
	if err != nil {
		return 0, err
	}
	defer unlock()
	s.sealed = nil
	tasks, err := s.Tasks()
	if err != nil {
		return 0, err
	}
	m := merge{records: map[string][]Record{trainingsFile: {}, runsFile: {}}, tables: map[Block]rows.Tables{}}
	if err := errors.Join(m.gather(s, tasks), m.unplanned(s, tasks)); err != nil {
		return 0, err
	}
	for _, pattern := range []string{".*", "*/.*"} { // half-written files of one that was killed
		paths, _ := filepath.Glob(filepath.Join(s.Root, pattern)) // the pattern is well formed
		for _, path := range paths {
			os.Remove(path) //nolint:errcheck // a folder that is not empty stays
		}
	}
	if err := m.write(s, tasks); err != nil {
		return 0, err
	}
	s.sealed = nil
	for _, path := range m.merged {
		if err := os.RemoveAll(path); err != nil {
			return m.put, fmt.Errorf("experiment: %w", err)
		}
		os.Remove(filepath.Dir(path)) //nolint:errcheck // it may hold what is no result of the preset
	}
	os.Remove(filepath.Join(s.Root, newFolder)) //nolint:errcheck // the same
	return m.put, nil
}

// merge is what Merge gathers before it writes anything.
type merge struct {
	records map[string][]Record // by the file that lists them
	tables  map[Block]rows.Tables
	merged  []string // folders and files that go
	put     int
}

func (m *merge) gather(s *Store, tasks []Unit) error {
	for _, u := range tasks {
		r, found, err := s.find(u)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if !r.merged {
			m.put++
		}
		m.add(r, *found)
		if folder := s.folder(u); u.Training != nil {
			m.merged = append(m.merged, filepath.Join(folder, recordFile), filepath.Join(folder, lossesFile))
		} else if held, missing := s.digests(u); missing == nil && !maps.Equal(held, r.Weights) {
			return fmt.Errorf("experiment: %s was made with the weights %.12s, the store holds %.12s", u.Path(),
				r.Weights, held)
		} else {
			m.merged = append(m.merged, folder)
		}
	}
	return nil
}

func (m *merge) add(r Record, t rows.Tables) {
	all := m.tables[r.Block]
	all.Append(t)
	m.tables[r.Block] = all
	file := runsFile
	if r.Block == "" {
		file = trainingsFile
	}
	m.records[file] = append(m.records[file], r)
}

// unplanned keeps merged results that are no longer the preset's.
func (m *merge) unplanned(s *Store, tasks []Unit) error {
	x, err := s.index()
	if err != nil {
		return err
	}
	left := maps.Clone(x.records)
	for _, t := range tasks {
		delete(left, t.Path())
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		r := left[name]
		runs, err := s.block(r.Block)
		if err != nil {
			return err
		}
		var of any = r.Key
		if r.Block == "" {
			of = rows.Loss{Training: r.Name}
		}
		if t := runs[of]; t != nil {
			m.add(r, *t)
		}
	}
	return nil
}

func (m *merge) write(s *Store, tasks []Unit) error {
	for _, block := range slices.Sorted(maps.Keys(m.tables)) {
		if err := m.tables[block].Write(s.Root, string(block)); err != nil {
			return err
		}
	}
	problems, err := s.Preset.problems(tasks)
	if err == nil {
		err = rows.Write(filepath.Join(s.Root, problemsFile), problems)
	}
	for _, file := range []string{trainingsFile, runsFile} {
		if err == nil {
			err = writeRecords(filepath.Join(s.Root, file), m.records[file])
		}
	}
	if err != nil {
		return err
	}
	return writeSums(s.Root, m.merged)
}

// writeRecords stores records as a list in JSON, one on each line.
func writeRecords(path string, records []Record) error {
	lines := make([][]byte, len(records))
	for i, r := range records {
		var err error
		if lines[i], err = json.Marshal(r); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	return rows.WriteFile(path, slices.Concat([]byte("[\n"), bytes.Join(lines, []byte(",\n")), []byte("\n]\n")))
}

// problems returns the evaluation problems, so that nobody needs our random streams.
func (p Preset) problems(tasks []Unit) (all []rows.Problem, err error) {
	seen := map[Fixtures]bool{}
	for _, t := range tasks {
		l, ok := t.Config.(*Loop)
		if !ok || l.Problems.Problems != p.Problems || seen[l.Problems] ||
			l.Problems.Root != p.Protocol.Sizes[l.Problems.States].Evaluation {
			continue
		}
		f := l.Problems
		seen[f] = true
		drawn, err := f.pick(First(f.Problems))
		if err != nil {
			return nil, err
		}
		for i, x := range drawn {
			all = append(all, rows.Problem{
				Family: string(f.Family), S: int32(f.States), A: int32(f.Actions), Root: int64(f.Root),
				Problem: int32(i), Gamma: x.MDP.Gamma, P: flat(x.MDP.DenseP()), R: flat(x.MDP.R), Pi0: flat(x.Pi0),
			})
		}
	}
	return all, nil
}

// sealedFiles lists the files below root that SHA256SUMS has: all but work that has not ended,
// single results, itself, and what else is left out.
func sealedFiles(root string, left []string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{WorkFolder, newFolder}, name):
			return fs.SkipDir
		case e.Type().IsRegular() && name != sumsFile && !slices.Contains(left, filepath.Join(root, name)):
			names = append(names, name)
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
		sum, err := FileDigest(filepath.Join(root, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return rows.WriteFile(filepath.Join(root, sumsFile), []byte(b.String()))
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

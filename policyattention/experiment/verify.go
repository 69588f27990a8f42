package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// ErrDiscrepancies is wrapped by the error of a verification that found any.
var ErrDiscrepancies = errors.New("discrepancies found")

// Discrepancy is something in a result that is not as it must be.
type Discrepancy struct {
	File string `json:"file"`          // or a unit
	Row  int    `json:"row,omitempty"` // of the unit's, from 1
	What string `json:"what"`
}

func (d Discrepancy) String() string {
	if d.Row > 0 {
		return fmt.Sprintf("%s: row %d: %s", d.File, d.Row, d.What)
	}
	return d.File + ": " + d.What
}

// Verification is what Verify found.
type Verification struct {
	Preset         string        `json:"preset"`
	Seed           uint64        `json:"seed"`            // of what is chosen to be computed again
	Files          int           `json:"files"`           // whose digest was checked
	Trainings      int           `json:"trainings"`       // training runs checked
	Units          int           `json:"units"`           // evaluations checked
	Missing        int           `json:"missing"`         // planned runs and units that are not there
	WithoutWeights int           `json:"without_weights"` // units whose weights are left out: only policies were scored
	Again          int           `json:"again"`           // rows computed again
	Scored         int           `json:"scored"`          // stored policies scored again
	Discrepancies  []Discrepancy `json:"discrepancies"`
	CPUSeconds     float64       `json:"cpu_seconds"`

	whole bool // all rows are computed again
	left  bool // those of this unit are not
}

func (v *Verification) String() string {
	return fmt.Sprintf("preset %s: %d files, %d training runs, %d evaluations (%d not yet run, %d without their "+
		"weights), %d rows computed again, %d policies scored: %d discrepancies, in %.0f s of processor time (seed %d)",
		v.Preset, v.Files, v.Trainings, v.Units, v.Missing, v.WithoutWeights, v.Again, v.Scored, len(v.Discrepancies),
		v.CPUSeconds, v.Seed)
}

// Err returns an error that wraps ErrDiscrepancies if there are any.
func (v *Verification) Err() error {
	if len(v.Discrepancies) == 0 {
		return nil
	}
	return fmt.Errorf("experiment: %d %w", len(v.Discrepancies), ErrDiscrepancies)
}

// most bounds how many discrepancies a unit is charged with.
const most = 5

func (v *Verification) add(file string, row int, format string, args ...any) {
	v.Discrepancies = append(v.Discrepancies, Discrepancy{File: file, Row: row, What: fmt.Sprintf(format, args...)})
}

func (v *Verification) merge(w *Verification) {
	v.Trainings, v.Units, v.Missing, v.WithoutWeights = v.Trainings+w.Trainings, v.Units+w.Units, v.Missing+w.Missing,
		v.WithoutWeights+w.WithoutWeights
	v.Again, v.Scored, v.Discrepancies = v.Again+w.Again, v.Scored+w.Scored, append(v.Discrepancies, w.Discrepancies...)
}

// Verify has one rule: what rows say is computed again from weights and seeds, and compared. It
// does so for some problems of each unit (see Unit.Sample), which a seed chooses that whoever changes a
// file cannot know, or whole for all; recorded choices are made again; and every stored policy is scored.
// Files must be those of SHA256SUMS, weights those that records name, records those of the plan. An error
// means that verification could not be done; see Verification.Err for what it found.
func (s *Store) Verify(ctx context.Context, whole bool, chosen uint64) (*Verification, error) {
	cost := StartMeter()
	v := &Verification{Preset: s.Preset.Name, Seed: chosen, Discrepancies: []Discrepancy{}}
	if err := s.verifyFiles(v); err != nil {
		return nil, err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	found, left := make([]*Verification, len(tasks)), leftOut(tasks, whole, chosen)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range tasks {
		found[i] = &Verification{Seed: chosen, whole: whole, left: left[i]}
		group.Go(func() error {
			if ctx.Err() != nil {
				return fmt.Errorf("experiment: verification stopped: %w", context.Cause(ctx))
			}
			return s.verifyTask(ctx, found[i], tasks[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, w := range found {
		v.merge(w)
	}
	err = s.verifyProblems(v, tasks)
	s.verifyPlan(v, tasks)
	v.CPUSeconds = cost().CPUSeconds
	return v, err
}

// leftOut tells the units whose rows are not computed again: of those of a block with one OneIn the seed chooses
// always as many that are, at least one, and none WholeOnly.
func leftOut(tasks []Unit, whole bool, chosen uint64) map[int]bool {
	type group struct {
		Block
		oneIn int
	}
	left, alike := map[int]bool{}, map[group][]int{}
	for i, t := range tasks {
		if left[i] = t.OneIn != 0 && !whole; left[i] && t.OneIn != WholeOnly {
			g := group{t.Block, t.OneIn}
			alike[g] = append(alike[g], i)
		}
	}
	for g, all := range alike {
		for _, i := range seed.New(chosen, "verification", string(g.Block)).Perm(len(all))[:max(1, len(all)/g.oneIn)] {
			left[all[i]] = false
		}
	}
	return left
}

// verifyFiles compares the files with SHA256SUMS, where the preset has been merged.
func (s *Store) verifyFiles(v *Verification) error {
	sums, err := readSums(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(s.Root, runsFile)); err == nil {
			v.add(filepath.Join(s.Root, sumsFile), 0, "it is missing")
		}
		return nil
	}
	if err != nil {
		v.add(filepath.Join(s.Root, sumsFile), 0, "%v", err)
		return nil
	}
	names, err := sealedFiles(s.Root, nil)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	v.Files = len(names)
	all := append(slices.Collect(maps.Keys(sums)), names...)
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		path := filepath.Join(s.Root, name)
		want, ok := sums[name]
		got, err := FileDigest(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.add(path, 0, "it is missing")
		case err != nil:
			v.add(path, 0, "%v", err)
		case !ok && filepath.Base(filepath.Dir(filepath.Dir(path))) != trainFolder: // a run that is not yet merged
			v.add(path, 0, "%s does not list it", sumsFile)
		case ok && got != want:
			v.add(path, 0, "its SHA-256 is %.12s…, %s says %.12s…", got, sumsFile, want)
		}
	}
	return nil
}

// verifyTask checks a unit. It returns an error only where no backend can be had.
func (s *Store) verifyTask(ctx context.Context, v *Verification, u Unit) error {
	r, stored, err := s.find(u)
	if errors.Is(err, ErrMissing) {
		v.Missing++
		return nil
	}
	if err != nil {
		v.add(u.Path(), 0, "%v", err)
		return nil
	}
	want := u.record()
	want.Weights, want.Produced, want.Cost, want.merged = r.Weights, r.Produced, r.Cost, r.merged
	if !reflect.DeepEqual(r, want) {
		v.add(u.Path(), 0, "its record is not of its configuration")
	}
	if u.Training != nil {
		v.Trainings++
		s.verifyTraining(v, u, r, stored.Losses)
		return nil
	}
	v.Units++
	weights, err := s.digests(u)
	if err != nil {
		v.add(u.Path(), 0, "the weights it was made from: %v", err)
		return nil
	}
	if !maps.Equal(weights, r.Weights) {
		v.add(u.Path(), 0, "it was made from other weights than are stored")
	}
	found := 0
	differs := func(row int, what string) {
		if found++; found <= most {
			v.add(u.Path(), row, "%s", what)
		}
	}
	if l, ok := u.Config.(*Loop); ok && len(stored.Policies) > 0 {
		v.Scored += len(stored.Policies)
		if err := l.checkPolicies(stored, differs); err != nil {
			return err
		}
	}
	if err := s.again(ctx, v, u, stored, differs); err != nil {
		return err
	}
	if found > most {
		v.add(u.Path(), 0, "%d more rows differ", found-most)
	}
	return nil
}

func (s *Store) verifyTraining(v *Verification, u Unit, r Record, losses []rows.Loss) {
	weights := u.weights()
	for _, file := range slices.Sorted(maps.Keys(weights)) {
		w := weights[file]
		path := s.weightsPath(w)
		digest, err := FileDigest(path)
		if errors.Is(err, fs.ErrNotExist) && s.Preset.leavesOut(u.Name+"/"+file) {
			continue
		}
		if err != nil || digest != r.Weights[file] {
			v.add(path, 0, "its SHA-256 is not that of the training run's record (%v)", err)
			continue
		}
		if err := w.Check(path); err != nil {
			v.add(path, 0, "%v", err)
		}
	}
	if err := checkLosses(u.Training, losses); err != nil {
		v.add(u.Path(), 0, "%v", err)
	}
}

// chosen lists which n problems of a unit are computed again: the first ones, or those that the seed chooses.
func (v *Verification) chosen(u Unit, n int) (some []int32) {
	if !u.Chosen {
		return First(n)
	}
	for _, p := range seed.New(v.Seed, "verification", u.Path()).Perm(u.Problems)[:n] {
		some = append(some, int32(p))
	}
	slices.Sort(some)
	return some
}

// again computes a unit's rows again and compares.
func (s *Store) again(ctx context.Context, v *Verification, u Unit, stored *rows.Tables,
	differs func(int, string)) error {
	for _, w := range u.Weights {
		if !s.holds(w) {
			v.WithoutWeights++
			return nil
		}
	}
	sample, some, problems := u.Sample, *stored, First(u.Problems)
	if v.whole {
		sample = 0
	}
	if n := stored.Len(); u.Rows > 0 && n != u.Rows {
		differs(0, fmt.Sprintf("it has %d rows, want %d", n, u.Rows))
	}
	if u.Rows == 0 && u.Sample > 0 && u.Problems > 0 && (stored.Len() == 0 || !stored.Whole(u.Problems)) {
		differs(0, fmt.Sprintf("it has not as many rows on each of %d problems", u.Problems))
		return nil
	}
	if v.left {
		return nil
	}
	if sample > 0 && u.Problems > 0 {
		problems = v.chosen(u, sample)
		some = stored.On(func(problem int32) bool { return slices.Contains(problems, problem) })
	}
	again, err := u.Compute(ctx, s, problems, &some)
	if err != nil {
		differs(0, fmt.Sprintf("computed again: %v", err))
		_, err = s.machine(method.Networks(u.Weights))
		return err
	}
	v.Again += again.Len()
	some.Compare(*again, u.Tolerance, differs)
	if n := again.Len(); sample == 0 && n != some.Len() {
		differs(0, fmt.Sprintf("it has %d rows, computed again %d", some.Len(), n))
	}
	return nil
}

// verifyProblems compares the stored problems with those that are drawn.
func (s *Store) verifyProblems(v *Verification, tasks []Unit) error {
	path := filepath.Join(s.Root, problemsFile)
	stored, err := rows.Read[rows.Problem](path)
	if errors.Is(err, fs.ErrNotExist) { // not merged, or missed already
		return nil
	}
	if err != nil {
		v.add(path, 0, "%v", err)
		return nil
	}
	drawn, err := s.Preset.problems(tasks)
	if len(stored) != len(drawn) {
		v.add(path, 0, "it has %d problems, want %d", len(stored), len(drawn))
		return err
	}
	for i := range drawn {
		if !reflect.DeepEqual(stored[i], drawn[i]) {
			v.add(path, i+1, "it is not the problem that is drawn")
			break
		}
	}
	return err
}

// verifyPlan reports results that the preset does not plan.
func (s *Store) verifyPlan(v *Verification, tasks []Unit) {
	planned, folders, blocks := map[string]bool{}, map[string]bool{}, map[Block]map[any]bool{}
	for _, t := range tasks {
		planned[t.Path()], folders[s.folder(t)] = true, true
		if blocks[t.Block] == nil {
			blocks[t.Block] = map[any]bool{}
		}
		if r, err := s.record(t); err == nil && r.merged {
			blocks[t.Block][t.Of] = true
		}
	}
	x, err := s.index()
	if err != nil {
		v.add(s.Root, 0, "%v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(x.records)) {
		if !planned[name] {
			v.add(name, 0, "no task of preset %s has this name", s.Preset.Name)
		}
	}
	for name, runs := range blocks {
		stored, err := s.block(name)
		if err != nil {
			v.add(string(name), 0, "%v", err)
			continue
		}
		for of := range stored {
			if !runs[of] {
				v.add(string(name), 0, "rows of %+v, which no record names", of)
			}
		}
	}
	for _, pattern := range []string{newFolder + "/*/*", trainFolder + "/*"} {
		paths, _ := filepath.Glob(filepath.Join(s.Root, filepath.FromSlash(pattern))) // the pattern is well formed
		for _, path := range paths {
			if !folders[path] {
				v.add(path, 0, "no configuration of preset %s has this name and hash", s.Preset.Name)
			}
		}
	}
}

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
	Preset    string `json:"preset"`
	Files     int    `json:"files"`     // whose digest was checked
	Trainings int    `json:"trainings"` // training runs checked
	Units     int    `json:"units"`     // evaluations checked
	Missing   int    `json:"missing"`   // planned runs and units that are not there
	// units whose weights are left out, of which the stored policies were scored
	WithoutWeights int           `json:"without_weights"`
	Again          int           `json:"again"`  // rows computed again
	Scored         int           `json:"scored"` // stored policies scored again
	Discrepancies  []Discrepancy `json:"discrepancies"`
	CPUSeconds     float64       `json:"cpu_seconds"`
}

func (v *Verification) String() string {
	return fmt.Sprintf(
		"preset %s: %d files, %d training runs, %d evaluations (%d not yet run, %d without their weights), "+
			"%d rows computed again, %d policies scored: %d discrepancies, in %.0f s of processor time",
		v.Preset, v.Files, v.Trainings, v.Units, v.Missing, v.WithoutWeights, v.Again, v.Scored, len(v.Discrepancies),
		v.CPUSeconds)
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
// does so for some problems of each unit (see Unit.Sample), or whole for all; recorded choices
// are made again; and every stored policy is scored. Files must be those of SHA256SUMS, weights
// those that records name, records those of the plan. An error means that verification could not
// be done; see Verification.Err for what it found.
func (s *Store) Verify(ctx context.Context, whole bool) (*Verification, error) {
	meter := StartMeter()
	v := &Verification{Preset: s.Preset.Name, Discrepancies: []Discrepancy{}}
	if err := s.verifyFiles(v); err != nil {
		return nil, err
	}
	units, err := s.Units()
	if err != nil {
		return nil, err
	}
	var checks []func(*Verification) error
	for _, c := range Trainings(units) {
		checks = append(checks, func(v *Verification) error { return s.verifyTraining(v, c) })
	}
	for _, u := range units {
		checks = append(checks, func(v *Verification) error { return s.verifyUnit(ctx, v, u, whole) })
	}
	found := make([]*Verification, len(checks))
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0)) // many wait for a network's answer
	// Neighbours in the plan run the same compiled program. In any other order few of
	// the workers wait for a compilation at the same time.
	for _, i := range seed.New(0, "verification").Perm(len(checks)) {
		found[i] = &Verification{}
		group.Go(func() error {
			if ctx.Err() != nil {
				return fmt.Errorf("experiment: verification stopped: %w", context.Cause(ctx))
			}
			return checks[i](found[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, w := range found {
		v.merge(w)
	}
	err = errors.Join(s.verifyProblems(v, units), s.verifyPlan(v, units))
	v.CPUSeconds = meter.Cost().CPUSeconds
	return v, err
}

// verifyFiles compares the files with SHA256SUMS, where the preset has been merged.
func (s *Store) verifyFiles(v *Verification) error {
	sums, err := readSums(s.Root())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(s.Root(), runsFile)); err == nil {
			v.add(filepath.Join(s.Root(), sumsFile), 0, "it is missing")
		}
		return nil
	}
	if err != nil {
		v.add(filepath.Join(s.Root(), sumsFile), 0, "%v", err)
		return nil
	}
	names, err := sealedFiles(s.Root(), nil)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(s.Root(), name)
		want, ok := sums[name]
		got, err := FileDigest(path)
		v.Files++
		switch {
		case err != nil:
			v.add(path, 0, "%v", err)
		case !ok && filepath.Base(filepath.Dir(filepath.Dir(path))) != trainFolder: // a run that is not yet merged
			v.add(path, 0, "%s does not list it", sumsFile)
		case ok && got != want:
			v.add(path, 0, "its SHA-256 is %.12s…, %s says %.12s…", got, sumsFile, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if !slices.Contains(names, name) {
			v.add(filepath.Join(s.Root(), name), 0, "it is missing")
		}
	}
	return nil
}

func (s *Store) verifyTraining(v *Verification, c method.Training) error {
	t, err := s.FindTraining(c)
	if errors.Is(err, ErrMissing) {
		v.Missing++
		return nil
	}
	folder := s.trainingFolder(c)
	if err != nil {
		v.add(folder, 0, "%v", err)
		return nil
	}
	v.Trainings++
	if t.Name != c.Name() || string(compact(t.Config)) != sortable(c) {
		v.add(folder, 0, "its record is not of its configuration")
	}
	for _, step := range weightSteps(c) {
		path := t.WeightsPath(step)
		digest, err := FileDigest(path)
		if errors.Is(err, fs.ErrNotExist) && t.Weights[weightsFile(c, step)] != "" {
			continue
		}
		if err != nil || digest != t.Weights[weightsFile(c, step)] {
			v.add(path, 0, "its SHA-256 is not that of the training run's record (%v)", err)
			continue
		}
		stored, at, err := c.Read(path)
		switch {
		case err != nil:
			v.add(path, 0, "%v", err)
		case stored != c.Hash() || at != step:
			v.add(path, 0, "it holds step %d of configuration %.12s, want step %d of %.12s", at, stored, step, c.Hash())
		}
	}
	losses, _, err := s.losses(t)
	if err == nil {
		err = checkLosses(c, losses)
	}
	if err != nil {
		v.add(folder, 0, "%v", err)
	}
	return nil
}

// verifyUnit checks an evaluation. It returns an error only where no backend can be had.
func (s *Store) verifyUnit(ctx context.Context, v *Verification, u Unit, whole bool) error {
	record, stored, err := s.Find(u)
	if errors.Is(err, ErrMissing) {
		v.Missing++
		return nil
	}
	if err != nil {
		v.add(u.Path(), 0, "%v", err)
		return nil
	}
	v.Units++
	if record.Name != u.Name || string(compact(record.Config)) != string(configuration(u)) {
		v.add(u.Path(), 0, "its record is not of its configuration")
	}
	weights, err := s.weights(u)
	if err != nil {
		v.add(u.Path(), 0, "the weights it was made from: %v", err)
		return nil
	}
	if !maps.Equal(weights, record.Weights) {
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
	if err := s.again(ctx, v, u, stored, whole, differs); err != nil {
		return err
	}
	if found > most {
		v.add(u.Path(), 0, "%d more rows differ", found-most)
	}
	return nil
}

// chosen reports which problems of a unit, n in number, are computed again: the first ones, or those
// of a closed loop that the digest of SHA256SUMS chooses.
func (s *Store) chosen(u Unit, n int) func(problem int32) bool {
	l, ok := u.Config.(*Loop)
	if !ok || l.block.Kind != closedLoop {
		return func(problem int32) bool { return problem >= 0 && int(problem) < n }
	}
	digest, err := FileDigest(filepath.Join(s.Root(), sumsFile))
	if err != nil { // nothing has been merged
		digest = ""
	}
	some := map[int32]bool{}
	for _, i := range seed.New(0, "verification", digest, u.Path()).Perm(u.Problems)[:n] {
		some[int32(i)] = true
	}
	return func(problem int32) bool { return some[problem] }
}

// again computes a unit's rows again and compares.
func (s *Store) again(
	ctx context.Context, v *Verification, u Unit, stored *Result, whole bool, differs func(int, string),
) error {
	for _, w := range u.Weights {
		if t, err := s.FindTraining(w.Training); err == nil && !t.Holds(w.Step) {
			v.WithoutWeights++
			return nil
		}
	}
	sample, some := u.Sample, *stored
	if whole {
		sample = 0
	}
	if n := stored.Len(); u.Rows > 0 && n != u.Rows {
		differs(0, fmt.Sprintf("it has %d rows, want %d", n, u.Rows))
	}
	if sample < 0 {
		return nil
	}
	if sample > 0 && u.Problems > 0 {
		if !stored.Whole(u.Problems) {
			differs(0, fmt.Sprintf("it has not as many rows on each of %d problems", u.Problems))
			return nil
		}
		some.Tables = stored.On(s.chosen(u, sample))
	}
	again, err := u.Compute(ctx, s, sample, &some)
	if err != nil {
		differs(0, fmt.Sprintf("computed again: %v", err))
		_, err := s.backend()
		if !method.Networks(u.Weights) {
			err = nil
		}
		return err
	}
	v.Again += again.Len()
	some.Compare(again.Tables, u.Tolerance, differs)
	if n := again.Len(); sample == 0 && n != some.Len() {
		differs(0, fmt.Sprintf("it has %d rows, computed again %d", some.Len(), n))
	}
	return nil
}

// verifyProblems compares the stored problems with those that are drawn.
func (s *Store) verifyProblems(v *Verification, units []Unit) error {
	path := filepath.Join(s.Root(), problemsFile)
	stored, err := rows.Read[rows.Problem](path)
	if errors.Is(err, fs.ErrNotExist) { // not merged, or missed already
		return nil
	}
	if err != nil {
		v.add(path, 0, "%v", err)
		return nil
	}
	drawn, err := s.Preset.problems(units)
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
func (s *Store) verifyPlan(v *Verification, units []Unit) error {
	planned, folders, blocks := map[string]bool{}, map[string]bool{}, map[Block]map[any]bool{}
	for _, u := range units {
		planned[u.Path()], folders[s.folder(u)] = true, true
		if blocks[u.Block] == nil {
			blocks[u.Block] = map[any]bool{}
		}
		if _, merged, err := s.record(u); err == nil && merged {
			blocks[u.Block][u.Of] = true
		}
	}
	for _, c := range Trainings(units) {
		folders[s.trainingFolder(c)] = true
	}
	x, err := s.index()
	if err != nil {
		v.add(s.Root(), 0, "%v", err)
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(x.runs)) {
		if !planned[path] {
			v.add(path, 0, "no unit of preset %s has this name", s.Preset.Name)
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
		paths, _ := filepath.Glob(filepath.Join(s.Root(), filepath.FromSlash(pattern))) // the pattern is well formed
		for _, path := range paths {
			if !folders[path] {
				v.add(path, 0, "no configuration of preset %s has this name and hash", s.Preset.Name)
			}
		}
	}
	return nil
}

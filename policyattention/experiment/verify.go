package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
)

// Tolerances of verification.
const (
	// scoreTolerance is absolute for losses and residuals: linear solves of one
	// system differ by rounding between platforms.
	scoreTolerance = 1e-10
	// valueTolerance is absolute for what a critic's network returns when it is asked
	// again: float32 arithmetic differs between backends. See method.ReplayTolerance for
	// actors.
	valueTolerance = 2e-3
	// policyTolerance is absolute for the policies of a network's loop that is run again,
	// in which differences of rounds add up.
	policyTolerance = 2e-4
	// relivedTolerance is for losses and residuals of rounds whose policies are not
	// stored: ten times what another backend or processor was seen to change.
	relivedTolerance = 2e-4
	// medianTolerance is for medians over problems of such residuals, in which
	// rounding averages out: ten times what was seen of another backend.
	medianTolerance = 1e-6
)

// ErrDiscrepancies is wrapped by the error of a verification that found any.
var ErrDiscrepancies = errors.New("discrepancies found")

// Discrepancy is something in an artifact that is not as it must be.
type Discrepancy struct {
	File string `json:"file"`
	Row  int    `json:"row,omitempty"` // of a table's data or of a problem, from 1
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
	Trainings      int           `json:"trainings"` // training runs checked
	Cells          int           `json:"cells"`     // evaluations checked
	Missing        int           `json:"missing"`   // planned runs and cells that are not there
	WithoutWeights int           `json:"unasked"`   // evaluations whose weights are left out, of which what is stored was scored
	Files          int           `json:"files"`     // files whose digest was checked
	Sampled        int           `json:"sampled"`   // problems whose stored policies were scored and whose loops were not run again
	Rescored       int           `json:"rescored"`  // stored policies scored again
	Replayed       int           `json:"replayed"`  // network or exact updates
	Discrepancies  []Discrepancy `json:"discrepancies"`
	share          int           // see Share
	// Unchecked says that what was made from the artifacts was not looked at.
	Unchecked bool `json:"unchecked,omitempty"`

	WallSeconds float64           `json:"wall_seconds"`
	CPUSeconds  float64           `json:"cpu_seconds"` // of the process
	Phases      map[Phase]float64 `json:"parts"`       // seconds of the workers, who share the processors
}

// Phase is something that a verification spends time on.
type Phase string

const (
	digesting   Phase = "digests of files"
	reading     Phase = "reading and comparing tables"
	loading     Phase = "weights and losses of training runs"
	drawing     Phase = "problems drawn from their seeds"
	acting      Phase = "actors replayed"
	evaluating  Phase = "critics replayed"
	stepping    Phase = "one-step distances and fits"
	scoring     Phase = "policies scored"
	summarizing Phase = "estimates, claims and report"
)

// again is the part of runs of a method from their start.
func again(label string) Phase { return Phase(label + " run again") }

// Took lists the parts that took time, with the methods' own after all others.
func (v *Verification) Took() []Phase {
	parts := []Phase{digesting, reading, loading, drawing, acting, evaluating, stepping, scoring, summarizing}
	for _, p := range slices.Sorted(maps.Keys(v.Phases)) {
		if !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	return slices.DeleteFunc(parts, func(p Phase) bool { return v.Phases[p] == 0 })
}

func (v *Verification) String() string {
	sampled := ""
	if v.Sampled > 0 {
		sampled = fmt.Sprintf(" (loops of networks from their start: one problem in %d; of the %d others the stored policies were scored)", v.share, v.Sampled)
	}
	return fmt.Sprintf("preset %s: %d training runs, %d cells (%d not yet run, %d without their weights), %d files, %d policies scored again, %d updates replayed%s: %d discrepancies",
		v.Preset, v.Trainings, v.Cells, v.Missing, v.WithoutWeights, v.Files, v.Rescored, v.Replayed, sampled, len(v.Discrepancies))
}

// during charges the time until the returned function is called to a part.
// Parts do not nest.
func (v *Verification) during(part Phase) (done func()) {
	began := time.Now()
	return func() { v.Phases[part] += time.Since(began).Seconds() }
}

// merge takes in what another worker has found.
func (v *Verification) merge(w *Verification) {
	v.Trainings, v.Cells, v.Missing = v.Trainings+w.Trainings, v.Cells+w.Cells, v.Missing+w.Missing
	v.WithoutWeights, v.Files, v.Sampled = v.WithoutWeights+w.WithoutWeights, v.Files+w.Files, v.Sampled+w.Sampled
	v.Rescored, v.Replayed = v.Rescored+w.Rescored, v.Replayed+w.Replayed
	v.Discrepancies = append(v.Discrepancies, w.Discrepancies...)
	for part, seconds := range w.Phases {
		v.Phases[part] += seconds
	}
}

// Err returns an error that wraps ErrDiscrepancies if there are any.
func (v *Verification) Err() error {
	if len(v.Discrepancies) == 0 {
		return nil
	}
	return fmt.Errorf("experiment: %d %w", len(v.Discrepancies), ErrDiscrepancies)
}

func (v *Verification) add(file string, row int, format string, args ...any) {
	v.Discrepancies = append(v.Discrepancies, Discrepancy{File: file, Row: row, What: fmt.Sprintf(format, args...)})
}

// Verify checks the artifacts of the preset from nothing but themselves and the
// code: digests and seals; configurations against folders and against the
// plan; problems drawn again from their seeds; every stored policy scored again
// exactly; every update of every closed loop replayed with the stored weights
// in the stored contexts, which by induction replays the loop, or the loop run
// again where not all of its policies are stored; medians rebuilt. Loops of networks that
// must be run from their start are run for one problem in share (see Share), the first
// ones; of the others the stored policies are scored, and losses and residuals of other
// rounds are sealed, not made again. Share 1 runs all, as does block quality, which stores
// the policies of a few problems only. Of the lives that step sizes were tuned by as many
// count as an evaluation has, and where weights are left out (see Preset.omits) there is only the scoring. Losses
// of training, costs and what a manifest says of the machine are sealed, not made
// again. More, if not nil, adds checks of what was made from the artifacts, which
// are made where all of these are as they must be. An error means that
// verification could not be done; see Verification.Err for what it found.
func (s *Store) Verify(ctx context.Context, share int, more func(*Store) ([]Discrepancy, error)) (*Verification, error) {
	if share < 1 {
		return nil, fmt.Errorf("experiment: verifying one problem in %d, want 1 or more", share)
	}
	meter := artifact.StartMeter()
	v := &Verification{Preset: s.Preset.Name, share: share, Discrepancies: []Discrepancy{}, Phases: map[Phase]float64{}}
	expected := map[string]bool{}
	configs, err := s.Preset.Trainings()
	if err != nil {
		return nil, err
	}
	var checks []func(*Verification) error
	for _, c := range configs {
		expected[s.trainingFolder(c)] = true
		checks = append(checks, func(v *Verification) error { s.verifyTraining(v, c); return nil })
	}
	for _, cell := range s.Preset.Plan() {
		config, err := s.Preset.Config(cell)
		if err != nil {
			return nil, err
		}
		expected[s.folder(cell, config)] = true
		checks = append(checks, func(v *Verification) error { return s.verifyCell(v, cell, config) })
	}
	found := make([]*Verification, len(checks))
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0)) // many wait for a network's answer
	// Neighbours in the plan run the same compiled program. In any other order few of
	// the workers wait for a compilation at the same time.
	for _, i := range seed.New(0, "verification").Perm(len(checks)) {
		check := checks[i]
		found[i] = &Verification{share: share, Phases: map[Phase]float64{}}
		group.Go(func() error {
			if ctx.Err() != nil {
				return fmt.Errorf("experiment: verification stopped: %w", context.Cause(ctx))
			}
			return check(found[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, w := range found {
		v.merge(w)
	}
	if err := s.verifyFolders(v, expected); err != nil {
		return nil, err
	}
	v.Unchecked = more != nil && len(v.Discrepancies) > 0
	if more != nil && !v.Unchecked {
		done := v.during(summarizing)
		found, err := more(s)
		if err != nil {
			return nil, err
		}
		done()
		v.Discrepancies = append(v.Discrepancies, found...)
	}
	cost := meter.Cost()
	v.WallSeconds, v.CPUSeconds = cost.WallSeconds, cost.CPUSeconds
	return v, nil
}

// anyFolder holds the results of the actor for any MDP, which package anymdp/trial checks.
const anyFolder = "any"

// EqualFolder, in the folder of the preset paper, holds what package equal measures and
// checks.
const EqualFolder = "equal"

// verifyFolders reports whatever lies beside the expected folders.
func (s *Store) verifyFolders(v *Verification, expected map[string]bool) error {
	groups := []string{"train"}
	for _, b := range Blocks {
		groups = append(groups, string(b))
	}
	known := append([]string{artifact.WorkFolder, stagesFolder, ClaimsFile, "report", "notebooks", anyFolder, EqualFolder}, groups...)
	entries, err := os.ReadDir(s.Root())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("experiment: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			v.add(filepath.Join(s.Root(), e.Name()), 0, "nothing of preset %s is called so", s.Preset.Name)
		}
	}
	for _, group := range groups {
		entries, err := os.ReadDir(filepath.Join(s.Root(), group))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
		for _, e := range entries {
			if path := filepath.Join(s.Root(), group, e.Name()); !expected[path] {
				v.add(path, 0, "no configuration of preset %s has this name and hash", s.Preset.Name)
			}
		}
	}
	return nil
}

// manifest checks a folder's manifest and files. It returns nil where there is
// no folder or nothing in it can be relied on.
func (v *Verification) manifest(folder, name, hash string) *artifact.Manifest {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		v.Missing++
		return nil
	}
	defer v.during(digesting)()
	path := filepath.Join(folder, artifact.ManifestFile)
	m, err := artifact.ReadManifest(folder)
	if err != nil {
		v.add(path, 0, "%v", err)
		return nil
	}
	if m.Name != name || m.Hash != hash {
		v.add(path, 0, "it is of %s with hash %.12s, the folder of %s with %.12s", m.Name, m.Hash, name, hash)
		return nil
	}
	good := true
	bad := func(file, format string, args ...any) {
		v.add(filepath.Join(folder, file), 0, format, args...)
		good = false
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		bad("", "%v", err)
		return nil
	}
	expected := maps.Clone(m.Files)
	for _, e := range entries {
		if digest := m.Digest(e.Name()); digest != "" {
			expected[e.Name()] = digest
		} else if e.Name() != artifact.ManifestFile {
			bad(e.Name(), "the manifest does not list it")
		}
	}
	for _, file := range slices.Sorted(maps.Keys(expected)) {
		want := expected[file]
		v.Files++
		got, err := artifact.FileDigest(filepath.Join(folder, file))
		if errors.Is(err, os.ErrNotExist) {
			bad(file, "it is missing")
		} else if err != nil {
			bad(file, "%v", err)
		} else if got != want {
			bad(file, "its SHA-256 is %.12s…, the manifest says %.12s…", got, want)
		}
	}
	if !good {
		return nil
	}
	return m
}

func (s *Store) verifyTraining(v *Verification, c method.Training) {
	folder := s.trainingFolder(c)
	m := v.manifest(folder, c.Name(), c.Hash())
	if m == nil {
		return
	}
	defer v.during(loading)()
	v.Trainings++
	if len(m.Of) != 1 || m.Of[0].Key != c.Key() || m.Of[0].Digest() != m.Hash {
		v.add(filepath.Join(folder, artifact.ManifestFile), 0, "its configuration is not that of its hash")
	}
	t := &TrainingRun{Config: c, Folder: folder, Manifest: m}
	if got, want := slices.Sorted(maps.Keys(m.Omitted)), s.Preset.omits(c); !slices.Equal(got, want) {
		v.add(filepath.Join(folder, artifact.ManifestFile), 0, "it omits %q, want %q", got, want)
	}
	for _, step := range weightSteps(c) {
		if !t.holds(step) {
			continue
		}
		path := t.WeightsPath(step)
		stored, at, err := c.Read(path)
		switch {
		case err != nil:
			v.add(path, 0, "%v", err)
		case stored != c.Hash() || at != step:
			v.add(path, 0, "it holds step %d of configuration %.12s, want step %d of %.12s", at, stored, step, c.Hash())
		}
	}
	path := filepath.Join(folder, lossFile)
	losses, err := t.Losses()
	if err != nil {
		v.add(path, 0, "%v", err)
		return
	}
	for i, loss := range losses {
		if math.IsNaN(loss.Mean) || math.IsInf(loss.Mean, 0) {
			v.add(path, i+1, "the loss is %v", loss.Mean)
		}
	}
}

// verifyCell checks an evaluation. It returns an error only where no backend can be had.
func (s *Store) verifyCell(v *Verification, cell Cell, config Config) error {
	folder := s.folder(cell, config)
	m := v.manifest(folder, cell.Name(), config.Hash())
	if m == nil {
		return nil
	}
	v.Cells++
	e := &Evaluation{Cell: cell, Config: config, Folder: folder, Manifest: m}
	manifest := e.path(artifact.ManifestFile)
	of, err := artifact.Digest(cell)
	if err != nil {
		return err
	}
	if len(m.Of) != 2 || m.Of[0].Key != cellKey || m.Of[0].Digest() != of || m.Of[1].Key != EvaluationKey || m.Of[1].Digest() != m.Hash {
		v.add(manifest, 0, "its cell or configuration is not that of its hash")
	}
	done := v.during(drawing)
	problems, err := config.Fixtures.Draw()
	if err != nil {
		return err
	}
	if m.Fixtures != digest(problems) {
		v.add(manifest, 0, "the problems drawn from root %d are not those it was made from", config.Fixtures.Root)
	}
	done()
	done = v.during(digesting)
	weights, err := s.weightDigests(config)
	done()
	if err != nil {
		v.add(manifest, 0, "the weights it was made from: %v", err)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if m.Weights[name] != weights[name] {
			v.add(manifest, 0, "it was made from other weights of %s than are stored", name)
		}
	}
	if len(m.Weights) != len(weights) {
		v.add(manifest, 0, "it names the weights of %d networks, want %d", len(m.Weights), len(weights))
	}
	return config.study().verify(s, v, e, problems)
}

// arrays reads a file of arrays; not ok where it cannot be read.
func (v *Verification) arrays(path string) (arrays map[string]npz.Array, ok bool) {
	defer v.during(reading)()
	arrays, err := artifact.ReadArrays(path)
	if err != nil {
		v.add(path, 0, "%v", err)
	}
	return arrays, err == nil
}

// asks reports whether the networks of an evaluation can be asked, all their weights
// being there. It counts the evaluation where they cannot.
func (s *Store) asks(v *Verification, config Config) bool {
	for _, w := range config.weights() {
		if t, err := s.FindTraining(w.Training); err == nil && !t.holds(w.Step) {
			v.WithoutWeights++
			return false
		}
	}
	return true
}

// backendError returns why there is no backend, or nil.
func (s *Store) backendError() error {
	_, err := s.backend()
	return err
}

// replayTolerance is the tolerance of what a cell's actor returns when it is asked again.
func (s *Store) replayTolerance(cell Cell) float64 {
	m, err := s.Preset.Methods.Find(cell.Method)
	if err != nil {
		return 0 // Check has refused cells of others
	}
	return m.ReplayTolerance()
}

// closeTo reports whether two numbers agree, relative where they are large; NaN
// and infinities agree with themselves.
func closeTo(x, y, tolerance float64) bool {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return x == y
	}
	return math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= tolerance*max(1, math.Abs(y))
}

// most bounds how many discrepancies of one kind a file is charged with.
const most = 5

// asScores is the tolerance of most tables.
func asScores(row, column int) float64 { return scoreTolerance }

// compareTable compares a file's table with the one computed again.
func (v *Verification) compareTable(path string, header []string, want [][]float64) {
	got, err := artifact.ReadTable(path, header)
	if err != nil {
		v.add(path, 0, "%v", err)
		return
	}
	v.compareRows(path, header, got, want, asScores)
}

// compareRows compares a table with the one computed again, each entry within
// its tolerance.
func (v *Verification) compareRows(path string, header []string, got, want [][]float64, tolerance func(row, column int) float64) {
	if len(got) != len(want) {
		v.add(path, 0, "%d rows, want %d", len(got), len(want))
		return
	}
	found := 0
	for n := range got {
		for i, name := range header {
			if closeTo(got[n][i], want[n][i], tolerance(n, i)) {
				continue
			}
			if found++; found <= most {
				v.add(path, n+1, "column %s is %v, computed again it is %v", name, got[n][i], want[n][i])
			}
			break
		}
	}
	if found > most {
		v.add(path, 0, "%d more rows differ", found-most)
	}
}

func (v *Verification) compareTables(path, who string, contexts []control.Context, got, want []*mat.Dense, tolerance float64) {
	v.Replayed += len(got)
	found := 0
	for i := range got {
		diff := mdp.MaxAbsDiff(got[i], want[i])
		if diff <= tolerance {
			continue
		}
		if found++; found <= most {
			v.add(path, contexts[i].Problem+1, "round %d: the %s, replayed, differs by %.3g from what is stored", contexts[i].Round+1, who, diff)
		}
	}
	if found > most {
		v.add(path, 0, "%d more tables of the %s differ", found-most, who)
	}
}

// compareSummary compares an evaluation's summary with the one computed again.
func (v *Verification) compareSummary(e *Evaluation, want map[string]artifact.Values, tolerance float64) {
	path, got := e.path(artifact.ManifestFile), e.Manifest.Summary
	if !slices.Equal(sortedKeys(got), sortedKeys(want)) {
		v.add(path, 0, "its summary has %v, want %v", sortedKeys(got), sortedKeys(want))
		return
	}
	for _, group := range sortedKeys(want) {
		values := want[group]
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name]
			if stored, ok := got[group][name]; !ok || !closeTo(stored, value, tolerance) {
				v.add(path, 0, "its summary says %s %s = %v, computed again it is %v", group, name, stored, value)
			}
		}
	}
}

func sortedKeys(m map[string]artifact.Values) []string { return slices.Sorted(maps.Keys(m)) }

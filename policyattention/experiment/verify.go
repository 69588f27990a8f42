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

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/npz"
	"icrl/policyattention/seed"
)

// Tolerances of verification.
const (
	// scoreTolerance is absolute for losses and residuals: linear solves of one
	// system differ by rounding between platforms.
	scoreTolerance = 1e-10
	// policyTolerance and valueTolerance are absolute for what a network returns
	// when it is asked again: float32 arithmetic differs between backends.
	policyTolerance = 2e-4
	valueTolerance  = 2e-3
	// relivedTolerance is for losses and residuals of such policies.
	relivedTolerance = 1e-2
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
	Preset        string        `json:"preset"`
	Trainings     int           `json:"trainings"` // training runs checked
	Cells         int           `json:"cells"`     // evaluations checked
	Missing       int           `json:"missing"`   // planned runs and cells that are not there
	Unasked       int           `json:"unasked"`   // evaluations whose weights are left out, of which what is stored was scored
	Files         int           `json:"files"`     // files whose digest was checked
	Rescored      int           `json:"rescored"`  // stored policies scored again
	Replayed      int           `json:"replayed"`  // network or exact updates asked again
	Discrepancies []Discrepancy `json:"discrepancies"`

	WallSeconds float64          `json:"wall_seconds"`
	CPUSeconds  float64          `json:"cpu_seconds"` // of the process
	Parts       map[Part]float64 `json:"parts"`       // seconds of the workers, who share the processors
}

// Part is something that a verification spends time on.
type Part string

const (
	digesting   Part = "digests of files"
	reading     Part = "reading and comparing tables"
	loading     Part = "weights and losses of training runs"
	drawing     Part = "problems drawn from their seeds"
	acting      Part = "actors asked again"
	evaluating  Part = "critics asked again"
	reliving    Part = "lives of Algorithm Distillation"
	imitating   Part = "Liang–Lai run again"
	tuning      Part = "step sizes tuned again"
	rerunning   Part = "exact PMD run again"
	stepping    Part = "one-step distances and fits"
	scoring     Part = "policies scored"
	summarizing Part = "estimates, claims and report"
)

// Parts lists all parts, in the order of a verification.
var Parts = []Part{digesting, reading, loading, drawing, acting, evaluating, reliving, imitating, tuning, rerunning, stepping, scoring, summarizing}

func (v *Verification) String() string {
	return fmt.Sprintf("preset %s: %d training runs, %d cells (%d not yet run, %d without their weights), %d files, %d policies scored again, %d updates replayed: %d discrepancies",
		v.Preset, v.Trainings, v.Cells, v.Missing, v.Unasked, v.Files, v.Rescored, v.Replayed, len(v.Discrepancies))
}

// during charges the time until the returned function is called to a part.
// Parts do not nest.
func (v *Verification) during(part Part) (done func()) {
	began := time.Now()
	return func() { v.Parts[part] += time.Since(began).Seconds() }
}

// merge takes in what another worker has found.
func (v *Verification) merge(w *Verification) {
	v.Trainings, v.Cells, v.Missing = v.Trainings+w.Trainings, v.Cells+w.Cells, v.Missing+w.Missing
	v.Unasked, v.Files = v.Unasked+w.Unasked, v.Files+w.Files
	v.Rescored, v.Replayed = v.Rescored+w.Rescored, v.Replayed+w.Replayed
	v.Discrepancies = append(v.Discrepancies, w.Discrepancies...)
	for part, seconds := range w.Parts {
		v.Parts[part] += seconds
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
// exactly; every update of every closed loop asked again of the stored weights
// in the stored contexts, which by induction replays the loop, or the loop run
// again where not all of its policies are stored; medians rebuilt. Of the lives
// that step sizes were tuned by as many are repeated as an evaluation has, and
// where weights are left out (see Preset.omits) there is only the scoring.
// More, if not nil, adds checks of what was made from the artifacts. An error
// means that verification could not be done; see Verification.Err for what it
// found.
func (s *Store) Verify(ctx context.Context, more func(*Store) ([]Discrepancy, error)) (*Verification, error) {
	meter := startMeter()
	v := &Verification{Preset: s.Preset.Name, Discrepancies: []Discrepancy{}, Parts: map[Part]float64{}}
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
		config, err := cell.Config()
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
		found[i] = &Verification{Parts: map[Part]float64{}}
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
	if more != nil && len(v.Discrepancies) == 0 {
		done := v.during(summarizing)
		found, err := more(s)
		if err != nil {
			return nil, err
		}
		done()
		v.Discrepancies = append(v.Discrepancies, found...)
	}
	cost := meter.cost()
	v.WallSeconds, v.CPUSeconds = cost.WallSeconds, cost.CPUSeconds
	return v, nil
}

// verifyFolders reports whatever lies beside the expected folders.
func (s *Store) verifyFolders(v *Verification, expected map[string]bool) error {
	groups := []string{"train"}
	for _, b := range Blocks {
		groups = append(groups, string(b))
	}
	for _, group := range groups {
		entries, err := os.ReadDir(filepath.Join(s.root, group))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
		for _, e := range entries {
			if path := filepath.Join(s.root, group, e.Name()); !expected[path] {
				v.add(path, 0, "no configuration of preset %s has this name and hash", s.Preset.Name)
			}
		}
	}
	return nil
}

// manifest checks a folder's manifest and files. It returns nil where there is
// no folder or nothing in it can be relied on.
func (v *Verification) manifest(folder, name, hash string) *Manifest {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		v.Missing++
		return nil
	}
	defer v.during(digesting)()
	path := filepath.Join(folder, manifestFile)
	m, err := readManifest(folder)
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
		if digest := m.digest(e.Name()); digest != "" {
			expected[e.Name()] = digest
		} else if e.Name() != manifestFile {
			bad(e.Name(), "the manifest does not list it")
		}
	}
	for file, want := range expected {
		v.Files++
		got, err := fileDigest(filepath.Join(folder, file))
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

func (s *Store) verifyTraining(v *Verification, c TrainingConfig) {
	folder := s.trainingFolder(c)
	m := v.manifest(folder, TrainingName(c), c.Hash())
	if m == nil {
		return
	}
	defer v.during(loading)()
	v.Trainings++
	if stored := m.trained(); stored == nil || stored.Hash() != c.Hash() {
		v.add(filepath.Join(folder, manifestFile), 0, "its configuration is not that of its hash")
	}
	t := &Training{Config: c, Folder: folder, Manifest: m}
	var omitted []string
	if s.Preset.omits(c) {
		omitted = []string{lastWeights}
	}
	if got := slices.Sorted(maps.Keys(m.Omitted)); !slices.Equal(got, omitted) {
		v.add(filepath.Join(folder, manifestFile), 0, "it omits %q, want %q", got, omitted)
	}
	steps := weightSteps(c)
	if !t.held() {
		steps = nil
	}
	for _, step := range steps {
		path := t.WeightsPath(step)
		stored, at, err := readWeights(c, path)
		switch {
		case err != nil:
			v.add(path, 0, "%v", err)
		case stored.Hash() != c.Hash() || at != step:
			v.add(path, 0, "it holds step %d of configuration %.12s, want step %d of %.12s", at, stored.Hash(), step, c.Hash())
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

// verifyCell checks an evaluation. It errs only where no backend can be had.
func (s *Store) verifyCell(v *Verification, cell Cell, config Config) error {
	folder := s.folder(cell, config)
	m := v.manifest(folder, cell.Name(), config.Hash())
	if m == nil {
		return nil
	}
	v.Cells++
	manifest, policies := filepath.Join(folder, manifestFile), filepath.Join(folder, policiesFile)
	if m.Cell == nil || *m.Cell != cell || m.Evaluation == nil || m.Evaluation.Hash() != config.Hash() {
		v.add(manifest, 0, "its cell or configuration is not that of its hash")
	}
	done := v.during(drawing)
	problems, err := config.draw()
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
	for name, want := range weights {
		if m.Weights[name] != want {
			v.add(manifest, 0, "it was made from other weights of %s than are stored", name)
		}
	}
	switch {
	case config.Tuning != nil:
		return s.verifyTuning(v, folder, *config.Tuning, problems, m)
	case config.Imitation != nil:
		return s.verifyImitation(v, folder, *config.Imitation, m)
	}
	done = v.during(reading)
	arrays, err := readArrays(policies)
	done()
	if err != nil {
		v.add(policies, 0, "%v", err)
		return nil
	}
	switch {
	case config.OneStep != nil:
		return s.verifyOneStep(v, folder, config, problems, arrays, m)
	case config.Backup != nil:
		return s.verifyBackup(v, folder, config, problems, arrays, m)
	}
	return s.verifyLoop(v, folder, cell, config, problems, arrays, m)
}

func (s *Store) verifyLoop(v *Verification, folder string, cell Cell, config Config, problems []mdp.Problem, arrays map[string]npz.Array, m *Manifest) error {
	manifest, policies, rounds := filepath.Join(folder, manifestFile), filepath.Join(folder, policiesFile), filepath.Join(folder, roundsFile)
	l := config.Loop
	kept, stored, ok := v.storedPolicies(policies, cell, config, problems, arrays)
	if !ok {
		return nil
	}
	asked := len(problems)
	switch {
	case !s.asks(v, config):
		asked = 0
	case cell.Block == Tuning:
		// Its lives would take longer than all else, and it is read for the kept
		// rounds alone.
		asked = min(asked, s.Preset.Problems)
	}
	done := v.during(reading)
	got, err := readCSV(rounds, roundsHeader)
	var parsed []control.Scored
	if err == nil {
		parsed, err = parseRounds(rounds, got, config)
	}
	done()
	if err != nil {
		v.add(rounds, 0, "%v", err)
		return nil
	}
	v.compareSummary(manifest, m.Summary, summarize(parsed))
	v.scoreKept(folder, problems, kept, stored, got, asked)
	if asked == 0 {
		return nil
	}
	problems, stored = problems[:asked], stored[:asked]
	var trajectories []control.Trajectory
	switch {
	case l.Distill != nil:
		trajectories, err = s.verifyLives(v, folder, config, problems, kept, stored, arrays)
	case l.LiangLai != nil, len(kept) <= l.Rounds:
		trajectories, err = s.repeat(v, folder, config, problems, kept, stored)
	default:
		trajectories, err = s.replay(v, folder, config, problems, stored, arrays)
	}
	if err != nil || trajectories == nil {
		return err
	}
	done = v.during(scoring)
	scored, err := control.Score(problems, trajectories)
	done()
	if err != nil {
		v.add(policies, 0, "%v", err)
		return nil
	}
	defer v.during(reading)()
	v.Rescored += len(problems) * (l.Rounds + 1)
	want := roundRows(scored)
	// Where a loop was run again because not all of its policies are stored, the
	// other rounds, and residuals between rounds, are as close as its answers.
	between := relivedTolerance
	if !config.networks() {
		between = config.repeatTolerance()
	}
	v.compareRows(rounds, roundsHeader, got[:len(want)], want, func(row, column int) float64 {
		round, loss := int(want[row][1]), column <= slices.Index(roundsHeader, "e0")
		if len(kept) > l.Rounds || loss && (round == 0 || slices.Contains(kept, round)) {
			return scoreTolerance
		}
		return between
	})
	return nil
}

// storedPolicies returns the rounds that a loop's artifact keeps and their
// policies [N][K]; not ok where they are none.
func (v *Verification) storedPolicies(path string, cell Cell, config Config, problems []mdp.Problem, arrays map[string]npz.Array) (kept []int, stored [][]*mat.Dense, ok bool) {
	kept = cell.kept(config.Loop)
	if got := arrays["rounds"].Data; !slices.Equal(got, roundArray(kept).Data) {
		v.add(path, 0, "array rounds is %v, want %v", got, kept)
		return nil, nil, false
	}
	stored, err := unstack(arrays["policies"], len(problems), len(kept), config.Fixtures.States, config.Fixtures.Actions)
	if err != nil {
		v.add(path, 0, "array policies: %v", err)
		return nil, nil, false
	}
	for i, some := range stored {
		for j, pi := range some {
			if err := problems[i].MDP.CheckPolicy(pi); err != nil {
				v.add(path, i+1, "round %d: %v", kept[j], err)
				return nil, nil, false
			}
		}
	}
	return kept, stored, true
}

// asks reports whether the networks of an evaluation can be asked, all their weights
// being there. It counts the evaluation where they cannot.
func (s *Store) asks(v *Verification, config Config) bool {
	for _, w := range config.weights() {
		if t, err := s.FindTraining(w.Training); err == nil && !t.held() {
			v.Unasked++
			return false
		}
	}
	return true
}

// scoreKept scores the stored policies [N][K] of a loop from the problem first on,
// where its other rounds are not run again, and compares with the table got.
func (v *Verification) scoreKept(folder string, problems []mdp.Problem, kept []int, stored [][]*mat.Dense, got [][]float64, first int) {
	if first == len(problems) {
		return
	}
	defer v.during(scoring)()
	trajectories := make([]control.Trajectory, len(problems)-first)
	for i := range trajectories {
		trajectories[i].Policies = append([]*mat.Dense{problems[first+i].Pi0}, stored[first+i]...)
	}
	scored, err := control.Score(problems[first:], trajectories)
	if err != nil {
		v.add(filepath.Join(folder, policiesFile), 0, "%v", err)
		return
	}
	v.Rescored += len(trajectories) * len(kept)
	want, rounds := slices.Clone(got), len(got)/len(problems)
	loss, gap := slices.Index(roundsHeader, "loss"), slices.Index(roundsHeader, "gap")
	for i, again := range scored {
		rows := want[(first+i)*rounds:][:rounds]
		for k := range rows {
			rows[k] = slices.Clone(rows[k])
			rows[k][gap] = again.Gap
		}
		for j, k := range append([]int{0}, kept...) {
			rows[k][loss] = again.Loss[j]
		}
	}
	v.compareRows(filepath.Join(folder, roundsFile), roundsHeader, got, want, asScores)
}

// backendError returns why there is no backend, or nil.
func (s *Store) backendError() error {
	_, err := s.backend()
	return err
}

// replay asks for every stored update again, in its stored context, and returns
// the stored trajectories with their critic tables.
func (s *Store) replay(v *Verification, folder string, config Config, problems []mdp.Problem, stored [][]*mat.Dense, arrays map[string]npz.Array) ([]control.Trajectory, error) {
	path, l := filepath.Join(folder, policiesFile), config.Loop
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		if mdp.MaxAbsDiff(stored[i][0], p.Pi0) != 0 {
			v.add(path, i+1, "the policy of round 0 is not the problem's π₀")
		}
		trajectories[i].Policies = stored[i]
	}
	if err := followed(problems, trajectories, l.Eta); err != nil {
		return nil, err
	}
	part := rerunning
	if config.networks() {
		part = acting
	}
	done := v.during(part)
	defer func() { done() }()
	loop, err := s.loop(config)
	if err != nil {
		v.add(filepath.Join(folder, manifestFile), 0, "its controller: %v", err)
		return nil, s.backendError()
	}
	if l.Critic != nil {
		tables, err := unstack(arrays["q"], len(problems), l.Rounds, config.Fixtures.States, config.Fixtures.Actions)
		if err != nil {
			v.add(path, 0, "array q: %v", err)
			return nil, nil
		}
		var contexts []control.Context
		var want []*mat.Dense
		for i, p := range problems {
			if mdp.MaxAbsDiff(tables[i][0], trajectories[i].Q[0]) > scoreTolerance {
				v.add(path, i+1, "Q_0 is not the value of π₀")
			}
			trajectories[i].Q = tables[i]
			for k := range l.Rounds - 1 {
				contexts = append(contexts, control.Context{Problem: i, Round: k, MDP: p.MDP, Pi: stored[i][k+1], Q: tables[i][k], Eta: l.Eta})
				want = append(want, tables[i][k+1])
			}
		}
		done()
		done = v.during(evaluating)
		got, err := loop.Critic.Evaluate(contexts)
		if err != nil {
			v.add(path, 0, "the critic in the stored contexts: %v", err)
			return nil, nil
		}
		v.compareTables(path, "critic", contexts, got, want, valueTolerance)
		done()
		done = v.during(acting)
	}
	var contexts []control.Context
	var want []*mat.Dense
	for i, p := range problems {
		for k := range l.Rounds {
			contexts = append(contexts, control.Context{Problem: i, Round: k, MDP: p.MDP, Pi: stored[i][k], Q: trajectories[i].Q[k], Eta: l.Eta})
			want = append(want, stored[i][k+1])
		}
	}
	got, err := loop.Actor.Act(contexts)
	if err != nil {
		v.add(path, 0, "the actor in the stored contexts: %v", err)
		return nil, nil
	}
	v.compareTables(path, "actor", contexts, got, want, policyTolerance)
	return trajectories, nil
}

// compareKept compares stored policies with those of a run, at the rounds kept.
func (v *Verification) compareKept(path, who string, again []control.Trajectory, kept []int, stored [][]*mat.Dense, tolerance float64) {
	var contexts []control.Context
	var got, want []*mat.Dense
	for i := range again {
		for j, k := range kept {
			contexts = append(contexts, control.Context{Problem: i, Round: k - 1})
			got, want = append(got, again[i].Policies[k]), append(want, stored[i][j])
		}
	}
	v.compareTables(path, who, contexts, got, want, tolerance)
}

func (s *Store) verifyOneStep(v *Verification, folder string, config Config, problems []mdp.Problem, arrays map[string]npz.Array, m *Manifest) error {
	manifest, policies := filepath.Join(folder, manifestFile), filepath.Join(folder, policiesFile)
	c, f := config.OneStep, config.Fixtures
	contexts, err := c.inputs(f, problems)
	if err != nil {
		return err
	}
	o := &OneStep{contexts: contexts}
	next, err := unstack(arrays["next"], 1, len(problems), f.States, f.Actions)
	if err != nil {
		v.add(policies, 0, "array next: %v", err)
		return nil
	}
	o.next = next[0]
	if o.supplied, err = unstack(arrays["supplied"], len(c.Supplied), len(problems), f.States, f.Actions); err != nil {
		v.add(policies, 0, "array supplied: %v", err)
		return nil
	}
	if s.asks(v, config) {
		asked, want := slices.Clone(contexts), slices.Clone(o.next)
		for e, eta := range c.Supplied {
			asked, want = append(asked, withEta(contexts, eta)...), append(want, o.supplied[e]...)
		}
		done := v.during(acting)
		actor, err := s.actor(c.Actor)
		if err != nil {
			done()
			v.add(manifest, 0, "its actor: %v", err)
			return s.backendError()
		}
		got, err := actor.Act(asked)
		done()
		if err != nil {
			v.add(policies, 0, "the actor on the inputs: %v", err)
			return nil
		}
		v.compareTables(policies, "actor", asked, got, want, policyTolerance)
	}
	defer v.during(stepping)()
	if err := c.compare(o); err != nil {
		v.add(policies, 0, "%v", err)
		return nil
	}
	for _, table := range []struct {
		file   string
		header []string
		want   [][]float64
	}{{distancesFile, distancesHeader(), o.distanceRows()}, {stepsFile, stepsHeader, o.stepRows()}} {
		path := filepath.Join(folder, table.file)
		rows, err := readCSV(path, table.header)
		if err != nil {
			v.add(path, 0, "%v", err)
			continue
		}
		v.compareRows(path, table.header, rows, table.want, asScores)
	}
	v.compareSummary(manifest, m.Summary, o.summary())
	return nil
}

// closeTo reports whether two numbers agree, relative where they are large; NaN
// and infinities agree with themselves.
func closeTo(x, y, tolerance float64) bool {
	return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= tolerance*max(1, math.Abs(y))
}

// most bounds how many discrepancies of one kind a file is charged with.
const most = 5

// asScores is the tolerance of most tables.
func asScores(row, column int) float64 { return scoreTolerance }

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
			v.add(path, contexts[i].Problem+1, "round %d: the %s asked again differs by %.3g from what is stored", contexts[i].Round+1, who, diff)
		}
	}
	if found > most {
		v.add(path, 0, "%d more tables of the %s differ", found-most, who)
	}
}

func (v *Verification) compareSummary(path string, got, want map[string]Values) {
	if !slices.Equal(sortedKeys(got), sortedKeys(want)) {
		v.add(path, 0, "its summary has %v, want %v", sortedKeys(got), sortedKeys(want))
		return
	}
	for group, values := range want {
		for name, value := range values {
			if stored, ok := got[group][name]; !ok || !closeTo(stored, value, scoreTolerance) {
				v.add(path, 0, "its summary says %s %s = %v, computed again it is %v", group, name, stored, value)
			}
		}
	}
}

func sortedKeys(m map[string]Values) []string { return slices.Sorted(maps.Keys(m)) }

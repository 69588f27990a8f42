package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"icrl/internal/usage"
	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

const lossFile = "loss.csv.gz"

// weightSteps lists the steps whose weights are kept.
func weightSteps(c method.Training) []int { return append(slices.Clone(c.Kept()), c.Budget()) }

// TrainingRun is a finished training run.
type TrainingRun struct {
	Config   method.Training
	Folder   string
	Manifest *artifact.Manifest
}

// Stretches returns its steps in order, by what made them.
func (t *TrainingRun) Stretches() []backend.Stretch {
	p, last := t.Manifest.Produced, backend.Stretch{CPU: t.Manifest.Produced.CPU, Step: t.Config.Budget()}
	if p.Backend != nil {
		last.Backend = p.Backend.Name
	}
	return append(slices.Clone(p.Earlier), last)
}

// WeightsPath returns the file of the weights after a step.
func (t *TrainingRun) WeightsPath(step int) string {
	return filepath.Join(t.Folder, weightsFile(t.Config, step))
}

// lastWeights is the file of the weights after the last step.
const lastWeights = "weights.safetensors"

func weightsFile(c method.Training, step int) string {
	if step == c.Budget() {
		return lastWeights
	}
	return fmt.Sprintf("weights-%d.safetensors", step)
}

// holds reports whether the weights after a step are there: see Preset.omits.
func (t *TrainingRun) holds(step int) bool {
	if _, ok := t.Manifest.Omitted[weightsFile(t.Config, step)]; !ok {
		return true
	}
	_, err := os.Stat(t.WeightsPath(step))
	return err == nil
}

// weightsDigest returns the SHA-256 of the weights after a step.
func (t *TrainingRun) weightsDigest(step int) (string, error) {
	if !t.holds(step) {
		return t.Manifest.Omitted[weightsFile(t.Config, step)], nil
	}
	return artifact.FileDigest(t.WeightsPath(step))
}

// Loss is the mean objective on the batches of some consecutive steps, the last
// of which is Step, from 1.
type Loss struct {
	Step int
	Mean float64
}

// Losses returns the objective along training, in stretches of as many steps
// each, but for the last. See lossRows.
func (t *TrainingRun) Losses() ([]Loss, error) {
	path := filepath.Join(t.Folder, lossFile)
	rows, err := artifact.ReadTable(path, lossHeader)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("experiment: %s has no rows", path)
	}
	losses := make([]Loss, len(rows))
	for i, row := range rows {
		if want := math.Min(float64(i+1)*rows[0][0], float64(t.Config.Budget())); row[0] != want {
			return nil, fmt.Errorf("experiment: %s: row %d is of step %v, want %v", path, i+1, row[0], want)
		}
		losses[i] = Loss{int(row[0]), row[1]}
	}
	if last := losses[len(losses)-1].Step; last != t.Config.Budget() {
		return nil, fmt.Errorf("experiment: %s ends at step %d of %d", path, last, t.Config.Budget())
	}
	return losses, nil
}

// FindTraining returns the training run of a configuration; the error wraps
// artifact.ErrMissing if it has not been run.
func (s *Store) FindTraining(c method.Training) (*TrainingRun, error) {
	folder := s.trainingFolder(c)
	m, err := artifact.Open(c.Name(), c.Hash(), folder)
	if err != nil {
		return nil, err
	}
	return &TrainingRun{Config: c, Folder: folder, Manifest: m}, nil
}

// Train returns the training run of a configuration, training where it has not
// been run. An interrupted run is saved and continues at the next call; another
// process on the same run is waited for.
func (s *Store) Train(ctx context.Context, c method.Training) (*TrainingRun, error) {
	if t, err := s.FindTraining(c); !errors.Is(err, artifact.ErrMissing) {
		return t, err
	}
	if err := s.TrainTogether(ctx, []method.Training{c}); err != nil {
		return nil, err
	}
	return s.FindTraining(c)
}

// TrainTogether trains what is missing of several runs at once, in this process
// and a step of each in turn: see [train.RunTogether]. A run that fails does
// not stop the others.
func (s *Store) TrainTogether(ctx context.Context, configs []method.Training) error {
	missing, err := s.Missing(configs)
	if err != nil {
		return err
	}
	// All processes lock in one order, so that no two wait for each other.
	slices.SortFunc(missing, func(x, y method.Training) int {
		return strings.Compare(s.trainingFolder(x), s.trainingFolder(y))
	})
	for _, c := range missing {
		unlock, err := s.lock(ctx, c.Name(), s.trainingFolder(c))
		if err != nil {
			return err
		}
		defer unlock()
	}
	// Others may have made some while this process waited.
	if missing, err = s.Missing(missing); err != nil || len(missing) == 0 {
		return err
	}
	var runs []sharedRun
	for _, missing := range missing {
		work := s.artifacts.Work(s.trainingFolder(missing))
		switch c := missing.(type) {
		case method.Alone:
			err = errors.Join(err, s.trainAlone(ctx, c, work, s.progress(c)))
		case method.Shared:
			run, failed := c.In(work, s.progress(c))
			if failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			run.Stages = filepath.Join(s.Root(), stagesFolder)
			runs = append(runs, sharedRun{c, run})
		default:
			err = errors.Join(err, fmt.Errorf("experiment: %s: a %T trains neither alone nor by the common trainer", c.Name(), c))
		}
	}
	if len(runs) == 0 {
		return err
	}
	b, failed := s.backend()
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, s.trainShared(ctx, b, runs))
}

// sharedRun is a run of the common trainer.
type sharedRun struct {
	config method.Shared
	run    train.Run
}

// trainShared carries out runs: together, but for stages of one run. Those go on from each other,
// so they are made in order, by one process at a time.
func (s *Store) trainShared(ctx context.Context, b compute.Backend, runs []sharedRun) (err error) {
	slices.SortStableFunc(runs, func(x, y sharedRun) int { return cmp.Compare(x.run.Job.Steps, y.run.Job.Steps) })
	var lines []string
	for _, r := range runs {
		if r.run.Job.Line != "" {
			lines = append(lines, r.run.Job.Line)
		}
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		unlock, err := s.lock(ctx, line, filepath.Join(s.Root(), stagesFolder, line))
		if err != nil {
			return err
		}
		defer unlock()
	}
	for len(runs) > 0 {
		now, later := earliest(runs)
		err = errors.Join(err, s.runShared(ctx, b, now))
		if runs = later; len(runs) > 0 && ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return err
}

// earliest parts runs into those that can begin and later stages of one of these.
func earliest(runs []sharedRun) (now, later []sharedRun) {
	begun := map[string]bool{}
	for _, r := range runs {
		line := r.run.Job.Line
		if begun[line] {
			later = append(later, r)
			continue
		}
		now = append(now, r)
		begun[line] = line != ""
	}
	return now, later
}

// runShared carries out runs together and makes those that end artifacts.
func (s *Store) runShared(ctx context.Context, b compute.Backend, runs []sharedRun) error {
	all := make([]train.Run, len(runs))
	for i, r := range runs {
		all[i] = r.run
	}
	results, err := train.RunTogether(ctx, b, s.Execution, all)
	for i, result := range results {
		if result != nil {
			err = errors.Join(err, s.publishTraining(runs[i].config, b, result, runs[i].run.Dir))
		}
	}
	return err
}

// publishTraining makes a finished run an artifact and removes the folder work
// that it was made in.
func (s *Store) publishTraining(c method.Training, b compute.Backend, result *train.Result, work string) error {
	err := s.artifacts.Publish(s.trainingFolder(c), func(dir string) (*artifact.Manifest, error) {
		for step, path := range result.Snapshots {
			if err := artifact.CopyFile(filepath.Join(dir, weightsFile(c, step)), path); err != nil {
				return nil, err
			}
		}
		if err := artifact.CopyFile(filepath.Join(dir, weightsFile(c, c.Budget())), result.Weights); err != nil {
			return nil, err
		}
		if err := writeLosses(dir, result.Losses); err != nil {
			return nil, err
		}
		d := backend.Describe(b)
		m := &artifact.Manifest{Name: c.Name(), Hash: c.Hash()}
		m.Produced = artifact.Machine(&d)
		if n := len(result.Stretches); n > 1 {
			m.Produced.Earlier = result.Stretches[:n-1]
		}
		m.Cost = artifact.Cost{
			WallSeconds: result.WallSeconds, CPUSeconds: result.CPUSeconds,
			PeakMemory: usage.Peak(), StepsPerSecond: result.StepsPerSecond,
		}
		if err := m.Add(c.Key(), c); err != nil {
			return nil, err
		}
		for _, file := range s.Preset.omits(c) {
			if m.Omitted == nil {
				m.Omitted = map[string]string{}
			}
			m.Omitted[file] = ""
		}
		return m, nil
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// restore trains once more what has been left without the weights after a step, and puts
// back all that it lacks. It returns an error if other weights come out than its manifest
// tells of.
func (s *Store) restore(ctx context.Context, t *TrainingRun, step int) error {
	name := t.Config.Name()
	unlock, err := s.lock(ctx, name, t.Folder)
	if err != nil {
		return err
	}
	defer unlock()
	if t.holds(step) {
		return nil
	}
	work := s.artifacts.Work(t.Folder)
	config, ok := t.Config.(method.Shared)
	if !ok {
		return fmt.Errorf("experiment: %s lacks the weights after step %d, and a %T is not trained by the common trainer", name, step, t.Config)
	}
	run, err := config.In(work, s.progress(config))
	if err != nil {
		return err
	}
	b, err := s.backend()
	if err != nil {
		return err
	}
	results, err := train.RunTogether(ctx, b, s.Execution, []train.Run{run})
	if err != nil {
		return err
	}
	made := results[0].Snapshots
	made[t.Config.Budget()] = results[0].Weights
	for step, path := range made {
		if t.holds(step) {
			continue
		}
		digest, err := artifact.FileDigest(path)
		if err != nil {
			return err
		}
		if digest != t.Manifest.Omitted[weightsFile(t.Config, step)] {
			return fmt.Errorf("experiment: %s, trained again, has other weights than %s tells of, which were made on %s, perhaps by another version of this library: what needs them can be made in another folder of artifacts", name, t.Folder, t.Manifest.Produced.CPU)
		}
		if err := os.Rename(path, t.WeightsPath(step)); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// progress returns what tells of a training run's steps, or nil.
func (s *Store) progress(c method.Training) func(train.Progress) {
	if s.Progress == nil {
		return nil
	}
	return func(p train.Progress) { s.Progress(Progress{Name: c.Name(), Progress: p}) }
}

// keepEvery is how often the cost so far of a run that trains itself is written down.
const keepEvery = 10 * time.Second

// trainAlone has a run train itself and makes it an artifact.
func (s *Store) trainAlone(ctx context.Context, c method.Alone, work string, progress func(train.Progress)) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	// What the run has cost before it was stopped is kept beside what it has left there itself.
	spentFile := filepath.Join(work, "cost.json")
	var earlier artifact.Cost
	if err := artifact.ReadJSON(spentFile, &earlier); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	reported, kept, meter := time.Now(), time.Now(), artifact.StartMeter()
	spent := func() artifact.Cost {
		cost := meter.Cost()
		cost.WallSeconds, cost.CPUSeconds = cost.WallSeconds+earlier.WallSeconds, cost.CPUSeconds+earlier.CPUSeconds
		cost.PeakMemory = max(cost.PeakMemory, earlier.PeakMemory)
		return cost
	}
	var unkept error
	made := 0 // steps, in this process
	rate := func() float64 { return float64(made) / meter.Cost().WallSeconds }
	keep := func() {
		kept, unkept = time.Now(), artifact.WriteJSON(spentFile, spent(), "")
	}
	var on *backend.Description
	at := method.Place{
		Work: work,
		Backend: func() (compute.Backend, error) {
			b, err := s.backend()
			if err == nil {
				d := backend.Describe(b)
				on = &d
			}
			return b, err
		},
		Progress: func(step int, loss float64) {
			made++
			if time.Since(kept) > keepEvery {
				keep()
			}
			if progress != nil && (step == c.Budget()-1 || time.Since(reported) > time.Second/2) {
				reported = time.Now()
				progress(train.Progress{
					Step: step + 1, Steps: c.Budget(), Loss: loss, StepsPerSecond: rate(),
				})
			}
		},
	}
	err := s.artifacts.Publish(s.trainingFolder(c), func(dir string) (*artifact.Manifest, error) {
		at.Weights = filepath.Join(dir, lastWeights)
		losses, err := c.TrainAt(ctx, at)
		if err != nil {
			keep()
		}
		if err = errors.Join(err, unkept); err != nil {
			return nil, err
		}
		if err := writeLosses(dir, losses); err != nil {
			return nil, err
		}
		m := &artifact.Manifest{Name: c.Name(), Hash: c.Hash()}
		m.Produced, m.Cost = artifact.Machine(on), spent()
		m.Cost.StepsPerSecond = rate()
		return m, m.Add(c.Key(), c)
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// lossRows bounds the rows of a table of losses. A run of more steps has the
// means of stretches of steps in it: the losses of all steps would be as large
// as the weights.
const lossRows = 1024

var lossHeader = []string{"step", "loss"}

// writeLosses writes the losses of a run [Steps] into dir, with the digits that
// tell numbers of their type apart.
func writeLosses[T float32 | float64](dir string, losses []T) error {
	stretch := 1
	for stretch*lossRows < len(losses) {
		stretch *= 2 // 64 in a run at full budget: whole passes over its 2,048 examples
	}
	var rows [][]float64
	for start := 0; start < len(losses); start += stretch {
		end, sum := min(start+stretch, len(losses)), 0.0
		for _, loss := range losses[start:end] {
			sum += float64(loss)
		}
		rows = append(rows, []float64{float64(end), shortest(T(sum / float64(end-start)))})
	}
	return artifact.WriteTable(filepath.Join(dir, lossFile), lossHeader, rows)
}

// shortest returns the float64 with the fewest digits that rounds to x.
func shortest[T float32 | float64](x T) float64 {
	if y, ok := any(x).(float32); ok {
		short, err := strconv.ParseFloat(strconv.FormatFloat(float64(y), 'g', -1, 32), 64)
		if err != nil {
			panic(err) // it was just written
		}
		return short
	}
	return float64(x)
}

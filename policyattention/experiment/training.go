package experiment

import (
	"cmp"
	"context"
	"encoding/json"
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
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// TrainingRun is what is kept of a finished training run besides its weights and losses.
type TrainingRun struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Hash   string          `json:"hash"` // SHA-256 of the configuration
	Config json.RawMessage `json:"config"`
	// Weights are the SHA-256 of the files of weights; copies may lack some of them.
	Weights  map[string]string `json:"weights"`
	Produced artifact.Produced `json:"produced"`
	Cost     artifact.Cost     `json:"cost"`

	folder string
	config method.Training
}

// weightSteps lists the steps whose weights are kept.
func weightSteps(c method.Training) []int { return append(slices.Clone(c.Kept()), c.Budget()) }

func weightsFile(c method.Training, step int) string {
	if step == c.Budget() {
		return lastWeights
	}
	return fmt.Sprintf("weights-%d.safetensors", step)
}

// WeightsPath returns the file of the weights after a step.
func (t *TrainingRun) WeightsPath(step int) string {
	return filepath.Join(t.folder, weightsFile(t.config, step))
}

// Holds reports whether the weights after a step are there.
func (t *TrainingRun) Holds(step int) bool {
	_, err := os.Stat(t.WeightsPath(step))
	return err == nil
}

func (s *Store) trainingFolder(c method.Training) string {
	return filepath.Join(s.Root(), trainFolder, c.Name()+"-"+c.Hash()[:12])
}

// FindTraining returns the training run of a configuration; the error wraps
// artifact.ErrMissing if it has not been run.
func (s *Store) FindTraining(c method.Training) (*TrainingRun, error) {
	x, err := s.index()
	if err != nil {
		return nil, err
	}
	folder, hash := s.trainingFolder(c), c.Hash()
	t, ok := x.trainings[hash]
	if !ok {
		err := artifact.ReadJSON(filepath.Join(folder, recordFile), &t)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("experiment: %s in %s: %w", c.Name(), filepath.Dir(folder), artifact.ErrMissing)
		}
		if err == nil && t.Hash != hash {
			err = fmt.Errorf("experiment: %s is of another configuration than its name says", folder)
		}
		if err != nil {
			return nil, err
		}
	}
	t.folder, t.config = folder, c
	return &t, nil
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
		all := make([]train.Run, len(now))
		for i, r := range now {
			all[i] = r.run
		}
		results, failed := train.RunTogether(ctx, b, s.Execution, all)
		err = errors.Join(err, failed)
		for i, result := range results {
			if result != nil {
				err = errors.Join(err, s.publishShared(now[i], b, result))
			}
		}
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

// publishShared makes a finished run a result.
func (s *Store) publishShared(r sharedRun, b compute.Backend, result *train.Result) error {
	d := backend.Describe(b)
	produced := artifact.Machine(&d)
	if n := len(result.Stretches); n > 1 {
		produced.Earlier = result.Stretches[:n-1]
	}
	cost := artifact.Cost{
		WallSeconds: result.WallSeconds, CPUSeconds: result.CPUSeconds,
		PeakMemory: usage.Peak(), StepsPerSecond: result.StepsPerSecond,
	}
	files := map[string]string{lastWeights: result.Weights}
	for step, path := range result.Snapshots {
		files[weightsFile(r.config, step)] = path
	}
	return s.publishTraining(r.config, r.run.Dir, func(dir string) (artifact.Produced, artifact.Cost, []rows.Loss, error) {
		for file, path := range files {
			if err := artifact.CopyFile(filepath.Join(dir, file), path); err != nil {
				return produced, cost, nil, err
			}
		}
		return produced, cost, lossRows(r.config, result.Losses), nil
	})
}

// publishTraining makes a training run a result of the weights that fill writes and what it
// returns, and removes the folder work that it was made in.
func (s *Store) publishTraining(c method.Training, work string, fill func(dir string) (artifact.Produced, artifact.Cost, []rows.Loss, error)) error {
	t := TrainingRun{Name: c.Name(), Kind: c.Key(), Hash: c.Hash(), Weights: map[string]string{}}
	err := s.artifacts.Publish(s.trainingFolder(c), func(dir string) (err error) {
		var losses []rows.Loss
		if t.Produced, t.Cost, losses, err = fill(dir); err != nil {
			return err
		}
		for _, step := range weightSteps(c) {
			file := weightsFile(c, step)
			if t.Weights[file], err = artifact.FileDigest(filepath.Join(dir, file)); err != nil {
				return err
			}
		}
		if err = rows.Write(filepath.Join(dir, lossesFile), losses); err != nil {
			return err
		}
		if t.Config, err = json.Marshal(c); err != nil {
			return err
		}
		return artifact.WriteJSON(filepath.Join(dir, recordFile), t, " ")
	})
	if err != nil {
		return err
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

// trainAlone has a run train itself and makes it a result.
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
	keep := func() { kept, unkept = time.Now(), artifact.WriteJSON(spentFile, spent(), "") }
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
				progress(train.Progress{Step: step + 1, Steps: c.Budget(), Loss: loss, StepsPerSecond: rate()})
			}
		},
	}
	return s.publishTraining(c, work, func(dir string) (artifact.Produced, artifact.Cost, []rows.Loss, error) {
		at.Weights = filepath.Join(dir, lastWeights)
		losses, err := c.TrainAt(ctx, at)
		if err != nil {
			keep()
		}
		cost := spent()
		cost.StepsPerSecond = rate()
		return artifact.Machine(on), cost, lossRows(c, losses), errors.Join(err, unkept)
	})
}

// mostLosses bounds the rows of a run's losses. A run of more steps has the means of
// stretches of steps in them: the losses of all steps would be as large as the weights.
const mostLosses = 1024

// lossRows returns the losses of a run [Steps], with the digits that tell numbers of their
// type apart.
func lossRows[T float32 | float64](c method.Training, losses []T) (all []rows.Loss) {
	stretch := 1
	for stretch*mostLosses < len(losses) {
		stretch *= 2 // 64 in a run at full budget: whole passes over its 2,048 examples
	}
	for start := 0; start < len(losses); start += stretch {
		end, sum := min(start+stretch, len(losses)), 0.0
		for _, loss := range losses[start:end] {
			sum += float64(loss)
		}
		all = append(all, rows.Loss{Training: c.Name(), Step: int32(end), Loss: shortest(T(sum / float64(end-start)))})
	}
	return all
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

// checkLosses returns an error unless losses are of all steps of a run, in stretches of as many
// each but for the last, and finite.
func checkLosses(c method.Training, losses []rows.Loss) error {
	for i, l := range losses {
		want := min(int32(i+1)*losses[0].Step, int32(c.Budget()))
		if l.Step != want || math.IsNaN(l.Loss) || math.IsInf(l.Loss, 0) {
			return fmt.Errorf("loss %d is %v after step %d, want a number after step %d", i+1, l.Loss, l.Step, want)
		}
	}
	if n := len(losses); n == 0 || losses[n-1].Step != int32(c.Budget()) {
		return fmt.Errorf("%d losses, the last not after step %d", n, c.Budget())
	}
	return nil
}

package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

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
	Produced Produced          `json:"produced"`
	Cost     Cost              `json:"cost"`

	folder string
	config method.Training
}

// weightSteps lists the steps whose weights are kept.
func weightSteps(c method.Training) (steps []int) {
	if k, ok := c.(interface{ Kept() []int }); ok {
		steps = slices.Clone(k.Kept())
	}
	return append(steps, c.Budget())
}

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
// ErrMissing if it has not been run.
func (s *Store) FindTraining(c method.Training) (*TrainingRun, error) {
	x, err := s.index()
	if err != nil {
		return nil, err
	}
	folder, hash := s.trainingFolder(c), c.Hash()
	t, ok := x.trainings[hash]
	if !ok {
		err := readJSON(filepath.Join(folder, recordFile), &t)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("experiment: %s in %s: %w", c.Name(), filepath.Dir(folder), ErrMissing)
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
	if t, err := s.FindTraining(c); !errors.Is(err, ErrMissing) {
		return t, err
	}
	unlock, err := s.lock(ctx, c.Name(), s.trainingFolder(c))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if t, err := s.FindTraining(c); !errors.Is(err, ErrMissing) {
		return t, err // made while waiting
	}
	work := s.work(s.trainingFolder(c))
	if err := s.train(ctx, c, work); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(work); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return s.FindTraining(c)
}

// train makes a run in the folder work.
func (s *Store) train(ctx context.Context, c method.Training, work string) error {
	t, made := TrainingRun{Produced: Machine(nil)}, (*train.Result)(nil)
	switch c := c.(type) {
	case method.Alone:
		var err error
		if made, err = c.Run(ctx, work, s.progress(c)); err != nil {
			return err
		}
	case method.Shared:
		b, err := s.backend()
		if err != nil {
			return err
		}
		job, err := c.Job()
		if err != nil {
			return err
		}
		if made, err = job.Run(ctx, b, work, s.progress(c)); err != nil {
			return err
		}
		d := backend.Describe(b)
		t.Produced = Machine(&d)
	default:
		return fmt.Errorf("experiment: %s: a %T trains neither alone nor by the common trainer", c.Name(), c)
	}
	t.Cost = Cost{
		WallSeconds: made.WallSeconds, CPUSeconds: made.CPUSeconds,
		PeakMemory: backend.PeakMemory(), StepsPerSecond: made.StepsPerSecond,
	}
	if n := len(made.Stretches); n > 1 {
		t.Produced.Earlier = made.Stretches[:n-1]
	}
	return s.publishTraining(c, t, func(dir string) ([]rows.Loss, error) {
		err := copyFile(filepath.Join(dir, lastWeights), made.Weights)
		for step, path := range made.Snapshots {
			err = errors.Join(err, copyFile(filepath.Join(dir, weightsFile(c, step)), path))
		}
		return lossRows(c, made.Losses), err
	})
}

// publishTraining makes a training run a result of the weights that fill writes and the losses
// that it returns.
func (s *Store) publishTraining(c method.Training, t TrainingRun, fill func(dir string) ([]rows.Loss, error)) error {
	t.Name, t.Kind, t.Hash, t.Weights = c.Name(), c.Key(), c.Hash(), map[string]string{}
	return s.publish(s.trainingFolder(c), func(dir string) error {
		losses, err := fill(dir)
		if err != nil {
			return err
		}
		for _, step := range weightSteps(c) {
			file := weightsFile(c, step)
			if t.Weights[file], err = FileDigest(filepath.Join(dir, file)); err != nil {
				return err
			}
		}
		if err = rows.Write(filepath.Join(dir, lossesFile), losses); err != nil {
			return err
		}
		if t.Config, err = json.Marshal(c); err != nil {
			return err
		}
		return WriteJSON(filepath.Join(dir, recordFile), t, " ")
	})
}

// progress returns what tells of a training run's steps, or nil.
func (s *Store) progress(c method.Training) func(train.Progress) {
	if s.Progress == nil {
		return nil
	}
	return func(p train.Progress) { s.Progress(Progress{Name: c.Name(), Progress: p}) }
}

// mostLosses bounds the rows of a run's losses. A run of more steps has the means of
// stretches of steps in them: the losses of all steps would be as large as the weights.
const mostLosses = 1024

// lossRows returns the losses of a run [Steps], with the digits that tell float32s apart.
func lossRows(c method.Training, losses []float32) (all []rows.Loss) {
	stretch := 1
	for stretch*mostLosses < len(losses) {
		stretch *= 2 // 64 in a run at full budget: whole passes over its 2,048 examples
	}
	for start := 0; start < len(losses); start += stretch {
		end, sum := min(start+stretch, len(losses)), 0.0
		for _, loss := range losses[start:end] {
			sum += float64(loss)
		}
		all = append(all, rows.Loss{Training: c.Name(), Step: int32(end), Loss: shortest(float32(sum / float64(end-start)))})
	}
	return all
}

// shortest returns the float64 with the fewest digits that rounds to x.
func shortest(x float32) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	if err != nil {
		panic(err) // it was just written
	}
	return short
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

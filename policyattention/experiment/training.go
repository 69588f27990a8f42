package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

func weightsFile(w method.Weights) string {
	if w.Step == method.Last(w.Training).Step {
		return lastWeights
	}
	return fmt.Sprintf("weights-%d.safetensors", w.Step)
}

func (s *Store) weightsPath(w method.Weights) string {
	return filepath.Join(s.folder(training(w.Training)), weightsFile(w))
}

// holds reports whether the file of weights is there: copies of results may lack some.
func (s *Store) holds(w method.Weights) bool {
	_, err := os.Stat(s.weightsPath(w))
	return err == nil
}

// Train makes a training run that has not been made. An interrupted run is saved and continues at the next call.
func (s *Store) Train(ctx context.Context, c method.Training) error {
	u := training(c)
	if err := s.make(ctx, u); err != nil {
		return err
	}
	return os.RemoveAll(s.work(s.folder(u)))
}

// trained makes a training run, writes its weights to the folder dir and completes its record.
func (s *Store) trained(ctx context.Context, u Unit, dir string, r *Record) (*rows.Tables, error) {
	job, err := u.Training.Job()
	if err != nil {
		return nil, err
	}
	var b compute.Backend
	if job.Alone == nil {
		if b, err = s.Models.Backend(); err != nil {
			return nil, err
		}
	}
	progress := func(p train.Progress) { s.Progress(Progress{Name: u.Name, Progress: p}) }
	made, err := job.Run(ctx, b, s.work(s.folder(u)), progress)
	if err != nil {
		return nil, err
	}
	r.Produced = Machine(b)
	if n := len(made.Stretches); n > 1 {
		r.Produced.Earlier = made.Stretches[:n-1]
	}
	r.Cost = Cost{WallSeconds: made.WallSeconds, CPUSeconds: made.CPUSeconds, PeakMemory: backend.PeakMemory(),
		StepsPerSecond: made.StepsPerSecond}
	r.Weights = map[string]string{}
	for file, w := range u.weights() {
		b, err := os.ReadFile(cmp.Or(made.Snapshots[w.Step], made.Weights))
		if err == nil {
			r.Weights[file], err = train.Hash(b), WriteFile(filepath.Join(dir, file), b)
		}
		if err != nil {
			return nil, err
		}
	}
	return &rows.Tables{Losses: lossRows(u.Training, made.Losses)}, nil
}

// mostLosses bounds the rows of a run's losses. A run of more steps has the means of
// stretches of steps in them: the losses of all steps would be as large as the weights.
const mostLosses = 256

// lossRows returns the losses of a run [Steps], with the digits that tell float32 numbers apart.
func lossRows(c method.Training, losses []float32) (all []rows.Loss) {
	stretch := 1
	for stretch*mostLosses < len(losses) {
		stretch *= 2 // 256 in a run at full budget: whole passes over its 2,048 examples
	}
	for start := 0; start < len(losses); start += stretch {
		end, sum := min(start+stretch, len(losses)), 0.0
		for _, loss := range losses[start:end] {
			sum += float64(loss)
		}
		mean := strconv.FormatFloat(sum/float64(end-start), 'g', -1, 32)
		short, _ := strconv.ParseFloat(mean, 64) // it was just written
		all = append(all, rows.Loss{Training: c.Name(), Step: int32(end), Loss: short})
	}
	return all
}

// checkLosses returns an error unless losses are finite and of all steps of a run, in equal stretches but for the last.
func checkLosses(c method.Training, losses []rows.Loss) error {
	steps := int32(method.Last(c).Step)
	for i, l := range losses {
		want := min(int32(i+1)*losses[0].Step, steps)
		if l.Step != want || math.IsNaN(l.Loss) || math.IsInf(l.Loss, 0) {
			return fmt.Errorf("loss %d is %v after step %d, want a number after step %d", i+1, l.Loss, l.Step, want)
		}
	}
	if n := len(losses); n == 0 || losses[n-1].Step != steps {
		return fmt.Errorf("%d losses, the last not after step %d", n, steps)
	}
	return nil
}

// Package experiment runs methods on problems, stores what they leave as rows, and makes sure of it.
//
// A Unit is one run as data: what it computes, on which problems, with which weights. A preset lists cells, each a
// block, method, recipe, size and seed, which a table of blocks makes units; a Study adds units of its own, and
// training runs are units too. Results are found by the hash of a unit's configuration, so that asking twice computes
// once and a changed configuration never meets a stale result.
package experiment

import (
	"context"
	"errors"
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

// Unit is one run: what leaves the rows of one name in a block, or a training run.
type Unit struct {
	Block    Block  // none of a training run
	Name     string // unique in the block
	Training method.Training
	rows.Key
	Of       any // what its rows name as their run: its Key, unless a study has rows of its own
	Config   any // everything that its rows depend on, but for the arithmetic of the backend
	Problems int // how many rows are on; 0: they are not by problem
	Rows     int // how many there are, where it is not 0
	Weights  []method.Weights
	// Sample is how many problems verification computes again, all for 0; Tolerance is how much its numbers may then
	// differ. They are the first ones or, where the unit is Chosen, those that the verification's seed chooses. OneIn
	// is of how many such units of its block verification computes one again, at least one, which the seed chooses; all
	// for 0, none for WholeOnly.
	Sample    int
	Chosen    bool
	OneIn     int
	Tolerance float64
	// Compute returns the rows on some problems, the first ones unless the unit is Chosen. Where the unit is verified,
	// stored is what it has left on these, so that recorded choices are made again.
	Compute func(ctx context.Context, s *Store, problems []int32, stored *rows.Tables) (*rows.Tables, error)
}

// WholeOnly, as OneIn of a unit, is of one that takes too long for a verification that is not whole.
const WholeOnly = -1

// First lists the first n problems.
func First(n int) (problems []int32) {
	for i := range int32(n) {
		problems = append(problems, i)
	}
	return problems
}

// Study lists units that are added to a preset's.
type Study func(s *Store) ([]Unit, error)

// training returns a training run as a unit.
func training(c method.Training) Unit {
	return Unit{Name: c.Name(), Training: c, Of: rows.Loss{Training: c.Name()}, Config: c}
}

// Kind returns "train" or "evaluate".
func (u Unit) Kind() string {
	if u.Training != nil {
		return "train"
	}
	return "evaluate"
}

// Path names a unit in its preset: block/name, or the name of a training run.
func (u Unit) Path() string {
	if u.Block == "" {
		return u.Name
	}
	return string(u.Block) + "/" + u.Name
}

// Tasks lists the work of the preset: its training runs, then its units. A task is known by its
// index, which depends on the preset alone, so the processes of a cluster can share the list by
// number. A unit that comes before the training runs it needs makes them itself.
func (s *Store) Tasks() ([]Unit, error) {
	units, err := s.Units()
	return append(Trainings(units), units...), err
}

// hash returns the SHA-256 of the configuration in hexadecimal.
func (u Unit) hash() string { return train.Hash(train.JSON(u.Config)) }

// record returns what a unit's record has before it is run.
func (u Unit) record() Record {
	r := Record{Block: u.Block, Name: u.Name, Key: u.Key, Config: train.JSON(u.Config)}
	if r.Hash = train.Hash(r.Config); u.Training != nil {
		r.Kind = u.Training.Key()
	}
	return r
}

// weights lists those that a training run leaves, by their files.
func (u Unit) weights() map[string]method.Weights {
	all := map[string]method.Weights{lastWeights: method.Last(u.Training)}
	job, _ := u.Training.Job() // one that is refused leaves nothing
	for _, step := range job.Snapshots {
		w := method.Weights{Training: u.Training, Step: step}
		all[weightsFile(w)] = w
	}
	return all
}

// State is how far a task is.
type State string

const (
	ToDo   State = "to do"
	Begun  State = "begun" // interrupted, or under way: a training run that will be continued
	Failed State = "failed"
	Done   State = "done"
)

// State returns how far a task is, with the reason if it failed. It returns an error when its result cannot be read.
func (s *Store) State(u Unit) (State, *Failure, error) {
	if _, err := s.record(u); !errors.Is(err, ErrMissing) {
		return Done, nil, err
	}
	f := &Failure{}
	if err := readJSON(s.failureFile(u), f); !errors.Is(err, os.ErrNotExist) {
		return Failed, f, err
	}
	if _, err := os.Stat(s.work(s.folder(u))); err == nil {
		return Begun, nil, nil
	}
	return ToDo, nil, nil
}

// Run makes the result of a task, or finds it made, which it says. An error that no further attempt would change is
// left in the store for State to tell, until an attempt succeeds; [Passing] tells one from the other.
func (s *Store) Run(ctx context.Context, u Unit) (made bool, err error) {
	if _, err = s.record(u); err == nil {
		return false, nil
	}
	if errors.Is(err, ErrMissing) {
		err = s.attempt(ctx, u)
	}
	switch {
	case err == nil:
		return true, os.RemoveAll(s.failureFile(u))
	case Passing(err), errors.Is(err, backend.ErrNoPlugin): // another machine may have it
		return false, err
	}
	f := Failure{Task: u.Path(), Error: err.Error()}
	f.Host, _ = os.Hostname() // for the record only
	return false, errors.Join(err, writeJSON(s.failureFile(u), f))
}

func (s *Store) attempt(ctx context.Context, u Unit) error {
	if u.Training != nil {
		return s.Train(ctx, u.Training)
	}
	for _, w := range u.Weights {
		_, failure, err := s.State(training(w.Training)) // not every unit is to find out anew, perhaps after hours
		if err != nil {
			return err
		}
		if failure != nil {
			return fmt.Errorf("experiment: %s needs %s, which failed: %s", u.Path(), failure.Task, failure.Error)
		}
	}
	_, err := s.Evaluate(ctx, u)
	return err
}

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
		path := made.Snapshots[w.Step]
		if file == lastWeights {
			path = made.Weights
		}
		b, err := os.ReadFile(path)
		if err == nil {
			r.Weights[file], err = train.Hash(b), rows.WriteFile(filepath.Join(dir, file), b)
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

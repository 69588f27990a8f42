package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// Tasks lists the work of the preset: its training runs, then its units. A task is known by its
// index, which depends on the preset alone, so the processes of a cluster can share the list by
// number. A unit that comes before the training runs it needs makes them itself.
func (s *Store) Tasks() ([]Unit, error) {
	units, err := s.Units()
	return append(Trainings(units), units...), err
}

// config returns the JSON of the unit's configuration.
func (u Unit) config() json.RawMessage {
	b, err := json.Marshal(u.Config)
	if err != nil {
		panic(fmt.Sprintf("experiment: %s: %v", u.Path(), err)) // its maker's own types, which JSON can hold
	}
	return b
}

// hash returns the SHA-256 of the configuration in hexadecimal.
func (u Unit) hash() string { return train.Hash(u.config()) }

// record returns what a unit's record has before it is run.
func (u Unit) record() Record {
	r := Record{Block: u.Block, Name: u.Name, Key: u.Key, Config: u.config()}
	if r.Hash = train.Hash(r.Config); u.Training != nil {
		r.Kind = u.Training.Key()
	}
	return r
}

// weights lists those that a training run leaves, by their files.
func (u Unit) weights() map[string]method.Weights {
	if u.Training == nil {
		return nil
	}
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

// State returns how far a task is, with the reason if it failed. It returns an error when
// the task's result cannot be read.
func (s *Store) State(u Unit) (State, *Failure, error) {
	if _, err := s.record(u); err == nil {
		return Done, nil, nil
	} else if !errors.Is(err, ErrMissing) {
		return "", nil, err
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

// Run makes the result of a task, or finds it made, which it says. An error
// that no further attempt would change is left in the store for State to tell,
// until an attempt succeeds; [Passing] tells one from the other.
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
	return false, errors.Join(err, WriteJSON(s.failureFile(u), f))
}

func (s *Store) attempt(ctx context.Context, u Unit) error {
	if u.Training != nil {
		return s.Train(ctx, u.Training)
	}
	for _, w := range u.Weights {
		// Not every unit is to find out anew, perhaps after hours.
		_, failure, err := s.State(training(w.Training))
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

package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Task is a part of a preset's work: a training run or a unit.
type Task struct {
	Training method.Training
	Unit     *Unit
}

// Tasks lists the work of the preset: its training runs, then its units. A task is known by its
// index, which depends on the preset alone, so the processes of a cluster can share the list by
// number. A unit that comes before the training runs it needs makes them itself.
func (s *Store) Tasks() (tasks []Task, err error) {
	units, err := s.Units()
	for _, t := range Trainings(units) {
		tasks = append(tasks, Task{Training: t})
	}
	for i := range units {
		tasks = append(tasks, Task{Unit: &units[i]})
	}
	return tasks, err
}

// Kind returns "train" or "evaluate".
func (t Task) Kind() string {
	if t.Training != nil {
		return "train"
	}
	return "evaluate"
}

// Name returns the name of the training run or the path of the unit.
func (t Task) Name() string {
	if t.Training != nil {
		return t.Training.Name()
	}
	return t.Unit.Path()
}

// config returns the JSON of the task's configuration.
func (t Task) config() json.RawMessage {
	of := any(t.Training)
	if t.Unit != nil {
		of = t.Unit.Config
	}
	b, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("experiment: %s: %v", t.Name(), err)) // its maker's own types, which JSON can hold
	}
	return b
}

// hash returns the SHA-256 of the configuration in hexadecimal.
func (t Task) hash() string { return digest(t.config()) }

// record returns what a task's record has before it is run.
func (t Task) record() Record {
	r := Record{Config: t.config()}
	r.Hash = digest(r.Config)
	if t.Training != nil {
		r.Name, r.Kind = t.Name(), t.Training.Key()
		return r
	}
	u := t.Unit
	r.Block, r.Name, r.Method, r.Recipe, r.S = u.Block, u.Name, u.Method, u.Recipe, u.S
	r.Seed, r.Step, r.Family = u.Seed, u.Step, u.Family
	return r
}

// block and run name a task's rows.
func (t Task) block() Block {
	if t.Training != nil {
		return ""
	}
	return t.Unit.Block
}

func (t Task) run() any {
	if t.Training != nil {
		return rows.Loss{Training: t.Name()}
	}
	return t.Unit.Of
}

// weights lists those that a training run leaves, by their files.
func (t Task) weights() map[string]method.Weights {
	if t.Training == nil {
		return nil
	}
	all := map[string]method.Weights{lastWeights: method.Last(t.Training)}
	if k, ok := t.Training.(interface{ Kept() []int }); ok { // steps before the last
		for _, step := range k.Kept() {
			w := method.Weights{Training: t.Training, Step: step}
			all[weightsFile(w)] = w
		}
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
func (s *Store) State(t Task) (State, *Failure, error) {
	if _, err := s.record(t); err == nil {
		return Done, nil, nil
	} else if !errors.Is(err, ErrMissing) {
		return "", nil, err
	}
	if f, err := s.failure(t); err != nil || f != nil {
		return Failed, f, err
	}
	if _, err := os.Stat(s.work(s.folder(t))); err == nil {
		return Begun, nil, nil
	}
	return ToDo, nil, nil
}

// Run makes the result of a task, or finds it made, which it says. An error
// that no further attempt would change is left in the store for State to tell,
// until an attempt succeeds; [Passing] tells one from the other.
func (s *Store) Run(ctx context.Context, t Task) (made bool, err error) {
	if _, err = s.record(t); err == nil {
		return false, nil
	}
	if errors.Is(err, ErrMissing) {
		err = s.attempt(ctx, t)
	}
	switch {
	case err == nil:
		return true, s.forgive(t)
	case Passing(err), errors.Is(err, backend.ErrNoPlugin): // another machine may have it
		return false, err
	}
	return false, errors.Join(err, s.fail(t, err))
}

func (s *Store) attempt(ctx context.Context, t Task) error {
	if t.Training != nil {
		return s.Train(ctx, t.Training)
	}
	for _, c := range t.Unit.Trainings() {
		// Not every unit is to find out anew, perhaps after hours.
		_, failure, err := s.State(Task{Training: c})
		if err != nil {
			return err
		}
		if failure != nil {
			return fmt.Errorf("experiment: %s needs %s, which failed: %s", t.Name(), failure.Task, failure.Error)
		}
	}
	_, err := s.Evaluate(ctx, *t.Unit)
	return err
}

// Missing returns those of the training runs that are not yet there.
func (s *Store) Missing(configs []method.Training) (missing []method.Training, err error) {
	for _, c := range configs {
		if _, err := s.record(Task{Training: c}); errors.Is(err, ErrMissing) {
			missing = append(missing, c)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
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

// State is how far a task is.
type State string

const (
	ToDo   State = "to do"
	Begun  State = "begun" // interrupted, or under way: a training run that will be continued
	Failed State = "failed"
	Done   State = "done"
)

func (s *Store) place(t Task) string {
	if t.Training != nil {
		return s.trainingFolder(t.Training)
	}
	return s.folder(*t.Unit)
}

// find returns an error if a task's result cannot be found.
func (s *Store) find(t Task) (err error) {
	if t.Training != nil {
		_, err = s.FindTraining(t.Training)
	} else {
		_, _, err = s.record(*t.Unit)
	}
	return err
}

// State returns how far a task is, with the reason if it failed. It returns an error when
// the task's result cannot be read.
func (s *Store) State(t Task) (State, *Failure, error) {
	if err := s.find(t); err == nil {
		return Done, nil, nil
	} else if !errors.Is(err, ErrMissing) {
		return "", nil, err
	}
	folder := s.place(t)
	if f, err := s.failure(folder); err != nil || f != nil {
		return Failed, f, err
	}
	if _, err := os.Stat(s.work(folder)); err == nil {
		return Begun, nil, nil
	}
	return ToDo, nil, nil
}

// Run makes the result of a task, or finds it made, which it says. An error
// that no further attempt would change is left in the store for State to tell,
// until an attempt succeeds; [Passing] tells one from the other.
func (s *Store) Run(ctx context.Context, t Task) (made bool, err error) {
	if err = s.find(t); err == nil {
		return false, nil
	}
	if errors.Is(err, ErrMissing) {
		err = s.attempt(ctx, t)
	}
	switch {
	case err == nil:
		return true, s.forgive(s.place(t))
	case Passing(err), errors.Is(err, backend.ErrNoPlugin): // another machine may have it
		return false, err
	}
	return false, errors.Join(err, s.fail(s.place(t), t.Name(), err))
}

func (s *Store) attempt(ctx context.Context, t Task) error {
	if t.Training != nil {
		_, err := s.Train(ctx, t.Training)
		return err
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

// Missing returns those of the training runs that are not yet there, each once.
func (s *Store) Missing(configs []method.Training) (missing []method.Training, err error) {
	seen := map[string]bool{}
	for _, c := range configs {
		hash := c.Hash()
		if seen[hash] {
			continue
		}
		seen[hash] = true
		if _, err := s.FindTraining(c); errors.Is(err, ErrMissing) {
			missing = append(missing, c)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

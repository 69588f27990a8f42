package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/method"
)

// Task is a unit of a preset's work: a training run or the evaluation of a
// cell. Its result is one artifact.
type Task struct {
	Training method.Training // of a training run
	Cell     *Cell           // of an evaluation
}

// Tasks lists the work of the preset: its training runs, then its cells, both
// in the order of Plan. A task is known by its index, which depends on the
// preset alone, so the processes of a cluster can share the list by number.
// An evaluation that comes before the training runs it needs makes them itself.
func (p Preset) Tasks() ([]Task, error) {
	configs, err := p.Trainings()
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, c := range configs {
		tasks = append(tasks, Task{Training: c})
	}
	for _, c := range p.Plan() {
		tasks = append(tasks, Task{Cell: &c})
	}
	return tasks, nil
}

// Kind returns "train" or "evaluate".
func (t Task) Kind() string {
	if t.Training != nil {
		return "train"
	}
	return "evaluate"
}

// Name returns the name of the training run or of the cell.
func (t Task) Name() string {
	if t.Training != nil {
		return t.Training.Name()
	}
	return t.Cell.Name()
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
// the task's artifact cannot be read.
func (s *Store) State(t Task) (State, *artifact.Failure, error) {
	folder, err := s.place(t)
	if err != nil {
		return "", nil, err
	}
	if err := s.find(t); err == nil {
		return Done, nil, nil
	} else if !errors.Is(err, artifact.ErrMissing) {
		return "", nil, err
	}
	if f, err := s.artifacts.Failure(folder); err != nil || f != nil {
		return Failed, f, err
	}
	if _, err := os.Stat(s.artifacts.Work(folder)); err == nil {
		return Begun, nil, nil
	}
	return ToDo, nil, nil
}

// Run makes the artifact of a task, or finds it made, which it says. An error
// that no further attempt would change is left in the store for State to tell,
// until an attempt succeeds; [artifact.Passing] tells one from the other.
func (s *Store) Run(ctx context.Context, t Task) (made bool, err error) {
	folder, err := s.place(t)
	if err != nil {
		return false, err
	}
	if err = s.find(t); err == nil {
		return false, nil
	}
	if errors.Is(err, artifact.ErrMissing) {
		err = s.attempt(ctx, t)
	}
	switch {
	case err == nil:
		return true, s.artifacts.Forgive(folder)
	case artifact.Passing(err), errors.Is(err, backend.ErrNoPlugin): // another machine may have it
		return false, err
	}
	return false, errors.Join(err, s.artifacts.Fail(folder, t.Name(), err))
}

func (s *Store) attempt(ctx context.Context, t Task) error {
	if t.Training != nil {
		_, err := s.Train(ctx, t.Training)
		return err
	}
	needed, err := s.Preset.Trainings(*t.Cell)
	if err != nil {
		return err
	}
	for _, c := range needed {
		// Not every cell is to find out anew, perhaps after hours.
		_, failure, err := s.State(Task{Training: c})
		if err != nil {
			return err
		}
		if failure != nil {
			return fmt.Errorf("experiment: %s needs %s, which failed: %s", t.Name(), failure.Task, failure.Error)
		}
	}
	_, err = s.Evaluate(ctx, *t.Cell)
	return err
}

// locate returns where, in the preset's folder, a task's artifact belongs, and the hash of
// its configuration.
func (p Preset) locate(t Task) (where, hash string, err error) {
	if t.Training != nil {
		hash = t.Training.Hash()
		return folderName("train/"+t.Name(), hash), hash, nil
	}
	config, err := p.Config(*t.Cell)
	if err != nil {
		return "", "", err
	}
	hash = config.Hash()
	return folderName(t.Name(), hash), hash, nil
}

// place returns the folder of a task's artifact.
func (s *Store) place(t Task) (folder string, err error) {
	where, _, err := s.Preset.locate(t)
	return filepath.Join(s.Root(), where), err
}

// find returns an error if a task's artifact cannot be read.
func (s *Store) find(t Task) (err error) {
	if t.Training != nil {
		_, err = s.FindTraining(t.Training)
	} else {
		_, err = s.Find(*t.Cell)
	}
	return err
}

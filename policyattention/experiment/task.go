package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"icrl/policyattention/method"

	"github.com/google/renameio/v2"
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

// Failure says why a task failed for good.
type Failure struct {
	Task  string `json:"task"`
	Host  string `json:"host"`
	Error string `json:"error"`
}

// State returns how far a task is, with the reason if it failed. It returns an error when
// the task's artifact cannot be read.
func (s *Store) State(t Task) (State, *Failure, error) {
	folder, find, err := s.locate(t)
	if err != nil {
		return "", nil, err
	}
	if err := find(); err == nil {
		return Done, nil, nil
	} else if !errors.Is(err, ErrMissing) {
		return "", nil, err
	}
	b, err := os.ReadFile(s.failureFile(folder))
	if err == nil {
		f := &Failure{}
		if err := json.Unmarshal(b, f); err != nil {
			return "", nil, fmt.Errorf("experiment: %s: %w", s.failureFile(folder), err)
		}
		return Failed, f, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", nil, fmt.Errorf("experiment: %w", err)
	}
	if _, err := os.Stat(filepath.Join(s.root, workFolder, filepath.Base(folder))); err == nil {
		return Begun, nil, nil
	}
	return ToDo, nil, nil
}

// Run makes the artifact of a task, or finds it made, which it says. An error
// that no further attempt would change is left in the store for State to tell,
// until an attempt succeeds; Passing tells one from the other.
func (s *Store) Run(ctx context.Context, t Task) (made bool, err error) {
	folder, find, err := s.locate(t)
	if err != nil {
		return false, err
	}
	if err = find(); err == nil {
		return false, nil
	}
	if errors.Is(err, ErrMissing) {
		err = s.attempt(ctx, t)
	}
	switch {
	case err == nil:
		if err := os.Remove(s.failureFile(folder)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return true, fmt.Errorf("experiment: %w", err)
		}
		return true, nil
	case Passing(err):
		return false, err
	}
	return false, errors.Join(err, s.recordFailure(folder, t, err))
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

func (s *Store) recordFailure(folder string, t Task, failure error) error {
	f := Failure{Task: t.Name(), Error: failure.Error()}
	f.Host, _ = os.Hostname() // for the record only
	b, err := json.Marshal(f)
	if err == nil {
		err = os.MkdirAll(filepath.Join(s.root, workFolder), 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(s.failureFile(folder), append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("experiment: recording the failure of %s: %w", t.Name(), err)
	}
	return nil
}

// failureFile is where the failure of the artifact that would be folder is kept.
func (s *Store) failureFile(folder string) string {
	return filepath.Join(s.root, workFolder, filepath.Base(folder)+".failed")
}

// locate returns the folder of a task's artifact and a function that returns an error if it
// is not there.
func (s *Store) locate(t Task) (folder string, find func() error, err error) {
	if t.Training != nil {
		return s.trainingFolder(t.Training), func() error { _, err := s.FindTraining(t.Training); return err }, nil
	}
	config, err := s.config(*t.Cell)
	if err != nil {
		return "", nil, err
	}
	return s.folder(*t.Cell, config), func() error { _, err := s.Find(*t.Cell); return err }, nil
}

// passing are the troubles of a machine or a network file system that a later
// attempt, perhaps elsewhere, does not meet again.
var passing = []error{
	context.Canceled, context.DeadlineExceeded,
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOLCK,
	syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE,
}

// Passing tells whether an error may be gone at the next attempt: the work was
// interrupted, or the machine was short of something. Everything else is
// computed again in the same way and fails again.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

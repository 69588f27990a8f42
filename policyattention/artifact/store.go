// Package artifact makes folders and files of results that appear complete or not at all,
// while processes that would make the same one wait for each other, and says what made them
// at what cost. It does not know what the results are of.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrMissing is wrapped by the errors that say that a result is not there.
var ErrMissing = errors.New("not yet run")

// WorkFolder holds, inside a store's folder, what is being made: locks, half-written
// folders, interrupted work, failures.
const WorkFolder = ".work"

// Store is a folder of results.
type Store struct{ Root string }

// Work returns the folder for unfinished work on a result that will be folder.
func (s Store) Work(folder string) string {
	return filepath.Join(s.Root, WorkFolder, filepath.Base(folder))
}

// Lock waits until no other process makes the result folder. Waiting, if not nil, is
// called where it has to wait.
func (s Store) Lock(ctx context.Context, folder string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(s.Root, WorkFolder), 0o755); err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	path := s.Work(folder) + ".lock"
	for {
		lock := flock.New(path)
		locked, err := lock.TryLock()
		if err == nil && !locked {
			if waiting != nil {
				waiting()
			}
			_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
		}
		if err != nil {
			return nil, fmt.Errorf("artifact: locking %s: %w", folder, err)
		}
		// Whoever held it before has removed the file: the lock counts where it is still there.
		held, errHeld := lock.Stat()
		now, errNow := os.Stat(path)
		if errHeld == nil && errNow == nil && os.SameFile(held, now) {
			return func() {
				os.Remove(path) //nolint:errcheck // a lock left behind is taken by the next
				lock.Unlock()   //nolint:errcheck // the process's end would unlock it too
			}, nil
		}
		lock.Unlock() //nolint:errcheck // the same
	}
}

// Publish makes folder appear with the files that fill writes. The caller holds the
// folder's lock, so what lies half-written is of the dead.
func (s Store) Publish(folder string, fill func(dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	work, prefix := filepath.Join(s.Root, WorkFolder), filepath.Base(folder)+"-new"
	entries, err := os.ReadDir(work)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(work, e.Name())); err != nil {
				return fmt.Errorf("artifact: %w", err)
			}
		}
	}
	dir, err := os.MkdirTemp(work, prefix)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := fill(dir); err != nil {
		return err
	}
	if err = os.Chmod(dir, 0o755); err == nil {
		err = os.Rename(dir, folder)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// Failure says why a result could not be made, for good.
type Failure struct {
	Task  string `json:"task"`
	Host  string `json:"host"`
	Error string `json:"error"`
}

// failureFile is where the failure of the result that would be folder is kept.
func (s Store) failureFile(folder string) string { return s.Work(folder) + ".failed" }

// Failure returns the failure of the result that would be folder, nil if it did not fail.
func (s Store) Failure(folder string) (*Failure, error) {
	f := &Failure{}
	err := ReadJSON(s.failureFile(folder), f)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// Fail keeps why the result of a task that would be folder could not be made.
func (s Store) Fail(folder, task string, failure error) error {
	f := Failure{Task: task, Error: failure.Error()}
	f.Host, _ = os.Hostname() // for the record only
	if err := WriteJSON(s.failureFile(folder), f, ""); err != nil {
		return fmt.Errorf("artifact: recording the failure of %s: %w", task, err)
	}
	return nil
}

// Forgive forgets the failure of the result folder, if there was one.
func (s Store) Forgive(folder string) error {
	if err := os.Remove(s.failureFile(folder)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
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

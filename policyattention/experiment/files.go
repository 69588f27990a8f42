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
	"time"

	"github.com/gofrs/flock"

	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// Results appear complete or not at all, while processes that would make the same one wait for each other.

// ErrMissing is wrapped by the errors that say that a result is not there.
var ErrMissing = errors.New("not yet run")

// WorkFolder holds, in a store's folder, what is being made: locks, half-written folders, interrupted work, failures.
const WorkFolder = ".work"

// work returns the folder for unfinished work on a result that will be folder.
func (s *Store) work(folder string) string {
	return filepath.Join(s.Root, WorkFolder, filepath.Base(folder))
}

// lock waits until no other process makes the result folder of a task, and tells Progress where it has to wait.
func (s *Store) lock(ctx context.Context, task, folder string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(s.Root, WorkFolder), 0o755); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	path := s.work(folder) + ".lock"
	for {
		lock := flock.New(path)
		locked, err := lock.TryLock()
		if err == nil && !locked {
			s.Progress(Progress{Name: task, Waiting: true})
			_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
		}
		if err != nil {
			return nil, fmt.Errorf("experiment: locking %s: %w", folder, err)
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

// Failure says why a result could not be made, for good.
type Failure struct {
	Task  string `json:"task"`
	Host  string `json:"host"`
	Error string `json:"error"`
}

// failureFile is where the failure of a task is kept.
func (s *Store) failureFile(u Unit) string { return s.work(s.folder(u)) + ".failed" }

// passing are the troubles of a machine or a network file system that a later attempt, perhaps elsewhere, may not meet.
var passing = []error{
	context.Canceled, context.DeadlineExceeded, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE,
	syscall.ETIMEDOUT, syscall.ENOLCK, syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE,
}

// Passing tells whether an error may be gone at the next attempt: the work was interrupted, or the machine was short of
// something. Everything else is computed again in the same way and fails again.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// writeJSON stores v as a file of JSON, as [rows.WriteFile] does.
func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return rows.WriteFile(path, append(text, '\n'))
}

// readJSON reads a file of JSON into v, a pointer.
func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("experiment: %s: %w", path, err)
	}
	return nil
}

// FileDigest returns the SHA-256 of a file in hexadecimal.
func FileDigest(path string) (string, error) {
	b, err := os.ReadFile(path)
	return train.Hash(b), err
}

package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// One at a time holds a lock, whoever removes its file, and no file is left behind.
func TestLock(t *testing.T) {
	s := &Store{root: t.TempDir()}
	var group sync.WaitGroup
	var inside, most atomic.Int32
	for range 8 {
		group.Go(func() {
			unlock, err := s.lock(t.Context(), "a task", "x/result")
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n > most.Load() {
				most.Store(n)
			}
			inside.Add(-1)
			unlock()
		})
	}
	group.Wait()
	if left, err := os.ReadDir(filepath.Join(s.root, WorkFolder)); err != nil || len(left) > 0 || most.Load() != 1 {
		t.Errorf("%d held it at once; left behind: %v, %v", most.Load(), left, err)
	}
	unlock, err := s.lock(t.Context(), "a task", "x/result")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(p Progress) {
		if p.Waiting && p.Name == "a task" {
			cancel()
		}
	}
	if _, err := s.lock(ctx, "a task", "x/result"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a lock ended with %v", err)
	}
}

// A folder appears complete or not at all, and what a dead process has left goes.
func TestPublish(t *testing.T) {
	s := &Store{root: t.TempDir()}
	folder := filepath.Join(s.root, "group", "result")
	unlock, err := s.lock(t.Context(), "a task", folder)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	dead := s.work(folder) + "-new"
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	full := fmt.Errorf("writing: %w", syscall.ENOSPC)
	if err := s.publish(folder, func(string) error { return full }); !errors.Is(err, syscall.ENOSPC) || !Passing(err) {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a result is there: %v", err)
	}
	err = s.publish(folder, func(dir string) error { return WriteJSON(filepath.Join(dir, "x.json"), 7) })
	if err != nil {
		t.Fatal(err)
	}
	var x int
	if err := readJSON(filepath.Join(folder, "x.json"), &x); err != nil || x != 7 {
		t.Errorf("%v, %v", x, err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the dead have left is there: %v", err)
	}
	if Passing(errors.New("a loss is NaN")) {
		t.Error("a failure for good passes")
	}
}

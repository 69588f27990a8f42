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

	"icrl/internal/testkit"
	"icrl/policyattention/rows"
)

// One at a time holds a lock, whoever removes its file, and no file is left behind.
func TestLock(t *testing.T) {
	s := &Store{Root: t.TempDir(), Progress: func(Progress) {}}
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
	if left, err := os.ReadDir(filepath.Join(s.Root, WorkFolder)); err != nil || len(left) > 0 || most.Load() != 1 {
		t.Errorf("%d held it at once; left behind: %v, %v", most.Load(), left, err)
	}
	defer testkit.Must(s.lock(t.Context(), "a task", "x/result"))(t)()
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

// A result appears complete or not at all, and what a dead process has left goes.
func TestMade(t *testing.T) {
	s := &Store{Root: t.TempDir(), Progress: func(Progress) {}}
	full := fmt.Errorf("writing: %w", syscall.ENOSPC)
	fails := Unit{Block: Trial, Name: "a fails", Config: 1, Compute: func(context.Context, *Store, []int32,
		*rows.Tables) (*rows.Tables, error) {
		return nil, full
	}}
	dead := filepath.Join(s.work(s.folder(fails))+"-new", "dead")
	testkit.Check(t, os.MkdirAll(dead, 0o755))
	if _, err := s.Evaluate(t.Context(), fails); !errors.Is(err, syscall.ENOSPC) || !Passing(err) {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := os.Stat(s.folder(fails)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a result is there: %v", err)
	}
	works := fails
	works.Compute = func(context.Context, *Store, []int32, *rows.Tables) (*rows.Tables, error) {
		return &rows.Tables{}, nil
	}
	if _, err := s.Evaluate(t.Context(), works); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.folder(fails)); err != nil || len(left) != 1 || left[0].Name() != recordFile {
		t.Errorf("the result is %v, %v", left, err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the dead have left is there: %v", err)
	}
	if Passing(errors.New("a loss is NaN")) {
		t.Error("a failure for good passes")
	}
}

// Of units that take long one is computed again however few there are; of those that are for whole verifications none.
func TestLeftOut(t *testing.T) {
	tasks := []Unit{{Block: "sizes", OneIn: 40}, {Block: "sizes", OneIn: 40}, {Block: "heads", OneIn: WholeOnly}, {}}
	for chosen := range uint64(4) {
		left := leftOut(tasks, false, chosen)
		if left[0] == left[1] || !left[2] || left[3] {
			t.Errorf("seed %d: left out are %v", chosen, left)
		}
	}
	for i, left := range leftOut(tasks, true, 1) {
		if left {
			t.Errorf("task %d is left out of the whole", i)
		}
	}
}

package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// workers lists the worker threads of all CPU clients of XLA in this process.
func workers() (ids []int, err error) {
	const folder = "/proc/self/task"
	threads, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("looking for XLA's threads: %w", err)
	}
	for _, thread := range threads {
		name, err := os.ReadFile(filepath.Join(folder, thread.Name(), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "tf_XLAEigen" {
			continue // another thread, or one that has ended
		}
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return nil, fmt.Errorf("looking for XLA's threads: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// restWorkers gives threads the idle scheduling policy: they run when nothing else
// wants their core, so that what waits for one of them does not hang.
func restWorkers(ids []int) error {
	for _, id := range ids {
		attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
		if err := unix.SchedSetAttr(id, attr, 0); err != nil {
			return fmt.Errorf("lowering the priority of XLA's thread %d: %w", id, err)
		}
	}
	return nil
}

// processors lists those that this process may use. It asks once, before any thread is
// kept on one of them.
var processors = sync.OnceValues(func() (ids []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("reading the processor affinity: %w", err)
	}
	for id := range 64 * len(set) {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
})

// stay keeps the calling thread on a processor.
func stay(id int) error {
	var set unix.CPUSet
	set.Set(id)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("setting the processor affinity: %w", err)
	}
	return nil
}

package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// threads lists the threads of this process, mostly in the order of their start.
func threads() (ids []int, err error) {
	entries, err := os.ReadDir(taskFolder)
	if err != nil {
		return nil, fmt.Errorf("looking for threads: %w", err)
	}
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("looking for threads: %w", err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

const taskFolder = "/proc/self/task"

// workers lists the worker threads of all CPU clients of XLA in this process.
func workers() ([]int, error) {
	ids, err := threads()
	return slices.DeleteFunc(ids, func(id int) bool {
		name, err := os.ReadFile(filepath.Join(taskFolder, strconv.Itoa(id), "comm"))
		return err != nil || strings.TrimSpace(string(name)) != "tf_XLAEigen" // or it has ended
	}), err
}

// monitor is the thread of Go's runtime that looks after the others: the second that
// a program starts, here asked for before it has started many. 0 if it was not found.
var monitor = func() int {
	ids, err := threads()
	if i := slices.Index(ids, os.Getpid()); err == nil && i >= 0 && i+1 < len(ids) {
		return ids[i+1]
	}
	return 0
}()

// restMonitor gives way to the workers. While goroutines go to C and come back on
// several processors the monitor wakes up every 20 µs, and each time the scheduler
// may then go on with a worker that has nothing to do in place of one that has.
func restMonitor() error {
	if monitor == 0 {
		return nil
	}
	return rest([]int{monitor})
}

// rest lowers the priority of threads by five steps of niceness below the process's own
// and makes them a batch: they wait for whoever else wants their core and do not interrupt
// it when they wake up. The idle policy would do the same on a free machine, but on a
// busy one other programs would starve them, and with them whoever waits for their work.
func rest(ids []int) error {
	own, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("reading this thread's priority: %w", err)
	}
	for _, id := range ids {
		attr := &unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: min(own.Nice+5, 19),
		}
		if err := unix.SchedSetAttr(id, attr, 0); err != nil {
			return fmt.Errorf("lowering the priority of thread %d: %w", id, err)
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

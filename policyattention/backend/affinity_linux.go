package backend

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Share is a set of processors that a process may run on. XLA takes its
// number of threads from it, and so does the Go runtime.
type Share struct{ own, all unix.CPUSet }

// Shares deals the processors that this process may use into n sets.
func Shares(n int) ([]Share, error) {
	ids, err := Processors()
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	shares := make([]Share, n)
	var all unix.CPUSet
	for i, id := range ids {
		all.Set(id)
		if n > 0 {
			shares[i%n].own.Set(id)
		}
	}
	for i := range shares {
		shares[i].all = all
		if shares[i].own.Count() == 0 {
			shares[i].own = all // more workers than processors
		}
	}
	return shares, nil
}

// Start starts the command with the affinity of the share, which a process
// inherits from the thread that forks it.
func (p Share) Start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &p.own); err != nil {
		return fmt.Errorf("setting the processor affinity: %w", err)
	}
	err := cmd.Start()
	if restore := unix.SchedSetaffinity(0, &p.all); restore != nil && err == nil {
		err = fmt.Errorf("restoring the processor affinity: %w", restore)
	}
	return err
}

// Processors lists those that this process may use, in order.
func Processors() ([]int, error) {
	ids, err := processors()
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	return ids, nil
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

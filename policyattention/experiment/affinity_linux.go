package experiment

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"icrl/policyattention/backend"
)

// processors is a set of processors that a worker may run on. XLA takes its
// number of threads from it, and so does the Go runtime.
type processors struct{ own, all unix.CPUSet }

// processorShares deals the processors that this process may use into n sets.
func processorShares(n int) ([]processors, error) {
	ids, err := backend.Processors()
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	shares := make([]processors, n)
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

// start starts the command with the affinity of the share, which a process
// inherits from the thread that forks it.
func (p processors) start(cmd *exec.Cmd) error {
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

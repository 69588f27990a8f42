package backend

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

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

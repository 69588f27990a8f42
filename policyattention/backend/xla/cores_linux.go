//go:build cgo && (amd64 || arm64)

package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/gomlx/core/graph"
	"golang.org/x/sys/unix"

	"icrl/policyattention/backend"
)

// Cores implements backend.Driver: each core has a client whose threads do not leave its processor.
func (driver) Cores(b compute.Backend, n int) (cores []*backend.Core, err error) {
	ids, err := processors()
	if err != nil {
		return nil, err
	}
	if n = min(n, len(ids), runtime.GOMAXPROCS(0)); n < 2 {
		return []*backend.Core{{Backend: b}}, nil
	}
	compiler.Do(func() { compiler.err = startCompiler(b) })
	if compiler.err != nil {
		return nil, fmt.Errorf("backend: %w", compiler.err)
	}
	for _, id := range ids[:n] {
		c, err := newCore(b.(*xla.Backend).Config(), id)
		if err != nil {
			for _, c := range cores {
				c.Close()
			}
			return nil, fmt.Errorf("backend: processor %d: %w", id, err)
		}
		cores = append(cores, c)
	}
	return cores, nil
}

// processors lists those that this process may use, in order. It asks once, before any thread is
// kept on one of them.
var processors = sync.OnceValues(func() (ids []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("backend: reading the processor affinity: %w", err)
	}
	for id := range 64 * len(set) {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
})

// newCore starts a client on a processor. Its threads inherit where the thread that
// starts it may run.
func newCore(config string, id int) (*backend.Core, error) {
	work, started := make(chan func()), make(chan error)
	c := &backend.Core{Work: work}
	go func() {
		// Never unlocked: the thread ends with this function.
		runtime.LockOSThread()
		var own unix.CPUSet
		own.Set(id)
		err := unix.SchedSetaffinity(0, &own)
		if err != nil {
			err = fmt.Errorf("setting the processor affinity: %w", err)
		} else {
			c.Backend, err = start(config, 0)
		}
		started <- err
		for f := range work {
			f()
		}
	}()
	if err := <-started; err != nil {
		close(work)
		return nil, err
	}
	return c, nil
}

// compiler guards that startCompiler is called once a process, and keeps its error
// for all later calls of Cores.
var compiler struct {
	sync.Once
	err error
}

// startCompiler compiles a small program and runs it. XLA starts the threads of its compiler with
// the first program of a process, and they may run where the thread that asks for it
// may: on a Core's, every later program would be compiled on that one processor.
func startCompiler(b compute.Backend) error {
	exec, err := graph.NewExec(b, func(x *graph.Node) *graph.Node { return graph.Exp(x) })
	if err != nil {
		return err
	}
	defer exec.Finalize()
	_, err = exec.Call1([]float32{1})
	return err
}

// threads lists the threads of this process that are called name, or all, mostly in the order of their start.
func threads(name string) (ids []int, err error) {
	const folder = "/proc/self/task"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("looking for threads: %w", err)
	}
	for _, entry := range entries {
		own, err := os.ReadFile(filepath.Join(folder, entry.Name(), "comm"))
		if err != nil || name != "" && strings.TrimSpace(string(own)) != name {
			continue // it has ended, or is another
		}
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("looking for threads: %w", err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
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

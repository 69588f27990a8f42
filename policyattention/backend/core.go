package backend

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// A Core is one processor of this process with an XLA client of its own, whose
// threads do not leave it. One backend would share its work
// out to all processors operation by operation, and the operations of small networks are too
// short for that to gain much; those of a core each share out a whole computation.
type Core struct {
	compute.Backend
	work  chan func() // nil for any thread
	own   bool        // Backend is the core's alone
	close sync.Once
}

// Cores starts a Core on each of the processors that this process may use, on at most
// n of them, for a backend xla:cpu. Where that is one, where XLA's threads cannot be kept
// on a processor (outside Linux), and for other backends, the only Core is b and any thread.
// Close each of them.
func Cores(b compute.Backend, n int) ([]*Core, error) {
	if !IsXLACPU(b) {
		return []*Core{{Backend: b}}, nil
	}
	ids, err := Processors()
	if err != nil {
		return nil, err
	}
	if n = min(n, len(ids), runtime.GOMAXPROCS(0)); n < 2 {
		return []*Core{{Backend: b}}, nil
	}
	if err := restMonitor(); err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	compiler.Do(func() { compiler.err = startCompiler(b) })
	if err := compiler.err; err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	var cores []*Core
	for _, id := range ids[:n] {
		c, err := newCore(b, id)
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

// compiler guards that startCompiler is called once a process, and keeps its error
// for all later calls of Cores.
var compiler struct {
	sync.Once
	err error
}

// startCompiler compiles a small program. XLA starts the threads of its compiler with
// the first program of a process, and they may run where the thread that asks for it
// may: on a Core's, every later program would be compiled on that one processor.
func startCompiler(b compute.Backend) error {
	builder := b.Builder("start of the compiler")
	main := builder.Main()
	x, err := main.Parameter("x", shapes.Make(dtypes.Float32, 8), nil)
	if err != nil {
		return err
	}
	y, err := main.Exp(x)
	if err != nil {
		return err
	}
	if err := main.Return([]compute.Value{y}, nil); err != nil {
		return err
	}
	program, err := builder.Compile()
	if err != nil {
		return err
	}
	program.Finalize()
	return nil
}

// Processors lists those that this process may use, in order; none outside Linux, where
// threads cannot be kept on one.
func Processors() ([]int, error) {
	ids, err := processors()
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	return ids, nil
}

// newCore starts a client on a processor. Its threads inherit where the thread that
// starts it may run.
func newCore(like compute.Backend, id int) (*Core, error) {
	c := &Core{work: make(chan func()), own: true}
	started := make(chan error)
	go func() {
		// Never unlocked: the thread ends with this function.
		runtime.LockOSThread()
		err := stay(id)
		if err == nil {
			c.Backend, err = another(like)
		}
		started <- err
		for f := range c.work {
			f()
		}
	}()
	if err := <-started; err != nil {
		close(c.work)
		return nil, err
	}
	return c, nil
}

// Do calls f on the core's thread and returns its error. It panics after Close.
func (c *Core) Do(f func() error) error {
	if c.work == nil {
		return f()
	}
	done := make(chan error)
	c.work <- func() { done <- f() }
	return <-done
}

// Close ends the core's own backend and its thread, once.
func (c *Core) Close() {
	if !c.own {
		return
	}
	c.close.Do(func() {
		c.Backend.Finalize()
		if c.work != nil {
			close(c.work)
		}
	})
}

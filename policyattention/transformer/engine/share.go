package engine

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// share calls f for the numbers below n, on as many goroutines as GOMAXPROCS says, and returns an
// error of those that it returned.
func share(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var all errgroup.Group
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := f(i); err != nil {
					return err
				}
			}
		})
	}
	return all.Wait()
}

package numeric

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Parallel calls f for the numbers below n, as many at a time as GOMAXPROCS says, and returns an
// error of those that it returned.
func Parallel(n int, f func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		all.Go(func() error { return f(i) })
	}
	return all.Wait()
}

package anymdp

import (
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"icrl/policyattention/transformer/plain"
)

// Shape of the network.
const (
	Layers, Heads, Width, Hidden = 4, 4, 64, 128
)

// NewNetwork returns the network whose parameters tensor supplies by name, in plain Go:
// float64 arithmetic in index order, with the same bits on every platform. It returns an
// error when tensor does, and for a tensor of another size or with a value that is not finite.
func NewNetwork(tensor func(name string) ([]float32, error)) (*plain.Network, error) {
	n, err := plain.NewUnordered(Features, Layers, Heads, Width, Hidden, Outputs, tensor)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	return n, nil
}

// Parallel takes states through a network in plain Go, on all processors.
func Parallel(n *plain.Network) Forward {
	return func(tokens [][][]float64) ([][]float64, error) {
		outputs := make([][]float64, len(tokens))
		var all errgroup.Group
		all.SetLimit(runtime.GOMAXPROCS(0))
		for i, row := range tokens {
			all.Go(func() error {
				vectors, err := n.Vectors(row)
				for _, v := range vectors {
					outputs[i] = append(outputs[i], v...)
				}
				return err
			})
		}
		return outputs, all.Wait()
	}
}

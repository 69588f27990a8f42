package anymdp

import (
	_ "embed" // the released weights
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"icrl/internal/safetensors"
	"icrl/policyattention/transformer/plain"
)

// Shape of the network.
const (
	Layers, Heads, Width, Hidden = 4, 4, 64, 128
)

//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go: see the model card,
// MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Forward, error) {
	f, err := safetensors.Unmarshal(released)
	if err != nil {
		return nil, fmt.Errorf("anymdp: the released weights: %w", err)
	}
	return Plain(f)
})

// Plain returns the network with the weights of a file in plain Go: float64 arithmetic
// in index order, with the same bits on every platform, on all processors. It returns an
// error if a tensor is missing, of another size or not finite.
func Plain(f *safetensors.File) (Forward, error) {
	network, err := plain.NewUnordered(Features, Layers, Heads, Width, Hidden, Outputs, func(name string) ([]float32, error) {
		values, _, err := safetensors.Get[float32](f, name)
		return values, err
	})
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	return func(tokens [][][]float64) ([][]float64, error) {
		outputs := make([][]float64, len(tokens))
		var all errgroup.Group
		all.SetLimit(runtime.GOMAXPROCS(0))
		for i, row := range tokens {
			all.Go(func() error {
				vectors, err := network.Vectors(row)
				for _, v := range vectors {
					outputs[i] = append(outputs[i], v...)
				}
				return err
			})
		}
		return outputs, all.Wait()
	}, nil
}

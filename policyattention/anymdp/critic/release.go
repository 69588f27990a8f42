//go:build !js

package critic

import (
	_ "embed" // the released weights
	"fmt"
	"sync"

	"icrl/internal/safetensors"
	"icrl/policyattention/transformer/engine"
)

//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go, as an estimator: see the model card,
// MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Estimator, error) {
	f, err := safetensors.Unmarshal(released)
	if err != nil {
		return nil, fmt.Errorf("critic: the released weights: %w", err)
	}
	return Plain(f)
})

// Plain returns the estimator with the weights of a file, on all processors. It returns an
// error if a tensor is missing, of another size or not finite.
func Plain(f *safetensors.File) (Estimator, error) {
	n, err := engine.Of[float64](Shape(), safetensors.Floats(f))
	if err != nil {
		return nil, fmt.Errorf("critic: %w", err)
	}
	return Learned(n.Sequences), nil
}

//go:build !js

package anymdp

import (
	_ "embed" // the released weights
	"fmt"
	"sync"

	"icrl/internal/safetensors"
)

// A program in a browser is sent over the network before it starts, and is given the
// weights when it needs them.
//
//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go, on all processors: see the model card,
// MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Forward, error) {
	f, err := safetensors.Unmarshal(released)
	if err != nil {
		return nil, fmt.Errorf("anymdp: the released weights: %w", err)
	}
	n, err := NewNetwork(Shape(), safetensors.Floats(f))
	if err != nil {
		return nil, err
	}
	return n.Sequences, nil
})

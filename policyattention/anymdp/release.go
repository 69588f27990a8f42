//go:build !js

package anymdp

import (
	_ "embed" // the released weights
	"fmt"
	"sync"

	"icrl/internal/safetensors"
	"icrl/policyattention/transformer"
)

// A program in a browser is sent over the network before it starts, and is given the
// weights when it needs them.
//
//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go: see the model card, MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Forward, error) { return Plain(Shape(), released) })

// Plain returns the network of a shape with the weights of a file in plain Go, on all processors. It returns an
// error if a tensor is missing, of another size or not finite.
func Plain(shape transformer.Config, file []byte) (Forward, error) {
	f, err := safetensors.Unmarshal(file)
	if err != nil {
		return nil, fmt.Errorf("anymdp: the weights: %w", err)
	}
	n, err := NewNetwork(shape, safetensors.Floats(f))
	if err != nil {
		return nil, err
	}
	return n.Sequences, nil
}

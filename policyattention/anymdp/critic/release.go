//go:build !js

package critic

import (
	_ "embed" // the released weights
	"fmt"
	"sync"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
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
	n, err := anymdp.NewNetwork(Shape(), safetensors.Floats(f))
	if err != nil {
		return nil, fmt.Errorf("critic: %w", err)
	}
	return Learned(n.Sequences), nil
})

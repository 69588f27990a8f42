//go:build !js

package critic

import (
	_ "embed" // the released weights
	"fmt"
	"sync"

	"icrl/policyattention/anymdp"
)

//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go, as an estimator: see the model card,
// MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Estimator, error) {
	forward, err := anymdp.Plain(Shape(), released)
	if err != nil {
		return nil, fmt.Errorf("critic: the released weights: %w", err)
	}
	return Learned(forward), nil
})

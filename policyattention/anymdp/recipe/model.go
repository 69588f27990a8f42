package recipe

import (
	"fmt"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/train"
)

// Model is a trained network. Its Forward is an [anymdp.Forward].
type Model = train.Sequences[Config]

// Load reads the weights of a training run by this recipe.
func Load(path string) (*Model, error) { return train.LoadSequences[Config](path) }

// Settle returns weights of a training run in the form in which they are released. The
// loss sees outputs less those of the empty token only; here the head's bias is changed so
// that the empty token's are 0, and outputs can be taken as they are.
func Settle(weights []byte) ([]byte, error) {
	f, err := safetensors.Unmarshal(weights)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	network, err := anymdp.NewNetwork(safetensors.Floats(f))
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	empty, err := network.Vectors([][]float64{anymdp.Empty()})
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	bias, _, err := safetensors.Get[float32](f, "head.bias")
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	for k, v := range empty[0] {
		bias[k] = float32(float64(bias[k]) - v)
	}
	if err := train.Seal(f); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	return safetensors.Marshal(f)
}

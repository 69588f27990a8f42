package recipe

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/fused"
)

// Model is a trained network on a GoMLX backend. Its Forward is an [anymdp.Forward].
type Model struct {
	*fused.Sequences
	Hash string // of the weights' configuration
	Step int
}

// Load reads the weights of a training run by this recipe.
func Load(b compute.Backend, path string) (*Model, error) {
	c, step, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	network, err := fused.NewSequences(b, c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	return &Model{network, c.Hash(), step}, nil
}

// Settle returns weights of a training run in the form in which they are released. The
// loss sees outputs less those of the empty token only; here the head's bias is changed so
// that the empty token's are 0, and outputs can be taken as they are.
func Settle(weights []byte) ([]byte, error) {
	f, err := safetensors.Unmarshal(weights)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	network, err := anymdp.NewNetwork(func(name string) ([]float32, error) {
		values, _, err := safetensors.Get[float32](f, name)
		return values, err
	})
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

// ReadWeights reads weights of a training run by this recipe: their configuration, the
// step after which they were taken, and the flat parameter vector.
func ReadWeights(path string) (c Config, step int, params []float32, err error) {
	return train.ReadParamsOf(path, func(c Config) []transformer.Tensor { return c.Network().Layout() })
}

package anymdp

import (
	"fmt"

	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// What the network is made of.
const (
	Layers, Heads, Width, Hidden = 4, 4, 64, 128
)

// Shape is the shape of the network.
func Shape() transformer.Config {
	return transformer.Config{
		Features: Features, Layers: Layers, Heads: Heads, Width: Width, Hidden: Hidden, Outputs: Outputs,
		Unordered: true,
	}
}

// NewNetwork returns the network whose parameters tensor supplies by name, in plain Go:
// float64 arithmetic in index order, with the same bits on every platform. It returns an
// error when tensor does, and for a tensor of another size or with a value that is not finite.
func NewNetwork(tensor func(name string) ([]float32, error)) (*engine.Network[float64], error) {
	n, err := engine.Of[float64](Shape(), tensor)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	return n, nil
}

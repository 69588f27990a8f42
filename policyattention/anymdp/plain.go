package anymdp

import (
	"fmt"

	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Shape is the shape of the network.
func Shape() transformer.Config {
	c := transformer.Standard(Features)
	c.Outputs, c.Unordered = Outputs, true
	return c
}

// NewNetwork returns the network of a shape whose parameters tensor supplies by name, in plain Go:
// float64 arithmetic in index order, with the same bits on every platform. It returns an
// error when tensor does, and for a tensor of another size or with a value that is not finite.
func NewNetwork(shape transformer.Config, tensor func(name string) ([]float32, error)) (*engine.Network[float64],
	error) {
	params, err := transformer.Flat(shape.Layout(), tensor)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	return engine.New[float64](shape, params)
}

package train

import (
	"fmt"

	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// Network is the configuration of a training run whose model is a network on sequences.
type Network interface {
	Validate() error
	Network() transformer.Config
	Hash() string
}

// Sequences is a trained network of a run with the configuration C.
type Sequences[C Network] struct {
	*engine.Network[float32]
	Hash string // of the weights' configuration
	Step int
}

// ReadNetwork reads weights of a training run: their configuration, the step after which
// they were taken, and the flat parameter vector.
func ReadNetwork[C Network](path string) (c C, step int, params []float32, err error) {
	return ReadParamsOf(path, func(c C) []transformer.Tensor { return c.Network().Layout() })
}

// LoadSequences reads the weights of a training run.
func LoadSequences[C Network](path string) (*Sequences[C], error) {
	c, step, params, err := ReadNetwork[C](path)
	if err != nil {
		return nil, err
	}
	network, err := engine.New[float32](c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Sequences[C]{network, c.Hash(), step}, nil
}

// Forward maps tokens [n][T][Features] to outputs [n][T·Outputs].
func (s *Sequences[C]) Forward(sequences [][][]float64) ([][]float64, error) {
	return s.Network.Sequences(sequences)
}

// With returns the network with other weights.
func (s *Sequences[C]) With(path string) (*Sequences[C], error) { return LoadSequences[C](path) }

package train

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/fused"
)

// Network is the configuration of a training run whose model is a network on sequences.
type Network interface {
	Validate() error
	Network() transformer.Config
	Hash() string
}

// Sequences is a trained network on a GoMLX backend, of a run with the configuration C. Its
// Forward maps tokens [n][T][Features] to outputs [n][T·Outputs].
type Sequences[C Network] struct {
	*fused.Sequences
	Hash string // of the weights' configuration
	Step int
}

// ReadNetwork reads weights of a training run: their configuration, the step after which
// they were taken, and the flat parameter vector.
func ReadNetwork[C Network](path string) (c C, step int, params []float32, err error) {
	return ReadParamsOf(path, func(c C) []transformer.Tensor { return c.Network().Layout() })
}

// LoadSequences reads the weights of a training run.
func LoadSequences[C Network](b compute.Backend, path string) (*Sequences[C], error) {
	c, step, params, err := ReadNetwork[C](path)
	if err != nil {
		return nil, err
	}
	network, err := fused.NewSequences(b, c.Network(), params)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Sequences[C]{network, c.Hash(), step}, nil
}

// With returns the network with other weights of its shape. Both share what has been
// compiled.
func (s *Sequences[C]) With(path string) (*Sequences[C], error) {
	c, step, params, err := ReadNetwork[C](path)
	if err != nil {
		return nil, err
	}
	network, err := s.Sequences.With(params)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Sequences[C]{network, c.Hash(), step}, nil
}

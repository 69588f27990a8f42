package anymdp

import (
	"fmt"
	"slices"

	"icrl/policyattention/pmd"
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

// Trace is one state's way through the network, with every intermediate result: what
// Actor makes of a row, step by step.
type Trace struct {
	Row    *Row
	Pass   *engine.Trace
	Logits []float64 // [A]
	Policy []float64 // [A], their softmax
}

// NewTrace takes a state through the network: a row π of a policy [A] and its Q [A] at
// step size eta. It returns the errors of NewRow.
func NewTrace(n *engine.Network[float64], readout Readout, pi, q []float64, eta float64) (*Trace, error) {
	row, err := NewRow(pi, q, eta)
	if err != nil {
		return nil, err
	}
	pass, err := n.Trace(slices.Concat(row.Tokens...))
	if err != nil {
		return nil, err
	}
	t := &Trace{Row: row, Pass: pass, Logits: make([]float64, len(pi)), Policy: make([]float64, len(pi))}
	var outputs []float64
	for _, x := range pass.Outputs {
		outputs = append(outputs, x...)
	}
	row.Logits(readout, outputs, t.Logits)
	copy(t.Policy, t.Logits)
	pmd.Softmax(t.Policy)
	return t, nil
}

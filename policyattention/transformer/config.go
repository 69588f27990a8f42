// Package transformer is the learned network of PolicyAttention: a pre-LN
// Transformer, causal unless asked otherwise, that reads a context of tokens and
// writes numbers for each token, with the AdamW optimizer that trains it. Here are its shape and,
// as a graph of GoMLX, the definition of what it computes, which is trained on GPUs; package engine computes
// that faster on CPUs, in plain Go.
//
// All parameters live in one flat float32 vector, in the order that
// [Config.Layout] gives. The optimizer's moments have the same shape, so an
// optimizer step is one elementwise pass, a checkpoint is three vectors, and
// nothing depends on the names of variables.
package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"icrl/internal/numeric"
)

// Epsilon keeps LayerNorm finite on constant rows: 1e-5.
const Epsilon = numeric.LayerNormEpsilon

// Config is the shape of a network. Every block is
//
//	h += Attention(LayerNorm(h))
//	h += W₂·ReLU(W₁·LayerNorm(h) + b₁) + b₂
//
// with biases everywhere, a causal mask unless Unordered, and no positional encoding;
// a last LayerNorm and a linear head follow the blocks.
type Config struct {
	Features int `json:"features"` // numbers per token
	Layers   int `json:"layers"`   // blocks
	Heads    int `json:"heads"`    // attention heads; divides Width
	Width    int `json:"width"`    // model width d
	Hidden   int `json:"hidden"`   // units of the feed-forward layer
	Outputs  int `json:"outputs"`  // numbers written per token
	// Unordered is without the causal mask: every token sees all. Since tokens carry no
	// positions, the network is then a function of a set of tokens, equivariant to their
	// order.
	Unordered bool `json:"unordered,omitempty"`
	// Group parts every sequence into groups of so many consecutive tokens, which see nothing of
	// each other: 1 takes attention between tokens away. 0 stands for the whole sequence.
	Group int `json:"group,omitempty"`
}

// Standard returns the network of the paper's experiments: 4 blocks of width
// 64 with 4 heads and 128 hidden units, and one output per token.
func Standard(features int) Config {
	return Config{Features: features, Layers: 4, Heads: 4, Width: 64, Hidden: 128, Outputs: 1}
}

// Validate reports the first field that makes no network.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Features", c.Features}, {"Layers", c.Layers}, {"Heads", c.Heads},
		{"Width", c.Width}, {"Hidden", c.Hidden}, {"Outputs", c.Outputs},
	} {
		if f.value < 1 || f.value > 1<<16 {
			return fmt.Errorf("transformer: %s is %d, want between 1 and 65536", f.name, f.value)
		}
	}
	if c.Group < 0 {
		return fmt.Errorf("transformer: groups of %d tokens", c.Group)
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("transformer: %d heads do not divide width %d", c.Heads, c.Width)
	}
	return nil
}

// Tensor is a named part of the flat parameter vector: the numbers from
// Offset on, in row-major order. A weight matrix has the shape [in, out].
type Tensor struct {
	Name   string
	Shape  []int
	Offset int
}

// Size is the number of values in the tensor.
func (t Tensor) Size() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Layout lists the parameters in the order of the flat vector. The columns of
// "qkv" are queries, keys and values, each with its heads side by side.
func (c Config) Layout() []Tensor {
	var layout []Tensor
	offset := 0
	add := func(name string, shape ...int) {
		t := Tensor{Name: name, Shape: shape, Offset: offset}
		layout = append(layout, t)
		offset += t.Size()
	}
	linear := func(name string, in, out int) {
		add(name+".weight", in, out)
		add(name+".bias", out)
	}
	norm := func(name string) {
		add(name+".gain", c.Width)
		add(name+".bias", c.Width)
	}
	linear("embed", c.Features, c.Width)
	for l := range c.Layers {
		block := fmt.Sprintf("blocks.%d.", l)
		norm(block + "norm1")
		linear(block+"qkv", c.Width, 3*c.Width)
		linear(block+"out", c.Width, c.Width)
		norm(block + "norm2")
		linear(block+"up", c.Width, c.Hidden)
		linear(block+"down", c.Hidden, c.Width)
	}
	norm("norm")
	linear("head", c.Width, c.Outputs)
	return layout
}

// Flat returns the flat vector of a layout, whose tensors a function supplies by their names. It returns an error for
// one of another size.
func Flat(layout []Tensor, tensor func(name string) ([]float32, error)) (params []float32, err error) {
	for _, t := range layout {
		values, err := tensor(t.Name)
		if err == nil && len(values) != t.Size() {
			err = fmt.Errorf("transformer: %d values of %s, want %d", len(values), t.Name, t.Size())
		}
		if err != nil {
			return nil, err
		}
		params = append(params, values...)
	}
	return params, nil
}

// Size is the length of the flat parameter vector.
func (c Config) Size() int {
	layout := c.Layout()
	last := layout[len(layout)-1]
	return last.Offset + last.Size()
}

// Init draws initial parameters: weight matrices from N(0, 1/fan-in), zero
// biases, unit gains.
func (c Config) Init(rng *rand.Rand) []float32 {
	params := make([]float32, c.Size())
	for _, t := range c.Layout() {
		values := params[t.Offset : t.Offset+t.Size()]
		switch {
		case len(t.Shape) == 2:
			scale := 1 / math.Sqrt(float64(t.Shape[0]))
			for i := range values {
				values[i] = float32(scale * rng.NormFloat64())
			}
		case strings.HasSuffix(t.Name, ".gain"):
			for i := range values {
				values[i] = 1
			}
		}
	}
	return params
}

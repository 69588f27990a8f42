// Package transformer is the learned network of PolicyAttention: a pre-LN Transformer, causal unless asked otherwise,
// that reads a context of tokens and writes numbers for each token, with the AdamW optimizer that trains it. Here are
// its shape and, as a graph of GoMLX, the definition of what it computes, which is trained on GPUs; package engine
// computes that faster on CPUs, in plain Go.
//
// All parameters live in one flat float32 vector, in the order that [Config.Layout] gives. The optimizer's moments have
// the same shape, so an optimizer step is one elementwise pass, a checkpoint is three vectors, and nothing depends on
// the names of variables.
package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Config is the shape of a network. Every block is
//
//	h += Attention(LayerNorm(h))
//	h += W₂·ReLU(W₁·LayerNorm(h) + b₁) + b₂
//
// with biases, a causal mask unless Unordered, and no positions; a last LayerNorm and a linear head follow the blocks.
type Config struct {
	Features int `json:"features"` // numbers per token
	Layers   int `json:"layers"`   // blocks
	Heads    int `json:"heads"`    // attention heads; divides Width
	Width    int `json:"width"`    // model width d
	Hidden   int `json:"hidden"`   // units of the feed-forward layer
	Outputs  int `json:"outputs"`  // numbers written per token
	// Unordered is without the causal mask: every token sees all. Since tokens carry no positions, the network is then
	// a function of a set of tokens, equivariant to their order.
	Unordered bool `json:"unordered,omitempty"`
	// Group parts every sequence into groups of so many consecutive tokens, which see nothing of
	// each other: 1 takes attention between tokens away. 0 stands for the whole sequence.
	Group int `json:"group,omitempty"`
}

// Standard returns the paper's network: 4 blocks of width 64 with 4 heads and 128 hidden units, one output per token.
func Standard(features int) Config {
	return Config{Features: features, Layers: 4, Heads: 4, Width: 64, Hidden: 128, Outputs: 1}
}

// Validate reports what makes no network.
func (c Config) Validate() error {
	sizes := []int{c.Features, c.Layers, c.Heads, c.Width, c.Hidden, c.Outputs}
	if slices.Min(sizes) < 1 || slices.Max(sizes) > 1<<16 || c.Group < 0 {
		return fmt.Errorf("transformer: network %+v, want sizes between 1 and 65536 and no negative group", c)
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

// Flat returns the flat vector of a layout, whose tensors a function supplies by name. It refuses other sizes.
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

// Init draws initial parameters: weight matrices from N(0, 1/fan-in), zero biases, unit gains.
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

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101) on one flat vector. The decay
// acts on every parameter, biases and gains included, as in optax.adamw and torch.optim.AdamW.
type AdamW struct {
	LearningRate float64
	WeightDecay  float64
	Beta1, Beta2 float64 // decay of the first and second moment
	Epsilon      float64
	// Cosine, if not 0, is over how many steps the rate rises to LearningRate, in the first hundred, and falls to 0
	// with the cosine from 0 to π (Loshchilov and Hutter, arXiv 1608.03983, without restarts). It is 0 after them.
	Cosine int `json:",omitempty"`
}

// StandardAdamW is the paper's setting; what it leaves open has the usual values.
func StandardAdamW() AdamW {
	return AdamW{LearningRate: 3e-4, WeightDecay: 1e-4, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
}

// Validate wants positive rates (the decay of weights may be 0) below 10⁶, and those of the moments in [0, 1).
func (o AdamW) Validate() error {
	if !(o.LearningRate > 0 && o.LearningRate < 1e6 && o.WeightDecay >= 0 && o.WeightDecay < 1e6 &&
		o.Epsilon > 0 && o.Epsilon < 1e6 && o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1 &&
		o.Cosine >= 0) {
		return fmt.Errorf("transformer: optimizer %+v, want positive finite rates and decays below 1", o)
	}
	return nil
}

// Rate is the learning rate of a step that counts from 1.
func (o AdamW) Rate(step int) float64 {
	if o.Cosine == 0 {
		return o.LearningRate
	}
	done := min(1, float64(step)/float64(o.Cosine))
	return o.LearningRate * (math.Cos(math.Pi*done) + 1) / 2 * min(1, float64(step)/100)
}

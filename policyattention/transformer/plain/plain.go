// Package plain runs the learned network in plain Go, without GoMLX: for the
// browser, and as a second opinion on the network of package transformer.
package plain

import (
	"fmt"
	"math"
	"slices"

	"icrl/internal/numeric"
)

// Network is the pre-LN Transformer of package transformer. Weights are the
// trained float32 values; arithmetic is float64, in index order, so results have
// the same bits on every platform.
type Network struct {
	features, width, heads int
	unordered              bool
	embed, head            linear
	blocks                 []block
	norm                   norm
}

type block struct {
	norm1, norm2       norm
	qkv, out, up, down linear
}

// linear is x·Weight + bias.
type linear struct {
	weight [][]float64 // [in][out]
	bias   []float64   // [out]
}

type norm struct{ gain, bias []float64 }

// New returns the network of the given shape; tensor supplies the values of
// each parameter, row-major, by its name in transformer.Config.Layout. It returns an error
// when tensor does, or supplies another number of values than the shape has, or
// one that is not finite.
func New(features, layers, heads, width, hidden int, tensor func(name string) ([]float32, error)) (*Network, error) {
	return build(features, layers, heads, width, hidden, 1, tensor)
}

// NewUnordered is New for a network without the causal mask (Unordered in
// transformer.Config) that writes a number of outputs per token.
func NewUnordered(features, layers, heads, width, hidden, outputs int, tensor func(name string) ([]float32, error)) (*Network, error) {
	n, err := build(features, layers, heads, width, hidden, outputs, tensor)
	if err != nil {
		return nil, err
	}
	n.unordered = true
	return n, nil
}

func build(features, layers, heads, width, hidden, outputs int, tensor func(name string) ([]float32, error)) (*Network, error) {
	const most = 1 << 12
	for _, n := range []int{features, layers, heads, width, hidden, outputs} {
		if n < 1 || n > most {
			return nil, fmt.Errorf("plain: a network with %d features, %d layers, %d heads, width %d, %d hidden units and %d outputs, want each between 1 and %d", features, layers, heads, width, hidden, outputs, most)
		}
	}
	if width%heads != 0 {
		return nil, fmt.Errorf("plain: %d heads do not divide width %d", heads, width)
	}
	var err error
	vector := func(name string, n int) []float64 {
		if err != nil {
			return nil
		}
		var values []float32
		if values, err = tensor(name); err != nil {
			return nil
		}
		if len(values) != n {
			err = fmt.Errorf("plain: %s has %d values, want %d", name, len(values), n)
			return nil
		}
		wide := make([]float64, n)
		for i, v := range values {
			wide[i] = float64(v)
			if math.IsNaN(wide[i]) || math.IsInf(wide[i], 0) {
				err = fmt.Errorf("plain: %s holds %v", name, v)
				return nil
			}
		}
		return wide
	}
	dense := func(name string, in, out int) (l linear) {
		flat := vector(name+".weight", in*out)
		l.bias = vector(name+".bias", out)
		for i := 0; i < len(flat); i += out {
			l.weight = append(l.weight, flat[i:i+out])
		}
		return l
	}
	layerNorm := func(name string) norm { return norm{vector(name+".gain", width), vector(name+".bias", width)} }

	n := &Network{features: features, width: width, heads: heads}
	n.embed = dense("embed", features, width)
	for l := 0; l < layers && err == nil; l++ {
		p := fmt.Sprintf("blocks.%d.", l)
		n.blocks = append(n.blocks, block{
			norm1: layerNorm(p + "norm1"), qkv: dense(p+"qkv", width, 3*width), out: dense(p+"out", width, width),
			norm2: layerNorm(p + "norm2"), up: dense(p+"up", width, hidden), down: dense(p+"down", hidden, width),
		})
	}
	n.norm, n.head = layerNorm("norm"), dense("head", width, outputs)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Forward maps tokens [T][Features] to the first output per token [T].
func (n *Network) Forward(tokens [][]float64) ([]float64, error) {
	all, err := n.Vectors(tokens)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(all))
	for i, x := range all {
		out[i] = x[0]
	}
	return out, nil
}

// Vectors maps tokens [T][Features] to all outputs per token [T][Outputs].
func (n *Network) Vectors(tokens [][]float64) ([][]float64, error) {
	h, err := n.embedded(tokens)
	if err != nil {
		return nil, err
	}
	for i := range n.blocks {
		n.step(&n.blocks[i], h, nil)
	}
	return n.read(h), nil
}

func (n *Network) embedded(tokens [][]float64) ([][]float64, error) {
	h := make([][]float64, len(tokens))
	for i, x := range tokens {
		if len(x) != n.features {
			return nil, fmt.Errorf("plain: token %d has %d features, want %d", i, len(x), n.features)
		}
		h[i] = n.embed.of(x)
	}
	return h, nil
}

func (n *Network) read(h [][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for i, x := range h {
		out[i] = n.head.of(n.norm.of(x))
	}
	return out
}

// step takes tokens h [T][width] through a block, and notes in t, unless it is nil, what
// happens there.
func (n *Network) step(b *block, h [][]float64, t *BlockTrace) {
	qkv := make([][]float64, len(h))
	for i, x := range h {
		qkv[i] = b.qkv.of(b.norm1.of(x))
	}
	for i, x := range h {
		seen := qkv[:i+1]
		if n.unordered {
			seen = qkv
		}
		mixed, weights := n.attend(qkv[i], seen)
		addTo(x, b.out.of(mixed))
		if t != nil {
			t.attention(n, qkv[i], weights, mixed, x)
		}
	}
	for _, x := range h {
		up := b.up.of(b.norm2.of(x))
		for j, v := range up {
			up[j] = math.Max(0, v)
		}
		addTo(x, b.down.of(up))
		if t != nil {
			t.Units, t.Output = append(t.Units, up), append(t.Output, slices.Clone(x))
		}
	}
}

// attend returns the heads' outputs [width] for a token, given its query (first in
// own) and the queries, keys and values [3·width] of the tokens that it sees; and how the
// heads weigh these [heads·seen].
func (n *Network) attend(own []float64, qkv [][]float64) (mixed, weights []float64) {
	dim, seen := n.width/n.heads, len(qkv)
	query := own[:n.width]
	mixed, weights = make([]float64, n.width), make([]float64, n.heads*seen)
	for head := range n.heads {
		lo, w := head*dim, weights[head*seen:(head+1)*seen]
		top := math.Inf(-1)
		for j, x := range qkv {
			score := 0.0
			for i := lo; i < lo+dim; i++ {
				score += float64(query[i] * x[n.width+i])
			}
			w[j] = score / math.Sqrt(float64(dim))
			top = math.Max(top, w[j])
		}
		total := 0.0
		for j, z := range w {
			w[j] = numeric.Exp(z - top)
			total += w[j]
		}
		for j, x := range qkv {
			w[j] /= total
			for i := lo; i < lo+dim; i++ {
				mixed[i] += float64(w[j] * x[2*n.width+i])
			}
		}
	}
	return mixed, weights
}

// of adds four products at a time to each output, in the order of the inputs: the bits
// are those of one after another, and outputs are loaded and stored a quarter as often.
func (l *linear) of(x []float64) []float64 {
	y := append([]float64(nil), l.bias...)
	var v [4]float64
	var w [4][]float64
	n := 0
	for i, u := range x {
		if u == 0 {
			continue
		}
		v[n], w[n] = u, l.weight[i][:len(y)]
		if n++; n < len(v) {
			continue
		}
		n = 0
		v0, v1, v2, v3 := v[0], v[1], v[2], v[3]
		w0, w1, w2, w3 := w[0][:len(y)], w[1][:len(y)], w[2][:len(y)], w[3][:len(y)]
		for j, sum := range y {
			y[j] = sum + float64(v0*w0[j]) + float64(v1*w1[j]) + float64(v2*w2[j]) + float64(v3*w3[j])
		}
	}
	for k := range n {
		for j, u := range w[k] {
			y[j] += float64(v[k] * u)
		}
	}
	return y
}

func (l *norm) of(x []float64) []float64 {
	n, mean, variance := float64(len(x)), 0.0, 0.0
	for _, v := range x {
		mean += v
	}
	mean /= n
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - mean
		variance += float64(y[i] * y[i])
	}
	scale := 1 / math.Sqrt(variance/n+numeric.LayerNormEpsilon)
	for i, v := range y {
		y[i] = float64(float64(v*scale)*l.gain[i]) + l.bias[i]
	}
	return y
}

func addTo(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

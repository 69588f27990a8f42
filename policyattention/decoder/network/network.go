// Package network is a decoder-only attention network whose weights are given,
// not trained: its definition, a traced pass by that definition, and a fast pass
// with a key–value cache that leaves out what cannot reach a readout. It knows
// nothing of reinforcement learning; package decoder writes weights for it.
//
// All arithmetic is plain Go in a fixed order, so its bits are the same on every
// platform.
package network

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// Network is a decoder-only Transformer with causal softmax attention. Tokens are
// vectors of Width numbers, weights are ordinary matrices, and token i passes as
//
//	for each block:
//	    u = norm(x)
//	    x = x + Σ_h O_h Σ_{j≤i} softmax_{j≤i}(⟨Q_h u_i, K_h u_j⟩) V_h u_j
//	    u = norm(x)
//	    x = x + W₂ relu(W₁ u)
//	x = norm(x)
//
// where a missing norm is the identity. The factor 1/√HeadDim of the usual
// definition is absorbed in Q. There are no positions and no biases.
type Network struct {
	Width   int // numbers in a token
	HeadDim int // numbers in a query, a key and a value
	Blocks  []Block
	Norm    *LayerNorm // final norm, or nil
}

// Block is one layer of a Network.
type Block struct {
	Heads         []Head
	AttentionNorm *LayerNorm // before the heads, or nil
	MapNorm       *LayerNorm // before the ReLU map, or nil
	W1            *mat.Dense // [hidden, Width]; nil for a block without ReLU map
	W2            *mat.Dense // [Width, hidden]
}

// Head holds the four matrices of an attention head.
type Head struct {
	Name string
	Q    *mat.Dense // [HeadDim, Width]
	K    *mat.Dense // [HeadDim, Width]
	V    *mat.Dense // [HeadDim, Width]
	O    *mat.Dense // [Width, HeadDim]
	// Shift is a slot in which keys differ that are else alike, so that a pass groups them; 0
	// stands for none.
	Shift int
}

// LayerNorm is the standard operation: subtract the mean, divide by
// √(variance + Epsilon), multiply by Gain. Its bias is zero.
type LayerNorm struct {
	Gain    []float64 // [Width]
	Epsilon float64
}

// Apply stores the norm of x [Width] in dst [Width], which may be x.
func (l *LayerNorm) Apply(dst, x []float64) {
	n := float64(len(x))
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= n
	variance := 0.0
	for i, v := range x {
		dst[i] = v - mean
		variance += float64(dst[i] * dst[i])
	}
	scale := 1 / math.Sqrt(variance/n+l.Epsilon)
	for i, g := range l.Gain {
		dst[i] *= float64(scale * g)
	}
}

// Readout is an affine map W x + Bias of the last layer's tokens.
type Readout struct {
	Name string
	W    *mat.Dense // [n, Width]
	Bias []float64  // [n]
}

// Of returns the readout [n] of the token x [Width].
func (r *Readout) Of(x []float64) []float64 {
	y := append([]float64(nil), r.Bias...)
	for j := range y {
		y[j] += numeric.Dot(r.W.RawRowView(j), x)
	}
	return y
}

// validate reports the first matrix that has the wrong shape or an entry that
// is not finite.
func (n *Network) validate() error {
	shape := func(name string, m *mat.Dense, rows, cols int) error {
		if m == nil {
			return fmt.Errorf("network: weight %s is missing", name)
		}
		if r, c := m.Dims(); r != rows || c != cols {
			return fmt.Errorf("network: weight %s is [%d, %d], want [%d, %d]", name, r, c, rows, cols)
		}
		for i := range rows {
			for j, v := range m.RawRowView(i) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return fmt.Errorf("network: weight %s[%d,%d] is %v, want a finite number", name, i, j, v)
				}
			}
		}
		return nil
	}
	for _, w := range n.Matrices() {
		if err := shape(w.Name, w.Matrix, w.Rows, w.Cols); err != nil {
			return err
		}
	}
	for _, l := range n.norms() {
		if l != nil && len(l.Gain) != n.Width {
			return fmt.Errorf("network: layer norm with %d gains, want %d", len(l.Gain), n.Width)
		}
		if l == nil {
			continue
		}
		for i, v := range l.Gain {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("network: layer norm gain %d is %v, want a finite number", i, v)
			}
		}
	}
	return nil
}

// Weight is a weight matrix of a network.
type Weight struct {
	Name       string
	Matrix     *mat.Dense
	Rows, Cols int // the shape that it must have
}

// Matrices lists the weight matrices in the order of the pass, by name:
// "block.0.head.1.q", "block.0.map.w1", ….
func (n *Network) Matrices() []Weight {
	var list []Weight
	for b, block := range n.Blocks {
		for h, head := range block.Heads {
			prefix := fmt.Sprintf("block.%d.head.%d.", b, h)
			list = append(list,
				Weight{prefix + "q", head.Q, n.HeadDim, n.Width},
				Weight{prefix + "k", head.K, n.HeadDim, n.Width},
				Weight{prefix + "v", head.V, n.HeadDim, n.Width},
				Weight{prefix + "o", head.O, n.Width, n.HeadDim})
		}
		if block.W1 != nil {
			hidden, _ := block.W1.Dims()
			prefix := fmt.Sprintf("block.%d.map.", b)
			list = append(list,
				Weight{prefix + "w1", block.W1, hidden, n.Width},
				Weight{prefix + "w2", block.W2, n.Width, hidden})
		}
	}
	return list
}

// norms lists the layer norms in the order of the pass, nil in place of a missing one.
func (n *Network) norms() []*LayerNorm {
	var list []*LayerNorm
	for _, b := range n.Blocks {
		list = append(list, b.AttentionNorm, b.MapNorm)
	}
	return append(list, n.Norm)
}

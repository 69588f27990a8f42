package decoder

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
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
// where the norm is one for all, and the identity without a gain. The factor 1/√HeadDim of the usual
// definition is absorbed in Q. There are no positions and no biases.
type Network struct {
	Width   int // numbers in a token
	HeadDim int // numbers in a query, a key and a value
	Blocks  []Block
	// Gain [Width] is that of the norm; nil for a network without. The norm is the standard operation: subtract
	// the mean, divide by √(variance + numeric.LayerNormEpsilon), multiply by the gain. Its bias is zero.
	Gain []float64
}

// Block is one layer of a Network.
type Block struct {
	Heads []Head
	W1    *mat.Dense // [hidden, Width]; nil for a block without ReLU map
	W2    *mat.Dense // [Width, hidden]
}

// Head holds the four matrices of an attention head.
type Head struct {
	Name string
	Q    *mat.Dense // [HeadDim, Width]
	K    *mat.Dense // [HeadDim, Width]
	V    *mat.Dense // [HeadDim, Width]
	O    *mat.Dense // [Width, HeadDim]
	// Shift is a slot in which keys differ that are else alike, so that a pass groups them; 0 stands for none.
	Shift int
}

// normalize stores the norm of x [Width] in dst [Width], which may be x.
func normalize(dst, x, gain []float64) {
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
	scale := 1 / math.Sqrt(variance/n+numeric.LayerNormEpsilon)
	for i, g := range gain {
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
	y := product(r.W, x)
	floats.Add(y, r.Bias)
	return y
}

// product returns the matrix times x.
func product(m *mat.Dense, x []float64) []float64 {
	y := make([]float64, m.RawMatrix().Rows)
	for i := range y {
		y[i] = numeric.Dot(m.RawRowView(i), x)
	}
	return y
}

// validate reports the first weight, of the network and a readout, that has a wrong shape or an entry not finite.
func (n *Network) validate(r *Readout) error {
	row := func(x []float64) *mat.Dense {
		if len(x) == 0 {
			return nil
		}
		return mat.NewDense(1, len(x), x)
	}
	list := n.Matrices()
	if n.Gain != nil {
		list = append(list, Weight{"norm.gain", row(n.Gain), 1, n.Width})
	}
	list = append(list, Weight{r.Name + ".w", r.W, len(r.Bias), n.Width},
		Weight{r.Name + ".bias", row(r.Bias), 1, len(r.Bias)})
	for _, w := range list {
		if w.Matrix == nil {
			return fmt.Errorf("decoder: weight %s is missing", w.Name)
		}
		if r, c := w.Matrix.Dims(); r != w.Rows || c != w.Cols {
			return fmt.Errorf("decoder: weight %s is [%d, %d], want [%d, %d]", w.Name, r, c, w.Rows, w.Cols)
		}
		for i := range w.Rows {
			for j, v := range w.Matrix.RawRowView(i) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return fmt.Errorf("decoder: weight %s[%d,%d] is %v, want a finite number", w.Name, i, j, v)
				}
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

// Matrices lists the weight matrices in the order of the pass, by name: "block.0.head.1.q", "block.0.map.w1", ….
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

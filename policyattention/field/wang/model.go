package wang

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/pmd"
)

// Attention says what is made of the scores ZᵀQZ [n+1, n+1] of a trained layer: rows are
// keys, columns are queries.
type Attention string

const (
	// Linear is the scores over n.
	Linear Attention = "linear"
	// OverKeys is softmax attention as everywhere: the weights of a query's keys, a
	// column, sum to one.
	OverKeys Attention = "softmax"
	// OverQueries is what the public code computes: a key's weights for all queries, a
	// row, sum to one, and are then divided by n.
	OverQueries Attention = "softmax-over-queries"
	// OverKeysByN is OverKeys divided by n.
	OverKeysByN Attention = "softmax-by-n"
)

// Network is the shape of a trained Transformer.
type Network struct {
	D          int       `json:"d"`          // length of features
	N          int       `json:"n"`          // transitions of a context
	Layers     int       `json:"layers"`     // applied one after the other
	Sequential bool      `json:"sequential"` // each layer has weights of its own; else one is looped
	Attention  Attention `json:"attention"`
}

func (n Network) validate() error {
	switch {
	case n.D < 1 || n.N < 1 || n.Layers < 1:
		return fmt.Errorf("wang: a network of %d layers for %d transitions in features of length %d, want at least one of each", n.Layers, n.N, n.D)
	case !slices.Contains([]Attention{Linear, OverKeys, OverQueries, OverKeysByN}, n.Attention):
		return fmt.Errorf("wang: unknown attention %q", n.Attention)
	}
	return nil
}

// share is what weights are multiplied by.
func (n Network) share() float64 {
	if n.Attention == OverKeys {
		return 1
	}
	return 1 / float64(n.N)
}

// rows is the height of a prompt, 2d+1.
func (n Network) rows() int { return 2*n.D + 1 }

// blocks is the number of layers with weights of their own.
func (n Network) blocks() int {
	if n.Sequential {
		return n.Layers
	}
	return 1
}

// Size is the number of parameters: for each layer of its own P and then Q [2d+1, 2d+1], and
// at the end the step size of the TD(0) that it is compared with.
func (n Network) Size() int { return 2*n.rows()*n.rows()*n.blocks() + 1 }

// Weights returns P and Q of layer l as views, and the compared step size.
func (n Network) Weights(params []float64, l int) (p, q *mat.Dense) {
	r := n.rows()
	block := params[2*r*r*(l%n.blocks()):]
	return mat.NewDense(r, r, block[:r*r]), mat.NewDense(r, r, block[r*r:2*r*r])
}

// Step returns the step size of TD(0) that was fitted beside the network.
func (n Network) Step(params []float64) float64 { return params[len(params)-1] }

// initial draws parameters by Xavier's normal distribution with the gain .1, over the number of layers
// if each has its own; the step size starts at 1.
func (n Network) initial(rng *rand.Rand) []float64 {
	params := make([]float64, n.Size())
	deviation := .1 / float64(n.blocks()) / math.Sqrt(float64(n.rows()))
	for i := range params {
		params[i] = deviation * rng.NormFloat64()
	}
	params[len(params)-1] = 1
	return params
}

// Forward returns the prompt [2d+1, n+q] after each layer, the given one first, in plain Go. It
// has q ≥ 1 queries, which nothing attends to; only with linear attention more than one.
func (n Network) Forward(params []float64, prompt *mat.Dense) ([]*mat.Dense, error) {
	if err := n.validate(); err != nil {
		return nil, err
	}
	if len(params) != n.Size() {
		return nil, fmt.Errorf("wang: %d parameters, want %d", len(params), n.Size())
	}
	if rows, cols := prompt.Dims(); rows != n.rows() || cols < n.N+1 || cols > n.N+1 && n.Attention != Linear {
		return nil, fmt.Errorf("wang: the prompt is [%d, %d], want [%d, %d], with linear attention more columns too", rows, cols, n.rows(), n.N+1)
	}
	all := []*mat.Dense{prompt}
	for l := range n.Layers {
		p, q := n.Weights(params, l)
		all = append(all, n.apply(all[l], p, q))
	}
	return all, nil
}

// apply is one layer in plain Go.
func (n Network) apply(z, p, q *mat.Dense) *mat.Dense {
	var qz, scores, values, out mat.Dense
	qz.Mul(q, z)
	scores.Mul(z.T(), &qz)
	n.activate(&scores)
	_, size := z.Dims()
	for k := n.N; k < size; k++ {
		clear(scores.RawRowView(k)) // M
	}
	values.Mul(p, z)
	out.Mul(&values, &scores)
	out.Add(z, &out)
	return &out
}

// activate replaces scores by what Attention makes of them.
func (n Network) activate(scores *mat.Dense) {
	size, _ := scores.Dims()
	switch n.Attention {
	case OverKeys, OverKeysByN:
		for j := range size {
			column := mat.Col(nil, j, scores)
			pmd.Softmax(column)
			scores.SetCol(j, column)
		}
	case OverQueries:
		for i := range size {
			pmd.Softmax(scores.RawRowView(i))
		}
	}
	scores.Scale(n.share(), scores)
}

package network

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
)

// Trace is every intermediate result of one pass over N tokens. It is computed
// by the textbook definition with dense matrices, apart from Pass, which it
// agrees with up to the rounding of sums taken in another order; so looking
// costs the normal path nothing, and each can check the other.
type Trace struct {
	Tokens [][]float64 // [N][Width]
	Blocks []BlockTrace
	Output [][]float64 // [N][Width], after the final norm
}

// BlockTrace is what happened in one block.
type BlockTrace struct {
	Heads    []HeadTrace
	Attended [][]float64 // [N][Width], tokens with the heads' outputs added
	Pre      [][]float64 // [N][hidden], before the ReLU; nil without ReLU map
	Post     [][]float64 // [N][hidden], after it
	Output   [][]float64 // [N][Width], tokens leaving the block
}

// HeadTrace is what happened in one head. Scores and weights, which take a
// number for each pair of tokens, are computed a row at a time when asked for.
type HeadTrace struct {
	Name    string
	Query   [][]float64 // [N][HeadDim]
	Key     [][]float64 // [N][HeadDim]
	Value   [][]float64 // [N][HeadDim]
	Mixed   [][]float64 // [N][HeadDim], attention-weighted means of values
	Written [][]float64 // [N][Width], O times Mixed
}

// Scores returns the scores of tokens 0…i under the query of token i.
func (h *HeadTrace) Scores(i int) []float64 {
	row := make([]float64, i+1)
	for j := range row {
		row[j] = numeric.Dot(h.Query[i], h.Key[j])
	}
	return row
}

// Weights returns the attention weights of tokens 0…i for token i.
func (h *HeadTrace) Weights(i int) []float64 {
	row := h.Scores(i)
	top, total := math.Inf(-1), 0.0
	for _, z := range row {
		top = math.Max(top, z)
	}
	for j, z := range row {
		row[j] = numeric.Exp(z - top)
		total += row[j]
	}
	for j := range row {
		row[j] /= total
	}
	return row
}

// Trace passes tokens [N][Width] through the network and keeps everything. It
// takes time quadratic in N.
func (n *Network) Trace(tokens [][]float64) (*Trace, error) {
	if err := n.validate(); err != nil {
		return nil, err
	}
	for i, x := range tokens {
		if len(x) != n.Width {
			return nil, fmt.Errorf("network: token %d has %d numbers, want width %d", i, len(x), n.Width)
		}
	}
	t, x := &Trace{Tokens: tokens}, tokens
	for _, block := range n.Blocks {
		var bt BlockTrace
		u := normAll(block.AttentionNorm, x)
		bt.Attended = each(x, func(x []float64) []float64 { return append([]float64(nil), x...) })
		for _, head := range block.Heads {
			h := HeadTrace{Name: head.Name, Query: apply(head.Q, u), Key: apply(head.K, u), Value: apply(head.V, u)}
			for i := range u {
				mixed := make([]float64, n.HeadDim)
				for j, w := range h.Weights(i) {
					for k, v := range h.Value[j] {
						mixed[k] += float64(w * v)
					}
				}
				h.Mixed = append(h.Mixed, mixed)
			}
			h.Written = apply(head.O, h.Mixed)
			addAll(bt.Attended, h.Written)
			bt.Heads = append(bt.Heads, h)
		}
		bt.Output = bt.Attended
		if block.W1 != nil {
			bt.Pre = apply(block.W1, normAll(block.MapNorm, bt.Attended))
			bt.Post = each(bt.Pre, func(x []float64) []float64 {
				y := make([]float64, len(x))
				for i, v := range x {
					y[i] = math.Max(0, v)
				}
				return y
			})
			bt.Output = apply(block.W2, bt.Post)
			addAll(bt.Output, bt.Attended)
		}
		x = bt.Output
		t.Blocks = append(t.Blocks, bt)
	}
	t.Output = normAll(n.Norm, x)
	return t, nil
}

// AttentionRow returns the attention weights of the last of the tokens [N][Width] in a head of the
// first block: those of Trace, without the rest of the pass.
func (n *Network) AttentionRow(tokens [][]float64, head int) []float64 {
	b, last := n.Blocks[0], len(tokens)-1
	u := normAll(b.AttentionNorm, tokens)
	h := HeadTrace{Query: make([][]float64, last+1), Key: apply(b.Heads[head].K, u)}
	h.Query[last] = apply(b.Heads[head].Q, u[last:])[0]
	return h.Weights(last)
}

// each returns f of every row.
func each(rows [][]float64, f func([]float64) []float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i, x := range rows {
		out[i] = f(x)
	}
	return out
}

func apply(m *mat.Dense, rows [][]float64) [][]float64 {
	return each(rows, func(x []float64) []float64 {
		y := make([]float64, m.RawMatrix().Rows)
		for i := range y {
			y[i] = numeric.Dot(m.RawRowView(i), x)
		}
		return y
	})
}

func normAll(l *LayerNorm, rows [][]float64) [][]float64 {
	if l == nil {
		return rows
	}
	return each(rows, func(x []float64) []float64 {
		y := make([]float64, len(x))
		l.Apply(y, x)
		return y
	})
}

func addAll(dst, rows [][]float64) {
	for i, x := range rows {
		for j, v := range x {
			dst[i][j] += v
		}
	}
}

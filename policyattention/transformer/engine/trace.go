package engine

import "fmt"

// Trace is every intermediate result of one pass over T tokens.
type Trace struct {
	Tokens   [][]float64 // [T][Features]
	Embedded [][]float64 // [T][Width]
	Blocks   []BlockTrace
	Outputs  [][]float64 // [T][Outputs]
}

// BlockTrace is what happened in a block. A token sees all T tokens or, with the causal mask, itself and those before.
type BlockTrace struct {
	Query, Key, Value [][]float64   // [T][Width], the heads' side by side
	Weights           [][][]float64 // [Heads][T][seen], each row sums to one
	Mixed             [][]float64   // [T][Width], attention-weighted means of values, the heads' side by side
	Attended          [][]float64   // [T][Width], tokens with what the heads wrote added
	Units             [][]float64   // [T][Hidden], the ReLU's, not below 0
	Output            [][]float64   // [T][Width], tokens leaving the block
}

// copied returns the first n rows of width entries.
func (m matrix[F]) copied(n, width int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, width)
		for j, v := range m.row(i)[:width] {
			rows[i][j] = float64(v)
		}
	}
	return rows
}

// Trace passes tokens [T, Features] through the network and keeps everything, with the bits of Sequences.
func (n *Network[F]) Trace(tokens []F) (*Trace, error) {
	c, size := n.Config, len(tokens)/n.Config.Features
	p, err := n.parted(Pass{1, size, size}, len(tokens))
	if err != nil {
		return nil, err
	}
	if p.B > 1 {
		return nil, fmt.Errorf("engine: a trace of %d tokens in groups of %d, want one group", size, p.T)
	}
	t := &Trace{Tokens: matrix[F]{tokens, c.Features}.copied(size, c.Features)}
	var residual [][][]float64 // embedded; then after attention and after each block
	watch := func(h matrix[F]) { residual = append(residual, h.copied(size, c.Width)) }
	s := &pass[F]{Network: n, Pass: p}
	s.do(tokens, true, watch, func() {
		t.Embedded, t.Outputs = residual[0], s.out.copied(size, c.Outputs)
		for i, l := range s.layers {
			a := &l.attention
			b := BlockTrace{
				Query: a.q.copied(size, c.Width), Key: a.k.copied(size, c.Width), Value: a.v.copied(size, c.Width),
				Weights: make([][][]float64, c.Heads), Mixed: a.y.copied(size, c.Width),
				Attended: residual[1+2*i], Units: l.up.copied(size, c.Hidden), Output: residual[2+2*i],
			}
			for head := range b.Weights {
				weights := a.weights.from(head * size)
				for query := range size {
					var seen []float64
					for key := range a.seen(query) {
						seen = append(seen, float64(weights.row(key)[query]))
					}
					b.Weights[head] = append(b.Weights[head], seen)
				}
			}
			t.Blocks = append(t.Blocks, b)
		}
	})
	return t, nil
}

package plain

import "slices"

// Trace is every intermediate result of one pass over T tokens.
type Trace struct {
	Tokens   [][]float64 // [T][Features]
	Embedded [][]float64 // [T][Width]
	Blocks   []BlockTrace
	Outputs  [][]float64 // [T][Outputs]
}

// BlockTrace is what happened in one block. A token sees all T tokens or, in a network
// with the causal mask, itself and those before.
type BlockTrace struct {
	Query, Key, Value [][]float64   // [T][Width], the heads' side by side
	Weights           [][][]float64 // [Heads][T][seen], each row sums to one
	Mixed             [][]float64   // [T][Width], attention-weighted means of values, the heads' side by side
	Attended          [][]float64   // [T][Width], tokens with what the heads wrote added
	Units             [][]float64   // [T][Hidden], the ReLU's, not below 0
	Output            [][]float64   // [T][Width], tokens leaving the block
}

// Trace passes tokens [T][Features] through the network and keeps everything. It is the
// pass of Vectors, with the same bits.
func (n *Network) Trace(tokens [][]float64) (*Trace, error) {
	h, err := n.embedded(tokens)
	if err != nil {
		return nil, err
	}
	t := &Trace{Tokens: tokens, Blocks: make([]BlockTrace, len(n.blocks))}
	for _, x := range h {
		t.Embedded = append(t.Embedded, slices.Clone(x))
	}
	for i := range n.blocks {
		t.Blocks[i].Weights = make([][][]float64, n.heads)
		n.step(&n.blocks[i], h, &t.Blocks[i])
	}
	t.Outputs = n.read(h)
	return t, nil
}

// attention notes what the heads made of the next token, x as it now is: from its query,
// key and value [3·width], its weights [heads·seen] and their mixed values [width].
func (t *BlockTrace) attention(n *Network, qkv, weights, mixed, x []float64) {
	t.Query = append(t.Query, qkv[:n.width])
	t.Key = append(t.Key, qkv[n.width:2*n.width])
	t.Value = append(t.Value, qkv[2*n.width:])
	seen := len(weights) / n.heads
	for head := range t.Weights {
		t.Weights[head] = append(t.Weights[head], weights[head*seen:(head+1)*seen])
	}
	t.Mixed = append(t.Mixed, mixed)
	t.Attended = append(t.Attended, slices.Clone(x))
}

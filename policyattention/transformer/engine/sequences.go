package engine

import (
	"fmt"
	"slices"

	"icrl/internal/numeric"
)

// flat returns tokens [T][Features] one after the other.
func (n *Network[F]) flat(tokens [][]float64) ([]F, error) {
	flat := make([]F, 0, len(tokens)*n.Config.Features)
	for i, x := range tokens {
		if len(x) != n.Config.Features {
			return nil, fmt.Errorf("engine: token %d has %d features, want %d", i, len(x), n.Config.Features)
		}
		for _, v := range x {
			flat = append(flat, F(v))
		}
	}
	return flat, nil
}

// Sequences maps tokens [n][T][Features] of sequences of any lengths to all outputs of each
// [n][T·Outputs]. It returns an error for
// no tokens and for one of another size.
func (n *Network[F]) Sequences(sequences [][][]float64) ([][]float64, error) {
	var firsts []int // of each block: consecutive sequences of one length, as many as a pass takes
	for i, tokens := range sequences {
		last := len(firsts) - 1
		if i == 0 || len(tokens) != len(sequences[i-1]) || (i-firsts[last]+1)*len(tokens) > BlockTokens {
			firsts = append(firsts, i)
		}
	}
	outputs := make([][]float64, len(sequences))
	return outputs, numeric.Parallel(len(firsts), func(block int) error {
		first, end := firsts[block], len(sequences)
		if block+1 < len(firsts) {
			end = firsts[block+1]
		}
		x, err := n.flat(slices.Concat(sequences[first:end]...))
		if err != nil {
			return err
		}
		t := len(sequences[first])
		y, err := n.Forward(Pass{end - first, t, t}, x)
		width := t * n.Config.Outputs
		for i, row := range (matrix[F]{y, width}).copied(len(y)/max(1, width), width) {
			outputs[first+i] = row
		}
		return err
	})
}

package network

import (
	"testing"

	"gonum.org/v1/gonum/mat"
)

// By hand, tokens of 3 numbers and heads of 2: a head takes 4·2·2·3 = 48 and 3 a token,
// and 4·2 + 5 = 13 a key. A map with 5 hidden units takes 2·2·5·3 + 5 + 3 = 68 a token,
// a norm 6·3 + 4 = 22.
func TestOperationsByHand(t *testing.T) {
	n := &Network{Width: 3, HeadDim: 2, Blocks: []Block{
		{Heads: make([]Head, 1), W1: mat.NewDense(5, 3, nil), W2: mat.NewDense(3, 5, nil)},
		{Heads: make([]Head, 2), AttentionNorm: &LayerNorm{}},
	}}
	if got, want := n.Operations(4), 4*(51+68)+10*13+2*(4*51+10*13)+4*22; got != want {
		t.Errorf("%d operations, by hand %d", got, want)
	}
}

// Package native takes batches through a network of package transformer, forward and
// backward, with kernels of package avx512 and nothing between them: blocks of a few
// sequences stay in a core's caches from layer to layer. Package fused calls it on GoMLX's
// pure-Go backend.
//
// Activations are matrices with a row for each token. So each product takes its factors as
// they lie in memory, those for the slopes of weights too, and only weights are rearranged,
// once a call.
package native

import "icrl/policyattention/transformer"

// Pass is a network on batches of one shape.
type Pass struct {
	Network transformer.Config
	B, T    int // sequences, and tokens of each
	K       int // outputs of the last K tokens of each
}

// blockTokens is about how many tokens are taken through the network at once.
const blockTokens = 128

// block is how many sequences are.
func (p Pass) block() int { return min(p.B, max(1, blockTokens/p.T)) }

// blocks calls f for each block of sequences.
func (p Pass) blocks(f func(i, first, n int)) {
	size := p.block()
	for i, first := 0, 0; first < p.B; i, first = i+1, first+size {
		f(i, first, min(size, p.B-first))
	}
}

// Saved is the number of entries that Forward keeps for Backward.
func (p Pass) Saved() int {
	blocks := (p.B + p.block() - 1) / p.block()
	return blocks * p.saved()
}

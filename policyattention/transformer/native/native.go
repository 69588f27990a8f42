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

// blockTokens is about how many tokens are taken through the network at once. Twice and four
// times as many take as long.
const blockTokens = 128

// groups is in how many groups the blocks of a batch are. Goroutines take whole groups, and
// gradients are added up by group: how many goroutines there are changes no result.
const groups = 4

// block is how many sequences are taken at once: groups have equally many, if they can.
func (p Pass) block() int {
	n := (p.B + max(1, blockTokens/p.T) - 1) / max(1, blockTokens/p.T)
	n = (n + groups - 1) / groups * groups
	return (p.B + n - 1) / n
}

// blocks is the number of blocks.
func (p Pass) blocks() int { return (p.B + p.block() - 1) / p.block() }

// Saved is the number of entries that Forward keeps for Backward.
func (p Pass) Saved() int { return p.blocks() * p.saved() }

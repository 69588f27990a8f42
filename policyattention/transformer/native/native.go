// Package native takes a few sequences through a network of package transformer, forward and
// backward, with kernels of package avx512 and nothing between them: what they leave in a
// core's caches is there on the way back. Package fused calls it on GoMLX's pure-Go backend.
//
// Activations are matrices with a row for each token. So each product takes its factors as
// they lie in memory, those for the slopes of weights too, and only weights are rearranged, once
// for all passes of a step.
package native

import "icrl/policyattention/transformer"

// Pass is a network on sequences of one length.
type Pass struct {
	Network transformer.Config
	B, T    int // sequences, and tokens of each
	K       int // outputs of the last K tokens of each
}

// BlockTokens is about how many tokens are best taken through the network at once, so that what
// Forward keeps for Backward stays in caches. With twice as many a step takes up to 1.1 times as
// long, and up to 1.6 times where all of a batch goes forward first.
const BlockTokens = 200

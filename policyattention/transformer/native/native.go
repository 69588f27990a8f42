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

// BlockTokens is about how many tokens are best taken through the network at once. What Forward
// keeps of twice as many for Backward leaves a core's second cache, of 1 MB: a step takes 1.1
// times as long then, and 1.5 times where it goes forward with all of its batch.
const BlockTokens = 200

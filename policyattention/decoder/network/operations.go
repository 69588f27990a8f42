package network

// Operations returns the floating-point operations of a pass over so many tokens by the
// network's shapes, every entry of a matrix counted, also zeros: a sum, product,
// comparison, exponential or division is one. Norms take 6 for each number of a token
// and 4.
func (n *Network) Operations(tokens int) int {
	keys := tokens * (tokens + 1) / 2
	norm := func(l *LayerNorm) int {
		if l == nil {
			return 0
		}
		return 6*n.Width + 4
	}
	total := tokens * norm(n.Norm)
	for _, b := range n.Blocks {
		total += tokens * (norm(b.AttentionNorm) + norm(b.MapNorm))
		// Each head has four products, and its sum with the token; a key takes a score, its
		// value, and a comparison, a difference, an exponential, a sum and a division.
		total += len(b.Heads) * (tokens*(8*n.HeadDim*n.Width+n.Width) + keys*(4*n.HeadDim+5))
		if b.W1 != nil {
			hidden, _ := b.W1.Dims()
			total += tokens * (4*hidden*n.Width + hidden + n.Width)
		}
	}
	return total
}

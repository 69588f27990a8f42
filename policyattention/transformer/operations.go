package transformer

// Operations returns the floating-point operations of a forward pass by the network's
// shapes: over one context of so many tokens, of which the last outputs are read. A sum,
// product, comparison, exponential, root or division is one.
func (c Config) Operations(tokens, outputs int) int {
	keys := tokens * (tokens + 1) / 2
	if c.Unordered {
		keys = tokens * tokens
	}
	return c.OperationsOf(tokens, keys, outputs)
}

// OperationsOf is Operations for so many tokens that together attend to the given number
// of keys: with a cache, more than there are tokens.
func (c Config) OperationsOf(tokens, keys, outputs int) int {
	linear := func(in, out int) int { return 2 * in * out } // with its bias
	norm := 7*c.Width + 4                                   // mean, difference, variance, 1/√, two factors, bias
	perToken := linear(c.Features, c.Width) + c.Layers*(2*norm+
		linear(c.Width, 3*c.Width)+linear(c.Width, c.Width)+
		linear(c.Width, c.Hidden)+c.Hidden+linear(c.Hidden, c.Width)+
		2*c.Width) // residual sums
	// A key takes 2d for its scores and 2d for its values; in every head a scaling, and of
	// the softmax a comparison, a difference, an exponential, a sum and a division.
	perKey := c.Layers * (4*c.Width + 6*c.Heads)
	return tokens*perToken + keys*perKey + outputs*(norm+linear(c.Width, c.Outputs))
}

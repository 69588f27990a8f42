package transformer

import "testing"

// By hand: 3 features, 1 block of width 2 with one head and 5 hidden units, 1 output, and
// 2 tokens. A norm takes 18. A token takes 12 for its embedding, 36 for two norms, 24 for
// queries, keys and values, 8 for the output, 20 + 5 + 20 for the map and 4 for two
// residual sums: 129. The two tokens attend to 1 + 2 keys, 14 operations each: 4 for the
// product, 4 for the values and 6. Reading a token takes 18 + 4.
func TestOperationsByHand(t *testing.T) {
	c := Config{Features: 3, Layers: 1, Heads: 1, Width: 2, Hidden: 5, Outputs: 1}
	if got, want := c.Operations(2, 1), 2*129+3*14+22; got != want {
		t.Errorf("%d operations, by hand %d", got, want)
	}
	c.Unordered = true
	if got, want := c.Operations(2, 2), 2*129+4*14+2*22; got != want {
		t.Errorf("without the mask %d operations, by hand %d", got, want)
	}
	// The products alone are 2 per weight and token.
	c = Standard(11)
	weights := 0
	for _, x := range c.Layout() {
		if len(x.Shape) == 2 {
			weights += x.Size()
		}
	}
	const tokens = 24
	if got, least := c.Operations(tokens, tokens), 2*weights*tokens; got < least || float64(got) > 1.25*float64(least) {
		t.Errorf("%d operations, want a little more than %d", got, least)
	}
}

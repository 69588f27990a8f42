package decoder

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/pmd"
)

// Network is a decoder-only Transformer with causal softmax attention. Tokens are
// vectors of Width numbers, weights are ordinary matrices, and token i passes as
//
//	for each block:
//	    u = norm(x)
//	    x = x + Σ_h O_h Σ_{j≤i} softmax_{j≤i}(⟨Q_h u_i, K_h u_j⟩) V_h u_j
//	    u = norm(x)
//	    x = x + W₂ relu(W₁ u)
//	x = norm(x)
//
// where the norm is one for all, and the identity without a gain. The factor 1/√HeadDim of the usual
// definition is absorbed in Q. There are no positions and no biases.
type Network struct {
	Width   int // numbers in a token
	HeadDim int // numbers in a query, a key and a value
	Blocks  []Block
	// Gain [Width] is that of the norm; nil for a network without. The norm is the standard operation: subtract
	// the mean, divide by √(variance + numeric.LayerNormEpsilon), multiply by the gain. Its bias is zero.
	Gain []float64
}

// Block is one layer of a Network.
type Block struct {
	Heads []Head
	W1    *mat.Dense // [hidden, Width]; nil for a block without ReLU map
	W2    *mat.Dense // [Width, hidden]
}

// Head holds the four matrices of an attention head.
type Head struct {
	Name    string
	Q, K, V *mat.Dense // each [HeadDim, Width]
	O       *mat.Dense // [Width, HeadDim]
	Shift   int        // a slot in which keys differ that are else alike, so that a pass groups them; 0 stands for none
}

// normalize stores the norm of x [Width] in dst [Width], which may be x.
func normalize(dst, x, gain []float64) {
	n := float64(len(x))
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= n
	variance := 0.0
	for i, v := range x {
		dst[i] = v - mean
		variance += float64(dst[i] * dst[i])
	}
	scale := 1 / math.Sqrt(variance/n+numeric.LayerNormEpsilon)
	for i, g := range gain {
		dst[i] *= float64(scale * g)
	}
}

// Readout is an affine map W x + Bias of the last layer's tokens.
type Readout struct {
	Name string
	W    *mat.Dense // [n, Width]
	Bias []float64  // [n]
}

// Of returns the readout [n] of the token x [Width].
func (r *Readout) Of(x []float64) []float64 {
	y := product(r.W, x)
	floats.Add(y, r.Bias)
	return y
}

// product returns the matrix times x.
func product(m *mat.Dense, x []float64) []float64 {
	y := make([]float64, m.RawMatrix().Rows)
	for i := range y {
		y[i] = numeric.Dot(m.RawRowView(i), x)
	}
	return y
}

// validate reports the first weight, of the network and a readout, that has a wrong shape or an entry not finite.
func (n *Network) validate(r *Readout) error {
	row := func(x []float64) *mat.Dense {
		if len(x) == 0 {
			return nil
		}
		return mat.NewDense(1, len(x), x)
	}
	list := n.Matrices()
	if n.Gain != nil {
		list = append(list, Weight{"norm.gain", row(n.Gain), 1, n.Width})
	}
	list = append(list, Weight{r.Name + ".w", r.W, len(r.Bias), n.Width},
		Weight{r.Name + ".bias", row(r.Bias), 1, len(r.Bias)})
	for _, w := range list {
		if w.Matrix == nil {
			return fmt.Errorf("decoder: weight %s is missing", w.Name)
		}
		if r, c := w.Matrix.Dims(); r != w.Rows || c != w.Cols {
			return fmt.Errorf("decoder: weight %s is [%d, %d], want [%d, %d]", w.Name, r, c, w.Rows, w.Cols)
		}
		for i := range w.Rows {
			for j, v := range w.Matrix.RawRowView(i) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return fmt.Errorf("decoder: weight %s[%d,%d] is %v, want a finite number", w.Name, i, j, v)
				}
			}
		}
	}
	return nil
}

// Weight is a weight matrix of a network.
type Weight struct {
	Name       string
	Matrix     *mat.Dense
	Rows, Cols int // the shape that it must have
}

// Matrices lists the weight matrices in the order of the pass, by name: "block.0.head.1.q", "block.0.map.w1", ….
func (n *Network) Matrices() []Weight {
	var list []Weight
	for b, block := range n.Blocks {
		for h, head := range block.Heads {
			prefix := fmt.Sprintf("block.%d.head.%d.", b, h)
			list = append(list,
				Weight{prefix + "q", head.Q, n.HeadDim, n.Width},
				Weight{prefix + "k", head.K, n.HeadDim, n.Width},
				Weight{prefix + "v", head.V, n.HeadDim, n.Width},
				Weight{prefix + "o", head.O, n.Width, n.HeadDim})
		}
		if block.W1 != nil {
			hidden, _ := block.W1.Dims()
			prefix := fmt.Sprintf("block.%d.map.", b)
			list = append(list,
				Weight{prefix + "w1", block.W1, hidden, n.Width},
				Weight{prefix + "w2", block.W2, n.Width, hidden})
		}
	}
	return list
}

// Call is an actor or critic call with every intermediate result and names for its N tokens. It is computed by the
// textbook definition with dense matrices, apart from the pass of Improve and Backup, which it agrees with up to the
// rounding of sums taken in another order; so looking costs the normal path nothing, and each can check the other.
type Call struct {
	Names    []string    // [N]: "memory (s=2,a=1)"
	Payloads [][]float64 // [N][6S+6A+14], the tokens before a carrier embeds them
	Tokens   [][]float64 // [N][Width]
	Blocks   []BlockTrace
	Output   [][]float64 // [N][Width], after the final norm
	Reads    []int       // the tokens whose output is read: the queries
	Results  [][]float64 // what is read there: rows of the policy, or single values
}

// BlockTrace is what happened in one block.
type BlockTrace struct {
	Heads    []HeadTrace
	Attended [][]float64 // [N][Width], tokens with the heads' outputs added
	Pre      [][]float64 // [N][hidden], before the ReLU; nil without ReLU map
	Post     [][]float64 // [N][hidden], after it
	Output   [][]float64 // [N][Width], tokens leaving the block
}

// HeadTrace is what happened in one head. Scores and weights, quadratic in N, are computed a row at a time when asked.
type HeadTrace struct {
	Name              string
	Query, Key, Value [][]float64 // [N][HeadDim]
	Mixed             [][]float64 // [N][HeadDim], attention-weighted means of values
	Written           [][]float64 // [N][Width], O times Mixed
}

// Scores returns the scores of tokens 0…i under the query of token i.
func (h *HeadTrace) Scores(i int) []float64 {
	row := make([]float64, i+1)
	for j := range row {
		row[j] = numeric.Dot(h.Query[i], h.Key[j])
	}
	return row
}

// Weights returns the attention weights of tokens 0…i for token i.
func (h *HeadTrace) Weights(i int) []float64 {
	row := h.Scores(i)
	pmd.Softmax(row)
	return row
}

// TraceActor returns the trace of the actor call Improve(pi, q, eta).
func (d *Decoder) TraceActor(pi, q *mat.Dense, eta float64) (*Call, error) {
	c, err := d.actorCall(pi, q, eta)
	if err == nil {
		c.run(d.Network, d.Policy)
	}
	return c, err
}

// actorCall returns a call's tokens.
func (d *Decoder) actorCall(pi, q *mat.Dense, eta float64) (*Call, error) {
	if err := d.checkActor(pi, q, eta); err != nil {
		return nil, err
	}
	c, t := d.recall(pi, q)
	for s := range d.States {
		c.Reads = append(c.Reads, len(c.Tokens))
		c.add(t, t.actorQuery(s, eta), "actor query (s=%d)", s)
	}
	return c, nil
}

// TraceCritic returns the trace of the critic call Backup(pi, q, packets).
func (d *Decoder) TraceCritic(pi, q *mat.Dense, packets []Packet) (*Call, error) {
	if err := d.checkCritic(pi, q, packets); err != nil {
		return nil, err
	}
	c, t := d.recall(pi, q)
	for i, p := range packets {
		c.add(t, t.packet(p), "packet %d (s=%d,a=%d → s'=%d,a'=%d)", i, p.State, p.Action, p.NextState, p.NextAction)
	}
	for i, v := range q.RawMatrix().Data {
		if !missing(v) {
			c.Reads = append(c.Reads, len(c.Tokens))
			c.add(t, t.criticQuery(i), "critic query (s=%d,a=%d)", i/d.Actions, i%d.Actions)
		}
	}
	c.run(d.Network, d.Value)
	return c, nil
}

// Attention returns the attention weights of state s's query in the call Improve(pi, q, eta), over the
// S·A memories and the queries up to its own: [S·A + s + 1], those of TraceActor to the bit.
func (d *Decoder) Attention(pi, q *mat.Dense, eta float64, s int) ([]float64, error) {
	c, err := d.actorCall(pi, q, eta)
	if err != nil {
		return nil, err
	}
	if s < 0 || s >= d.States {
		return nil, fmt.Errorf("decoder: state %d of %d", s, d.States)
	}
	last, head := c.Reads[s], d.Network.Blocks[0].Heads[0]
	u := normAll(d.Network.Gain, c.Tokens[:last+1])
	h := HeadTrace{Query: make([][]float64, last+1), Key: apply(head.K, u)}
	h.Query[last] = apply(head.Q, u[last:])[0]
	return h.Weights(last), nil
}

// recall begins a call with its memories.
func (d *Decoder) recall(pi, q *mat.Dense) (*Call, *tokens) {
	c, t := &Call{}, d.tokens()
	for i := range d.States * d.Actions {
		c.add(t, t.memory(i, pi, q), "memory (s=%d,a=%d)", i/d.Actions, i%d.Actions)
	}
	return c, t
}

// add keeps a copy of a token.
func (c *Call) add(t *tokens, token []float64, name string, values ...any) {
	c.Tokens = append(c.Tokens, slices.Clone(token))
	c.Payloads = append(c.Payloads, slices.Clone(t.payload))
	c.Names = append(c.Names, fmt.Sprintf(name, values...))
}

func (c *Call) run(n *Network, r *Readout) {
	c.Blocks, c.Output = n.trace(c.Tokens)
	for _, i := range c.Reads {
		c.Results = append(c.Results, r.Of(c.Output[i]))
	}
}

// trace passes tokens [N][Width] through the network and returns everything. It takes time quadratic in N.
func (n *Network) trace(tokens [][]float64) (blocks []BlockTrace, output [][]float64) {
	x := tokens
	for _, block := range n.Blocks {
		var bt BlockTrace
		u := normAll(n.Gain, x)
		bt.Attended = each(x, slices.Clone[[]float64])
		for _, head := range block.Heads {
			h := HeadTrace{Name: head.Name, Query: apply(head.Q, u), Key: apply(head.K, u), Value: apply(head.V, u)}
			for i := range u {
				mixed := make([]float64, n.HeadDim)
				for j, w := range h.Weights(i) {
					for k, v := range h.Value[j] {
						mixed[k] += float64(w * v)
					}
				}
				h.Mixed = append(h.Mixed, mixed)
			}
			h.Written = apply(head.O, h.Mixed)
			addAll(bt.Attended, h.Written)
			bt.Heads = append(bt.Heads, h)
		}
		bt.Output = bt.Attended
		if block.W1 != nil {
			bt.Pre = apply(block.W1, normAll(n.Gain, bt.Attended))
			bt.Post = each(bt.Pre, func(x []float64) []float64 {
				y := make([]float64, len(x))
				for i, v := range x {
					y[i] = math.Max(0, v)
				}
				return y
			})
			bt.Output = apply(block.W2, bt.Post)
			addAll(bt.Output, bt.Attended)
		}
		x = bt.Output
		blocks = append(blocks, bt)
	}
	return blocks, normAll(n.Gain, x)
}

// each returns f of every row.
func each(rows [][]float64, f func([]float64) []float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i, x := range rows {
		out[i] = f(x)
	}
	return out
}

func apply(m *mat.Dense, rows [][]float64) [][]float64 {
	return each(rows, func(x []float64) []float64 { return product(m, x) })
}

func normAll(gain []float64, rows [][]float64) [][]float64 {
	if gain == nil {
		return rows
	}
	return each(rows, func(x []float64) []float64 {
		y := make([]float64, len(x))
		normalize(y, x, gain)
		return y
	})
}

func addAll(dst, rows [][]float64) {
	for i, x := range rows {
		floats.Add(dst[i], x)
	}
}

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

// HeadTrace is what happened in one head. Scores and weights, which take a
// number for each pair of tokens, are computed a row at a time when asked for.
type HeadTrace struct {
	Name    string
	Query   [][]float64 // [N][HeadDim]
	Key     [][]float64 // [N][HeadDim]
	Value   [][]float64 // [N][HeadDim]
	Mixed   [][]float64 // [N][HeadDim], attention-weighted means of values
	Written [][]float64 // [N][Width], O times Mixed
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

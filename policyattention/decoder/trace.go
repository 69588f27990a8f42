package decoder

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/decoder/network"
)

// Call is a traced actor or critic call with names for its tokens.
type Call struct {
	*network.Trace
	Names    []string    // [N]: "memory (s=2,a=1)"
	Payloads [][]float64 // [N][6S+6A+14], the tokens before a carrier embeds them
	Reads    []int       // the tokens whose output is read: the queries
	Results  [][]float64 // what is read there: rows of the policy, or single values
}

// TraceActor returns the trace of the actor call Improve(pi, q, eta).
func (d *Decoder) TraceActor(pi, q *mat.Dense, eta float64) (*Call, error) {
	if err := d.checkActor(pi, q, eta); err != nil {
		return nil, err
	}
	t, c := d.tokens(), &Call{Trace: &network.Trace{}}
	t.memories(pi, q, c.collect(t, d.pairName("memory")))
	c.reads(d.States)
	t.actorQueries(eta, c.collect(t, func(i int) string { return fmt.Sprintf("actor query (s=%d)", i) }))
	return c, c.run(d.network, d.Policy)
}

// TraceCritic returns the trace of the critic call Backup(pi, q, packets).
func (d *Decoder) TraceCritic(pi, q *mat.Dense, packets []Packet) (*Call, error) {
	if err := d.checkCritic(pi, q, packets); err != nil {
		return nil, err
	}
	t, c := d.tokens(), &Call{Trace: &network.Trace{}}
	t.memories(pi, q, c.collect(t, d.pairName("memory")))
	t.packets(packets, c.collect(t, func(i int) string {
		p := packets[i]
		return fmt.Sprintf("packet %d (s=%d,a=%d → s'=%d,a'=%d)", i, p.State, p.Action, p.NextState, p.NextAction)
	}))
	for i, v := range q.RawMatrix().Data {
		if !missing(v) {
			c.reads(1)
			t.criticQuery(i, c.collect(t, func(int) string { return d.pairName("critic query")(i) }))
		}
	}
	return c, c.run(d.network, d.Value)
}

// Attention returns the attention weights of state s's query in the call Improve(pi, q, eta), over the
// S·A memories and the queries up to its own: [S·A + s + 1], those of TraceActor to the bit.
func (d *Decoder) Attention(pi, q *mat.Dense, eta float64, s int) ([]float64, error) {
	if err := d.checkActor(pi, q, eta); err != nil {
		return nil, err
	}
	if s < 0 || s >= d.States {
		return nil, fmt.Errorf("decoder: state %d of %d", s, d.States)
	}
	t, c := d.tokens(), &Call{Trace: &network.Trace{}}
	nameless := func(int) string { return "" }
	t.memories(pi, q, c.collect(t, nameless))
	t.actorQueries(eta, c.collect(t, nameless))
	return d.network.AttentionRow(c.Tokens[:d.States*d.Actions+s+1], 0), nil
}

func (d *Decoder) pairName(role string) func(int) string {
	return func(i int) string { return fmt.Sprintf("%s (s=%d,a=%d)", role, i/d.Actions, i%d.Actions) }
}

// collect returns a function that keeps copies of the tokens it is given.
func (c *Call) collect(t *tokens, name func(int) string) func([]float64) {
	i := 0
	return func(token []float64) {
		c.Tokens = append(c.Tokens, append([]float64(nil), token...))
		c.Payloads = append(c.Payloads, append([]float64(nil), t.payload...))
		c.Names = append(c.Names, name(i))
		i++
	}
}

// reads marks the next n tokens as read.
func (c *Call) reads(n int) {
	for i := range n {
		c.Reads = append(c.Reads, len(c.Tokens)+i)
	}
}

func (c *Call) run(n *network.Network, r *network.Readout) (err error) {
	if c.Trace, err = n.Trace(c.Tokens); err != nil {
		return err
	}
	for _, i := range c.Reads {
		c.Results = append(c.Results, r.Of(c.Output[i]))
	}
	return nil
}

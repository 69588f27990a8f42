package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/seed"
	network "icrl/policyattention/transformer/engine"
)

// The calls that can be taken apart.
const (
	ActorCall  = "actor"  // the decoder's
	CriticCall = "critic" // the decoder's
	NormedCall = "normed" // the normalized decoder's, as an actor on the decoder's context
)

// call is the traced call that was last looked at.
type call struct {
	round int
	name  string
	*decoder.Call
}

// Trace returns the named call of round k with all its matrices.
func (e *Engine) Trace(k int, name string) (*decoder.Call, error) {
	if e.call != nil && e.call.round == k && e.call.name == name {
		return e.call.Call, nil
	}
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	d, err := e.decoderOf(name == NormedCall)
	if err != nil {
		return nil, err
	}
	c := &call{round: k, name: name}
	if name != CriticCall {
		c.Call, err = d.TraceActor(r.Pi, r.Q, e.Settings.Eta)
	} else if n := len(r.Packets) + 2*d.States*d.Actions; n > MaxTokens {
		err = fmt.Errorf("this critic call has %d tokens; the microscope takes apart calls of at most %d. Fewer "+
			"packets m, states or actions make it smaller", n, MaxTokens)
	} else {
		c.Call, err = d.TraceCritic(r.NextPi, r.Q, r.Packets)
	}
	if err == nil {
		e.call = c
	}
	return c.Call, err
}

// Attention returns the attention weights of state s's query in the actor's call of round k, as the decoder does.
func (e *Engine) Attention(k, s int) ([]float64, error) {
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	return e.Decoder.Attention(r.Pi, r.Q, e.Settings.Eta, s)
}

// Fingerprint is the SHA-256 of all of the decoder's weights, in hex: of the shape of each matrix, in the
// order of [decoder.Network.Matrices], and of the place and the float64 of each entry that is not zero.
func (e *Engine) Fingerprint() string {
	var b []byte
	for _, m := range e.Decoder.Network.Matrices() {
		rows, cols := m.Matrix.Dims()
		b = binary.LittleEndian.AppendUint64(b, uint64(rows)<<32|uint64(cols))
		for i, v := range m.Matrix.RawMatrix().Data {
			if v != 0 {
				b = binary.LittleEndian.AppendUint64(b, uint64(i))
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
		}
	}
	return fmt.Sprintf("%x", seed.Sum256(b))
}

// Matrix returns rows from…to−1 of a matrix of a traced call, by name:
//
//	tokens, output                          [N, width], two wider with LayerNorm
//	payloads                                [N, width], the tokens before a carrier embeds them
//	block.b.head.h.query, .key, .value      [N, head dimension]
//	block.b.head.h.score, .weight           [N, N], zero behind the diagonal
//	block.b.head.h.mixed                    [N, head dimension]
//	block.b.head.h.written                  [N, width]
//	block.b.attended, .output               [N, width]
//	block.b.pre, .post                      [N, hidden]
//	results                                 [queries, A or 1]
func Matrix(c *decoder.Call, name string, from, to int) (rows [][]float64, err error) {
	all := map[string][][]float64{"tokens": c.Tokens, "payloads": c.Payloads, "output": c.Output, "results": c.Results}
	for i, b := range c.Blocks {
		block := fmt.Sprintf("block.%d.", i)
		all[block+"attended"], all[block+"output"] = b.Attended, b.Output
		all[block+"pre"], all[block+"post"] = b.Pre, b.Post
		for j, h := range b.Heads {
			head := fmt.Sprintf("%shead.%d.", block, j)
			all[head+"query"], all[head+"key"], all[head+"value"] = h.Query, h.Key, h.Value
			all[head+"mixed"], all[head+"written"] = h.Mixed, h.Written
			row := map[string]func(int) []float64{head + "score": h.Scores, head + "weight": h.Weights}[name]
			if row != nil {
				for i := max(0, from); i < min(to, len(c.Tokens)); i++ {
					rows = append(rows, append(row(i), make([]float64, len(c.Tokens)-1-i)...))
				}
				return rows, nil
			}
		}
	}
	return window(all[name], name, from, to)
}

// window returns rows from…to−1 of those that there are.
func window(rows [][]float64, name string, from, to int) ([][]float64, error) {
	if rows == nil {
		return nil, fmt.Errorf("there is no matrix %q in this call", name)
	}
	low := max(0, min(from, len(rows)))
	return rows[low:max(low, min(to, len(rows)))], nil
}

// Weight returns a weight matrix of a call's network by the name in the decoder's legend.
func (e *Engine) Weight(call, name string) (*mat.Dense, error) {
	d, err := e.decoderOf(call == NormedCall)
	if err != nil {
		return nil, err
	}
	for _, w := range d.Network.Matrices() {
		if w.Name == name {
			return w.Matrix, nil
		}
	}
	return nil, fmt.Errorf("there is no weight matrix %q", name)
}

const Readout = anymdp.Prior // the one that the released weights of the trained actor are used with

var errNoWeights = errors.New("no weights of a trained actor are loaded")

// SetLearned gives the page its trained actor.
func (e *Engine) SetLearned(n *network.Network[float64]) error {
	actor, err := anymdp.NewActor(n.Sequences, Readout)
	if err != nil {
		return err
	}
	e.network, e.actor = n, actor
	delete(e.rounds, Learned)
	return nil
}

// Compare returns the trained actor's policy on the decoder's context of round k.
func (e *Engine) Compare(k int) (*mat.Dense, error) {
	if e.actor == nil {
		return nil, errNoWeights
	}
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	next, err := control.Act(e.actor, []control.Context{r.Context})
	if err != nil {
		return nil, err
	}
	return next[0].Pi, nil
}

// Look takes state s of the decoder's context of round k through the trained network.
func (e *Engine) Look(k, s int) (*anymdp.Trace, error) {
	if e.network == nil {
		return nil, errNoWeights
	}
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	if states := e.Decoder.States; s < 0 || s >= states {
		return nil, fmt.Errorf("state %d of a problem with %d", s, states)
	}
	return anymdp.NewTrace(e.network, Readout, r.Pi.RawRowView(s), r.Q.RawRowView(s), e.Settings.Eta)
}

// LearnedMatrix returns rows from…to−1 of a matrix of the trained network, by name:
//
//	tokens                                  [A, features]
//	block.b.weight                          [heads·A, A], the attention of each head
//	block.b.query, .key, .value, .mixed     [A, width], the heads' side by side
//	block.b.attended, .output               [A, width]
//	block.b.units                           [A, hidden]
//	results                                 [A, 4]: both outputs, the logit, π̂
func LearnedMatrix(t *anymdp.Trace, name string, from, to int) ([][]float64, error) {
	all := map[string][][]float64{"tokens": t.Pass.Tokens}
	for a, o := range t.Pass.Outputs {
		all["results"] = append(all["results"], []float64{o[0], o[1], t.Logits[a], t.Policy[a]})
	}
	for i, b := range t.Pass.Blocks {
		block := fmt.Sprintf("block.%d.", i)
		all[block+"weight"] = slices.Concat(b.Weights...)
		all[block+"query"], all[block+"key"], all[block+"value"], all[block+"mixed"] = b.Query, b.Key, b.Value, b.Mixed
		all[block+"attended"], all[block+"units"], all[block+"output"] = b.Attended, b.Units, b.Output
	}
	return window(all[name], name, from, to)
}

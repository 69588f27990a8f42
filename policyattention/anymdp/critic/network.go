package critic

import (
	"fmt"
	"math"

	"icrl/internal/numeric"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/transformer"
)

const (
	// Features is the number of features of a token.
	Features = 7
	// Slots is the length of the sequences that the network was trained on.
	Slots = 16
	// Most is the largest logit of a virtual packet, in size.
	Most = 6
)

// tokens encodes the first pairs of a problem, each as a sequence with a token for each successor state s'. With n(s')
// of the N packets of the pair,
//
//	[ n/N | n/(n+1) | S/(S+N) | ρ | log(1+E)/10 | log S/4 | 1 ]
//
// where E is the number of pairs of packets, each of one state-action pair, in the whole problem, and
//
//	ρ = (c S − 1)/(S − 1),  c the share of these E that agree on s'.
//
// The expectation of ρ is 1/(S α + 1) where rows are from Dirichlet(α, …, α): what all pairs of the problem tell
// about how concentrated its rows are. It is ½ while E is 0. Sequences are filled up to [Slots] tokens with zeros,
// which stand for no state. Tokens have no positions, so that the network is equivariant to renaming states, and pairs
// are not seen together; nothing says how many actions there are, and no reward, value or discount factor is seen.
func (c *Counts) tokens(pairs int) [][][]float64 {
	states, total := float64(c.States), float64(c.Total)
	agree, of, agreement := 0.0, float64(len(c.Next)*c.Total*(c.Total-1)), .5
	for _, row := range c.Next {
		for _, n := range row {
			agree += float64(n * (n - 1))
		}
	}
	if of > 0 && c.States > 1 {
		agreement = (float64(agree/of*states) - 1) / (states - 1)
	}
	evidence, all := numeric.Log(1+of/2)/10, make([][][]float64, pairs)
	for pair := range all {
		all[pair] = make([][]float64, max(Slots, c.States))
		for s := range all[pair] {
			token := make([]float64, Features)
			if s < c.States {
				n := c.Next[pair][s]
				copy(token, []float64{n / total, n / (n + 1), states / (states + total), agreement, evidence,
					numeric.Log(states) / 4, 1})
				for k, v := range token {
					token[k] = float64(float32(v)) // as networks are trained on
				}
			}
			all[pair][s] = token
		}
	}
	return all
}

// Learned is the estimator of a network. It writes o(s') for each token, and the answer is softmax attention: over the
// N packets of the pair, whose logits are 0, and over one virtual packet a state, whose logit is ℓ = 6 tanh(o/6):
//
//	p̂(s') = (n(s') + e^ℓ(s')) / (N + Σ e^ℓ).
//
// So an answer is always a convex combination of values of states. It is a residual
// read-out: the frequencies of the packets are given, and what is learned is what to hold of
// them. As N grows it becomes the frequencies, whatever the network says.
func Learned(forward anymdp.Forward) Estimator {
	return func(c *Counts) ([][]float64, error) {
		outputs, err := forward(c.tokens(len(c.Next)))
		if err != nil {
			return nil, err
		}
		rows := make([][]float64, len(outputs))
		for pair, n := range c.Next {
			row, sum := make([]float64, c.States), 0.0
			for s, o := range outputs[pair][:c.States] {
				if math.IsNaN(o) || math.IsInf(o, 0) {
					return nil, fmt.Errorf("an output of the network is %v", o)
				}
				row[s] = n[s] + virtual(o)
				sum += row[s]
			}
			for s := range row {
				row[s] /= sum
			}
			rows[pair] = row
		}
		return rows, nil
	}
}

// virtual returns e^ℓ of an output.
func virtual(o float64) float64 {
	up, down := numeric.Exp(o/Most), numeric.Exp(-o/Most)
	if math.IsInf(up, 0) || math.IsInf(down, 0) {
		return numeric.Exp(math.Copysign(Most, o))
	}
	return numeric.Exp(Most * (up - down) / (up + down))
}

// Shape is the shape of the network.
func Shape() transformer.Config {
	return transformer.Config{Features: Features, Layers: 2, Heads: 4, Width: 32, Hidden: 64, Outputs: 1,
		Unordered: true}
}

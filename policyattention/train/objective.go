package train

import (
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/transformer/fused"
)

// loss returns the scalar objective of a batch. The parts are those of
// examples, with a leading batch axis.
func (c Config) loss(network *fused.Network, parts []*Node) *Node {
	if c.Objective == Critic {
		mean, exact := parts[1], parts[2]
		return ReduceAllMean(Square(Sub(c.values(network, parts[0], mean), exact)))
	}
	prior, gain, weight := parts[1], parts[2], parts[3]
	logits := Reshape(network.Vectors(parts[0]), prior.Shape().Dimensions...)
	if c.Recipe.Readout == PriorReadout {
		logits = Add(logits, prior)
	}
	rows := c.Objective.rows(LogSoftmax(logits, -1), prior, gain)
	// Weights of an example sum to one, so this is the mean over examples.
	return DivScalar(ReduceAllSum(Mul(rows, weight)), float64(weight.Shape().Dimensions[0]))
}

// rows returns an actor objective per state [B, S], from log p, log π and ηQ,
// each [B, S, A].
func (o Objective) rows(logp, prior, gain *Node) *Node {
	p := Exp(logp)
	switch o {
	case PMDTarget:
		logq := LogSoftmax(Add(prior, gain), -1)
		return ReduceSum(Mul(Exp(logq), Sub(logq, logp)), -1)
	case RewardOnly:
		return Neg(ReduceSum(Mul(p, gain), -1))
	default:
		return ReduceSum(Mul(p, Sub(Sub(logp, prior), gain)), -1)
	}
}

// values returns a critic's Q [B, S·A] from all its tokens, whose last S·A are
// the queries, and the mean sampled targets [B, S·A].
func (c Config) values(network *fused.Network, tokens, mean *Node) *Node {
	values := Squeeze(network.Tail(tokens, mean.Shape().Dimensions[1]), -1)
	if c.Recipe.Readout == PriorReadout {
		values = Add(values, mean)
	}
	return values
}

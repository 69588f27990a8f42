package train

import . "github.com/gomlx/gomlx/core/graph"

// loss returns the scalar objective of a batch. The parts are those of
// examples.
func (c Config) loss(network Outputs, parts []*Node) *Node {
	if c.Objective == Critic { // the mean squared error of the last tokens' outputs to the exact backup
		exact := parts[1]
		values := Squeeze(network(parts[0], exact.Shape().Dimensions[1]), -1)
		return ReduceAllMean(Square(Sub(values, exact)))
	}
	prior, gain := parts[1], parts[2]
	logits := Reshape(network(parts[0], parts[0].Shape().Dimensions[1]), prior.Shape().Dimensions...)
	if c.Recipe.Readout == PriorReadout {
		logits = Add(logits, prior)
	}
	return ReduceAllMean(c.Objective.rows(LogSoftmax(logits, -1), prior, gain))
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

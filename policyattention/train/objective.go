package train

import (
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/transformer/fused"
)

// loss returns the scalar objective of a batch. The parts are those of
// examples, with a leading batch axis.
func (c Config) loss(network *fused.Network, parts []*Node) *Node {
	if c.Objective == Critic {
		return c.criticLoss(network, parts[0], parts[1], parts[2])
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

// criticLoss is the mean squared error of a critic's values to the exact backup or to the
// mean sampled target. With errors that spread over n rounds it is the mean of
// (1−1/n)·f₁f₂ + (e₁²+e₂²)/2n, for the errors e of an example's two runs to the exact backup
// and the differences f to their mean sampled targets. Those have no bias, so that f₁f₂
// has the expectation bias², at less noise than e₁e₂.
func (c Config) criticLoss(network *fused.Network, tokens, mean, exact *Node) *Node {
	if c.runs() == 1 {
		target := exact
		if c.Recipe.Targets == SampledTargets {
			target = mean
		}
		return ReduceAllMean(Square(Sub(c.values(network, tokens, mean), target)))
	}
	single := func(x *Node) *Node { // runs as examples
		dims := x.Shape().Dimensions
		return Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...)
	}
	values := Reshape(c.values(network, single(tokens), single(mean)), mean.Shape().Dimensions...)
	f := Sub(values, mean)
	first, second := Slice(f, AxisRange(), AxisElem(0)), Slice(f, AxisRange(), AxisElem(1))
	rounds := float64(c.Recipe.Spread)
	return Add(MulScalar(ReduceAllMean(Mul(first, second)), 1-1/rounds), DivScalar(ReduceAllMean(Square(Sub(values, exact))), rounds))
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

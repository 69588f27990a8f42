package train

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer/engine"
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

// inGo is the objective in plain Go, on the arrays of examples.
func (c Config) inGo(data []*tensors.Tensor) (engine.Objective, error) {
	arrays, err := Values[float32](data...)
	if err != nil {
		return nil, err
	}
	dims := data[1].Shape().Dimensions
	pairs := dims[len(dims)-1]
	if c.Objective != Critic {
		pairs *= dims[1]
	}
	stored := engine.Stored{Values: arrays[0], Runs: c.runs(), T: c.ContextTokens(pairs), K: pairs}
	if c.Objective == Critic {
		return criticInGo{stored, c, arrays[1], arrays[2]}, nil
	}
	return actorInGo{stored, c, arrays[1], arrays[2], arrays[3]}, nil
}

// actorInGo is an actor's objective, see loss.
type actorInGo struct {
	engine.Stored
	c                   Config
	prior, gain, weight []float32 // [N, S, A], [N, S, A], [N, S]
}

// Slopes implements engine.Objective. With p = softmax(z) of the logits z,
//
//	∂/∂z Σ p·d = p·(d − Σ p·d)  for d = log p − log π − ηQ, or d = −ηQ,
//	∂/∂z KL(q‖p) = p − q        for q = softmax(log π + ηQ).
func (o actorInGo) Slopes(examples []int32, batch int, logits []float32) (loss float64) {
	actions := o.c.Actions
	logp, logq := make([]float64, actions), make([]float64, actions)
	for i, example := range examples {
		for s := range o.K / actions {
			z, at := logits[i*o.K+s*actions:][:actions], int(example)*o.K+s*actions
			prior, gain := o.prior[at:][:actions], o.gain[at:][:actions]
			weight := float64(o.weight[at/actions]) / float64(batch)
			for a, v := range z {
				logp[a], logq[a] = float64(v), float64(prior[a])+float64(gain[a])
				if o.c.Recipe.Readout == PriorReadout {
					logp[a] += float64(prior[a])
				}
			}
			logSoftmax(logp)
			if o.c.Objective == PMDTarget {
				logSoftmax(logq)
				for a, l := range logp {
					q := math.Exp(logq[a])
					loss += weight * q * (logq[a] - l)
					z[a] = float32(weight * (math.Exp(l) - q))
				}
				continue
			}
			mean, d := 0., logq
			for a, l := range logp {
				d[a] = -float64(gain[a])
				if o.c.Objective == Proximal {
					d[a] += l - float64(prior[a])
				}
				mean += math.Exp(l) * d[a]
			}
			loss += weight * mean
			for a, l := range logp {
				z[a] = float32(weight * math.Exp(l) * (d[a] - mean))
			}
		}
	}
	return loss
}

// logSoftmax takes the logarithm of Σ eᶻ off all z.
func logSoftmax(z []float64) {
	top, total := slices.Max(z), 0.
	for _, v := range z {
		total += math.Exp(v - top)
	}
	for i := range z {
		z[i] -= top + math.Log(total)
	}
}

// criticInGo is a critic's objective, see criticLoss.
type criticInGo struct {
	engine.Stored
	c           Config
	mean, exact []float32 // [N, Runs, S·A]
}

// Slopes implements engine.Objective.
func (o criticInGo) Slopes(examples []int32, batch int, values []float32) (loss float64) {
	share := 1 / float64(batch*o.K)
	added := func(i, at int) float64 { // to the mean sampled target
		if o.c.Recipe.Readout == PriorReadout {
			return float64(values[i])
		}
		return float64(values[i]) - float64(o.mean[at])
	}
	for i, example := range examples {
		for j := range o.K {
			at, first := int(example)*o.Runs*o.K+j, i*o.Runs*o.K+j
			f := added(first, at)
			e := f + float64(o.mean[at]) - float64(o.exact[at])
			if o.Runs == 1 {
				if o.c.Recipe.Targets == SampledTargets {
					e = f
				}
				loss += share * e * e
				values[first] = float32(2 * share * e)
				continue
			}
			rounds, second := float64(o.c.Recipe.Spread), first+o.K
			g := added(second, at+o.K)
			h := g + float64(o.mean[at+o.K]) - float64(o.exact[at+o.K])
			loss += share * ((1-1/rounds)*f*g + (e*e+h*h)/(2*rounds))
			values[first] = float32(share * ((1-1/rounds)*g + e/rounds))
			values[second] = float32(share * ((1-1/rounds)*f + h/rounds))
		}
	}
	return loss
}

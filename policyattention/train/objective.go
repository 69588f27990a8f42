package train

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer/engine"
)

// loss returns the scalar objective of a batch. The parts are those of
// examples.
func (c Config) loss(network Outputs, parts []*Node) *Node {
	if c.Objective == Critic { // the mean squared error of the last tokens' outputs to the exact backup
		exact := parts[1]
		values := Squeeze(network.Tail(parts[0], exact.Shape().Dimensions[1]), -1)
		return ReduceAllMean(Square(Sub(values, exact)))
	}
	prior, gain := parts[1], parts[2]
	logits := Reshape(network.Vectors(parts[0]), prior.Shape().Dimensions...)
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

// inGo is the objective in plain Go, on the arrays of examples.
func (c Config) inGo(data []*tensors.Tensor) (engine.Objective, error) {
	arrays, err := Values[float32](data...)
	if err != nil {
		return nil, err
	}
	stored := engine.Stored{Values: arrays[0], T: c.ContextTokens(), K: c.States() * c.Actions}
	if c.Objective == Critic {
		return criticInGo{stored, arrays[1]}, nil
	}
	return actorInGo{stored, c, arrays[1], arrays[2]}, nil
}

// actorInGo is an actor's objective, see loss.
type actorInGo struct {
	engine.Stored
	c           Config
	prior, gain []float32 // [N, S, A]
}

// Slopes implements engine.Objective. With p = softmax(z) of the logits z,
//
//	∂/∂z Σ p·d = p·(d − Σ p·d)  for d = log p − log π − ηQ, or d = −ηQ,
//	∂/∂z KL(q‖p) = p − q        for q = softmax(log π + ηQ).
func (o actorInGo) Slopes(examples []int32, batch int, logits []float32) (loss float64) {
	actions := o.c.Actions
	weight := 1 / float64(batch*o.c.States())
	logp, logq := make([]float64, actions), make([]float64, actions)
	for i, example := range examples {
		for s := range o.K / actions {
			z, at := logits[i*o.K+s*actions:][:actions], int(example)*o.K+s*actions
			prior, gain := o.prior[at:][:actions], o.gain[at:][:actions]
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

// criticInGo is a critic's objective, see loss.
type criticInGo struct {
	engine.Stored
	exact []float32 // [N, S·A]
}

// Slopes implements engine.Objective.
func (o criticInGo) Slopes(examples []int32, batch int, values []float32) (loss float64) {
	share := 1 / float64(batch*o.K)
	for i, example := range examples {
		for j, exact := range o.exact[int(example)*o.K:][:o.K] {
			e := float64(values[i*o.K+j]) - float64(exact)
			loss += share * e * e
			values[i*o.K+j] = float32(2 * share * e)
		}
	}
	return loss
}

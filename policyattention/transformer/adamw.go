package transformer

import (
	"fmt"
	"math"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter,
// arXiv 1711.05101) on one flat vector. The decay acts on every parameter,
// biases and gains included, as in optax.adamw and torch.optim.AdamW.
type AdamW struct {
	LearningRate float64
	WeightDecay  float64
	Beta1, Beta2 float64 // decay of the first and second moment
	Epsilon      float64
	// Cosine, if not 0, is the number of steps over which the learning rate rises to
	// LearningRate, in the first hundred, and falls to 0 with the cosine from 0 to π
	// (Loshchilov and Hutter, arXiv 1608.03983, without restarts). It is 0 after them.
	Cosine int `json:",omitempty"`
}

// StandardAdamW is the paper's setting; what it leaves open has the usual
// values.
func StandardAdamW() AdamW {
	return AdamW{LearningRate: 3e-4, WeightDecay: 1e-4, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
}

// Validate returns an error unless the rates are positive (the decay of weights may be 0) and
// below 10⁶, and those of the moments in [0, 1).
func (o AdamW) Validate() error {
	if !(o.LearningRate > 0 && o.LearningRate < 1e6 && o.WeightDecay >= 0 && o.WeightDecay < 1e6 &&
		o.Epsilon > 0 && o.Epsilon < 1e6 && o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1 &&
		o.Cosine >= 0) {
		return fmt.Errorf("transformer: optimizer %+v, want positive finite rates and decays below 1", o)
	}
	return nil
}

// Rate is the learning rate of a step that counts from 1.
func (o AdamW) Rate(step int) float64 {
	if o.Cosine == 0 {
		return o.LearningRate
	}
	done := min(1, float64(step)/float64(o.Cosine))
	return o.LearningRate * (math.Cos(math.Pi*done) + 1) / 2 * min(1, float64(step)/100)
}

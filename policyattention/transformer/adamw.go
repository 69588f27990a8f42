package transformer

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
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

// rise is the number of steps in which the learning rate rises, with Cosine.
const rise = 100

// StandardAdamW is the paper's setting; what it leaves open has the usual
// values.
func StandardAdamW() AdamW {
	return AdamW{LearningRate: 3e-4, WeightDecay: 1e-4, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
}

// Validate returns an error unless the rates are positive (the decay of weights may be 0) and
// below 10⁶, and those of the moments in [0, 1).
func (o AdamW) Validate() error {
	if !(o.LearningRate > 0 && o.LearningRate < 1e6 && o.WeightDecay >= 0 && o.WeightDecay < 1e6 && o.Epsilon > 0 && o.Epsilon < 1e6 &&
		o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1 && o.Cosine >= 0) {
		return fmt.Errorf("transformer: optimizer %+v, want positive finite rates and decays below 1", o)
	}
	return nil
}

// Step returns parameters and moments after one update; all have the shape
// [n]. The scalar step counts updates from 1 (any number type): it is 1 in
// the first call, when both moments are zero.
func (o AdamW) Step(params, grad, m, v, step *Node) (newParams, newM, newV *Node) {
	newM = Add(MulScalar(m, o.Beta1), MulScalar(grad, 1-o.Beta1))
	newV = Add(MulScalar(v, o.Beta2), MulScalar(Square(grad), 1-o.Beta2))
	// 1 − βᵗ by expm1, which keeps all digits where βᵗ is close to 1.
	count := ConvertDType(step, params.DType())
	correction := func(beta float64) *Node { return Neg(Expm1(MulScalar(count, math.Log(beta)))) }
	update := Div(
		Div(newM, correction(o.Beta1)),
		AddScalar(Sqrt(Div(newV, correction(o.Beta2))), o.Epsilon))
	update = Add(update, MulScalar(params, o.WeightDecay))
	if o.Cosine == 0 {
		return Sub(params, MulScalar(update, o.LearningRate)), newM, newV
	}
	return Sub(params, Mul(update, o.rate(count))), newM, newV
}

// rate is the learning rate of a step that counts from 1.
func (o AdamW) rate(count *Node) *Node {
	done := MinScalar(DivScalar(count, float64(o.Cosine)), 1)
	fall := AddScalar(MulScalar(Cos(MulScalar(done, math.Pi)), 0.5), 0.5)
	return MulScalar(Mul(fall, MinScalar(DivScalar(count, rise), 1)), o.LearningRate)
}

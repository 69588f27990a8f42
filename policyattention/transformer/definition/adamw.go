package definition

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/transformer"
)

// Step returns parameters and moments after one update; all have the shape
// [n]. The scalar step counts updates from 1 (any number type): it is 1 in
// the first call, when both moments are zero.
func Step(o transformer.AdamW, params, grad, m, v, step *Node) (newParams, newM, newV *Node) {
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
	return Sub(params, Mul(update, rate(o, count))), newM, newV
}

// rate is the learning rate of a step that counts from 1.
func rate(o transformer.AdamW, count *Node) *Node {
	done := MinScalar(DivScalar(count, float64(o.Cosine)), 1)
	fall := AddScalar(MulScalar(Cos(MulScalar(done, math.Pi)), 0.5), 0.5)
	return MulScalar(Mul(fall, MinScalar(DivScalar(count, transformer.Rise), 1)), o.LearningRate)
}
